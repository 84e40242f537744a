//! What every group says about its state: the stored status, probes and the terminal take it from here.

use bellwether_model::State;

use jiff::Timestamp;

use crate::{
    feeds::{Feeds, StoredObject},
    id::{Cluster, GroupKind, NamespacedName},
};

/// The progress of a group, from the mean of its members: 100 if it is ready, otherwise at most 99.
pub(crate) fn progress(mean: Option<u8>, state: State) -> Option<u8> {
    match state {
        State::Ready => Some(100),
        _ => mean.map(|mean| mean.min(99)),
    }
}

/// Of a group that is being deleted: what its object reports, such as the finalizers that it waits for.
pub(crate) fn deletion_message(feeds: &Feeds, kind: &GroupKind, name: &NamespacedName) -> String {
    let object = object(feeds, kind, name);
    object.map_or("being deleted", |object| &object.facts.verdict.message).to_owned()
}

/// Since when a group is being deleted.
pub(crate) fn deleted_at(feeds: &Feeds, kind: &GroupKind, name: &NamespacedName) -> Option<Timestamp> {
    object(feeds, kind, name)?.facts.verdict.since
}

fn object<'f>(feeds: &'f Feeds, kind: &GroupKind, name: &NamespacedName) -> Option<&'f StoredObject> {
    feeds.object(feeds.find(&Cluster::hub(), kind, name)?)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::no_members(None, State::Unknown, None)]
    #[case::only_a_health_check(None, State::Ready, Some(100))]
    #[case::as_the_members(Some(40), State::InProgress, Some(40))]
    #[case::never_done_before_ready(Some(100), State::Failed, Some(99))]
    #[case::a_suspended_member(Some(60), State::Ready, Some(100))]
    fn progress_is_100_only_if_ready(
        #[case] mean: Option<u8>,
        #[case] state: State,
        #[case] expected: Option<u8>,
    ) {
        assert_eq!(progress(mean, state), expected);
    }
}
