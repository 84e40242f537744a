//! Membership of objects in Applications, and what is counted of each member.

use std::{collections::HashMap, mem, sync::Arc};

use bellwether_api::{ApplicationStatus, ObjectStatus, State};
use bellwether_health::{Verdict, reasons::RULES_UNREADABLE};
use jiff::Timestamp;

use crate::{
    below::Below,
    effect_queue::EffectQueue,
    event::Unreadable,
    facts::KindFacts,
    feeds::{Feed, Feeds, ObjectId, StoredObject},
    grouping_context::GroupingContext,
    id::{FeedId, GroupKind, NamespacedName},
    members::{MemberEntry, MemberId, SeenState, since_when},
    registry::GroupId,
    stored_condition,
};

use super::{
    Applications,
    application_state::{ApplicationState, NamedComponent, Presence},
    below::{BelowMembers, is_scaled_to_zero},
};

impl Applications {
    /// The Applications of which an object is a member.
    pub(super) fn member_of(&self, feed: &Feed, stored: &StoredObject) -> Vec<GroupId> {
        let counts = |id: &GroupId| {
            let app = self.apps.get(*id);
            app.is_some_and(|app| app.allows_members_of(&feed.kind) && app.membership(&stored.facts).is_ok())
        };
        self.index
            .candidates(&stored.name.namespace, &stored.facts.labels)
            .into_iter()
            .filter(counts)
            .collect()
    }

    /// Updates the presence of a component for all Applications that name it.
    pub(super) fn check_presence(
        &mut self,
        kind: &GroupKind,
        name: &NamespacedName,
        cx: &GroupingContext<'_>,
    ) {
        for id in self.index.naming(kind, name) {
            let Some(app) = self.apps.get_mut(id) else { continue };
            let is_named =
                |component: &NamedComponent| component.kind == *kind && component.name == name.name;
            for index in 0..app.components.len() {
                if app.components.get(index).is_some_and(is_named) {
                    check_presence(app, index, cx);
                }
            }
            self.apps.mark_dirty(id);
        }
    }

    /// Updates all members and components of a kind.
    pub(super) fn update_members_of(&mut self, id: GroupId, feed: FeedId, cx: &mut GroupingContext<'_>) {
        let (Some(app), Some(known)) = (self.apps.get_mut(id), cx.feeds.get(feed)) else { return };
        let namespaces = app.namespaces();
        for object in namespaces.iter().flat_map(|namespace| known.in_namespace(namespace)) {
            if app.members.get(MemberId::Object(object)).is_some()
                && let Some(stored) = cx.feeds.object(object)
            {
                let context = (&*cx.feeds, &mut *cx.queue, cx.now);
                upsert_member(app, object, stored, known, false, &self.below, context);
            }
        }
        for index in 0..app.components.len() {
            if app.components.get(index).is_some_and(|component| component.kind == known.kind) {
                check_presence(app, index, cx);
            }
        }
    }

    /// Something below these members changed: `by`, or the time.
    pub(super) fn update_above(
        &mut self,
        members: impl IntoIterator<Item = ObjectId>,
        by: Option<ObjectId>,
        cx: &mut GroupingContext<'_>,
    ) {
        for member in members {
            let Some(stored) = cx.feeds.object(member) else { continue };
            let Some(feed) = cx.feeds.get(stored.feed) else { continue };
            for id in self.memberships.get(&member).into_iter().flatten() {
                let Some(app) = self.apps.get_mut(*id) else { continue };
                let before = app.members.get(MemberId::Object(member)).cloned();
                upsert_member(app, member, stored, feed, true, &self.below, (cx.feeds, cx.queue, cx.now));
                let entry = app.members.get(MemberId::Object(member));
                // The status quotes the Pod.
                let quotes = entry.is_some_and(|entry| by.is_some() && entry.cause() == by);
                if quotes || entry != before.as_ref() {
                    self.apps.mark_dirty(*id);
                }
            }
        }
    }

    /// A kind below became readable or unreadable.
    pub(super) fn feed_below_changed(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        for id in self.below.users(feed) {
            self.apps.mark_dirty(id);
            let Some(app) = self.apps.get(id) else { continue };
            let members = app.members.objects();
            self.update_above(members, None, cx);
        }
    }

    /// If all workloads are scaled to zero, Services need no endpoints. Whether they are is known only when
    /// all members are counted; until then, Services count by the answer before.
    pub(super) fn update_services(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let scaled_to_zero = app.members.are_scaled_to_zero();
        if mem::replace(&mut app.is_scaled_to_zero, scaled_to_zero) == scaled_to_zero {
            return;
        }
        let is_service = |object: &ObjectId| {
            let facts = cx.feeds.object(*object).map(|stored| &stored.facts.kind_facts);
            matches!(facts, Some(KindFacts::Service { .. }))
        };
        let services: Vec<_> = app.members.objects().into_iter().filter(is_service).collect();
        self.update_above(services, None, cx);
    }
}

