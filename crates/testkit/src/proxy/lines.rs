//! Response bodies that are delayed, held or cut after some of their lines.
//!
//! A watch is a stream of lines, one event each. Every other JSON response is a single line, with or without
//! a line break at its end.

use std::time::Duration;

use anyhow::{Result, anyhow};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, Stream, StreamExt, stream};
use http::Response;
use http_body_util::{BodyDataStream, BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::time::{Instant, sleep, sleep_until};

use super::Body;

/// Time to send the last bytes: hyper drops buffered data when the body returns an error.
const LAST_BYTES: Duration = Duration::from_millis(100);

/// Changes the body of a successful watch response. Errors stay unchanged.
pub(super) fn of_events(answer: Response<Body>, change: impl FnOnce(Body) -> Body) -> Response<Body> {
    if answer.status().is_success() { answer.map(change) } else { answer }
}

/// Delays every line and keeps the order. The delay of each line starts when it arrives, so delays do not add
/// up.
pub(super) fn delay(body: Body, by: Duration) -> Body {
    let delayed = lines(body).map(move |line| {
        let due = Instant::now() + by;
        async move {
            sleep_until(due).await;
            line
        }
    });
    to_body(delayed.buffered(usize::MAX))
}

/// Holds every line until the release, in order. The end of the body waits only for lines before it. The
/// upstream is read all the while, because an API server drops a client that does not read.
pub(super) fn hold(body: Body, release: impl Future<Output = ()> + Send + 'static) -> Body {
    let release = release.shared();
    let held = lines(body).map(move |line| {
        let release = release.clone();
        async move {
            if line.is_ok() {
                release.await;
            }
            line
        }
    });
    to_body(held.buffered(usize::MAX))
}

/// Sends `after` whole lines and half of the next, then breaks the connection.
pub(super) fn cut_mid_line(body: Body, after: usize) -> Body {
    let some = lines(body).take(after.saturating_add(1)).enumerate().map(move |(index, line)| {
        line.map(|line| if index == after { line.slice(..line.len() / 2) } else { line })
    });
    to_body(some.chain(stream::once(async {
        sleep(LAST_BYTES).await;
        Err(anyhow!("fault proxy: response cut"))
    })))
}

/// Sends `after` whole lines, then nothing; the body never ends.
pub(super) fn fall_silent(body: Body, after: usize) -> Body {
    to_body(lines(body).take(after).chain(stream::pending()))
}

/// Inserts `first` before the events of a watch.
pub(super) fn prepend(first: Bytes, body: Body) -> Body {
    to_body(stream::once(async { Ok(first) }).chain(BodyDataStream::new(body)))
}

fn to_body(chunks: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data))).boxed_unsync()
}

/// Splits a body into lines, each with its line break. What follows the last break is a line too.
fn lines(body: Body) -> impl Stream<Item = Result<Bytes>> {
    let unread = (BodyDataStream::new(body), BytesMut::new());
    stream::try_unfold(unread, |(mut chunks, mut line)| async move {
        // The search continues here, so that a long line is not searched again for every chunk.
        let mut searched = 0;
        loop {
            if let Some(end) = line[searched..].iter().position(|&byte| byte == b'\n') {
                let rest = line.split_off(searched + end + 1);
                return Ok(Some((line.freeze(), (chunks, rest))));
            }
            searched = line.len();
            match chunks.next().await.transpose()? {
                Some(chunk) => line.extend_from_slice(&chunk),
                None if line.is_empty() => return Ok(None),
                None => return Ok(Some((line.freeze(), (chunks, BytesMut::new())))),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::{
        SinkExt, TryStreamExt,
        channel::{mpsc, oneshot},
    };

    use super::*;

    fn body(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        to_body(stream::iter(chunks))
    }

    /// The text that arrives, and whether the body ends in order.
    async fn arrived(body: Body) -> (String, bool) {
        let (mut text, mut body) = (String::new(), BodyDataStream::new(body));
        loop {
            match body.next().await {
                Some(Ok(chunk)) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
                Some(Err(_)) => return (text, false),
                None => return (text, true),
            }
        }
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_chunks() {
        for (chunks, expected) in [
            (&["one\ntwo\n"][..], &["one\n", "two\n"][..]),
            (&["o", "ne", "\n", "\ntw", "o"], &["one\n", "\n", "two"]),
            (&["", "one\n", ""], &["one\n"]),
            (&[], &[]),
        ] {
            let lines: Vec<Bytes> = lines(body(chunks)).try_collect().await.unwrap();
            assert_eq!(lines, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_leaves_half_a_line() {
        assert_eq!(
            arrived(cut_mid_line(body(&["one\ntw", "o...\nthree"]), 1)).await,
            ("one\ntwo".into(), false)
        );
        assert_eq!(arrived(cut_mid_line(body(&["{items:[]}"]), 0)).await, ("{item".into(), false));
        assert_eq!(arrived(cut_mid_line(body(&["one\n"]), 3)).await, ("one\n".into(), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_body_never_ends() {
        let mut silent = BodyDataStream::new(fall_silent(body(&["one\ntwo\n"]), 1));
        assert_eq!(silent.next().await.unwrap().unwrap(), "one\n");
        assert!(tokio::time::timeout(Duration::from_hours(24), silent.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn delays_of_lines_do_not_add_up() {
        let start = Instant::now();
        assert_eq!(
            arrived(delay(body(&["one\n", "two\nthree"]), Duration::from_secs(5))).await.0,
            "one\ntwo\nthree"
        );
        assert_eq!(start.elapsed().as_secs(), 5);
    }

    #[tokio::test]
    async fn the_end_waits_only_for_held_lines() {
        let never = || std::future::pending();
        assert_eq!(arrived(hold(body(&[]), never())).await, (String::new(), true));
        let broken = to_body(stream::once(async { Err(anyhow!("broken")) }));
        assert_eq!(arrived(hold(broken, never())).await, (String::new(), false));
        assert!(arrived(hold(body(&["one\n"]), never())).now_or_never().is_none());
    }

    #[tokio::test]
    async fn held_lines_are_read_and_none_is_lost() {
        let (mut lines, taken_in) = mpsc::channel(0);
        let (release, released) = oneshot::channel();
        let held = hold(to_body(taken_in), released.map(|_| ()));
        let arrival = tokio::spawn(arrived(held));
        for line in ["one\n", "two\nth", "ree\n"] {
            lines.send(Ok(Bytes::from_static(line.as_bytes()))).await.unwrap();
        }
        lines.flush().await.unwrap();
        assert!(!arrival.is_finished());

        release.send(()).unwrap();
        lines.send(Ok(Bytes::from_static(b"four\n"))).await.unwrap();
        drop(lines);
        assert_eq!(arrival.await.unwrap(), ("one\ntwo\nthree\nfour\n".into(), true));
    }
}
