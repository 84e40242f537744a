//! What the stored status says about objects below members. It counts while the API server fails to list a kind
//! below for the first time, so that a restart does not forget a failure that is known.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    sync::Arc,
};

use bellwether_api::{ApplicationStatus, ObjectCause, ObjectStatus, State};
use bellwether_health::{Rule, Source};

use crate::{
    feeds::Feeds,
    grouping_context::GroupingContext,
    id::{Cluster, GroupKind, NamespacedName},
    members::MemberEntry,
    reasons::application::NO_READY_ENDPOINTS,
    registry::GroupId,
};

use super::{Applications, application_state::ApplicationState, objects::source_name};

#[derive(Debug, Default)]
pub(super) struct StoredBelow {
    /// Workloads that are Failed because a Pod is.
    failures: HashMap<(GroupKind, NamespacedName), StoredFailure>,
    without_endpoints: HashSet<(GroupKind, NamespacedName)>,
}

#[derive(Debug)]
pub(super) struct StoredFailure {
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) rule: Option<Rule>,
    pub(super) cause: ObjectCause,
}

impl StoredBelow {
    pub(super) fn of(status: &ApplicationStatus, namespace: &Arc<str>) -> Self {
        let mut stored = Self::default();
        for object in &status.objects {
            let name = NamespacedName { namespace: Arc::clone(namespace), name: object.name.as_str().into() };
            let key = (GroupKind::new(&object.group, &object.kind), name);
            if let Some(failure) = StoredFailure::of(object) {
                stored.failures.insert(key, failure);
            } else if object.status == State::InProgress
                && object.reason.as_deref() == Some(NO_READY_ENDPOINTS)
            {
                stored.without_endpoints.insert(key);
            }
        }
        stored
    }

    pub(super) fn failure(&self, kind: &GroupKind, name: &NamespacedName) -> Option<&StoredFailure> {
        self.failures.get(&(kind.clone(), name.clone()))
    }

    pub(super) fn failure_of(&self, member: &MemberEntry) -> Option<&StoredFailure> {
        self.failure(&member.kind, &member.name)
    }

    pub(super) fn lacks_endpoints(&self, kind: &GroupKind, name: &NamespacedName) -> bool {
        self.without_endpoints.contains(&(kind.clone(), name.clone()))
    }

    fn members(&self) -> impl Iterator<Item = &(GroupKind, NamespacedName)> {
        self.failures.keys().chain(&self.without_endpoints)
    }

    pub(super) fn len(&self) -> usize {
        self.failures.len() + self.without_endpoints.len()
    }
}

impl StoredFailure {
    /// `None` if it is not Failed, or for a reason other than that of its Pod.
    fn of(object: &ObjectStatus) -> Option<Self> {
        let reason = object.reason.clone().filter(|_| object.status == State::Failed)?;
        let cause = object.cause.clone().filter(|cause| cause.reason.as_ref() == Some(&reason))?;
        let message = object.message.clone().unwrap_or_default();
        Some(Self { reason, message, rule: object.rule.as_deref().and_then(rule_named), cause })
    }
}

/// A rule as `status.objects` names it.
fn rule_named(text: &str) -> Option<Rule> {
    let (source, id) = text.split_once('/')?;
    let source = [Source::User, Source::Builtin, Source::Generic, Source::None]
        .into_iter()
        .find(|known| source_name(*known) == source)?;
    Some(Rule { source, id: id.to_owned().into() })
}

impl Applications {
    /// Takes over what the stored status says, also if another replica wrote it.
    pub(super) fn status_below_observed(
        &mut self,
        id: GroupId,
        status: &ApplicationStatus,
        cx: &mut GroupingContext<'_>,
    ) {
        let is_synced = self.apps.is_synced();
        let Some(app) = self.apps.get_mut(id) else { return };
        if is_synced && !app.needs_stored_below(cx.feeds) {
            return;
        }
        let now = StoredBelow::of(status, &app.name.namespace);
        let before = mem::replace(&mut app.stored_below, now);
        // Without rights to Pods, this goes on: not all members.
        let concerned: BTreeSet<_> = before.members().chain(app.stored_below.members()).collect();
        let find = |(kind, name): &(GroupKind, NamespacedName)| cx.feeds.find(&Cluster::hub(), kind, name);
        let concerned: Vec<_> = concerned.into_iter().filter_map(find).collect();
        self.update_above(concerned, None, cx);
    }
}

impl ApplicationState {
    /// Whether a kind below was never listed.
    pub(super) fn needs_stored_below(&self, feeds: &Feeds) -> bool {
        self.feeds_below.values().filter_map(|feed| feeds.get(*feed)).any(|feed| !feed.listed)
    }
}