/// Adds or updates a member. `is_new`: if the verdict has no time, the state starts now.
pub(super) fn upsert_member(
    app: &mut ApplicationState,
    object: ObjectId,
    stored: &StoredObject,
    feed: &Feed,
    is_new: bool,
    below_members: &BelowMembers,
    cx: (&Feeds, &mut EffectQueue, Timestamp),
) {
    let (feeds, _, now) = cx;
    let verdict = &stored.facts.verdict;
    let is_readable = feed.unreadable.is_none() && !are_rules_unreadable(verdict);
    let below = below_members.of_member(app, object, stored, feed, cx).filter(|_| is_readable);
    let (state, reported) = match below {
        _ if !is_readable => (State::Unknown, verdict.since),
        Some(Below::FailedPod(pod)) => {
            (State::Failed, feeds.object(pod).and_then(|pod| pod.facts.verdict.since))
        }
        Some(Below::StoredFailure) => (State::Failed, None),
        Some(Below::NoReadyEndpoints) => (State::InProgress, None),
        Some(Below::Cause(_)) | None => (verdict.state, verdict.since),
    };
    let member_id = MemberId::Object(object);
    let is_new = is_new && feed.unreadable.is_none();
    let (since, seen) = times(
        app,
        (member_id, &feed.kind, &stored.name),
        Observed {
            state,
            is_readable,
            reported,
            has_failed_pod: matches!(below, Some(Below::FailedPod(_) | Below::StoredFailure)),
            is_new,
        },
        now,
    );
    let entry = MemberEntry {
        progress: match state {
            State::Ready => verdict.progress,
            _ if below == Some(Below::NoReadyEndpoints) => 0,
            _ => verdict.progress.min(99),
        },
        settled: stored.facts.settled || feed.unreadable.is_some(),
        seen,
        below,
        scaled_to_zero: is_scaled_to_zero(&feed.kind, &stored.facts),
        blocks: state == State::Suspended && verdict.blocks,
        ..MemberEntry::new(feed.kind.clone(), stored.name.clone(), state, since)
    };
    app.members.put(member_id, entry);
}

/// Such a verdict says nothing about the object.
fn are_rules_unreadable(verdict: &Verdict) -> bool {
    verdict.reason == RULES_UNREADABLE
}

/// Updates the presence of a component. One that is missing or unknown is counted as a member.
pub(super) fn check_presence(app: &mut ApplicationState, index: usize, cx: &GroupingContext<'_>) {
    let Some(component) = app.components.get(index) else { return };
    let Some(kind_use) = app.kind_uses.get(&component.kind) else { return };
    // Until the kind is listed, keep the stored times.
    let Some(feed) = cx.feeds.get(kind_use.feed).filter(|feed| feed.is_known()) else { return };
    let name =
        NamespacedName { namespace: Arc::clone(&app.name.namespace), name: Arc::clone(&component.name) };
    let found = cx.feeds.find_in(kind_use.feed, &name).and_then(|id| cx.feeds.object(id));
    let presence = match (found.map(|stored| app.membership(&stored.facts)), &feed.unreadable) {
        (Some(Ok(())), _) => Presence::Present,
        (None, Some(Unreadable::NotServed)) => Presence::Absent,
        (_, Some(_)) => Presence::Unknown,
        _ if !feed.listed || feed.served.as_ref().is_some_and(|served| !served.namespaced) => {
            Presence::Unknown
        }
        (Some(Err(not_member)), None) => Presence::NotMember(not_member),
        (None, None) => Presence::Absent,
    };
    let state = match presence {
        Presence::Present => None,
        Presence::Absent | Presence::NotMember(_) => Some(State::Missing),
        Presence::Unknown => Some(State::Unknown),
    };
    // A missing component is missing since we noticed.
    let is_new = state == Some(State::Missing);
    let (kind, member_id) = (component.kind.clone(), MemberId::Placeholder(index));
    match state {
        Some(state) => {
            let is_readable = state == State::Missing;
            let now_in = Observed { state, is_readable, reported: None, has_failed_pod: false, is_new };
            let (since, seen) = times(app, (member_id, &kind, &name), now_in, cx.now);
            app.members.put(member_id, MemberEntry { seen, ..MemberEntry::new(kind, name, state, since) });
        }
        None => {
            app.members.remove(member_id);
        }
    }
    if let Some(component) = app.components.get_mut(index) {
        component.presence = presence;
    }
}

/// How a member was observed.
#[derive(Clone, Copy)]
struct Observed {
    state: State,
    /// If not, the state is Unknown.
    is_readable: bool,
    /// Since when, by the object itself.
    reported: Option<Timestamp>,
    /// It is `Failed` because of a Pod, which failed while the member was still `InProgress`.
    has_failed_pod: bool,
    /// It appeared just now.
    is_new: bool,
}

