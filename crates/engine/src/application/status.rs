//! Conditions and status of an Application. `conditions` yields their statuses with lazy messages at each
//! evaluation; `render` builds the whole status when a write is due.

use std::{borrow::Cow, collections::BTreeSet, rc::Rc};

use bellwether_api::{ApplicationStatus, ConditionStatus, DependencyStatus, ObjectStatus, OwnedKind, State};
use bellwether_conditions::{Statement, message};
use bellwether_health::Source;
use bellwether_model::text::with_reason;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    condition_types::{ADOPTED, DEPENDENCY_CYCLE, HEALTH_CHECK_VALID, INSTALLED, READY, RESOLVED, SETTLED},
    event::Unreadable,
    feeds::{Feed, Feeds},
    id::GroupKind,
    lazy_statement::LazyStatement,
    members::{MemberEntry, MemberId},
    publication::ConditionSet,
    reasons::{application as reasons, unreadable},
    selector,
    stored_condition::{self, ConditionShape},
};

use super::{
    application_state::{ApplicationState, NotMember, Presence, Unresolved},
    health_check_state::Validity,
};

/// Entries of `status.objects`.
const MAX_OBJECTS: usize = 100;
/// Bytes of `status.objects`.
const MAX_OBJECTS_BYTES: usize = 40 << 10;

/// In bytes, for each condition.
pub(super) const MESSAGE_BUDGET: usize = 1024;

pub(super) const CONDITIONS: ConditionSet = ConditionSet {
    own: &[READY, SETTLED, INSTALLED, RESOLVED, HEALTH_CHECK_VALID, ADOPTED, DEPENDENCY_CYCLE],
    recorded: &[(READY, Some(ConditionStatus::True))],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

pub(super) type Dependencies = Vec<DependencyStatus>;

/// Ready first. `None` for conditions that do not apply.
pub(super) fn conditions<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    dependencies: &'a Dependencies,
) -> [(&'static str, Option<LazyStatement<'a>>); 7] {
    let unresolved: Rc<[_]> = unresolved(app, feeds).into();
    [
        (READY, Some(ready(app, feeds, Rc::clone(&unresolved)))),
        (SETTLED, Some(settled(app, Rc::clone(&unresolved)))),
        (INSTALLED, Some(is_installed(app, dependencies))),
        (RESOLVED, Some(resolved(unresolved))),
        (HEALTH_CHECK_VALID, health_check(app)),
        (ADOPTED, adopted(app)),
        (DEPENDENCY_CYCLE, cycle(app)),
    ]
}

pub(super) fn render(
    app: &ApplicationState,
    feeds: &Feeds,
    dependencies: Dependencies,
    now: Timestamp,
) -> ApplicationStatus {
    let conditions = conditions(app, feeds, &dependencies)
        .map(|(type_, statement)| (type_, statement.map(Statement::from)));
    let (installed, missing) = presence(app, &dependencies);
    let counts = app.members.counts();
    ApplicationStatus {
        observed_generation: Some(app.publication.generation),
        ready: Some(app.check.ready.as_ref().map_or(ConditionStatus::Unknown, |(status, _)| *status)),
        components_ready: Some(format!("{}/{}", counts.ready, counts.total)),
        progress: app.members.progress().map(i32::from),
        installed,
        missing,
        conditions: app.publication.conditions(conditions, now).into_iter().map(Into::into).collect(),
        objects: objects(app, feeds),
        object_counts: Some(counts),
        dependencies,
        owned_kinds: app.owned_kinds.kinds().map(owned_kind).collect(),
    }
}

fn owned_kind(kind: &GroupKind) -> OwnedKind {
    OwnedKind { group: (*kind.group).into(), kind: (*kind.kind).into() }
}

