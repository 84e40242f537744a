//! A kind that a controller follows, and what its engine must know of it.

use bellwether_engine::{FeedEvent, Served, Unreadable};
use bellwether_wire::Reflector;

use crate::site::Site;

/// One kind that is followed.
pub(crate) struct Feed {
    pub(crate) site: Site,
    pub(crate) follower: Reflector,
    /// What was asked last. Answers to what was asked before are dropped.
    pub(crate) ticket: u64,
    /// Whether an answer is awaited, or a watch is open.
    pub(crate) busy: bool,
    pub(crate) view: View,
}

/// What the engine must know of a kind by now.
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) served: Option<Served>,
    pub(crate) unreadable: Option<Unreadable>,
    pub(crate) listed: bool,
    /// Whether a list is being told.
    pub(crate) telling: bool,
    /// Whether a group wants more of its objects than was kept, and the kind is not listed again yet.
    pub(crate) refocused: bool,
    /// Everything is known up to this change.
    pub(crate) revision: u64,
    /// Whether the kind was gone, and is not listed anew yet.
    pub(crate) empty: bool,
    /// A list that was believed although it is older than what was known.
    pub(crate) old_list: Option<u64>,
    /// Whether it could be read and then not, or the other way round.
    pub(crate) fickle: bool,
}

impl View {
    /// Whether all of it is known, and of one time; or that this cannot be.
    pub(crate) fn is_whole(&self) -> bool {
        (self.listed && !self.telling) || self.unreadable.is_some()
    }

    /// Whether all is known besides that anybody wants to know of its objects.
    pub(crate) fn is_in_focus(&self) -> bool {
        self.is_whole() && (!self.refocused || self.unreadable.is_some())
    }

    /// The engine is told, and knows everything up to this change then.
    pub(crate) fn hear(&mut self, news: &FeedEvent, revision: Option<u64>) {
        match news {
            FeedEvent::Served(served) => self.served = Some(served.clone()),
            FeedEvent::Unreadable(why) => {
                // A list that broke off has told something all the same.
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
                self.telling = false;
                self.empty = false;
                self.unreadable = None;
                self.refocused = false;
                self.old_list = revision.filter(|revision| *revision < self.revision).or(self.old_list);
            }
            FeedEvent::Restored | FeedEvent::Applied(..) | FeedEvent::Deleted(_) => {}
        }
        self.revision = self.revision.max(revision.unwrap_or_default());
    }
}
