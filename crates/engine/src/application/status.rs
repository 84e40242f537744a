//! Conditions and status of an Application. `conditions` yields their statuses with lazy messages at each
//! evaluation; `render` builds the whole status when a write is due.

use std::{borrow::Cow, collections::BTreeSet, rc::Rc};

use bellwether_api::{
    ApplicationStatus, ConditionStatus, DependencyStatus, ObjectCause, ObjectStatus, OwnedKind, State,
};
use bellwether_conditions::{Statement, message};
use bellwether_health::{Rule, SERVICE_ENDPOINTS, Source};
use bellwether_model::text::with_reason;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    condition_types::{ADOPTED, DEPENDENCY_CYCLE, HEALTH_CHECK_VALID, INSTALLED, READY, RESOLVED, SETTLED},
    event::Unreadable,
    feeds::{Feed, Feeds, ObjectId},
    group_state,
    id::{Cluster, GroupKind},
    lazy_statement::LazyStatement,
    members::{MemberEntry, MemberEvidence, MemberId},
    publication::{ConditionSet, Recorded},
    reasons::{application as reasons, unreadable},
    selector,
    stored_condition::{self, ConditionShape, StoredCondition},
};

use super::{
    application_state::{ApplicationState, NotMember, Presence, Unresolved},
    dependencies::Dependencies,
    evidence::why_below,
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
    recorded: &[Recorded::State(ready_message)],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

fn ready_message(conditions: &[StoredCondition]) -> Option<&str> {
    conditions.iter().find(|condition| *condition.type_ == *READY)?.message.as_deref()
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
    ApplicationStatus {
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
        objects: objects(app, feeds),
        object_counts: Some(counts),
        dependencies: dependencies.statuses,
        owned_kinds: app.owned_kinds.kinds().map(owned_kind).collect(),
        last_event: app.publication.last_event(readiness.state(), now),
    }
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
            let evidence = app.members.get(member_id).and_then(|entry| entry.evidence);
            if let Some(from_below) = evidence.and_then(|evidence| why_below(evidence, feeds)) {
                return from_below;
            }
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
                Some(Presence::Unknown) => unknown_presence(app, feeds, index),
                Some(Presence::Present | Presence::Absent) | None => {
                    (reasons::NOT_FOUND.into(), "not found".into())
                }
            }
        }
    }
}

/// Why it is unknown whether a component exists.
fn unknown_presence<'a>(app: &ApplicationState, feeds: &Feeds, index: usize) -> (Cow<'a, str>, Cow<'a, str>) {
    let kind = app.components.get(index).map(|component| &component.kind);
    let kind_use = kind.and_then(|kind| app.kind_uses.get(kind));
    let feed = kind_use.and_then(|kind_use| feeds.get(kind_use.feed));
    if let Some(feed) = feed.filter(|feed| feed.unreadable.is_none())
        && feed.served.as_ref().is_some_and(|served| !served.namespaced)
    {
        return (reasons::CLUSTER_SCOPED.into(), Unresolved::ClusterScoped.to_string().into());
    }
    match feed.and_then(|feed| feed.unreadable.as_ref()) {
        Some(unreadable) => (unreadable.reason().into(), unreadable.to_string().into()),
        None => (unreadable::NOT_READABLE.into(), "cannot read objects of this kind".into()),
    }
}

fn objects(app: &ApplicationState, feeds: &Feeds) -> Vec<ObjectStatus> {
    let mut bytes_left = MAX_OBJECTS_BYTES;
    let object_status = |(member_id, entry): (MemberId, &MemberEntry)| {
        let (reason, message) = why(app, feeds, member_id);
        let feed = app.kind_uses.get(&entry.kind).and_then(|kind_use| feeds.get(kind_use.feed));
        let rule = rule(feeds, member_id, entry);
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
            cause: entry.cause().and_then(|pod| cause(feeds, pod)),
        }
    };
    app.members
        .worst_first()
        .take(MAX_OBJECTS)
        .map(object_status)
        .take_while(|object| {
            let cause = object.cause.as_ref().map(|cause| (&cause.reason, &cause.message));
            let text = [&object.link, &object.reason, &object.message].into_iter();
            let text = text.chain(cause.map(|(reason, _)| reason)).chain(cause.map(|(_, message)| message));
            let text = text.flatten().map(String::len);
            // The keys and the short fields.
            let size = 200 + object.name.len() + text.sum::<usize>();
            let fits = size <= bytes_left;
            bytes_left = bytes_left.saturating_sub(size);
            fits
        })
        .collect()
}

/// The rule that decided: on the Pod, if the member is Failed because of one; on the endpoints of a Service.
pub(super) fn rule<'f>(feeds: &'f Feeds, member_id: MemberId, entry: &MemberEntry) -> Option<&'f Rule> {
    let object = match (entry.evidence, member_id) {
        (Some(MemberEvidence::FailedPod(pod)), _) => pod,
        (Some(MemberEvidence::NoReadyEndpoints), _) => return Some(&SERVICE_ENDPOINTS),
        (_, MemberId::Object(object)) => object,
        (_, MemberId::Placeholder(_)) => return None,
    };
    feeds.object(object).map(|stored| &stored.facts.verdict.rule)
}