/// Installed and missing, as in the status.
fn presence(app: &ApplicationState, dependencies: &Dependencies) -> (Vec<String>, Vec<String>) {
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

pub(super) fn why<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    member_id: MemberId,
) -> (Cow<'a, str>, Cow<'a, str>) {
    match member_id {
        MemberId::Object(id) => {
            let Some(stored) = feeds.object(id) else {
                return (reasons::DELETED.into(), "deleted".into());
            };
            let verdict = &stored.facts.verdict;
            match feeds.get(stored.feed).and_then(|feed| feed.unreadable.as_ref()) {
                Some(unreadable) => (
                    unreadable.reason().into(),
                    format!("{unreadable}; last seen {}: {}", verdict.state.name(), verdict.message).into(),
                ),
                None => (Cow::Borrowed(&verdict.reason), Cow::Borrowed(&verdict.message)),
            }
        }
        MemberId::Placeholder(index) => {
            match app.components.get(index).map(|component| &component.presence) {
                Some(Presence::NotMember(not_member)) => match not_member {
                    NotMember::NotSelected => (
                        reasons::NOT_SELECTED.into(),
                        "exists, but its labels do not match the selector".into(),
                    ),
                    NotMember::OfAnother(other) => (
                        reasons::MEMBER_OF_ANOTHER_APPLICATION.into(),
                        format!("exists, but its annotation names Application {other}").into(),
                    ),
                    NotMember::NotAnnotated => (
                        reasons::NOT_ANNOTATED.into(),
                        format!("exists, but has no annotation {}", bellwether_api::APPLICATION_ANNOTATION)
                            .into(),
                    ),
                    NotMember::Itself => {
                        (reasons::SELF_REFERENCE.into(), "an Application cannot be its own component".into())
                    }
                },
                Some(Presence::Unknown) => {
                    (unreadable::NOT_READABLE.into(), "cannot read objects of this kind".into())
                }
                Some(Presence::Present | Presence::Absent) | None => {
                    (reasons::NOT_FOUND.into(), "not found".into())
                }
            }
        }
    }
}

fn objects(app: &ApplicationState, feeds: &Feeds) -> Vec<ObjectStatus> {
    let mut bytes_left = MAX_OBJECTS_BYTES;
    let object_status = |(member_id, entry): (MemberId, &MemberEntry)| {
        let (reason, message) = why(app, feeds, member_id);
        let feed = app.kind_uses.get(&entry.kind).and_then(|kind_use| feeds.get(kind_use.feed));
        let rule = match member_id {
            MemberId::Object(id) => feeds.object(id).map(|stored| &stored.facts.verdict.rule),
            MemberId::Placeholder(_) => None,
        };
        ObjectStatus {
            link: feed.and_then(|feed| link(feed, &app.name.namespace, &entry.name.name)),
            name: (*entry.name.name).into(),
            group: (*entry.kind.group).into(),
            kind: (*entry.kind.kind).into(),
            status: entry.state,
            progress: entry.progress.into(),
            reason: Some(reason.into_owned()),
            message: Some(message.into_owned()),
            since: entry.since.map(Time),
            rule: rule.map(|rule| format!("{}/{}", source(rule.source), rule.id)),
        }
    };
    app.members
        .worst_first()
        .take(MAX_OBJECTS)
        .map(object_status)
        .take_while(|object| {
            let text = [&object.link, &object.reason, &object.message].into_iter().flatten().map(String::len);
            // The keys and the short fields.
            let size = 200 + object.name.len() + text.sum::<usize>();
            let fits = size <= bytes_left;
            bytes_left = bytes_left.saturating_sub(size);
            fits
        })
        .collect()
}

/// As in `bellwether assess`.
fn source(source: Source) -> &'static str {
    match source {
        Source::User => "user",
        Source::Builtin => "builtin",
        Source::Generic => "generic",
        Source::None => "none",
    }
}

pub(super) fn link(feed: &Feed, namespace: &str, name: &str) -> Option<String> {
    let served = feed.served.as_ref().filter(|_| feed.unreadable != Some(Unreadable::NotServed))?;
    Some(served.path(&feed.kind.group, Some(namespace), Some(name)))
}

fn ready<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    unresolved: Rc<[(GroupKind, Unresolved)]>,
) -> LazyStatement<'a> {
    const BAD: [State; 4] = [State::Failed, State::Missing, State::InProgress, State::Terminating];
    let applications = GroupKind::bellwether("Application");
    let text = move |(member_id, entry): (MemberId, &MemberEntry)| {
        let (reason, message) = why(app, feeds, member_id);
        // Two Applications that contain each other must not quote each other's messages endlessly.
        let is_quoted = entry.kind != applications || matches!(member_id, MemberId::Placeholder(_));
        let text = match entry.state {
            _ if !is_quoted => format!("{} ({reason})", entry.state.name()),
            State::Failed => with_reason(&reason, &message).into_owned(),
            _ => message.into_owned(),
        };
        (format!("{}/{}:", entry.kind.kind, entry.name.name), text)
    };
    let check = match &app.check.ready {
        _ if app.spec.health_check.is_none() || app.check.pod.is_none() => None,
        Some((status, message)) => Some((*status, &**message)),
        None => Some((ConditionStatus::Unknown, "Pod not found")),
    };
    let check = move |wanted: ConditionStatus| {
        check
            .filter(|(status, _)| *status == wanted)
            .map(|(_, message)| ("health check:".to_owned(), message.to_owned()))
    };
    let bad_check = check(ConditionStatus::False);
    let bad =
        BAD.iter().map(|state| app.members.count(*state)).sum::<usize>() + usize::from(bad_check.is_some());
    if bad > 0 {
        let reason = if app.members.count(State::Missing) > 0 {
            reasons::COMPONENTS_MISSING
        } else {
            reasons::COMPONENTS_NOT_READY
        };
        return LazyStatement::new(ConditionStatus::False, reason, move || {
            let members = BAD.iter().flat_map(|state| app.members.in_state(*state)).map(text);
            message(bad_check.into_iter().chain(members), bad, MESSAGE_BUDGET)
        });
    }
    let unknown_check = check(ConditionStatus::Unknown);
    let unknown = app.members.count(State::Unknown) + unresolved.len() + usize::from(unknown_check.is_some());
    if unknown > 0 {
        return LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_UNKNOWN, move || {
            let kinds = unresolved.iter().map(|(kind, why)| (format!("{kind}:"), why.to_string()));
            let members = app.members.in_state(State::Unknown).map(text);
            message(kinds.chain(unknown_check).chain(members), unknown, MESSAGE_BUDGET)
        });
    }
    let asks_for_members = app.kind_uses.values().any(|kind_use| kind_use.allows_members);
    if app.members.total() == 0 && (asks_for_members || app.spec.health_check.is_none()) {
        return LazyStatement::new(ConditionStatus::Unknown, reasons::NO_COMPONENTS, || no_members(app));
    }
    LazyStatement::new(ConditionStatus::True, reasons::COMPONENTS_READY, || "All components ready".to_owned())
}

