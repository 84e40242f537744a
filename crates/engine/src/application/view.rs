//! Answers queries about Applications: the view with all members, and the summary without them.

use bellwether_api::ConditionStatus;
use bellwether_conditions::Statement;
use bellwether_model::State;
use jiff::Timestamp;

use crate::{
    condition_types::READY,
    facts::Facts,
    feeds::Feeds,
    group_ref::GroupRef,
    id::{GroupKind, NamespacedName},
    lazy_statement::LazyStatement,
    members::{MemberEntry, MemberId},
    planted::Bug,
    stored_condition,
    view::{
        Condition, Detail, Group, GroupRelation, GroupStatus, Member, Relation, StandsFor, StatusSummary,
    },
};

use super::{
    Applications, app_k8s_io,
    application_state::{ApplicationState, NotMember},
    status::{self, Dependencies},
};

/// Worst first.
const BLOCKING: [State; 4] = [State::Failed, State::Missing, State::InProgress, State::Terminating];

impl Applications {
    /// In no particular order.
    pub(super) fn views(&self, feeds: &Feeds) -> Vec<Group> {
        self.apps.iter().filter(|app| app.is_known(feeds)).map(|app| self.view(app, feeds)).collect()
    }

    /// `None` if there is no such Application.
    pub(super) fn status_summary(&self, group: &GroupRef, feeds: &Feeds) -> Option<GroupStatus> {
        let app = self.apps.named(group)?;
        let conditions = if app.is_known(feeds) && !Bug::AnswerWithStoredStatus.is_planted() {
            statements(app, feeds, &self.dependency_statuses(app))
        } else {
            // A relist is in progress, so members may be from two points in time. Fall back to the published
            // conditions, if they match the last evaluation.
            let Some(published) = app.publication.last_published() else {
                let feeds_used = app.kind_uses.iter().map(|(kind, kind_use)| (kind, kind_use.feed));
                return Some(GroupStatus::waiting_for(feeds.inconsistent_kinds(feeds_used)));
            };
            published
        };
        let ready = readiness(&conditions);
        Some(GroupStatus::Known(Box::new(StatusSummary {
            kind: group.kind.kind(),
            name: app.name.clone(),
            healthy: ready == ConditionStatus::True && !app.deleting,
            state: state(app, ready),
            since: app.publication.since(READY, ready),
            conditions,
            meaning: None,
        })))
    }

    pub(super) fn view(&self, app: &ApplicationState, feeds: &Feeds) -> Group {
        let dependencies = self.dependency_statuses(app);
        let conditions = statements(app, feeds, &dependencies);
        let ready = readiness(&conditions);
        let state = state(app, ready);
        let condition = |(type_, statement): (&'static str, Statement)| Condition {
            type_,
            since: app.publication.since(type_, statement.status),
            statement,
            held_until: None,
        };
        Group {
            kind: app.dialect().kind(),
            name: app.name.clone(),
            since: since(app, state, ready),
            state,
            conditions: conditions.into_iter().map(condition).collect(),
            counts: app.members.counts(),
            progress: app.members.progress(),
            members: app
                .members
                .worst_first()
                .map(|(member_id, entry)| member(app, feeds, member_id, entry))
                .collect(),
            detail: Detail::Application {
                type_: app.spec.type_.clone(),
                version: app.spec.version.clone(),
                dependencies,
            },
        }
    }

    /// Only Applications that can have members in the object's namespace.
    pub(super) fn all_relations(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        facts: &Facts,
    ) -> Vec<GroupRelation> {
        let mut relations: Vec<_> = self
            .apps
            .iter()
            .filter(|app| app.namespaces().contains(&name.namespace))
            .map(|app| GroupRelation {
                kind: app.dialect().kind(),
                name: app.name.clone(),
                relation: relation(app, kind, facts),
            })
            .collect();
        relations.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        relations
    }
}

