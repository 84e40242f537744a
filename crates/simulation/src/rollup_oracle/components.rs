//! The components of a Rollup and the conditions that they report.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::{ConditionStatus, ProgressingPolicy, Rollup, RollupComponent, RollupSpec, State};
use bellwether_engine::{GroupKind, NamespacedName, Unreadable};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    known::Known,
    object::Object,
    oracle::{Oracle, selects},
};

use ConditionStatus::{False, True, Unknown};

/// A component, or a placeholder for an entry of `spec.components` without an object.
pub(super) struct Component {
    pub(super) kind: GroupKind,
    pub(super) name: NamespacedName,
    pub(super) state: State,
    pub(super) available: ReportedCondition,
    pub(super) progressing: ReportedCondition,
    pub(super) degraded: ReportedCondition,
    /// None if the component has no Upgradeable condition.
    pub(super) upgradeable: Option<ReportedCondition>,
    /// False for a selector without matches and for an invalid entry: they do not count as components.
    pub(super) is_one: bool,
    /// Why the object is missing: `status.components[].presence`.
    pub(super) presence: Option<&'static str>,
}

/// What a component contributes to one condition.
#[derive(Clone)]
pub(super) struct ReportedCondition {
    pub(super) status: ConditionStatus,
    pub(super) reason: String,
    /// None if the oracle does not know the text.
    pub(super) message: Option<String>,
    pub(super) since: Since,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Since {
    At(Timestamp),
    /// The component reports no time.
    Unreported,
    /// Since a controller noticed it, at a time that the oracle does not know.
    Noticed,
}

/// The components, unordered, and the problems of the condition Resolved.
pub(super) struct Discovered {
    pub(super) components: Vec<Component>,
    pub(super) problems: Problems,
}

/// Problems in the order of the message: a reason, and the prefix of the text.
#[derive(Default)]
pub(super) struct Problems {
    invalid: Vec<(&'static str, String)>,
    kinds: BTreeMap<GroupKind, &'static str>,
    entries: Vec<(&'static str, String)>,
    cycles: BTreeSet<NamespacedName>,
}

impl Problems {
    pub(super) fn all(&self) -> Vec<(&'static str, String)> {
        let kinds = self.kinds.iter().map(|(kind, reason)| (*reason, format!("{kind}:")));
        let cycles = self.cycles.iter().map(|name| ("ComponentCycle", format!("Rollup/{name}:")));
        self.invalid.iter().cloned().chain(kinds).chain(self.entries.iter().cloned()).chain(cycles).collect()
    }
}

/// Finds all components. `said` is the status to check; it has the times since when components are missing.
pub(super) fn find(oracle: &Oracle<'_>, rollup: &Rollup, said: &Value) -> Discovered {
    let mut found = Discovered { components: Vec::new(), problems: Problems::default() };
    let mut counted: BTreeSet<(GroupKind, NamespacedName)> = BTreeSet::new();
    let mut earlier: Vec<&RollupComponent> = Vec::new();
    for (index, entry) in rollup.spec.components.iter().enumerate() {
        let kind = GroupKind::new(&entry.group, &entry.kind);
        let is_valid = entry.name.is_some() != entry.selector.is_some();
        let place = format!("spec.components[{index}]:");
        let is_itself = kind == GroupKind::bellwether("Rollup")
            && entry.namespace.is_none()
            && entry.name == rollup.metadata.name;
        if is_valid && !is_itself && earlier.contains(&entry) {
            found.problems.invalid.push(("DuplicateComponent", place));
            continue;
        }
        earlier.push(entry);
        if !is_valid || is_itself {
            let reason = match (is_valid, &entry.name) {
                (true, _) => "ComponentCycle",
                (false, Some(_)) => "NameAndSelector",
                (false, None) => "NameOrSelectorRequired",
            };
            found.components.push(invalid_entry(kind, index, reason));
            found.problems.invalid.push((reason, place));
            continue;
        }
        let known = oracle.kinds[&kind];
        let objects: Vec<_> = known.objects.values().filter(|object| means(rollup, entry, object)).collect();
        for object in &objects {
            let is_cycle = leads_to(oracle, object, rollup);
            found.problems.cycles.extend(is_cycle.then(|| object.name.clone()));
            if counted.insert((kind.clone(), object.name.clone())) {
                let mut component = existing(rollup.spec.progressing, known, object);
                if is_cycle {
                    // The conditions of Rollups in a cycle depend on each other, so they are unknown.
                    let condition = unknown("ComponentCycle");
                    component.state = State::Unknown;
                    component.upgradeable = Some(condition.clone());
                    [component.available, component.progressing, component.degraded] =
                        [condition.clone(), condition.clone(), condition];
                }
                found.components.push(component);
            }
        }
        found.problems.kinds.extend(known.unreadable.as_ref().map(|why| (kind.clone(), reason(why))));
        let is_namespaced = known.served.as_ref().map(|served| served.namespaced);
        let problem = match (is_namespaced, &entry.namespace, &entry.name) {
            (Some(false), Some(_), _) => Some("ClusterScoped"),
            (Some(true), None, Some(_)) => Some("NamespaceRequired"),
            (_, _, None) if objects.is_empty() && known.unreadable.is_none() => Some("NoObjectsSelected"),
            _ => None,
        };
        found.problems.entries.extend(problem.map(|problem| (problem, place)));
        found.components.extend(placeholder(entry, known, objects.is_empty(), said));
    }
    found
}

/// The placeholder for an entry that is invalid.
fn invalid_entry(kind: GroupKind, index: usize, reason: &str) -> Component {
    let condition = || unknown(reason);
    Component {
        kind,
        name: NamespacedName::new("", &format!("spec.components[{index}]")),
        state: State::Unknown,
        available: condition(),
        progressing: condition(),
        degraded: condition(),
        upgradeable: Some(condition()),
        is_one: false,
        presence: None,
    }
}

/// Whether an entry of a Rollup matches an object of its kind. A Rollup never matches itself.
pub(crate) fn means(rollup: &Rollup, entry: &RollupComponent, object: &Object) -> bool {
    let is_itself = Some(object.uid()) == rollup.metadata.uid.as_deref();
    let namespace = entry.namespace.as_deref();
    !is_itself
        && match (&entry.name, &entry.selector) {
            (Some(name), None) => object.name == NamespacedName::new(namespace.unwrap_or_default(), name),
            (None, Some(selector)) => {
                namespace.is_none_or(|namespace| *object.name.namespace == *namespace)
                    && selects(selector, &object.metadata()["labels"])
            }
            _ => false,
        }
}

/// Whether an object is a Rollup that has `to` among its components, directly or through other Rollups.
fn leads_to(oracle: &Oracle<'_>, from: &Object, to: &Rollup) -> bool {
    let own = GroupKind::bellwether("Rollup");
    let mut reached: Vec<&Object> = vec![from];
    let mut next = 0;
    while let Some(rollup) = reached.get(next).map(|object| object.rollup()) {
        next += 1;
        let Some(rollup) = rollup else { continue };
        for entry in rollup.spec.components.iter().filter(|it| GroupKind::new(&it.group, &it.kind) == own) {
            for object in oracle.kinds[&own].objects.values().filter(|it| means(rollup, entry, it)) {
                if Some(object.uid()) == to.metadata.uid.as_deref() {
                    return true;
                }
                if !reached.iter().any(|other| other.uid() == object.uid()) {
                    reached.push(object);
                }
            }
        }
    }
    false
}

/// The component for an object. All its conditions are unknown while the kind is unreadable.
fn existing(mode: ProgressingPolicy, known: &Known, object: &Object) -> Component {
    let has = |kind: &str| conditions(object, kind).next().is_some();
    let mut all =
        ["Available", "Progressing", "Degraded", "Upgradeable"].map(|kind| reported(object, kind, mode));
    if object.is_deleting() {
        let message = Some("being deleted".to_owned());
        all[1] = ReportedCondition {
            status: True,
            reason: "Terminating".to_owned(),
            message,
            since: Since::Unreported,
        };
    }
    if let Some(why) = &known.unreadable {
        all = all.map(|_| unknown(reason(why)));
    }
    let [available, progressing, degraded, upgradeable] = all;
    Component {
        kind: object.kind.clone(),
        name: object.name.clone(),
        state: match state(available.status, progressing.status, degraded.status) {
            State::Failed if !["Available", "Progressing", "Degraded"].into_iter().any(has) => {
                State::InProgress
            }
            state => state,
        },
        available,
        progressing,
        degraded,
        upgradeable: (has("Upgradeable") || known.unreadable.is_some()).then_some(upgradeable),
        is_one: true,
        presence: None,
    }
}

/// The placeholder for an entry that matches no object, or may match objects of an unreadable kind.
fn placeholder(entry: &RollupComponent, known: &Known, is_empty: bool, said: &Value) -> Option<Component> {
    let kind = GroupKind::new(&entry.group, &entry.kind);
    let text = entry.name.clone().unwrap_or_else(|| selector_text(entry));
    let name = NamespacedName::new(entry.namespace.as_deref().unwrap_or_default(), &text);
    let is_one = entry.name.is_some();
    let (state, conditions, upgradeable) = match &known.unreadable {
        Some(_) if is_one && !is_empty => return None,
        None if !is_empty => return None,
        Some(Unreadable::NotServed) if is_one => {
            let message = "not found: kind not served by the cluster";
            (State::Missing, missing(message, missing_since(&kind, &name, said)), None)
        }
        None if is_one => (State::Missing, missing("not found", missing_since(&kind, &name, said)), None),
        Some(why) => {
            let condition = unknown(reason(why));
            // An unreadable object may object to an upgrade. An object of a kind that is not served cannot.
            let upgradeable = (*why != Unreadable::NotServed).then(|| condition.clone());
            (State::Unknown, [condition.clone(), condition.clone(), condition], upgradeable)
        }
        None => {
            let condition = unknown("NoObjectsSelected");
            (State::Unknown, [condition.clone(), condition.clone(), condition], None)
        }
    };
    let presence = match &known.unreadable {
        _ if state != State::Missing => None,
        Some(_) => Some("NotServed"),
        None => Some("Missing"),
    };
    let [available, progressing, degraded] = conditions;
    Some(Component { kind, name, state, available, progressing, degraded, upgradeable, is_one, presence })
}

/// The selector of an entry in the form of kubectl.
fn selector_text(entry: &RollupComponent) -> String {
    let selector = entry.selector.clone().unwrap_or_default();
    let labels = selector.match_labels.into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.into_iter().flatten().map(|it| {
        let values = it.values.unwrap_or_default().join(",");
        match it.operator.as_str() {
            "In" => format!("{} in ({values})", it.key),
            "NotIn" => format!("{} notin ({values})", it.key),
            "Exists" => it.key,
            _ => format!("!{}", it.key),
        }
    });
    let requirements: Vec<_> = labels.chain(expressions).collect();
    if requirements.is_empty() { "any labels".to_owned() } else { requirements.join(",") }
}

/// Since when a component is missing, as the status says. `rollup_checks.rs` checks that it is plausible.
fn missing_since(kind: &GroupKind, name: &NamespacedName, said: &Value) -> Since {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_it = |it: &&Value| {
        GroupKind::new(&text(&it["group"]), &text(&it["kind"])) == *kind
            && NamespacedName::new(&text(&it["namespace"]), &text(&it["name"])) == *name
            && it["presence"].is_string()
    };
    let entry = said["components"].as_array().into_iter().flatten().find(is_it);
    entry.and_then(|it| text(&it["since"]).parse().ok()).map_or(Since::Noticed, Since::At)
}

fn missing(message: &str, since: Since) -> [ReportedCondition; 3] {
    let condition = |status| ReportedCondition {
        status,
        reason: INSTALL_INVALID.to_owned(),
        message: Some(message.to_owned()),
        since,
    };
    [condition(False), condition(Unknown), condition(Unknown)]
}

fn unknown(reason: &str) -> ReportedCondition {
    ReportedCondition { status: Unknown, reason: reason.to_owned(), message: None, since: Since::Unreported }
}

const INSTALL_INVALID: &str = "InstallInvalid";

fn reason(why: &Unreadable) -> &'static str {
    match why {
        Unreadable::NotServed => "NotServed",
        Unreadable::Forbidden { .. } => "Forbidden",
        Unreadable::NotConnected => "NotConnected",
        Unreadable::NotInInput => "NotInInput",
        Unreadable::InvalidInput | Unreadable::Failing { .. } => "NotReadable",
    }
}

fn conditions<'o>(object: &'o Object, kind: &str) -> impl Iterator<Item = &'o Value> {
    let all = object.value["status"]["conditions"].as_array().into_iter().flatten();
    all.filter(move |it| it["type"] == kind)
}

