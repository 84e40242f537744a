//! Sends requests of lists and watches, and reads the responses.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    client::Body,
};
use tokio::time::{Instant, timeout, timeout_at};

use bellwether_wire::{
    ApiError,
    error_text::root_cause,
    page_reader::{DecodedPage, PageReader},
    read_error::ReadError,
};

use super::{
    ReaderSettings,
    line_buffer::{Lines, TooLong},
};

/// In bytes. etcd limits objects to a tenth of it.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// A watch that lasts this long resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// In bytes. Longer error responses are cut.
const MAX_ERROR: usize = 64 * 1024;

pub(crate) type BuiltRequest = Result<Request<Vec<u8>>, kube::core::request::Error>;

/// Returns a response with a 2xx status. Its headers must arrive within this time.
pub(super) async fn send(
    client: &Client,
    request: BuiltRequest,
    within: Duration,
) -> Result<Response<Body>, ReadError> {
    let request = request.map_err(|error| ReadError::rejected(error.to_string()))?.map(Body::from);
    let response = timeout(within, client.send(request)).await.map_err(|_| timed_out(within))?;
    let response = response.map_err(|error| ReadError::unavailable(root_cause(&error)))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (head, mut body) = response.into_parts();
    let mut status = Vec::new();
    while status.len() < MAX_ERROR
        && let Ok(Some(chunk)) = next_chunk(&mut body, Instant::now() + within).await
    {
        status.extend_from_slice(&chunk);
    }
    Err(ApiError::read(head.status, &head.headers, &status).into())
}

/// Returns the body of a 2xx response. Neither its headers nor a chunk of it may take longer than this.
pub(crate) async fn send_and_read(
    client: &Client,
    request: BuiltRequest,
    within: Duration,
) -> Result<Vec<u8>, ReadError> {
    read_body(send(client, request, within).await?, within).await
}

/// The request of a list page. Metadata alone keeps the content of objects out of this process.
pub(super) fn list_request(path: String, parameters: &ListParams, metadata_only: bool) -> BuiltRequest {
    let request = kube::core::Request::new(path);
    if metadata_only { request.list_metadata(parameters) } else { request.list(parameters) }
}

/// Decodes a list page while it arrives. No chunk of it may take longer than this.
pub(super) async fn read_page(
    response: Response<Body>,
    within: Duration,
    mut reader: PageReader,
) -> Result<DecodedPage, ReadError> {
    let mut body = response.into_body();
    while let Some(chunk) = next_chunk(&mut body, Instant::now() + within).await? {
        reader.push(&chunk)?;
    }
    reader.finish()
}

/// No chunk may take longer than this.
pub(super) async fn read_body(response: Response<Body>, within: Duration) -> Result<Vec<u8>, ReadError> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    loop {
        match next_chunk(&mut body, Instant::now() + within).await? {
            Some(chunk) => bytes.extend_from_slice(&chunk),
            None => return Ok(bytes),
        }
    }
}

/// An open watch.
pub(crate) struct Watch {
    body: Body,
    chunk: Bytes,
    lines: Lines,
    started: Instant,
    timeout: Duration,
    deadline: Instant,
    /// The longest time without data, once the API server has sent a bookmark.
    idle_timeout: Duration,
    has_bookmarks: bool,
    /// When data last arrived.
    received: Instant,
}

impl Watch {
    pub(crate) async fn start(
        client: &Client,
        settings: &ReaderSettings,
        request: impl FnOnce(&WatchParams) -> BuiltRequest,
    ) -> Result<Self, ReadError> {
        let seconds = settings.draw_watch_seconds(&mut rand::rng());
        let request = request(&WatchParams::default().timeout(seconds)).map(|mut request| {
            // API servers may compress each event separately, which the client cannot decompress.
            request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            request
        });
        let (started, timeout) = (Instant::now(), Duration::from_secs(seconds.into()));
        let body = send(client, request, settings.response_timeout).await?.into_body();
        Ok(Self {
            body,
            chunk: Bytes::new(),
            lines: Lines::new(MAX_LINE),
            started,
            timeout,
            deadline: started + timeout + settings.watch_timeout_grace,
            idle_timeout: settings.idle_timeout,
            has_bookmarks: false,
            received: Instant::now(),
        })
    }

    /// Whether it has lasted long enough to reset the backoff.
    pub(crate) fn has_lasted(&self) -> bool {
        self.started.elapsed() >= STABLE_AFTER.min(self.timeout)
    }

    /// Waits for the next line. Returns false when the watch has ended at its timeout.
    pub(crate) async fn next(&mut self) -> Result<bool, ReadError> {
        loop {
            while !self.chunk.is_empty() {
                let mut rest = &*self.chunk;
                let is_complete = self.lines.next(&mut rest);
                let taken = self.chunk.len() - rest.len();
                drop(self.chunk.split_to(taken));
                match is_complete {
                    Ok(true) if self.lines.line().is_empty() => {}
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(TooLong) => return Err(ReadError::unavailable("a watch event is too large")),
                }
            }
            let silence_ends = self.has_bookmarks.then(|| self.received + self.idle_timeout);
            let deadline = silence_ends.unwrap_or(self.deadline).min(self.deadline);
            match next_chunk(&mut self.body, deadline).await? {
                Some(chunk) => {
                    self.chunk = chunk;
                    self.received = Instant::now();
                }
                None if self.lines.is_incomplete() => {
                    return Err(ReadError::unavailable("the watch ended in the middle of an event"));
                }
                None => return Ok(false),
            }
        }
    }

    /// The API server sends bookmarks, so that silence means a broken connection.
    pub(crate) fn sends_bookmarks(&mut self) {
        self.has_bookmarks = true;
    }

    pub(crate) fn line(&self) -> &[u8] {
        self.lines.line()
    }
}

/// `None` at the end of the body.
async fn next_chunk(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, ReadError> {
    loop {
        let timed_out = |_| ReadError::unavailable("no data from the API server before the timeout");
        match timeout_at(deadline, body.frame()).await.map_err(timed_out)? {
            Some(Ok(frame)) => {
                if let Ok(chunk) = frame.into_data() {
                    return Ok(Some(chunk));
                }
            }
            Some(Err(error)) => return Err(ReadError::unavailable(root_cause(&error))),
            None => return Ok(None),
        }
    }
}

fn timed_out(within: Duration) -> ReadError {
    ReadError::unavailable(format!("no response within {} s", within.as_secs()))
}
