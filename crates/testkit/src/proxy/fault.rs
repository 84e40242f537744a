use std::time::Duration;

use http::StatusCode;

use super::call::{Call, Verb};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Waits before it forwards the request.
    Delay(Duration),
    /// Delays every event of a watch. The order stays.
    DelayEvents(Duration),
    /// Holds the events of a watch until the fault is lifted, then delivers them in order and continues the
    /// watch. If the API server ends the watch meanwhile, its end follows the held events.
    HoldEvents,
    /// Breaks the connection (in HTTP/2 the stream) after `after_lines` whole lines and half of the next. A
    /// list is one line; so is every event of a watch, including bookmarks.
    CutMidLine { after_lines: usize },
    /// Sends nothing after `after_lines` lines, but keeps the connection open. With 0, a request that is not
    /// a watch is not forwarded to the API server.
    HalfOpen { after_lines: usize },
    /// Responds with this error and does not forward the request.
    Answer {
        /// It also decides the reason of the `Status`.
        status: StatusCode,
        /// The Retry-After header, rounded up to whole seconds.
        retry_after: Option<Duration>,
    },
    /// Responds to a watch with 200 and this error as the only event. API servers mostly report an expired
    /// resourceVersion in this way.
    ErrorEvent(StatusCode),
    /// Forwards the request and breaks the connection before the response. For a watch, this happens when the
    /// API server ends the watch.
    LoseResponse,
    /// Forwards the request and holds the response until the fault is lifted. A test can then end a client
    /// whose write has succeeded without its knowledge. Does not strike watches: see
    /// [`HoldEvents`](Self::HoldEvents).
    HoldResponse,
    /// Responds like a stale API server: reads see the state at this resourceVersion, which etcd must still
    /// have. Watches start from that state and then catch up.
    ///
    /// A read at a newer resourceVersion fails with `ResourceVersionTooLarge`; a streaming list gets that as
    /// an event. A watch from a newer resourceVersion is accepted and gets no events until the fault is
    /// lifted.
    Past { resource_version: u64 },
}

impl Fault {
    /// Whether this fault can affect such a call. It does not strike others.
    pub(super) fn concerns(self, call: &Call) -> bool {
        match self {
            Self::DelayEvents(_) | Self::HoldEvents | Self::ErrorEvent(_) => call.verb == Verb::Watch,
            Self::HoldResponse => call.verb != Verb::Watch,
            Self::Past { .. } => {
                matches!(call.verb, Verb::Get | Verb::List | Verb::Watch)
                    && call.resource.as_ref().is_some_and(|resource| {
                        matches!(resource.subresource.as_deref(), None | Some("status"))
                    })
            }
            Self::Delay(_)
            | Self::CutMidLine { .. }
            | Self::HalfOpen { .. }
            | Self::Answer { .. }
            | Self::LoseResponse => true,
        }
    }
}
