//! A kind that a controller follows, and what the engine must know of it.

use bellwether_engine::{FeedEvent, ServedResource, Unreadable};
use bellwether_wire::{Reflector, read_error::ReadError};

use crate::{plan::Moment, site::Site};

pub(crate) struct Feed {
    pub(crate) site: Site,
    pub(crate) reflector: Reflector,
    /// Number of the last request. Responses to earlier requests are dropped.
    pub(crate) ticket: u64,
    /// Whether a request is in flight, a back-off runs or a watch is open.
    pub(crate) busy: bool,
    /// When the engine first asked for its objects. Other fields do not give it more time.
    pub(crate) followed: Moment,
    /// When the engine last got a whole list.
    pub(crate) completed: Option<Moment>,
    /// Since when its first list has got 5xx, until the reflector reports it.
    pub(crate) failing: Option<Moment>,
    /// Whether the reflector has reported the kind as unreadable.
    pub(crate) is_reported: bool,
    pub(crate) view: View,
}

/// Milliseconds after which a kind whose first list gets 5xx must have been reported as unreadable.
const REPORTED: Moment = 30_000;

impl Feed {
    /// Notes an event of the reflector.
    pub(crate) fn note_event(&mut self, event: &FeedEvent) {
        self.is_reported |= matches!(event, FeedEvent::Unreadable(_));
    }

    /// Notes the answer to a list. Returns whether groups have waited too long for the kind.
    pub(crate) fn note_list(&mut self, error: Option<&ReadError>, now: Moment) -> bool {
        let is_failing = matches!(error, Some(ReadError::ServerError { .. }))
            && !self.reflector.has_listed()
            && !self.is_reported;
        let since = is_failing.then(|| *self.failing.get_or_insert(now));
        self.failing = since;
        since.is_some_and(|since| now - since > REPORTED)
    }
}

/// What the engine must know of a kind, derived from the events it was given.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) served: Option<ServedResource>,
    pub(crate) unreadable: Option<Unreadable>,
    pub(crate) listed: bool,
    /// Whether a list has started and has not completed.
    pub(crate) telling: bool,
    /// Whether the lens was widened and the relist has not completed.
    pub(crate) refocused: bool,
    /// The store's revision up to which the engine knows the kind.
    pub(crate) revision: u64,
    /// The revision of the first list.
    pub(crate) first: Option<u64>,
    /// Whether the kind stopped being served and was not listed since.
    pub(crate) empty: bool,
    /// Revision of a list that was accepted although the engine already knew a newer one: a violation.
    pub(crate) old_list: Option<u64>,
    /// Whether the kind changed between readable and unreadable.
    pub(crate) fickle: bool,
}

impl View {
    /// Whether all objects are known and from one point in time, or the kind is unreadable.
    pub(crate) fn is_whole(&self) -> bool {
        (self.listed && !self.telling) || self.unreadable.is_some()
    }

    /// Whether, in addition, the objects were decoded with the current lens.
    pub(crate) fn is_in_focus(&self) -> bool {
        self.is_whole() && (!self.refocused || self.unreadable.is_some())
    }

    /// Applies an event that the engine takes. `revision` is what the engine knows after it.
    pub(crate) fn deliver(&mut self, event: &FeedEvent, revision: Option<u64>) {
        match event {
            FeedEvent::Served(served) => self.served = Some(served.clone()),
            FeedEvent::Unreadable(why) => {
                // The pages of a list that broke off stay in the engine, so the kind stays torn.
                if *why == Unreadable::NotServed {
                    (self.empty, self.telling) = (true, false);
                }
                let is_known = self.listed || self.unreadable.is_some();
                self.fickle |= is_known && self.unreadable.as_ref() != Some(why);
                self.unreadable = Some(why.clone());
            }
            FeedEvent::ListStarted => self.telling = true,
            FeedEvent::ListCompleted => {
                self.fickle |= self.unreadable.is_some();
                self.listed = true;
                self.first = self.first.or(revision);
                self.telling = false;
                self.empty = false;
                self.unreadable = None;
                self.refocused = false;
                self.old_list = revision.filter(|revision| *revision < self.revision).or(self.old_list);
            }
            // From then on, an API server that lags behind cannot be told from one that does not.
            FeedEvent::Restored => self.revision = 0,
            FeedEvent::Applied(..) | FeedEvent::Deleted(_) => {}
        }
        self.revision = self.revision.max(revision.unwrap_or_default());
    }
}