/// What an object reports in the condition of a type.
fn reported(object: &Object, kind: &str, mode: ProgressingPolicy) -> ReportedCondition {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let Some(first) = conditions(object, kind).next() else {
        let created = text(&object.metadata()["creationTimestamp"]).parse();
        return ReportedCondition {
            status: if kind == "Available" { False } else { Unknown },
            reason: INSTALL_INVALID.to_owned(),
            message: Some(format!("no {kind} condition")),
            since: created.map_or(Since::Unreported, Since::At),
        };
    };
    let number = |value: &Value| {
        let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
        number.filter(|number| *number > 0)
    };
    let observed =
        number(&first["observedGeneration"]).or(number(&object.value["status"]["observedGeneration"]));
    let generation = number(&object.metadata()["generation"]);
    let count = conditions(object, kind).count();
    let read = |status: &Value| match (status.as_bool(), status.as_str()) {
        (Some(true), _) | (_, Some("True")) => True,
        (Some(false), _) | (_, Some("False")) => False,
        _ => Unknown,
    };
    let differ = conditions(object, kind).any(|other| read(&other["status"]) != read(&first["status"]));
    let twice = match (count, differ) {
        (..=1, _) => String::new(),
        (count, true) => format!(" ({count} {kind} conditions with different status)"),
        (count, false) => format!(" ({count} {kind} conditions, using the first)"),
    };
    if let (Some(observed), Some(generation)) = (observed, generation)
        && observed < generation
    {
        let message = format!("{kind} condition observed generation {observed}, want {generation}{twice}");
        return ReportedCondition { message: Some(message), ..unknown("ObservedGenerationStale") };
    }
    let status = if differ { Unknown } else { read(&first["status"]) };
    let reason = match text(&first["reason"]) {
        reason if !reason.is_empty() => reason,
        _ if status == good(kind, mode) => "AllAsExpected".to_owned(),
        _ => INSTALL_INVALID.to_owned(),
    };
    let since = text(&first["lastTransitionTime"]).parse().map_or(Since::Unreported, Since::At);
    let own = text(&first["message"]);
    let message = match &*text(&first["status"]) {
        _ if first["status"].is_boolean() => own,
        "True" | "False" | "Unknown" => own,
        other => {
            let what = if other.is_empty() {
                "status required: True, False or Unknown".to_owned()
            } else {
                format!("invalid status {other:?}: must be True, False or Unknown")
            };
            let colon = if own.is_empty() { "" } else { ": " };
            format!("{what}{colon}{own}")
        }
    };
    let message = format!("{message}{twice}").trim().to_owned();
    ReportedCondition { status, reason, message: Some(message), since }
}

