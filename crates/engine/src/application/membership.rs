//! Membership of objects in Applications, and what is counted of each member.

use std::{collections::HashMap, sync::Arc};

use bellwether_api::{ApplicationStatus, ObjectStatus, State};
use jiff::Timestamp;

use crate::{
    event::Unreadable,
    feeds::{Feed, Feeds, ObjectId, StoredObject},
    grouping_context::GroupingContext,
    id::{FeedId, GroupKind, NamespacedName},
    members::{MemberEntry, MemberId},
    registry::GroupId,
    stored_condition,
};

use super::{
    Applications,
    application_state::{ApplicationState, NamedComponent, Presence},
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
    pub(super) fn update_members_of(&mut self, id: GroupId, feed: FeedId, cx: &GroupingContext<'_>) {
        let (Some(app), Some(known)) = (self.apps.get_mut(id), cx.feeds.get(feed)) else { return };
        let namespaces = app.namespaces();
        for object in namespaces.iter().flat_map(|namespace| known.in_namespace(namespace)) {
            if app.members.get(MemberId::Object(object)).is_some()
                && let Some(stored) = cx.feeds.object(object)
            {
                upsert_member(app, object, stored, known, true, cx.now);
            }
        }
        for index in 0..app.components.len() {
            if app.components.get(index).is_some_and(|component| component.kind == known.kind) {
                check_presence(app, index, cx);
            }
        }
    }
}

/// Adds or updates a member. `is_new`: if the verdict has no time, the state starts now.
pub(super) fn upsert_member(
    app: &mut ApplicationState,
    object: ObjectId,
    stored: &StoredObject,
    feed: &Feed,
    is_new: bool,
    now: Timestamp,
) {
    let verdict = &stored.facts.verdict;
    let state = if feed.unreadable.is_some() { State::Unknown } else { verdict.state };
    let member_id = MemberId::Object(object);
    let known = verdict.since.filter(|_| state == verdict.state);
    let entry = MemberEntry {
        kind: feed.kind.clone(),
        name: stored.name.clone(),
        state,
        progress: verdict.progress,
        settled: stored.facts.settled || feed.unreadable.is_some(),
        since: known.or_else(|| since(app, member_id, &feed.kind, &stored.name, state, is_new, now)),
    };
    app.members.put(member_id, entry);
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
            let since = since(app, member_id, &kind, &name, state, is_new, cx.now);
            app.members.put(member_id, MemberEntry { kind, name, state, progress: 0, settled: true, since });
        }
        None => {
            app.members.remove(member_id);
        }
    }
    if let Some(component) = app.components.get_mut(index) {
        component.presence = presence;
    }
}

/// Since when a member is in its state, if its verdict has no time: as counted or stored before, or from now
/// on if the state is new. Otherwise unknown: it may have been so for long.
fn since(
    app: &mut ApplicationState,
    member_id: MemberId,
    kind: &GroupKind,
    name: &NamespacedName,
    state: State,
    is_new: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    if let Some(before) = app.members.get(member_id) {
        return if before.state == state { before.since } else { stored_condition::whole_seconds(now) };
    }
    let stored = app.stored_since.remove(&(kind.clone(), name.clone()));
    let stored = stored.filter(|(before, _)| *before == state).map(|(_, since)| since);
    stored.or_else(|| stored_condition::whole_seconds(now).filter(|_| is_new))
}

/// Takes over the times that another replica stored, where the verdict has none. So two replicas that saw a
/// change at different moments do not overwrite each other's times.
pub(super) fn adopt_stored_times(app: &mut ApplicationState, status: &ApplicationStatus, feeds: &Feeds) {
    for object_status in &status.objects {
        let kind = GroupKind::new(&object_status.group, &object_status.kind);
        for member_id in
            app.members.named(&kind, &app.in_namespace(&object_status.name), object_status.status)
        {
            let object = match member_id {
                MemberId::Object(object) => feeds.object(object),
                MemberId::Placeholder(_) => None,
            };
            if object.is_none_or(|object| object.facts.verdict.since.is_none()) {
                app.members.set_since(member_id, object_status.since.as_ref().map(|since| since.0));
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
