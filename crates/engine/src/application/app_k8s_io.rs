//! The status of an Application of `app.k8s.io`, with the condition types, reasons and texts of its original
//! controller.

use std::{borrow::Cow, collections::HashMap};

use bellwether_api::{ConditionStatus, EventType, LastEvent, State};
use bellwether_conditions::{Statement, message};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use crate::{
    condition_types::{ERROR, READY, STALLED},
    feeds::Feeds,
    id::GroupKind,
    lazy_statement::LazyStatement,
    members::MemberEntry,
    publication::{ConditionSet, Recorded, StateInStatus},
    reasons::app_k8s_io as reasons,
    stored_condition::{self, ConditionShape, MESSAGE_BUDGET, StoredCondition},
    stored_status::StoredStatus,
};

use super::{
    application_state::{AppK8sIoExtras, ApplicationState},
    objects::link,
    readiness,
    unresolved::unresolved,
    view,
};

/// In `status.components`.
const MAX_COMPONENTS: usize = 1000;
/// In `status.components`, so that the object stays below the limits of etcd.
const MAX_BYTES: usize = 512 << 10;

pub(super) const CONDITIONS: ConditionSet = ConditionSet {
    own: &[READY, ERROR, STALLED],
    recorded: &[Recorded::State(StateInStatus { last_event, message: event_message })],
    shape: ConditionShape::UpdateTime,
    overwrite_hint: Some("stop the other one, or start Bellwether with --app-k8s-io=false"),
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppK8sIoStatus {
    observed_generation: i64,
    conditions: Vec<StoredCondition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<ComponentStatus>,
    components_ready: String,
}

#[derive(Debug, Serialize)]
struct ComponentStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    name: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    status: &'static str,
}

/// Ready first.
pub(super) fn conditions<'a>(
    app: &'a ApplicationState,
    app_k8s_io: &'a AppK8sIoExtras,
    feeds: &'a Feeds,
) -> Vec<(&'static str, Option<LazyStatement<'a>>)> {
    let unreadable = unresolved(app, feeds);
    let errors = app_k8s_io.invalid_fields.len() + unreadable.len();
    let ready = ready(app, app_k8s_io, errors > 0);
    let errors = errors + app.failed_owner_writes.len();
    let error = if errors == 0 {
        LazyStatement::new(ConditionStatus::False, reasons::NO_ERROR, || "No error seen".to_owned())
    } else {
        LazyStatement::new(ConditionStatus::True, reasons::ERROR_SEEN, move || {
            let invalid_fields =
                app_k8s_io.invalid_fields.iter().map(|field| (Cow::from(field), Cow::from("")));
            let kinds = unreadable.iter().map(|(kind, why)| {
                (Cow::from(format!("{}:", in_full(kind))), Cow::from(format!("{why}{}", why.remedy(kind))))
            });
            let failed_owner_writes = app.failed_owner_writes.iter();
            let failed_owner_writes = failed_owner_writes.map(|((kind, name), why)| {
                (Cow::from(format!("{}/{name}:", kind.kind)), Cow::from(why.to_string()))
            });
            message(invalid_fields.chain(kinds).chain(failed_owner_writes), errors, MESSAGE_BUDGET)
        })
    };
    vec![(READY, Some(ready)), (ERROR, Some(error))]
}

/// What Events have reported. Its API has no field for that, so `Stalled` has it: a Warning unless it is False.
fn last_event(status: &StoredStatus) -> Option<LastEvent> {
    let find = |type_| stored_condition::find(&status.conditions, type_);
    let (ready, stalled) = (find(READY)?, find(STALLED));
    let is_stalled = |as_: ConditionStatus| stalled.is_some_and(|stalled| stalled.status() == as_);
    let (state, type_) = match ready.status() {
        ConditionStatus::True => (State::Ready, EventType::Normal),
        ConditionStatus::False if is_stalled(ConditionStatus::True) => (State::Failed, EventType::Warning),
        ConditionStatus::False => (State::InProgress, EventType::Normal),
        ConditionStatus::Unknown if is_stalled(ConditionStatus::Unknown) => {
            (State::Unknown, EventType::Warning)
        }
        ConditionStatus::Unknown => (State::Unknown, EventType::Normal),
    };
    // Each change of the state changes the status of one of the two.
    let times = [Some(ready), stalled].into_iter().flatten();
    let time = times.filter_map(|condition| Some(condition.last_transition_time.as_ref()?.0)).max();
    Some(LastEvent { state, type_, time: Time(time.unwrap_or(Timestamp::UNIX_EPOCH)) })
}

/// `Stalled` names the members that have failed, `Ready` only counts them.
fn event_message(conditions: &[StoredCondition]) -> Option<&str> {
    let is_failed = stored_condition::status(conditions, STALLED) == Some(ConditionStatus::True);
    stored_condition::find(conditions, if is_failed { STALLED } else { READY })?.message.as_deref()
}

/// The condition Stalled: what Events will have reported once it is written. Also returns when time alone changes
/// it. `None` until it is needed for the first time: the status of another controller is not rewritten for it.
pub(super) fn stalled<'a>(
    app: &'a ApplicationState,
    app_k8s_io: &'a AppK8sIoExtras,
    feeds: &'a Feeds,
    now: Timestamp,
) -> (Option<LazyStatement<'a>>, Option<Timestamp>) {
    let ready = ready(app, app_k8s_io, has_errors(app, app_k8s_io, feeds));
    let state = match view::state(app, feeds, ready.status) {
        State::Failed | State::Missing => State::Failed,
        state @ (State::Ready | State::Unknown) => state,
        State::InProgress | State::Suspended | State::Terminating => State::InProgress,
    };
    let (event, later) = app.publication.next_event(state, now);
    let warning = event.filter(|event| event.type_ == EventType::Warning).map(|event| event.state);
    let statement = match warning {
        Some(State::Unknown) => {
            Some(LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_READY_UNKNOWN, || {
                Statement::from(ready).message.into_owned()
            }))
        }
        Some(_) => Some(LazyStatement::new(ConditionStatus::True, reasons::COMPONENTS_FAILED, || {
            let unresolved = unresolved(app, feeds).into();
            Statement::from(readiness::ready(app, feeds, unresolved)).message.into_owned()
        })),
        None => stored_condition::find(app.publication.stored(), STALLED)
            .map(|_| LazyStatement::new(ConditionStatus::False, reasons::NOT_STALLED, String::new)),
    };
    (statement, later)
}

