//! What the engine asks of every grouping: Applications, Rollups, HealthRules.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::{
    census::Census,
    context::Context,
    effect::{Change, Slot},
    event::Outcome,
    facts::{Facts, OwnObject, ResourceVersion},
    feeds::{Feeds, ObjectId},
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    view::{Claim, Group, GroupStatus},
};

/// Groups of one sort: a small machine over the one store of facts. None knows another.
///
/// All events of a step are told before `flush`, which evaluates what they concern. What does not concern a grouping, it
/// leaves to the provided methods.
pub(crate) trait Grouping: fmt::Debug + Send + Sync {
    /// The kinds that its groups are written in.
    fn reads(&self, kind: OwnKind) -> bool;

    /// Those of them that have to be known before anything is said of any group.
    fn base(&self) -> &'static [OwnKind];

    /// Whether its groups have members in a cluster. It is told of no feed or object of the others.
    fn has_members_in(&self, cluster: &Cluster) -> bool {
        cluster.is_hub()
    }

    /// Whether it can do with one namespace.
    fn is_namespaced(&self) -> bool {
        true
    }

    /// All of our own objects are known: from now on kinds may be followed.
    fn sync(&mut self, cx: &mut Context<'_>);

    /// One of its groups is there, or has changed.
    fn set(&mut self, name: &NamespacedName, facts: &Facts, own: &OwnObject, cx: &mut Context<'_>);

    /// The version of one of its groups has changed, and nothing else.
    fn version_changed(&mut self, group: &GroupRef, facts: &Facts);

    /// One of its groups is gone.
    fn remove(&mut self, group: &GroupRef, cx: &mut Context<'_>);

    /// An object is there, or has changed.
    fn object_changed(&mut self, _object: ObjectId, _before: Option<&Facts>, _cx: &mut Context<'_>) {}

    /// Only the version of an object has changed.
    fn object_same(&mut self, _object: ObjectId, _cx: &mut Context<'_>) {}

    /// An object is gone, and about to be forgotten.
    fn object_gone(&mut self, _object: ObjectId, _cx: &mut Context<'_>) {}

    /// An object is gone and forgotten: a group may miss it.
    fn object_missing(&mut self, _object: &ObjectKey, _cx: &mut Context<'_>) {}

    /// A kind is served otherwise, or has been listed for the first time; it may have become readable or unreadable.
    fn feed_changed(&mut self, _feed: FeedId, _readability: bool, _cx: &mut Context<'_>) {}

    /// A list of a kind has begun: until it is complete, what is known of the kind is of two times.
    fn list_started(&mut self, _feed: FeedId, _cx: &mut Context<'_>) {}

    /// All of a kind has been listed again: groups that waited for the end of that are to be evaluated.
    fn list_completed(&mut self, _feed: FeedId) {}

    /// The last user of a feed has left it: its objects are about to be forgotten.
    fn feed_dropped(&mut self, _feed: FeedId, _cx: &mut Context<'_>) {}

    /// What a group has waited for is over.
    fn wake(&mut self, group: &GroupRef);

    /// Evaluates what has changed, and asks for whatever follows from it.
    fn flush(&mut self, cx: &mut Context<'_>);

    /// What is to be written in the status of a group.
    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Change>;

    /// A write of the status of a group has ended. Gives back the version that its object has now, if that is news.
    fn status_written(
        &mut self,
        group: &GroupRef,
        change: &Change,
        outcome: &Outcome,
        cx: &mut Context<'_>,
    ) -> Option<ResourceVersion>;

    /// A write of something else has ended.
    fn written(&mut self, _slot: &Slot, _change: &Change, _outcome: &Outcome, _cx: &mut Context<'_>) {}

    /// A change that got a conflict is to be asked for once more.
    fn retry(&mut self, _slot: &Slot, _cx: &mut Context<'_>) {}

    /// The clock was set by so much.
    fn clock_set(&mut self, _by: SignedDuration) {}

    /// All groups of which something can be said, in no particular order.
    fn groups(&self, _feeds: &Feeds, _now: Timestamp) -> Vec<Group> {
        Vec::new()
    }

    /// One of them.
    fn group(&self, _group: &GroupRef, _feeds: &Feeds, _now: Timestamp) -> Option<Group> {
        None
    }

    /// How many groups there are.
    fn group_count(&self) -> usize {
        0
    }

    /// How a group is as one; nothing if there is none of this name.
    fn summary(&self, _group: &GroupRef, _feeds: &Feeds, _now: Timestamp) -> Option<GroupStatus> {
        None
    }

    /// What its groups have to do with an object.
    fn claims(&self, _kind: &GroupKind, _name: &NamespacedName, _facts: &Facts) -> Vec<Claim> {
        Vec::new()
    }

    /// Adds what it has to do with.
    fn count(&self, _census: &mut Census) {}
}
