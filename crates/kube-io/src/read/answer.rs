//! Asking an API server, and hearing what it answers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::{Client, api::WatchParams, client::Body};
use tokio::time::{Instant, timeout, timeout_at};

use bellwether_wire::{ApiError, line::root, read_error::ReadError};

use super::{
    ClusterConnection,
    lines::{Lines, TooLong},
};

/// No line of a watch is longer than this: objects are a tenth of it at most.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// A watch that has lasted for so long was alive.
const ALIVE: Duration = Duration::from_secs(10);

/// How much is read of an answer that only says what went wrong.
const LONGEST_EXCUSE: usize = 64 * 1024;

/// A request, or why there can be none.
pub(super) type BuiltRequest = Result<Request<Vec<u8>>, kube::core::request::Error>;

/// Asks. The answer is a success, and must begin within this time.
pub(super) async fn ask(
    client: &Client,
    question: BuiltRequest,
    within: Duration,
) -> Result<Response<Body>, ReadError> {
    let request = question.map_err(|error| ReadError::rejected(error.to_string()))?.map(Body::from);
    let answer = timeout(within, client.send(request)).await.map_err(|_| silence(within))?;
    let answer = answer.map_err(|error| ReadError::unavailable(root(&error)))?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let (head, mut body) = answer.into_parts();
    let mut excuse = Vec::new();
    while excuse.len() < LONGEST_EXCUSE
        && let Ok(Some(piece)) = next_piece(&mut body, Instant::now() + within).await
    {
        excuse.extend_from_slice(&piece);
    }
    Err(ApiError::read(head.status, &head.headers, &excuse).into())
}

/// Asks, and gives the whole answer. It must not pause for longer than this.
pub(super) async fn ask_all(
    client: &Client,
    question: BuiltRequest,
    within: Duration,
) -> Result<Vec<u8>, ReadError> {
    whole(ask(client, question, within).await?, within).await
}

/// The whole of an answer. It must not pause for longer than this.
pub(super) async fn whole(answer: Response<Body>, within: Duration) -> Result<Vec<u8>, ReadError> {
    let mut body = answer.into_body();
    let mut all = Vec::new();
    loop {
        match next_piece(&mut body, Instant::now() + within).await? {
            Some(piece) => all.extend_from_slice(&piece),
            None => return Ok(all),
        }
    }
}

/// A watch that is open.
pub(super) struct Watch {
    body: Body,
    piece: Bytes,
    lines: Lines,
    begun: Instant,
    lasts: Duration,
    deadline: Instant,
    /// How long it may be silent, from when the server has shown that it speaks of its own accord.
    silence: Duration,
    speaks: bool,
    /// When something was last heard.
    heard: Instant,
}

impl Watch {
    /// Begins a watch.
    pub(super) async fn begin(
        connection: &ClusterConnection,
        question: impl FnOnce(&WatchParams) -> BuiltRequest,
    ) -> Result<Self, ReadError> {
        let ClusterConnection { client, settings, .. } = connection;
        let seconds = settings.draw_watch_seconds(&mut rand::rng());
        let question = question(&WatchParams::default().timeout(seconds)).map(|mut request| {
            // API servers may press each event by itself, which not every client can unpack.
            request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            request
        });
        let (begun, lasts) = (Instant::now(), Duration::from_secs(seconds.into()));
        let body = ask(client, question, settings.answers_within).await?.into_body();
        let deadline = begun + lasts + settings.slack;
        let (piece, lines, silence) = (Bytes::new(), Lines::new(LONGEST_LINE), settings.silence);
        Ok(Self { body, piece, lines, begun, lasts, deadline, silence, speaks: false, heard: Instant::now() })
    }

    /// Whether it has lasted long enough to be called alive, even if nothing has happened.
    pub(super) fn has_lived(&self) -> bool {
        self.begun.elapsed() >= ALIVE.min(self.lasts)
    }

    /// Waits for the next line. Gives whether there is one; if not, the watch has ended as it should.
    pub(super) async fn next(&mut self) -> Result<bool, ReadError> {
        loop {
            while !self.piece.is_empty() {
                let mut rest = &*self.piece;
                let whole = self.lines.next(&mut rest);
                let taken = self.piece.len() - rest.len();
                drop(self.piece.split_to(taken));
                match whole {
                    Ok(true) if self.lines.line().is_empty() => {}
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(TooLong) => return Err(ReadError::unavailable("a line of a watch is too long")),
                }
            }
            let silent_until = self.speaks.then(|| self.heard + self.silence);
            let deadline = silent_until.unwrap_or(self.deadline).min(self.deadline);
            match next_piece(&mut self.body, deadline).await? {
                Some(piece) => (self.piece, self.heard) = (piece, Instant::now()),
                None if self.lines.is_torn() => {
                    return Err(ReadError::unavailable("a watch ended within a line"));
                }
                None => return Ok(false),
            }
        }
    }

    /// The server has said something that nobody asked for, as it will again if it is still there.
    pub(super) fn speaks(&mut self) {
        self.speaks = true;
    }

    /// The line.
    pub(super) fn line(&self) -> &[u8] {
        self.lines.line()
    }
}

/// The next piece of an answer; none at its end.
async fn next_piece(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, ReadError> {
    loop {
        let late = |_| ReadError::unavailable("the connection has fallen silent");
        match timeout_at(deadline, body.frame()).await.map_err(late)? {
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
            Some(Err(error)) => return Err(ReadError::unavailable(root(&error))),
            None => return Ok(None),
        }
    }
}

fn silence(within: Duration) -> ReadError {
    ReadError::unavailable(format!("no answer within {} s", within.as_secs()))
}