/// Whether a Rollup with this component can be Healthy: it reports Available and not Degraded, or damping may
/// hold the opposite back; and it does not report Progressing, unless the policy is `WorstIsFalse`.
pub(crate) fn is_well(spec: &RollupSpec, object: &Object, now: Timestamp) -> bool {
    let (mode, after) = (spec.progressing, spec.degraded_after.value());
    let is_fine = |kind: &str| {
        let condition = reported(object, kind, mode);
        let may_be_held = match condition.since {
            Since::At(since) => since.checked_add(after).is_ok_and(|until| now < until) && !after.is_zero(),
            Since::Unreported | Since::Noticed => false,
        };
        condition.status == good(kind, mode) || condition.status != Unknown && may_be_held
    };
    let is_at_rest = || reported(object, "Progressing", mode).status == False && !object.is_deleting();
    is_fine("Available") && is_fine("Degraded") && (mode == ProgressingPolicy::WorstIsFalse || is_at_rest())
}

/// Whether an object has an Upgradeable condition that is not True.
pub(crate) fn objects_to_upgrades(object: &Object) -> bool {
    let kind = "Upgradeable";
    conditions(object, kind).next().is_some()
        && reported(object, kind, ProgressingPolicy::default()).status != True
}

/// The good status of a condition type.
pub(super) fn good(kind: &str, mode: ProgressingPolicy) -> ConditionStatus {
    match kind {
        "Degraded" => False,
        "Progressing" if mode != ProgressingPolicy::WorstIsFalse => False,
        _ => True,
    }
}

/// Three conditions as one state. A bad component is InProgress while its operator reports Progressing.
pub(super) fn state(
    available: ConditionStatus,
    progressing: ConditionStatus,
    degraded: ConditionStatus,
) -> State {
    match (available, progressing, degraded) {
        (_, True, _) => State::InProgress,
        (False, False | Unknown, _) | (_, False | Unknown, True) => State::Failed,
        (True, False, False) => State::Ready,
        _ => State::Unknown,
    }
}
