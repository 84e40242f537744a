//! Answers queries about Applications: the view with all members, and the summary without them.

use bellwether_api::{ConditionStatus, ObjectCounts};
use bellwether_conditions::Statement;
use bellwether_model::State;
use jiff::Timestamp;

use crate::{
    condition_types::READY,
    dialect::Dialect,
    facts::Facts,
    feeds::Feeds,
    group_ref::GroupRef,
    group_state,
    id::{GroupKind, NamespacedName},
    lazy_statement::LazyStatement,
    members::{MemberEntry, MemberId},
    planted::Bug,
    stats::GroupSample,
    view::{
        Condition, Detail, Group, GroupRelation, GroupStatus, Member, Relation, StandsFor, StatusSummary,
    },
};

use super::{
    Applications, app_k8s_io,
    application_state::{ApplicationState, NotMember},
    dependencies::Dependencies,
    objects, readiness, status,
};

impl Applications {
    /// In no particular order.
    pub(super) fn views(&self, feeds: &Feeds) -> Vec<Group> {
        self.apps.iter().filter(|app| app.is_known(feeds)).map(|app| self.view(app, feeds)).collect()
    }

    /// `None` if there is no such Application.
    pub(super) fn status_summary(&self, group: &GroupRef, feeds: &Feeds) -> Option<GroupStatus> {
        let app = self.apps.named(group)?;
        let (state, conditions) = if app.is_known(feeds) && !Bug::AnswerWithStoredStatus.is_planted() {
            let conditions = statements(app, feeds, &self.dependency_statuses(app));
            (state(app, feeds, ready_status(&conditions)), conditions)
        } else {
            // A relist is in progress, so members may be from two points in time. Fall back to the published
            // conditions, if they match the last evaluation.
            let Some(published) = app.publication.last_published() else {
                return Some(GroupStatus::waiting_for(app.waiting_for(feeds)));
            };
            let evaluated = || state(app, feeds, ready_status(&published));
            (app.publication.stored_state().unwrap_or_else(evaluated), published)
        };
        let state = if app.deleting { State::Terminating } else { state };
        let ready = ready_status(&conditions);
        Some(GroupStatus::Known(Box::new(StatusSummary {
            kind: group.kind.kind(),
            name: app.name.clone(),
            healthy: ready == ConditionStatus::True && !app.deleting,
            state,
            since: since(app, feeds, state, ready),
            conditions,
            meaning: None,
        })))
    }

    pub(super) fn view(&self, app: &ApplicationState, feeds: &Feeds) -> Group {
        let dependencies = self.dependency_statuses(app);
        let conditions = statements(app, feeds, &dependencies);
        let ready = ready_status(&conditions);
        let state = if app.deleting { State::Terminating } else { state(app, feeds, ready) };
        let condition = |(type_, statement): (&'static str, Statement)| Condition {
            type_,
            since: app.publication.since(type_, statement.status),
            statement,
            held_until: None,
        };
        Group {
            kind: app.dialect().kind(),
            name: app.name.clone(),
            since: since(app, feeds, state, ready),
            state,
            deleting: app.deleting,
            conditions: conditions.into_iter().map(condition).collect(),
            counts: counts(app),
            progress: group_state::progress(app.members.progress(), state),
            members: app
                .members
                .worst_first()
                .map(|(member_id, entry)| member(app, feeds, member_id, entry))
                .collect(),
            clusters: None,
            detail: Detail::Application {
                type_: app.spec.type_.clone(),
                version: app.spec.version.clone(),
                dependencies: dependencies.statuses,
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
                clusters: Vec::new(),
            })
            .collect();
        relations.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        relations
    }
}