fn statements(
    app: &ApplicationState,
    feeds: &Feeds,
    dependencies: &Dependencies,
) -> Vec<(&'static str, Statement)> {
    let conditions = conditions(app, feeds, dependencies).into_iter();
    conditions.filter_map(|(type_, statement)| Some((type_, Statement::from(statement?)))).collect()
}

/// Ready is the first condition.
fn readiness(conditions: &[(&'static str, Statement)]) -> ConditionStatus {
    conditions.first().map_or(ConditionStatus::Unknown, |(_, statement)| statement.status)
}

fn conditions<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    dependencies: &'a Dependencies,
) -> Vec<(&'static str, Option<LazyStatement<'a>>)> {
    match &app.app_k8s_io {
        None => status::conditions(app, feeds, dependencies).into(),
        Some(app_k8s_io) => app_k8s_io::conditions(app, app_k8s_io, feeds),
    }
}

fn relation(app: &ApplicationState, kind: &GroupKind, facts: &Facts) -> Relation {
    match app.membership(facts) {
        Err(NotMember::NotSelected) => Relation::NotSelected,
        Err(_) => Relation::NotAMember,
        Ok(()) if !app.requested_kinds().get(kind).is_some_and(|request| request.allows_members) => {
            Relation::KindNotListed
        }
        Ok(()) if facts.owners.iter().any(|owner| *owner.uid == *app.uid()) => Relation::Owner,
        Ok(()) if app.adopts(facts) => Relation::FutureOwner,
        Ok(()) => Relation::Member,
    }
}

/// The worst blocking state of a member.
fn state(app: &ApplicationState, ready: ConditionStatus) -> State {
    match ready {
        _ if app.deleting => State::Terminating,
        ConditionStatus::True => State::Ready,
        ConditionStatus::Unknown => State::Unknown,
        ConditionStatus::False => {
            let is_there = |state: &State| app.members.count(*state) > 0;
            // No member blocks, so the health-check Pod does.
            BLOCKING.into_iter().find(is_there).unwrap_or(State::InProgress)
        }
    }
}

/// Since when the Application is in its state. Ready: the stored time, but not before the latest member
/// became ready, because the status may be old. Otherwise: since the first member was in this state; a stored
/// time could be about other members.
fn since(app: &ApplicationState, state: State, ready: ConditionStatus) -> Option<Timestamp> {
    let stored = app.publication.stored();
    let stored = stored
        .iter()
        .find(|condition| {
            *condition.type_ == *READY && stored_condition::status(stored, READY) == Some(ready)
        })
        .and_then(|condition| Some(condition.last_transition_time.as_ref()?.0));
    let known = |entry: &MemberEntry| entry.since;
    match state {
        State::Ready => {
            let times: Vec<_> = app.members.worst_first().map(|(_, entry)| known(entry)).collect();
            let last = times.iter().flatten().max().copied();
            // Without a stored time, all members must have one.
            if stored.is_some() || times.iter().all(Option::is_some) { stored.max(last) } else { None }
        }
        State::Failed | State::Missing | State::InProgress if app.members.count(state) > 0 => {
            app.members.in_state(state).filter_map(|(_, entry)| known(entry)).min()
        }
        _ => stored,
    }
}

fn member(app: &ApplicationState, feeds: &Feeds, member_id: MemberId, entry: &MemberEntry) -> Member {
    let (reason, message) = status::why(app, feeds, member_id);
    let stored = match member_id {
        MemberId::Object(id) => feeds.object(id),
        MemberId::Placeholder(_) => None,
    };
    Member {
        kind: entry.kind.clone(),
        name: entry.name.clone(),
        stands_for: StandsFor::Object,
        uid: stored.map(|stored| stored.facts.uid.clone()),
        state: entry.state,
        progress: entry.progress,
        reason: reason.into_owned(),
        message: message.into_owned(),
        since: entry.since,
        rule: stored.map(|stored| stored.facts.verdict.rule.clone()),
        component_conditions: None,
    }
}
