//! The kinds of which an Application may own objects, published as `status.ownedKinds`.
//!
//! A kind is published before the first object of it is adopted or created, and stays until certainly none is
//! left. After a crash or a lost response, the next leader knows from the status which kinds to watch in
//! order to remove owner references, whatever the spec says by then.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use jiff::{SignedDuration, Timestamp};

use crate::{id::GroupKind, planted::Bug};

/// How long a write may stay invisible in the watch: an API server's cache can lag this far behind.
const RELEASE_DELAY: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Default)]
pub(super) struct OwnedKinds {
    kinds: BTreeMap<GroupKind, OwnedKind>,
    /// As stored in the cluster.
    published: BTreeSet<GroupKind>,
}

#[derive(Debug, Default)]
struct OwnedKind {
    /// The status has listed the kind at some time. Otherwise nothing of it can be owned.
    was_published: bool,
    /// Its objects are deleted with the CRD, but may be restored with it.
    not_served: bool,
    /// Set while the kind is released: until when an owner reference may still become visible.
    until: Option<Timestamp>,
}

/// What an Application still owns of a kind.
pub(super) enum Remaining {
    Nothing,
    /// Something, or the kind cannot be read.
    Maybe,
    NotServed,
}

impl OwnedKinds {
    /// Returns whether the published kinds changed.
    pub(super) fn set_published(&mut self, published: BTreeSet<GroupKind>) -> bool {
        // A kind that was published before and dropped since is just not written yet, and not added again.
        for kind in published.difference(&self.published) {
            self.kinds.entry(kind.clone()).or_default().was_published = true;
        }
        mem::replace(&mut self.published, published) != self.published
    }

    /// Returns whether objects of the kind may be owned now. If not, the kind will be published.
    pub(super) fn require(&mut self, kind: &GroupKind) -> bool {
        if !self.kinds.contains_key(kind) {
            let was_published = self.published.contains(kind);
            self.kinds.insert(kind.clone(), OwnedKind { was_published, ..OwnedKind::default() });
        }
        self.published.contains(kind) || Bug::AdoptBeforeOwnedKinds.is_planted()
    }

    /// Whether a kind has to be published before its objects can be owned.
    pub(super) fn needs_publishing(&self) -> bool {
        self.kinds.keys().any(|kind| !self.published.contains(kind))
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    pub(super) fn contains(&self, kind: &GroupKind) -> bool {
        self.kinds.contains_key(kind)
    }

    pub(super) fn is_releasing(&self) -> bool {
        self.kinds.values().any(|owned_kind| owned_kind.until.is_some())
    }

    pub(super) fn clock_set(&mut self, by: SignedDuration) {
        for until in self.kinds.values_mut().filter_map(|owned_kind| owned_kind.until.as_mut()) {
            *until = until.checked_add(by).unwrap_or(*until);
        }
    }

    /// Drops the kinds that the spec does not allow and of which certainly nothing is owned. Returns when to
    /// check again.
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
            if !owned_kind.was_published {
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
