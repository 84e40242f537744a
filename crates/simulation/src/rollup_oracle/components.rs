//! The components of a Rollup, and what each of them says.

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

/// A component, or an entry of the spec that should be one.
pub(super) struct Component {
    pub(super) kind: GroupKind,
    pub(super) name: NamespacedName,
    pub(super) state: State,
    pub(super) available: ReportedCondition,
    pub(super) progressing: ReportedCondition,
    pub(super) degraded: ReportedCondition,
    /// Nothing where it has no objection.
    pub(super) upgradeable: Option<ReportedCondition>,
    /// Whether it is one: a selector that matches nothing is none.
    pub(super) is_one: bool,
    /// Why there is no such object, as the status has to say it.
    pub(super) presence: Option<&'static str>,
}

/// What a component says in one condition.
#[derive(Clone)]
pub(super) struct ReportedCondition {
    pub(super) status: ConditionStatus,
    pub(super) reason: String,
    /// Nothing where the words are not its own.
    pub(super) message: Option<String>,
    pub(super) since: Since,
}

/// Since when it says so.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Since {
    At(Timestamp),
    /// It does not say.
    Nobody,
    /// Since somebody noticed, and who that was and when is not to be known here.
    Noticed,
}

/// All of them, in no order; and what the spec asks for and cannot be had.
pub(super) struct Discovered {
    pub(super) components: Vec<Component>,
    pub(super) problems: Problems,
}