/// Fields or kinds that cannot be read. A failed write of owner references does not count.
fn has_errors(app: &ApplicationState, app_k8s_io: &AppK8sIoExtras, feeds: &Feeds) -> bool {
    !app_k8s_io.invalid_fields.is_empty() || !unresolved(app, feeds).is_empty()
}

/// Unknown if there is an error, or if there are no members: an Application without members is never ready.
fn ready<'a>(
    app: &'a ApplicationState,
    app_k8s_io: &'a AppK8sIoExtras,
    has_errors: bool,
) -> LazyStatement<'a> {
    let (ready, total) = (ready_count(app), app.members.total());
    let unknown_count = app.members.count(State::Unknown);
    let unknown = |message: fn() -> String| {
        LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_READY_UNKNOWN, message)
    };
    if app.deleting {
        LazyStatement::new(ConditionStatus::False, reasons::COMPONENTS_NOT_READY, || {
            "the application is being deleted".to_owned()
        })
    } else if has_errors {
        unknown(|| {
            "failed to aggregate all components' statuses, check the Error condition for details".to_owned()
        })
    } else if total == 0 && !app_k8s_io.has_selector {
        unknown(|| "no components found: spec.selector is missing".to_owned())
    } else if total == 0 && app.kind_uses.is_empty() {
        unknown(|| "no components found: spec.componentKinds is empty".to_owned())
    } else if total == 0 {
        unknown(|| "no components found: no object of these kinds matches the selector".to_owned())
    } else if ready + unknown_count < total {
        LazyStatement::new(ConditionStatus::False, reasons::COMPONENTS_NOT_READY, move || {
            format!("{} components not ready", total - ready)
        })
    } else if unknown_count > 0 {
        LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_READY_UNKNOWN, move || {
            format!("{unknown_count} components of unknown readiness")
        })
    } else {
        LazyStatement::new(ConditionStatus::True, reasons::COMPONENTS_READY, || {
            "all components ready".to_owned()
        })
    }
}

/// Suspended members do not block readiness, unless too little of them runs.
fn ready_count(app: &ApplicationState) -> usize {
    app.members.count(State::Ready) + app.members.count(State::Suspended) - app.members.blocking_suspended()
}

pub(super) fn render(
    app: &ApplicationState,
    app_k8s_io: &AppK8sIoExtras,
    feeds: &Feeds,
    now: Timestamp,
) -> AppK8sIoStatus {
    let mut conditions = conditions(app, app_k8s_io, feeds);
    conditions.push((STALLED, stalled(app, app_k8s_io, feeds, now).0));
    let conditions = conditions.into_iter().map(|(type_, statement)| (type_, statement.map(Statement::from)));
    AppK8sIoStatus {
        observed_generation: app.publication.generation,
        conditions: app.publication.conditions(conditions, now),
        components: components(app, feeds),
        components_ready: format!("{}/{}", ready_count(app), app.members.total()),
    }
}

/// By kind in the order of the spec, then by name.
fn components(app: &ApplicationState, feeds: &Feeds) -> Vec<ComponentStatus> {
    let mut of_kind: HashMap<&GroupKind, Vec<&MemberEntry>> = HashMap::new();
    for (_, entry) in app.members.worst_first() {
        of_kind.entry(&entry.kind).or_default().push(entry);
    }
    let mut bytes_left = MAX_BYTES;
    let kinds = app.spec.component_kinds.iter().map(|kind| GroupKind::new(&kind.group, &kind.kind));
    let entries = kinds.filter_map(|kind| of_kind.remove(&kind)).flat_map(|mut entries| {
        entries.sort_unstable_by(|a, b| a.name.name.cmp(&b.name.name));
        entries
    });
    entries
        .take(MAX_COMPONENTS)
        .map(|entry| component(app, entry, feeds))
        .take_while(|component| {
            let size = 100 + component.name.len() + component.link.as_ref().map_or(0, String::len);
            let fits = size <= bytes_left;
            bytes_left = bytes_left.saturating_sub(size);
            fits
        })
        .collect()
}

fn component(app: &ApplicationState, entry: &MemberEntry, feeds: &Feeds) -> ComponentStatus {
    let feed = app.kind_uses.get(&entry.kind).and_then(|kind_use| feeds.get(kind_use.feed));
    ComponentStatus {
        link: feed.and_then(|feed| link(feed, &app.name.namespace, &entry.name.name)),
        name: (*entry.name.name).into(),
        kind: (*entry.kind.kind).into(),
        group: (*entry.kind.group).into(),
        status: match entry.state {
            _ if entry.blocks => "InProgress",
            State::Ready | State::Suspended => "Ready",
            State::InProgress | State::Failed | State::Terminating | State::Missing => "InProgress",
            State::Unknown => "Unknown",
        },
    }
}

/// Spells out the core group: users of `app.k8s.io` often write the wrong group.
fn in_full(kind: &GroupKind) -> String {
    if kind.group.is_empty() { format!("{} in the core group", kind.kind) } else { kind.to_string() }
}
