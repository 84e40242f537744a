//! The kinds of which an Application owns objects, or may own some.
//!
//! Its status names them before the first object is taken over or made, and until it is certain that none is left. Whoever
//! comes after one that has ended, or that never heard an answer, finds there where to look, however the spec has been
//! changed since.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use jiff::{SignedDuration, Timestamp};

use crate::{id::GroupKind, planted::Bug};

/// How long what is under way may stay out of sight: so far behind may an API server be.
const RELEASE_DELAY: SignedDuration = SignedDuration::from_mins(10);

/// The kinds of which an Application owns objects, or may own some.
#[derive(Debug, Default)]
pub(super) struct OwnedKinds {
    kinds: BTreeMap<GroupKind, OwnedKind>,
    /// Those that its status names, as the cluster has it.
    published: BTreeSet<GroupKind>,
}

/// A kind of which an Application owns objects, or may own some.
#[derive(Debug, Default)]
struct OwnedKind {
    /// Whether the status has ever named it: what was never named was never touched.
    named: bool,
    /// Whether it is not served. What is gone with it may come back with it.
    not_served: bool,
    /// If nothing more is to be owned of it: until when something may still come into sight.
    until: Option<Timestamp>,
}

/// What is known of what an Application owns of a kind.
pub(super) enum Remaining {
    Nothing,
    /// Something, or nobody can tell.
    Maybe,
    /// Nothing, because the kind is not served.
    NotServed,
}

impl OwnedKinds {
    /// The status names these kinds. Gives back whether they are others than before.
    pub(super) fn set_published(&mut self, published: BTreeSet<GroupKind>) -> bool {
        // One that it named before, and that has been dropped since, is only named still.
        for kind in published.difference(&self.published) {
            self.kinds.entry(kind.clone()).or_default().named = true;
        }
        mem::replace(&mut self.published, published) != self.published
    }

    /// Something of a kind is to be owned. Gives back whether it may be, and otherwise sees to it.
    pub(super) fn claim(&mut self, kind: &GroupKind) -> bool {
        if !self.kinds.contains_key(kind) {
            let named = self.published.contains(kind);
            self.kinds.insert(kind.clone(), OwnedKind { named, ..OwnedKind::default() });
        }
        self.published.contains(kind) || Bug::AdoptUnannounced.is_planted()
    }

    /// Whether there is a kind that the status has to name before anything can be done.
    pub(super) fn needs_publishing(&self) -> bool {
        self.kinds.keys().any(|kind| !self.published.contains(kind))
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    pub(super) fn contains(&self, kind: &GroupKind) -> bool {
        self.kinds.contains_key(kind)
    }

    /// Whether there is a kind of which nothing more is to be owned.
    pub(super) fn is_releasing(&self) -> bool {
        self.kinds.values().any(|owned_kind| owned_kind.until.is_some())
    }

    /// Somebody has set the clock.
    pub(super) fn clock_set(&mut self, by: SignedDuration) {
        for until in self.kinds.values_mut().filter_map(|owned_kind| owned_kind.until.as_mut()) {
            *until = until.checked_add(by).unwrap_or(*until);
        }
    }

    /// Drops the kinds of which nothing is to be owned any more and certainly nothing is. Gives back when to look again.
    pub(super) fn drop_released(
        &mut self,
        may_own: impl Fn(&GroupKind) -> bool,
        remaining: impl Fn(&GroupKind) -> Remaining,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.kinds.retain(|kind, owned_kind| {
            if may_own(kind) {
                owned_kind.until = None;
                return true;
            }
            if !owned_kind.named {
                return false;
            }
            let remaining = remaining(kind);
            let was_not_served =
                mem::replace(&mut owned_kind.not_served, matches!(remaining, Remaining::NotServed));
            if owned_kind.not_served && !was_not_served {
                owned_kind.until = None;
            }
            let until =
                *owned_kind.until.get_or_insert_with(|| now.checked_add(RELEASE_DELAY).unwrap_or(now));
            until > now || matches!(remaining, Remaining::Maybe)
        });
        self.kinds.values().filter_map(|owned_kind| owned_kind.until).filter(|until| *until > now).min()
    }
}