/// What cannot be had, in the order in which it is told: why, and what it is about.
#[derive(Default)]
pub(super) struct Problems {
    mistakes: Vec<(&'static str, String)>,
    kinds: BTreeMap<GroupKind, &'static str>,
    choices: Vec<(&'static str, String)>,
    circles: BTreeSet<NamespacedName>,
}

impl Problems {
    pub(super) fn all(&self) -> Vec<(&'static str, String)> {
        let kinds = self.kinds.iter().map(|(kind, reason)| (*reason, format!("{kind}:")));
        let circles = self.circles.iter().map(|name| ("ComponentCycle", format!("Rollup/{name}:")));
        self.mistakes
            .iter()
            .cloned()
            .chain(kinds)
            .chain(self.choices.iter().cloned())
            .chain(circles)
            .collect()
    }
}

/// Finds them. `said` is the status that is to be judged: only it can tell since when something is missed.
pub(super) fn find(oracle: &Oracle<'_>, rollup: &Rollup, said: &Value) -> Discovered {
    let mut found = Discovered { components: Vec::new(), problems: Problems::default() };
    let mut counted: BTreeSet<(GroupKind, NamespacedName)> = BTreeSet::new();
    let mut asked: Vec<&RollupComponent> = Vec::new();
    for (index, entry) in rollup.spec.components.iter().enumerate() {
        let kind = GroupKind::new(&entry.group, &entry.kind);
        let is_clear = entry.name.is_some() != entry.selector.is_some();
        let place = format!("spec.components[{index}]:");
        let is_itself = kind == GroupKind::own("Rollup")
            && entry.namespace.is_none()
            && entry.name == rollup.metadata.name;
        if is_clear && !is_itself && asked.contains(&entry) {
            found.problems.mistakes.push(("DuplicateComponent", place));
            continue;
        }
        asked.push(entry);
        if !is_clear || is_itself {
            let reason = match (is_clear, &entry.name) {
                (true, _) => "ComponentCycle",
                (false, Some(_)) => "NameAndSelector",
                (false, None) => "NameOrSelectorRequired",
            };
            found.components.push(lost(kind, index, reason));
            found.problems.mistakes.push((reason, place));
            continue;
        }
        let known = oracle.kinds[&kind];
        let objects: Vec<_> = known.objects.values().filter(|object| means(rollup, entry, object)).collect();
        for object in &objects {
            let leads_back = leads_to(oracle, object, rollup);
            found.problems.circles.extend(leads_back.then(|| object.name.clone()));
            if counted.insert((kind.clone(), object.name.clone())) {
                let mut component = there(rollup.spec.progressing, known, object);
                if leads_back {
                    // What each says rests on what the other does: neither counts.
                    let says = nobody_can_tell("ComponentCycle");
                    component.state = State::Unknown;
                    component.upgradeable = Some(says.clone());
                    [component.available, component.progressing, component.degraded] =
                        [says.clone(), says.clone(), says];
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
        found.problems.choices.extend(problem.map(|problem| (problem, place)));
        found.components.extend(lack(entry, known, objects.is_empty(), said));
    }
    found
}

/// An entry of which nobody can tell what it means.
fn lost(kind: GroupKind, index: usize, reason: &str) -> Component {
    let says = || nobody_can_tell(reason);
    Component {
        kind,
        name: NamespacedName::new("", &format!("spec.components[{index}]")),
        state: State::Unknown,
        available: says(),
        progressing: says(),
        degraded: says(),
        upgradeable: Some(says()),
        is_one: false,
        presence: None,
    }
}

/// Whether an entry of a Rollup means an object of its kind. No Rollup means itself.
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

/// Whether an object is a Rollup that has another among its components, or the components of those, and so on.
fn leads_to(oracle: &Oracle<'_>, from: &Object, to: &Rollup) -> bool {
    let own = GroupKind::own("Rollup");
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

/// What an object says; nothing of it counts while its kind cannot be read.
fn there(mode: ProgressingPolicy, known: &Known, object: &Object) -> Component {
    let has = |kind: &str| conditions(object, kind).next().is_some();
    let mut says = ["Available", "Progressing", "Degraded", "Upgradeable"].map(|kind| of(object, kind, mode));
    if object.is_deleting() {
        let message = Some("being deleted".to_owned());
        says[1] = ReportedCondition {
            status: True,
            reason: "Terminating".to_owned(),
            message,
            since: Since::Nobody,
        };
    }
    if let Some(why) = &known.unreadable {
        says = says.map(|_| nobody_can_tell(reason(why)));
    }
    let [available, progressing, degraded, upgradeable] = says;
    Component {
        kind: object.kind.clone(),
        name: object.name.clone(),
        state: state(available.status, progressing.status, degraded.status),
        available,
        progressing,
        degraded,
        upgradeable: (has("Upgradeable") || known.unreadable.is_some()).then_some(upgradeable),
        is_one: true,
        presence: None,
    }
}

/// What stands for an entry that means no object, or perhaps more than are known.
fn lack(entry: &RollupComponent, known: &Known, is_empty: bool, said: &Value) -> Option<Component> {
    let kind = GroupKind::new(&entry.group, &entry.kind);
    let text = entry.name.clone().unwrap_or_else(|| selector_text(entry));
    let name = NamespacedName::new(entry.namespace.as_deref().unwrap_or_default(), &text);
    let is_one = entry.name.is_some();
    let (state, says, upgradeable) = match &known.unreadable {
        Some(_) if is_one && !is_empty => return None,
        None if !is_empty => return None,
        Some(Unreadable::NotServed) if is_one => {
            let message = "not found: kind not served by the cluster";
            (State::Missing, missing(message, noticed(&kind, &name, said)), None)
        }
        None if is_one => (State::Missing, missing("not found", noticed(&kind, &name, said)), None),
        Some(why) => {
            let says = nobody_can_tell(reason(why));
            // Whether it objects cannot be read either. Where there is no kind, there is nobody to object.
            let upgradeable = (*why != Unreadable::NotServed).then(|| says.clone());
            (State::Unknown, [says.clone(), says.clone(), says], upgradeable)
        }
        None => {
            let says = nobody_can_tell("NoObjectsSelected");
            (State::Unknown, [says.clone(), says.clone(), says], None)
        }
    };
    let presence = match &known.unreadable {
        _ if state != State::Missing => None,
        Some(_) => Some("NotServed"),
        None => Some("Missing"),
    };
    let [available, progressing, degraded] = says;
    Some(Component { kind, name, state, available, progressing, degraded, upgradeable, is_one, presence })
}

/// The selector of an entry as kubectl writes it.
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

/// Since when a component is missed, as the status says. Whether that can be, the checks of every write see to.
fn noticed(kind: &GroupKind, name: &NamespacedName, said: &Value) -> Since {
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
    let says = |status| ReportedCondition {
        status,
        reason: INSTALL_INVALID.to_owned(),
        message: Some(message.to_owned()),
        since,
    };
    [says(False), says(Unknown), says(Unknown)]
}

/// Since when nobody can, nobody says.
fn nobody_can_tell(reason: &str) -> ReportedCondition {
    ReportedCondition { status: Unknown, reason: reason.to_owned(), message: None, since: Since::Nobody }
}

const INSTALL_INVALID: &str = "InstallInvalid";

fn reason(why: &Unreadable) -> &'static str {
    match why {
        Unreadable::NotServed => "NotServed",
        Unreadable::Forbidden { .. } => "Forbidden",
        Unreadable::NotConnected => "NotConnected",
        Unreadable::NotInInput => "NotInInput",
        Unreadable::Failing { .. } => "NotReadable",
    }
}

fn conditions<'o>(object: &'o Object, kind: &str) -> impl Iterator<Item = &'o Value> {
    let all = object.value["status"]["conditions"].as_array().into_iter().flatten();
    all.filter(move |it| it["type"] == kind)
}

/// What an object says in the condition of a type.
fn of(object: &Object, kind: &str, mode: ProgressingPolicy) -> ReportedCondition {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let Some(first) = conditions(object, kind).next() else {
        let created = text(&object.metadata()["creationTimestamp"]).parse();
        return ReportedCondition {
            status: if kind == "Available" { False } else { Unknown },
            reason: INSTALL_INVALID.to_owned(),
            message: Some(format!("no {kind} condition")),
            since: created.map_or(Since::Nobody, Since::At),
        };
    };
    let number = |value: &Value| value.as_i64().filter(|number| *number > 0);
    let observed =
        number(&first["observedGeneration"]).or(number(&object.value["status"]["observedGeneration"]));
    let generation = number(&object.metadata()["generation"]);
    let count = conditions(object, kind).count();
    let twice =
        if count > 1 { format!(" ({count} {kind} conditions: the first counts)") } else { String::new() };
    if let (Some(observed), Some(generation)) = (observed, generation)
        && observed < generation
    {
        let message = format!("{kind} condition observed generation {observed}, want {generation}{twice}");
        return ReportedCondition { message: Some(message), ..nobody_can_tell("ObservedGenerationStale") };
    }
    let status = match first["status"].as_str() {
        Some("True") => True,
        Some("False") => False,
        _ => Unknown,
    };
    let reason = match text(&first["reason"]) {
        reason if !reason.is_empty() => reason,
        _ if status == good(kind, mode) => "AllAsExpected".to_owned(),
        _ => INSTALL_INVALID.to_owned(),
    };
    let since = text(&first["lastTransitionTime"]).parse().map_or(Since::Nobody, Since::At);
    let own = text(&first["message"]);
    let message = match &*text(&first["status"]) {
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

/// Whether a Rollup that has it can be healthy at this time: by its own word it is available and not degraded, or has not
/// been otherwise for as long as the Rollup waits; and it does not progress, where that is everybody's concern.
pub(crate) fn is_well(spec: &RollupSpec, object: &Object, now: Timestamp) -> bool {
    let (mode, after) = (spec.progressing, spec.degraded_after.value());
    let is_fine = |kind: &str| {
        let says = of(object, kind, mode);
        let may_be_held = match says.since {
            Since::At(since) => since.checked_add(after).is_ok_and(|until| now < until) && !after.is_zero(),
            Since::Nobody | Since::Noticed => false,
        };
        says.status == good(kind, mode) || says.status != Unknown && may_be_held
    };
    let is_at_rest = || of(object, "Progressing", mode).status == False && !object.is_deleting();
    is_fine("Available") && is_fine("Degraded") && (mode == ProgressingPolicy::WorstIsFalse || is_at_rest())
}

/// Whether it does not say that it may be upgraded, though it says something of that.
pub(crate) fn objects_to_upgrades(object: &Object) -> bool {
    let kind = "Upgradeable";
    conditions(object, kind).next().is_some() && of(object, kind, ProgressingPolicy::default()).status != True
}

/// The status of a type that is as it should be.
pub(super) fn good(kind: &str, mode: ProgressingPolicy) -> ConditionStatus {
    match kind {
        "Degraded" => False,
        "Progressing" if mode != ProgressingPolicy::WorstIsFalse => False,
        _ => True,
    }
}

/// Three conditions as one state. What is bad is on its way as long as somebody is at work on it.
pub(super) fn state(
    available: ConditionStatus,
    progressing: ConditionStatus,
    degraded: ConditionStatus,
) -> State {
    match (available, progressing, degraded) {
        (_, True, _) => State::InProgress,
        (False, False, _) | (_, False | Unknown, True) => State::Failed,
        (True, False, False) => State::Ready,
        _ => State::Unknown,
    }
}