fn no_members(app: &ApplicationState) -> String {
    let kinds: Vec<_> = app
        .kind_uses
        .iter()
        .filter(|(_, kind_use)| kind_use.allows_members)
        .map(|(kind, _)| kind.to_string())
        .collect();
    if kinds.is_empty() {
        return "no members: spec.componentKinds is empty".to_owned();
    }
    let which = format!(
        "in namespace {} matches selector {}",
        app.name.namespace,
        selector::text_of(&app.spec.selector)
    );
    message([(format!("no {}", kinds.join(" or ")), which)], 1, MESSAGE_BUDGET)
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
    if !unresolved.is_empty() {
        return LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_UNKNOWN, move || {
            let items = unresolved.iter().map(|(kind, why)| (format!("{kind}:"), why.to_string()));
            message(items, unresolved.len(), MESSAGE_BUDGET)
        });
    }
    LazyStatement::new(ConditionStatus::True, reasons::RECONCILE_SUCCESS, || {
        format!("Observed revision: {}", app.publication.generation)
    })
}

fn is_installed<'a>(app: &'a ApplicationState, dependencies: &'a Dependencies) -> LazyStatement<'a> {
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
        return LazyStatement::new(ConditionStatus::Unknown, reasons::COMPONENTS_UNKNOWN, || {
            let unknown = app.components.iter().filter(|component| component.presence == Presence::Unknown);
            let items = unknown.clone().map(|component| {
                (format!("component {}:", component.key), format!("cannot read kind {}", component.kind))
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
        Some((_, Unresolved::Unreadable(unreadable))) => unreadable.reason(),
        Some((_, Unresolved::ClusterScoped)) => reasons::CLUSTER_SCOPED,
        Some((_, Unresolved::Version { .. })) => reasons::VERSION_NOT_SERVED,
    };
    LazyStatement::new(ConditionStatus::False, reason, move || {
        let items =
            unresolved.iter().map(|(kind, why)| (format!("{kind}:"), format!("{why}{}", remedy(kind, why))));
        message(items, unresolved.len(), MESSAGE_BUDGET)
    })
}

/// What to do about it; may be empty.
pub(super) fn remedy(kind: &GroupKind, why: &Unresolved) -> String {
    match why {
        Unresolved::Unreadable(unreadable) => unreadable.remedy(kind),
        Unresolved::ClusterScoped | Unresolved::Version { .. } => String::new(),
    }
}

pub(super) fn unresolved(app: &ApplicationState, feeds: &Feeds) -> Vec<(GroupKind, Unresolved)> {
    let why = |(kind, kind_use): (&GroupKind, &super::application_state::KindUse)| {
        Some((kind.clone(), app.unresolved(kind_use, feeds.get(kind_use.feed)?)?))
    };
    app.kind_uses.iter().filter_map(why).collect()
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

fn cycle(app: &ApplicationState) -> Option<LazyStatement<'_>> {
    let way = app.cycle.as_ref()?;
    Some(LazyStatement::new(ConditionStatus::True, reasons::DEPENDENCY_CYCLE, || {
        let names: Vec<_> = way.iter().map(|name| &*name.name).collect();
        message([(names.join(" -> "), "")], 1, MESSAGE_BUDGET)
    }))
}
