//! The status of an Application and its conditions. `conditions` yields their statuses with lazy messages at
//! each evaluation; `render` builds the whole status when a write is due.

use std::{collections::BTreeSet, rc::Rc};

use bellwether_api::{ApplicationStatus, ConditionStatus, DependencyStatus, OwnedKind};
use bellwether_conditions::{Statement, message};
use jiff::Timestamp;

use crate::{
    condition_types::{ADOPTED, DEPENDENCY_CYCLE, HEALTH_CHECK_VALID, INSTALLED, READY, RESOLVED, SETTLED},
    feeds::Feeds,
    group_state,
    id::GroupKind,
    lazy_statement::LazyStatement,
    publication::{ConditionSet, Recorded, StateInStatus},
    reasons::application as reasons,
    stored_condition::{self, ConditionShape, MESSAGE_BUDGET, StoredCondition},
};

use super::{
    application_state::{ApplicationState, Presence},
    dependencies::Dependencies,
    health_check_state::Validity,
    objects::{objects, unknown_presence},
    readiness::{Readiness, deciding_reason, health_check_readiness, ready},
    unresolved::{Unresolved, unresolved},
};

pub(super) const CONDITIONS: ConditionSet = ConditionSet {
    own: &[READY, SETTLED, INSTALLED, RESOLVED, HEALTH_CHECK_VALID, ADOPTED, DEPENDENCY_CYCLE],
    recorded: &[Recorded::State(StateInStatus {
        last_event: |status| status.last_event.clone(),
        message: ready_message,
    })],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

fn ready_message(conditions: &[StoredCondition]) -> Option<&str> {
    stored_condition::find(conditions, READY)?.message.as_deref()
}

/// Ready first. `None` for conditions that do not apply.
pub(super) fn conditions<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    dependencies: &'a Dependencies<'a>,
) -> [(&'static str, Option<LazyStatement<'a>>); 7] {
    let unresolved: Rc<[_]> = unresolved(app, feeds).into();
    [
        (READY, Some(ready(app, feeds, Rc::clone(&unresolved)))),
        (SETTLED, Some(settled(app, Rc::clone(&unresolved)))),
        (INSTALLED, Some(is_installed(app, feeds, dependencies))),
        (RESOLVED, Some(resolved(unresolved))),
        (HEALTH_CHECK_VALID, health_check(app)),
        (ADOPTED, adopted(app)),
        (DEPENDENCY_CYCLE, cycle(app, dependencies)),
    ]
}

pub(super) fn render(
    app: &ApplicationState,
    feeds: &Feeds,
    dependencies: Dependencies<'_>,
    now: Timestamp,
) -> ApplicationStatus {
    let conditions = conditions(app, feeds, &dependencies)
        .map(|(type_, statement)| (type_, statement.map(Statement::from)));
    let (installed, missing) = presence(app, &dependencies);
    let counts = app.members.counts();
    let readiness = Readiness::of(app, unresolved(app, feeds).len());
    let mut status = ApplicationStatus {
        observed_generation: Some(app.publication.generation),
        state: Some(readiness.state()),
        reason: deciding_reason(app, feeds, readiness),
        ready: app
            .spec
            .health_check
            .as_ref()
            .map(|_| health_check_readiness(app).map_or(ConditionStatus::Unknown, |(status, _)| status)),
        components_ready: Some(format!("{}/{}", counts.ready, counts.total)),
        progress: group_state::progress(app.members.progress(), readiness.state()).map(i32::from),
        installed,
        missing,
        conditions: app.publication.conditions(conditions, now).into_iter().map(Into::into).collect(),
        objects: Vec::new(),
        object_counts: Some(counts),
        dependencies: dependencies.statuses,
        owned_kinds: app.owned_kinds.kinds().map(owned_kind).collect(),
        last_event: app.publication.last_event(readiness.state(), now),
    };
    let others = serde_json::to_vec(&status).map_or(0, |json| json.len());
    status.objects = objects(app, feeds, others);
    status
}

fn owned_kind(kind: &GroupKind) -> OwnedKind {
    OwnedKind { group: (*kind.group).into(), kind: (*kind.kind).into() }
}

/// Installed and missing, as in the status.
fn presence(app: &ApplicationState, dependencies: &[DependencyStatus]) -> (Vec<String>, Vec<String>) {
    let (mut installed, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for component in &app.components {
        match component.presence {
            Presence::Present => installed.insert(component.key.clone()),
            Presence::Absent | Presence::NotMember(_) => missing.insert(component.key.clone()),
            Presence::Unknown => false,
        };
    }
    for dependency in dependencies {
        let list = if dependency.installed { &mut installed } else { &mut missing };
        list.insert(dependency.name.clone());
    }
    (installed.into_iter().collect(), missing.into_iter().collect())
}

fn settled(app: &ApplicationState, unresolved: Rc<[(GroupKind, Unresolved)]>) -> LazyStatement<'_> {
    let behind = app.members.unsettled();
    let count = behind.len();
    if count > 0 {
        return LazyStatement::new(ConditionStatus::False, reasons::COMPONENTS_NOT_SETTLED, move || {
            let items = behind.map(|(kind, name)| {
                (format!("{}/{}:", kind.kind, name.name), "latest generation not observed")
            });
            message(items, count, MESSAGE_BUDGET)
        });
    }
    // No rule decides whether a generation has been observed.
    let is_rules = |(_, why): &&(GroupKind, Unresolved)| matches!(why, Unresolved::Rules(_));
    let unreadable = unresolved.iter().filter(|it| !is_rules(it)).count();
    if unreadable > 0 {
        return LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_UNKNOWN, move || {
            let items = unresolved.iter().filter(|it| !is_rules(it));
            let items = items.map(|(kind, why)| (format!("{kind}:"), why.to_string()));
            message(items, unreadable, MESSAGE_BUDGET)
        });
    }
    LazyStatement::new(ConditionStatus::True, reasons::RECONCILE_SUCCESS, || {
        format!("Observed revision: {}", app.publication.generation)
    })
}