/// As in the stored status: `app.k8s.io` counts suspended members as ready, or as in progress if they block.
fn counts(app: &ApplicationState) -> ObjectCounts {
    let counts = app.members.counts();
    if app.app_k8s_io.is_none() {
        return counts;
    }
    let blocking = i32::try_from(app.members.blocking_suspended()).unwrap_or(i32::MAX);
    ObjectCounts {
        ready: counts.ready + counts.suspended - blocking,
        in_progress: counts.in_progress + blocking,
        suspended: 0,
        ..counts
    }
}

fn statements(
    app: &ApplicationState,
    feeds: &Feeds,
    dependencies: &Dependencies<'_>,
) -> Vec<(&'static str, Statement)> {
    let conditions = conditions(app, feeds, dependencies).into_iter();
    conditions.filter_map(|(type_, statement)| Some((type_, Statement::from(statement?)))).collect()
}

/// Ready is the first condition.
fn ready_status(conditions: &[(&'static str, Statement)]) -> ConditionStatus {
    conditions.first().map_or(ConditionStatus::Unknown, |(_, statement)| statement.status)
}

/// Ready first, in the form of the dialect. `None` for conditions that do not apply.
pub(super) fn conditions<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    dependencies: &'a Dependencies<'a>,
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

pub(super) fn sample(app: &ApplicationState, feeds: &Feeds) -> GroupSample {
    let ready = app.last_ready.unwrap_or(ConditionStatus::Unknown);
    let state = match app.publication.desired_state() {
        _ if app.deleting => State::Terminating,
        // During a relist, the last evaluation counts.
        Some(state) => state,
        None => state(app, feeds, ready),
    };
    GroupSample::new(&app.publication, &app.members, state, since(app, feeds, state, ready))
}

/// As in `status.state`. `app.k8s.io` has its own rules for Ready, so its state follows them.
pub(super) fn state(app: &ApplicationState, feeds: &Feeds, ready: ConditionStatus) -> State {
    match (app.dialect(), ready) {
        (Dialect::AppK8sIo, ConditionStatus::True) => State::Ready,
        (Dialect::AppK8sIo, ConditionStatus::Unknown) => State::Unknown,
        (Dialect::AppK8sIo, ConditionStatus::False) | (Dialect::Bellwether, _) => {
            readiness::state(app, feeds)
        }
    }
}

/// Since when the Application is in its state, for probes and the terminal alike. Ready: the stored time, but
/// not before the latest member became ready, because the status may be old. Otherwise: since the first member
/// was in this state; if no member has a time, since the Application was seen in it.
fn since(app: &ApplicationState, feeds: &Feeds, state: State, ready: ConditionStatus) -> Option<Timestamp> {
    let members = &app.members;
    let stored = app.publication.stored_since(READY, ready);
    match state {
        _ if app.deleting => group_state::deleted_at(feeds, &app.dialect().kind(), &app.name),
        State::Ready if stored.is_some() || members.total() > 0 && members.has_all_times() => {
            stored.max(members.latest())
        }
        // Ready says the same. Also before it is stored.
        State::Ready | State::Unknown => app.publication.since(READY, ready),
        _ if members.have(state) => members.earliest(state).or_else(|| app.publication.state_since(state)),
        // The health check. Ready may have been False before for another reason.
        _ => app.publication.state_since(state),
    }
}

fn member(app: &ApplicationState, feeds: &Feeds, member_id: MemberId, entry: &MemberEntry) -> Member {
    let (reason, message) = objects::why(app, feeds, member_id);
    let stored = match member_id {
        MemberId::Object(id) => feeds.object(id),
        MemberId::Placeholder(_) => None,
    };
    Member {
        kind: entry.kind.clone(),
        name: entry.name.clone(),
        cluster: None,
        stands_for: StandsFor::Object,
        uid: stored.map(|stored| stored.facts.uid.clone()),
        state: entry.state,
        progress: entry.progress,
        reason: reason.into_owned(),
        message: message.into_owned(),
        since: entry.since,
        rule: objects::rule(app, feeds, member_id, entry).cloned(),
        cause: objects::cause(app, feeds, entry),
        component_conditions: None,
    }
}
