//! What is below the members of Applications: follows the kinds below, and passes on to members what their
//! Pods and endpoints say.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
};

use bellwether_api::State;
use bellwether_health::{
    Source,
    reasons::{NO_MATCHING_NODES, SCALED_TO_ZERO},
};
use bellwether_model::text::one_line;
use jiff::{SignedDuration, Timestamp};

use crate::{
    below::{Below, BelowIndex, is_first_list_failing, kinds_below, may_fail, runs_continuously},
    effect_queue::{EffectQueue, Timer},
    facts::{Facts, KindFacts},
    feeds::{Feed, Feeds, ObjectId, StoredObject},
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind},
    members::MemberEntry,
    planted::Bug,
    reasons::application::NO_READY_ENDPOINTS,
    registry::GroupId,
    requested_fields::RequestedFields,
    selector_index::remove_from_set,
    stored_condition::MESSAGE_BUDGET,
};

use super::{Applications, application_state::ApplicationState};

/// How long a Pod must have failed until its workload counts as Failed.
pub const FAILED_AFTER: SignedDuration = SignedDuration::from_secs(60);

#[derive(Debug)]
pub(super) struct BelowMembers {
    index: BelowIndex,
    /// `None`: nothing below members is read.
    pub(super) failed_after: Option<SignedDuration>,
    users: HashMap<FeedId, BTreeSet<GroupId>>,
}

impl Default for BelowMembers {
    fn default() -> Self {
        Self { index: BelowIndex::default(), failed_after: Some(FAILED_AFTER), users: HashMap::new() }
    }
}

impl BelowMembers {
    /// Updates the index of what is below. Returns the objects about which the object says something.
    pub(super) fn update(
        &mut self,
        object: ObjectId,
        before: Option<&Facts>,
        now: Option<&Facts>,
        feeds: &Feeds,
    ) -> BTreeSet<ObjectId> {
        let Some(stored) = feeds.object(object).filter(|_| self.failed_after.is_some()) else {
            return BTreeSet::new();
        };
        self.index.update(object, stored, before, now, feeds)
    }

    /// What is below a member, as far as it changes how the member counts.
    pub(super) fn of_member(
        &self,
        app: &ApplicationState,
        object: ObjectId,
        stored: &StoredObject,
        feed: &Feed,
        cx: (&Feeds, &mut EffectQueue, Timestamp),
    ) -> Option<Below> {
        let (feeds, queue, now) = cx;
        let failed_after = self.failed_after.filter(|_| feed.unreadable.is_none())?;
        if let KindFacts::Service { selects_pods: true } = stored.facts.kind_facts {
            let verdict = &stored.facts.verdict;
            let needs_endpoints = verdict.state == State::Ready
                && verdict.rule.source != Source::User
                && !app.is_scaled_to_zero;
            let had_none = || {
                is_first_list_failing(&feed.kind, feeds)
                    && app.stored_below.lacks_endpoints(&feed.kind, &stored.name)
            };
            let has_endpoint = self.index.has_ready_endpoint(&stored.name, feeds);
            let is_without = needs_endpoints && !has_endpoint.unwrap_or_else(|| !had_none());
            return is_without.then_some(Below::NoReadyEndpoints);
        }
        if kinds_below(&feed.kind).is_empty() {
            return None;
        }
        if is_first_list_failing(&feed.kind, feeds) {
            let may_fail = stored.facts.settled && may_fail(&stored.facts.verdict);
            let has_failed = may_fail && app.stored_below.failure(&feed.kind, &stored.name).is_some();
            return has_failed.then_some(Below::StoredFailure);
        }
        let (below, changes_at) = self.index.of_workload(&feed.kind, stored, feeds, now, failed_after);
        if let Some(at) = changes_at.filter(|_| !Bug::SetNoFailureTimer.is_planted()) {
            queue.schedule(at, Timer::Below(object));
        }
        below
    }

    /// The Applications that follow a kind because it is below one of theirs.
    pub(super) fn users(&self, feed: FeedId) -> BTreeSet<GroupId> {
        self.users.get(&feed).cloned().unwrap_or_default()
    }

    /// The number of entries, for metrics.
    pub(super) fn len(&self) -> usize {
        self.users.len() + self.index.len()
    }
}

/// For a workload, whether it is scaled to zero. `None` for any other object.
pub(super) fn is_scaled_to_zero(kind: &GroupKind, facts: &Facts) -> Option<bool> {
    let reason = &*facts.verdict.reason;
    runs_continuously(kind).then_some(reason == SCALED_TO_ZERO || reason == NO_MATCHING_NODES)
}

impl Applications {
    /// Follows the kinds below those of the spec, and leaves the others.
    pub(super) fn update_kinds_below(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let mut before = mem::take(&mut app.feeds_below);
        if self.below.failed_after.is_some() {
            let members = app.kind_uses.iter().filter(|(_, kind_use)| kind_use.allows_members);
            for (group, kind) in members.flat_map(|(kind, _)| kinds_below(kind)) {
                let kind = GroupKind::new(group, kind);
                if app.feeds_below.contains_key(&kind) {
                    continue;
                }
                let feed = before.remove(&kind).unwrap_or_else(|| {
                    cx.feeds.acquire(
                        &Cluster::hub(),
                        &kind,
                        &RequestedFields::default(),
                        &mut cx.queue.effects,
                    )
                });
                self.below.users.entry(feed).or_default().insert(id);
                app.feeds_below.insert(kind, feed);
            }
        }
        self.leave_kinds_below(id, before, cx);
    }

    pub(super) fn leave_kinds_below(
        &mut self,
        id: GroupId,
        feeds: BTreeMap<GroupKind, FeedId>,
        cx: &mut GroupingContext<'_>,
    ) {
        for feed in feeds.into_values() {
            remove_from_set(&mut self.below.users, &feed, &id);
            cx.feeds.release(feed);
        }
    }
}

/// The reason and message of a member from below; `None` if its own verdict has them.
pub(super) fn why_below<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    entry: &MemberEntry,
) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    match entry.below? {
        Below::Cause(_) => None,
        Below::StoredFailure => {
            let failure = app.stored_below.failure_of(entry)?;
            Some((failure.reason.as_str().into(), failure.message.as_str().into()))
        }
        Below::NoReadyEndpoints => Some((NO_READY_ENDPOINTS.into(), "no ready endpoints".into())),
        Below::FailedPod(pod) => {
            let pod = feeds.object(pod)?;
            let verdict = &pod.facts.verdict;
            let message = one_line(format!("Pod {}: {}", pod.name.name, verdict.message), MESSAGE_BUDGET);
            Some((Cow::Borrowed(&verdict.reason), message))
        }
    }
}