/// Since when a member is in its state, and the state in which it was last seen.
///
/// The time is what the object reports, or the Pod because of which it is `Failed`, unless the member was
/// seen in another state then: some objects keep the time of an earlier rollout. If one Pod after the other
/// fails, it is the time of the first. Without such a time, it is the time as counted or stored before, or
/// from now on if the state is new. Otherwise it is unknown: the member may have been so for long. While a
/// member cannot be read, the state before is kept, so that its time returns with the right to read it.
fn times(
    app: &mut ApplicationState,
    (member_id, kind, name): (MemberId, &GroupKind, &NamespacedName),
    observed: Observed,
    now: Timestamp,
) -> (Option<Timestamp>, Option<SeenState>) {
    let Observed { state, is_readable, reported, has_failed_pod, is_new } = observed;
    let this_second = stored_condition::whole_seconds(now);
    let before = app.members.get(member_id);
    // While kinds are listed for the first time, a member is seen without what is below it.
    let seen = before.and_then(|before| before.seen.clone()).filter(|_| !app.is_counting);
    let is_known = matches!(member_id, MemberId::Object(_)) && before.is_some();
    if let (Some(seen), true) = (&seen, is_readable) {
        let next = seen.next(state, reported, has_failed_pod, now);
        return (next.since, Some(next));
    }
    if let (Some(before), false) = (before, is_readable) {
        let since = if before.state == state { before.since } else { this_second };
        return (since, seen);
    }
    // One that could not be read so far may have been in its state for long.
    let is_new = is_new && !is_known;
    let stored = app.stored_since.get(&(kind.clone(), name.clone())).copied();
    let stored = stored.filter(|(_, since)| stored_condition::is_possible(*since, now));
    let same = stored.filter(|(before, _)| *before == state).map(|(_, since)| since);
    // Another process may have seen another state after the reported time, or since when this one lasts.
    let is_other = |before: State| match before {
        // Often it could not be read. Then it says nothing about another state.
        State::Unknown => state == State::Unknown,
        State::InProgress => !has_failed_pod,
        _ => true,
    };
    let last_seen = stored.filter(|(before, _)| is_other(*before)).map(|(_, since)| since);
    let (reported, contradicted) = match reported.filter(|_| is_readable) {
        Some(reported) if last_seen.is_some_and(|last| reported < last) => (None, true),
        reported => (reported, false),
    };
    // Without a time, the next process would believe the reported one.
    let since = since_when(reported, same, has_failed_pod).or(this_second.filter(|_| is_new || contradicted));
    let seen = SeenState { state, since, first_seen: now, not_before: last_seen };
    (since, is_readable.then_some(seen))
}

/// Takes over the times that another replica stored, where the object does not report a later one. So two
/// replicas that saw a change at different moments do not overwrite each other's times.
pub(super) fn adopt_stored_times(
    app: &mut ApplicationState,
    status: &ApplicationStatus,
    feeds: &Feeds,
    now: Timestamp,
) {
    for object_status in &status.objects {
        let kind = GroupKind::new(&object_status.group, &object_status.kind);
        let stored = object_status.since.as_ref().map(|since| since.0);
        if stored.is_some_and(|stored| !stored_condition::is_possible(stored, now)) {
            continue;
        }
        for member_id in
            app.members.named(&kind, &app.in_namespace(&object_status.name), object_status.status)
        {
            let object = match member_id {
                MemberId::Object(object) => feeds.object(object),
                MemberId::Placeholder(_) => None,
            };
            let verdict = object.map(|object| &object.facts.verdict);
            let reported = verdict.filter(|verdict| verdict.state == object_status.status);
            let reported = reported.and_then(|verdict| verdict.since);
            let seen = app.members.get(member_id).and_then(|entry| entry.seen.as_ref());
            let not_before = seen.and_then(|seen| seen.not_before).max(reported);
            // Without a reported time, the replica may know less than the one that stored the status.
            if reported.is_none() || not_before.is_none_or(|not_before| stored >= Some(not_before)) {
                app.members.set_since(member_id, stored);
            }
        }
    }
}

pub(super) fn stored_since(
    status: &ApplicationStatus,
    namespace: &Arc<str>,
) -> HashMap<(GroupKind, NamespacedName), (State, Timestamp)> {
    let time = |object: &ObjectStatus| {
        let name = NamespacedName { namespace: Arc::clone(namespace), name: object.name.as_str().into() };
        let key = (GroupKind::new(&object.group, &object.kind), name);
        Some((key, (object.status, object.since.as_ref()?.0)))
    };
    status.objects.iter().filter_map(time).collect()
}