fn is_installed<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    dependencies: &'a [DependencyStatus],
) -> LazyStatement<'a> {
    let any =
        |is_so: fn(&Presence) -> bool| app.components.iter().any(|component| is_so(&component.presence));
    let missing = any(|presence| matches!(presence, Presence::Absent | Presence::NotMember(_)));
    if missing || dependencies.iter().any(|dependency| !dependency.installed) {
        let reason = if missing { reasons::COMPONENTS_MISSING } else { reasons::DEPENDENCIES_MISSING };
        return LazyStatement::new(ConditionStatus::False, reason, move || {
            let is_missing =
                |presence: &Presence| matches!(presence, Presence::Absent | Presence::NotMember(_));
            let components = app.components.iter().filter(|component| is_missing(&component.presence));
            let components = components.map(|component| format!("component {}", component.key));
            let dependencies = dependencies.iter().filter(|dependency| !dependency.installed);
            let dependencies = dependencies.map(|dependency| format!("dependency {}", dependency.name));
            let missing: Vec<_> = components.chain(dependencies).collect();
            message(missing.iter().map(|what| (what, "missing")), missing.len(), MESSAGE_BUDGET)
        });
    }
    if any(|presence| *presence == Presence::Unknown) {
        return LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_UNKNOWN, move || {
            let components = app.components.iter().enumerate();
            let unknown = components.filter(|(_, component)| component.presence == Presence::Unknown);
            let items = unknown.clone().map(|(index, component)| {
                let (_, why) = unknown_presence(app, feeds, index);
                (format!("component {}:", component.key), format!("{}: {why}", component.kind))
            });
            message(items, unknown.count(), MESSAGE_BUDGET)
        });
    }
    if app.components.is_empty() && dependencies.is_empty() {
        return LazyStatement::new(ConditionStatus::True, reasons::NOTHING_REQUIRED, || {
            "No required components or dependencies".to_owned()
        });
    }
    LazyStatement::new(ConditionStatus::True, reasons::ALL_INSTALLED, || {
        "All required components and dependencies exist".to_owned()
    })
}

fn resolved<'a>(unresolved: Rc<[(GroupKind, Unresolved)]>) -> LazyStatement<'a> {
    let reason = match unresolved.first() {
        None => {
            return LazyStatement::new(ConditionStatus::True, reasons::ALL_KINDS_RESOLVED, || {
                "All kinds resolved".to_owned()
            });
        }
        Some((_, why)) => why.reason(),
    };
    LazyStatement::new(ConditionStatus::False, reason, move || {
        let items =
            unresolved.iter().map(|(kind, why)| (format!("{kind}:"), format!("{why}{}", why.remedy(kind))));
        message(items, unresolved.len(), MESSAGE_BUDGET)
    })
}

/// `None` without a health check.
fn health_check(app: &ApplicationState) -> Option<LazyStatement<'_>> {
    let stored = app.publication.stored();
    app.spec.health_check.as_ref()?;
    Some(match &app.check.validity {
        // A stored answer about the same generation is about the same template.
        Validity::Unknown => {
            match stored_condition::statement_for_generation(
                stored,
                HEALTH_CHECK_VALID,
                app.publication.generation,
            ) {
                Some(stored) => {
                    LazyStatement::new(stored.status, stored.reason, || stored.message.into_owned())
                }
                None => LazyStatement::new(ConditionStatus::Unknown, reasons::PENDING, || {
                    "Template not validated yet".to_owned()
                }),
            }
        }
        Validity::Valid => LazyStatement::new(ConditionStatus::True, reasons::VALID, || {
            "The API server accepts the Pod template".to_owned()
        }),
        Validity::Invalid(why) => {
            LazyStatement::new(ConditionStatus::False, reasons::INVALID_TEMPLATE, || why.to_string())
        }
        Validity::Denied(reason, why) => {
            LazyStatement::new(ConditionStatus::False, *reason, || why.to_string())
        }
    })
}

/// `None` if all owner references could be written.
fn adopted(app: &ApplicationState) -> Option<LazyStatement<'_>> {
    (!app.failed_owner_writes.is_empty()).then(|| {
        LazyStatement::new(ConditionStatus::False, reasons::OWNER_REFERENCE_NOT_UPDATED, || {
            let items = app
                .failed_owner_writes
                .iter()
                .map(|((kind, name), why)| (format!("{}/{name}:", kind.kind), why.to_string()));
            message(items, app.failed_owner_writes.len(), MESSAGE_BUDGET)
        })
    })
}

fn cycle<'a>(app: &'a ApplicationState, dependencies: &'a Dependencies<'a>) -> Option<LazyStatement<'a>> {
    dependencies.is_cyclic(app).then(|| {
        LazyStatement::new(ConditionStatus::True, reasons::DEPENDENCY_CYCLE, || {
            message([(dependencies.cycle(app).unwrap_or_default(), "")], 1, MESSAGE_BUDGET)
        })
    })
}
