//! The faults.

use std::time::Duration;

use http::StatusCode;

use super::call::{Call, Verb};

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is held for so long before it goes on to the API server.
    Delay(Duration),
    /// Every event of a watch arrives late by this much; their order stays.
    DelayEvents(Duration),
    /// The events of a watch are held back until the fault is lifted. Then they arrive, all of them and in their order,
    /// and the watch goes on. If the API server ends it meanwhile, the end comes after them.
    HoldEvents,
    /// The answer breaks off together with its connection (in HTTP/2 its stream): so many whole lines arrive, then half
    /// of the next. A list is one line; so is every event of a watch, bookmarks included.
    CutMidLine {
        /// The lines that arrive whole.
        after_lines: usize,
    },
    /// The answer falls silent for ever after so many lines while the connection stays open. What is not a watch and
    /// shall be silent from the start does not reach the API server.
    HalfOpen {
        /// The lines that arrive before the silence.
        after_lines: usize,
    },
    /// The API server is not asked; this failure is the answer.
    Answer {
        /// The failure's code, which also decides its reason.
        status: StatusCode,
        /// When the client is told to come back, in whole seconds, rounded up.
        retry_after: Option<Duration>,
    },
    /// A watch starts well, and then its only event is this failure: the way in which API servers mostly say that a
    /// resource version has expired.
    ErrorEvent(StatusCode),
    /// The API server does what the request asks, but the connection breaks before any of its answer arrives. Meant
    /// for answers that end; the one to a watch is lost when the API server ends the watch.
    LoseResponse,
    /// The API server does what the request asks, but nothing of its answer arrives until the fault is lifted: time to
    /// end a client that has written and does not know it. Watches are not struck: see [`HoldEvents`](Self::HoldEvents).
    HoldResponse,
    /// The answer comes from an API server that is behind the others: reads see the state at this resource version,
    /// which etcd must still have. Watches start at that state and then catch up.
    ///
    /// Who asks for something newer is told to come back later; a streaming list is told so by an event. A watch from
    /// a newer resource version starts well and is silent, for nothing has happened yet after it. When the fault is
    /// lifted, the watch goes on with all that did happen.
    Past {
        /// The state that is seen.
        resource_version: u64,
    },
}

impl Fault {
    /// Whether this fault can do anything to such a call; it does not strike others.
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