pub(super) fn cause(feeds: &Feeds, pod: ObjectId) -> Option<ObjectCause> {
    let stored = feeds.object(pod)?;
    let verdict = &stored.facts.verdict;
    Some(ObjectCause {
        kind: "Pod".to_owned(),
        name: (*stored.name.name).into(),
        reason: Some(verdict.reason.to_string()),
        message: Some(verdict.message.to_string()),
    })
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

/// `status.state`.
pub(super) fn state(app: &ApplicationState, feeds: &Feeds) -> State {
    Readiness::of(app, unresolved(app, feeds).len()).state()
}

/// What decides the condition Ready and `status.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// The Application is being deleted.
    Terminating,
    /// The worst state of a member, or `InProgress` for the health check and for suspended members of which
    /// too little runs.
    Blocked(State),
    /// A member, a kind or the health check is unknown.
    Unknown,
    NoMembers,
}

impl Readiness {
    /// Worst first.
    const BLOCKING: [State; 4] = [State::Failed, State::Missing, State::InProgress, State::Terminating];

    /// `unresolved` is the number of kinds that cannot be read.
    fn of(app: &ApplicationState, unresolved: usize) -> Self {
        if app.deleting {
            return Self::Terminating;
        }
        let check = health_check_readiness(app).map(|(status, _)| status);
        let is_blocked_by = |state: &State| {
            let blocks_otherwise =
                check == Some(ConditionStatus::False) || app.members.blocking_suspended() > 0;
            app.members.count(*state) > 0 || *state == State::InProgress && blocks_otherwise
        };
        if let Some(state) = Self::BLOCKING.into_iter().find(is_blocked_by) {
            return Self::Blocked(state);
        }
        let has_unknown = app.members.count(State::Unknown) + unresolved > 0;
        if has_unknown || check == Some(ConditionStatus::Unknown) {
            return Self::Unknown;
        }
        let asks_for_members = app.kind_uses.values().any(|kind_use| kind_use.allows_members);
        if app.members.total() == 0 && (asks_for_members || app.spec.health_check.is_none()) {
            return Self::NoMembers;
        }
        Self::Ready
    }

    fn state(self) -> State {
        match self {
            Self::Ready => State::Ready,
            Self::Terminating => State::Terminating,
            Self::Blocked(state) => state,
            Self::Unknown | Self::NoMembers => State::Unknown,
        }
    }

    /// Of the condition Ready.
    fn reason(self) -> &'static str {
        match self {
            Self::Ready => reasons::COMPONENTS_READY,
            Self::Terminating => reasons::TERMINATING,
            Self::Blocked(State::Failed) => reasons::COMPONENTS_FAILED,
            Self::Blocked(State::Missing) => reasons::COMPONENTS_MISSING,
            Self::Blocked(State::Terminating) => reasons::COMPONENTS_TERMINATING,
            Self::Blocked(_) => reasons::COMPONENTS_IN_PROGRESS,
            Self::Unknown => reasons::COMPONENTS_UNKNOWN,
            Self::NoMembers => reasons::NO_COMPONENTS,
        }
    }
}

/// `status.reason`: that of the worst member, or of a kind that cannot be read; `None` if ready.
fn deciding_reason(app: &ApplicationState, feeds: &Feeds, readiness: Readiness) -> Option<String> {
    match readiness {
        Readiness::Ready => return None,
        Readiness::Terminating => return Some(readiness.reason().to_owned()),
        Readiness::Blocked(_) | Readiness::Unknown | Readiness::NoMembers => {}
    }
    let suspended = || app.members.in_state(State::Suspended).find(|(_, entry)| entry.blocks);
    let mut members = app.members.in_state(readiness.state()).peekable();
    let first = members.peek().copied();
    // A Service without endpoints is a symptom: its workload has the cause.
    let is_cause = |entry: &MemberEntry| entry.evidence != Some(MemberEvidence::NoReadyEndpoints);
    let member = members.find(|(_, entry)| is_cause(entry)).or(first);
    let member =
        member.or_else(|| suspended().filter(|_| readiness == Readiness::Blocked(State::InProgress)));
    let of_member = member.map(|(member_id, _)| why(app, feeds, member_id).0.into_owned());
    let of_kind = || {
        let unresolved = unresolved(app, feeds);
        let (_, why) = unresolved.first().filter(|_| readiness == Readiness::Unknown)?;
        Some(reason_of(why).to_owned())
    };
    Some(of_member.or_else(of_kind).unwrap_or_else(|| readiness.reason().to_owned()))
}

/// The readiness of the health-check Pod, and why; `None` without a health check, and while Pods cannot be
/// read.
fn health_check_readiness(app: &ApplicationState) -> Option<(ConditionStatus, Cow<'_, str>)> {
    app.spec.health_check.as_ref().and(app.check.pod.as_ref())?;
    match &app.check.ready {
        Some((status, message)) => Some((*status, Cow::Borrowed(message))),
        None => Some((ConditionStatus::Unknown, no_health_check_pod(app))),
    }
}

fn ready<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    unresolved: Rc<[(GroupKind, Unresolved)]>,
) -> LazyStatement<'a> {
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
    let check = move |wanted: ConditionStatus| {
        health_check_readiness(app)
            .filter(|(status, _)| *status == wanted)
            .map(|(_, message)| ("health check:".to_owned(), message.into_owned()))
    };
    let readiness = Readiness::of(app, unresolved.len());
    let reason = readiness.reason();
    match readiness {
        Readiness::Terminating => terminating(app, feeds),
        Readiness::Blocked(_) => LazyStatement::new(ConditionStatus::False, reason, move || {
            let blocking = || Readiness::BLOCKING.iter();
            let check = check(ConditionStatus::False);
            let count = blocking().map(|state| app.members.count(*state)).sum::<usize>()
                + app.members.blocking_suspended();
            let suspended = app.members.in_state(State::Suspended).filter(|(_, entry)| entry.blocks);
            let members =
                blocking().flat_map(|state| app.members.in_state(*state)).chain(suspended).map(text);
            let total = count + usize::from(check.is_some());
            message(check.into_iter().chain(members), total, MESSAGE_BUDGET)
        }),
        Readiness::Unknown => LazyStatement::new(ConditionStatus::Unknown, reason, move || {
            let check = check(ConditionStatus::Unknown);
            let total = app.members.count(State::Unknown) + unresolved.len() + usize::from(check.is_some());
            let kinds = unresolved.iter().map(|(kind, why)| (format!("{kind}:"), why.to_string()));
            let members = app.members.in_state(State::Unknown).map(text);
            message(kinds.chain(check).chain(members), total, MESSAGE_BUDGET)
        }),
        Readiness::NoMembers => LazyStatement::new(ConditionStatus::Unknown, reason, || no_members(app)),
        Readiness::Ready => {
            LazyStatement::new(ConditionStatus::True, reason, || match app.members.count(State::Suspended) {
                0 => "All components ready".to_owned(),
                suspended => format!("All components ready, {suspended} suspended"),
            })
        }
    }
}

fn no_health_check_pod(app: &ApplicationState) -> Cow<'static, str> {
    match app.check.validity {
        Validity::Denied(reason, _) => format!("Pod not created: {reason}").into(),
        Validity::Unknown | Validity::Valid | Validity::Invalid(_) => "Pod not found".into(),
    }
}

/// What its own object reports: which finalizers it waits for.
fn terminating<'a>(app: &'a ApplicationState, feeds: &'a Feeds) -> LazyStatement<'a> {
    LazyStatement::new(ConditionStatus::False, reasons::TERMINATING, || {
        let object = feeds.find(&Cluster::hub(), &app.dialect().kind(), &app.name);
        let stored = object.and_then(|object| feeds.object(object));
        stored.map_or("being deleted", |stored| &stored.facts.verdict.message).to_owned()
    })
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
        Some((_, why)) => reason_of(why),
    };
    LazyStatement::new(ConditionStatus::False, reason, move || {
        let items =
            unresolved.iter().map(|(kind, why)| (format!("{kind}:"), format!("{why}{}", remedy(kind, why))));
        message(items, unresolved.len(), MESSAGE_BUDGET)
    })
}

fn reason_of(why: &Unresolved) -> &'static str {
    match why {
        Unresolved::Unreadable(unreadable) => unreadable.reason(),
        Unresolved::ClusterScoped => reasons::CLUSTER_SCOPED,
        Unresolved::Version { .. } => reasons::VERSION_NOT_SERVED,
        Unresolved::Rules(_) => reasons::RULES_UNREADABLE,
    }
}

/// What to do about it; may be empty.
pub(super) fn remedy(kind: &GroupKind, why: &Unresolved) -> String {
    match why {
        Unresolved::Unreadable(unreadable) => unreadable.remedy(kind),
        Unresolved::Rules(unreadable) => {
            format!("{}, or start Bellwether with --without-health-rules", unreadable.remedy(kind))
        }
        Unresolved::ClusterScoped | Unresolved::Version { .. } => String::new(),
    }
}

pub(super) fn unresolved(app: &ApplicationState, feeds: &Feeds) -> Vec<(GroupKind, Unresolved)> {
    let why = |(kind, kind_use): (&GroupKind, &super::application_state::KindUse)| {
        Some((kind.clone(), app.unresolved(kind_use, feeds.get(kind_use.feed)?)?))
    };
    let rules = feeds.rules_unreadable().filter(|_| app.kind_uses.values().any(|it| it.allows_members));
    let rules = rules.map(|why| (GroupKind::bellwether("HealthRule"), Unresolved::Rules(why.clone())));
    app.kind_uses.iter().filter_map(why).chain(rules).collect()
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
