//! The oracle for Rollups: computes a status from scratch, with plain loops over all known objects.
//!
//! Transition times of the Rollup's own conditions are left out because they depend on the past.

mod components;
mod words;

use std::{collections::BTreeSet, time::Duration};

use bellwether_api::{
    ConditionStatus::{self, False, True, Unknown},
    ProgressingPolicy, Rollup, RollupSpec, State,
};
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_model::text::legal_reason;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::oracle::Oracle;
use components::{Component, Discovered, ReportedCondition, Since, find, good, state};
pub(crate) use components::{is_well, means, objects_to_upgrades};
use words::{joined, meaning, said_as, words};

/// The expected state of a Rollup.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// In the form of [`shape`].
    pub status: Value,
    /// Whether damping holds back a transition, so that the status will change with time.
    pub held: bool,
    /// The state that queries return.
    pub state: State,
    /// Components and placeholders, formatted by [`one_line`].
    pub members: Vec<String>,
}

/// All known Rollups.
pub fn rollups<'o>(oracle: &'o Oracle<'_>) -> impl Iterator<Item = (&'o NamespacedName, &'o Rollup)> {
    let known = oracle.kinds.get(&GroupKind::bellwether("Rollup"));
    let objects = known.into_iter().flat_map(|known| &known.objects);
    objects.filter_map(|(name, object)| Some((name, object.rollup()?)))
}

/// The kinds that a Rollup uses. Invalid entries use none.
pub fn kinds_of_spec(spec: &RollupSpec) -> BTreeSet<GroupKind> {
    let entries = spec.components.iter().filter(|entry| entry.name.is_some() != entry.selector.is_some());
    entries.map(|entry| GroupKind::new(&entry.group, &entry.kind)).collect()
}

/// The state of a Rollup whose status is `stored`. None while a used kind is unknown or torn. `said` is the
/// status to check: the oracle takes from it since when components are missing, which it cannot know.
pub fn status(oracle: &Oracle<'_>, rollup: &Rollup, stored: &Value, said: &Value) -> Option<Expected> {
    let is_known =
        |kind: &GroupKind| oracle.kinds.get(kind).is_some_and(|known| known.is_known() && !known.is_torn());
    if !oracle.is_open() || !kinds_of_spec(&rollup.spec).iter().all(is_known) {
        return None;
    }
    let Discovered { mut components, problems } = find(oracle, rollup, said);
    let kinds = kinds_of_spec(&rollup.spec);
    components.sort_by_key(|it| identity(it, &kinds));
    let mode = rollup.spec.progressing;
    let input = |kind: &'static str, which: fn(&Component) -> Option<&ReportedCondition>| ConditionInput {
        kind,
        good: good(kind, mode),
        which,
        components: &components,
        kinds: &kinds,
    };
    let damping = Damping { after: rollup.spec.degraded_after.value(), stored, now: oracle.now };
    let (available, first) = input("Available", |it| Some(&it.available)).damped(&damping);
    let (degraded, second) = input("Degraded", |it| Some(&it.degraded)).damped(&damping);
    let held = first || second;
    let progressing = input("Progressing", |it| Some(&it.progressing));
    let is_stuck = mode == ProgressingPolicy::Matrix && !held && components.iter().any(is_stuck);
    let is_deleting = rollup.metadata.deletion_timestamp.is_some();
    let progressing = match is_stuck {
        _ if is_deleting => json!(["True", "Terminating", "being deleted"]),
        true => progressing.stuck(),
        false => progressing.plain(),
    };
    let upgradeable =
        rollup.spec.upgradeable.then(|| input("Upgradeable", |it| it.upgradeable.as_ref()).plain());
    let triple = [&available, &progressing, &degraded].map(|condition| condition[0].clone());
    let ones: Vec<_> = components.iter().filter(|it| it.is_one).collect();
    let has = |state: State| components.iter().any(|it| it.state == state);
    let is_new = triple[1] == "Unknown" && !has(State::Failed);
    let state = match state(status_of(&triple[0]), status_of(&triple[1]), status_of(&triple[2])) {
        _ if is_deleting => State::Terminating,
        State::Unknown | State::InProgress if has(State::Missing) => State::Missing,
        State::Failed if is_new && has(State::Missing) => State::Missing,
        State::Failed if is_new && has(State::InProgress) => State::InProgress,
        state => state,
    };
    let problems = problems.all();
    let resolved = match problems.first() {
        None => json!(["True", "AllKindsResolved", "All kinds resolved"]),
        Some((reason, _)) => {
            json!(["False", reason, problems.iter().map(|(_, place)| place).collect::<Vec<_>>()])
        }
    };
    let status = json!({
        "observedGeneration": rollup.metadata.generation,
        "health": health(&triple),
        "state": state,
        "meaning": meaning(&triple),
        "componentCount": ones.len(),
        "components": listed(&ones, &kinds, rollup.spec.upgradeable),
        "Available": available,
        "Progressing": progressing,
        "Degraded": degraded,
        "Upgradeable": upgradeable,
        "Resolved": resolved,
    });
    let mut members: Vec<_> = components.iter().map(member).collect();
    members.sort();
    Some(Expected { status, held, state, members })
}

fn status_of(value: &Value) -> ConditionStatus {
    ConditionStatus::of(value.as_str().unwrap_or_default())
}

/// A component without its texts. The name of a selector is empty, because the oracle does not know it.
pub fn one_line(
    kind: &GroupKind,
    name: &str,
    state: State,
    statuses: Option<[ConditionStatus; 3]>,
) -> String {
    format!("{kind} {name} is {state:?}: {statuses:?}")
}

fn member(it: &Component) -> String {
    let is_selector = !it.is_one && !it.name.name.starts_with("spec.components[");
    let name = if is_selector { String::new() } else { it.name.to_string() };
    let statuses = [it.available.status, it.progressing.status, it.degraded.status];
    one_line(&it.kind, &name, it.state, Some(statuses))
}

/// Sort key of a component: kind, with the group if two groups have that kind; namespace; name.
fn identity(it: &Component, kinds: &BTreeSet<GroupKind>) -> (String, String, String) {
    let is_ambiguous = kinds.iter().any(|kind| kind.kind == it.kind.kind && kind.group != it.kind.group);
    let kind = match it {
        // An invalid entry comes before all objects.
        _ if it.name.name.starts_with("spec.") => String::new(),
        _ if is_ambiguous => it.kind.to_string(),
        _ => it.kind.kind.to_string(),
    };
    (kind, it.name.namespace.to_string(), it.name.name.to_string())
}

/// Not available and degraded, and its operator is not progressing.
fn is_stuck(it: &Component) -> bool {
    (it.available.status, it.progressing.status, it.degraded.status) == (False, False, True)
}

/// The conditions of one type of all components.
struct ConditionInput<'a> {
    kind: &'static str,
    good: ConditionStatus,
    which: fn(&Component) -> Option<&ReportedCondition>,
    /// Sorted by `identity`.
    components: &'a [Component],
    kinds: &'a BTreeSet<GroupKind>,
}

/// Holds back a change for the worse until it has lasted `after`.
struct Damping<'a> {
    after: Duration,
    stored: &'a Value,
    now: Timestamp,
}

impl ConditionInput<'_> {
    fn bad(&self) -> ConditionStatus {
        if self.good == True { False } else { True }
    }

    fn of(&self, status: ConditionStatus) -> Vec<&Component> {
        let is_it = |it: &&Component| (self.which)(it).is_some_and(|says| says.status == status);
        self.components.iter().filter(is_it).collect()
    }

    /// Status, reason and message without damping: the worst status of all components.
    fn plain(&self) -> Value {
        let worst = [self.bad(), Unknown, self.good].into_iter().find(|status| !self.of(*status).is_empty());
        match worst {
            Some(status) => self.say(status),
            None if self.kind == "Upgradeable" => json!(["True", "AllAsExpected", self.when_good()]),
            None => json!(["Unknown", "NoComponents", "spec.components names nothing"]),
        }
    }

    /// The same with damping, and whether it holds back: a component is bad, the stored status is not, and
    /// `after` has not passed.
    fn damped(&self, damping: &Damping<'_>) -> (Value, bool) {
        let stored = damping.stored["conditions"].as_array().into_iter().flatten();
        let stored = stored.filter(|it| it["type"] == self.kind).map(|it| text(&it["status"])).next();
        let bad = self.of(self.bad());
        let Some(stored) = stored.filter(|stored| *stored != self.bad().name() && !bad.is_empty()) else {
            return (self.plain(), false);
        };
        let later = |time: Timestamp| time.checked_add(damping.after).unwrap_or(Timestamp::MAX);
        let mut times = Vec::new();
        for it in bad {
            match (self.which)(it).map(|says| says.since) {
                Some(Since::At(since)) => times.push(since),
                // Damping needs a time: a component without one counts at once.
                _ => return (self.plain(), false),
            }
        }
        let has_lasted = times.iter().any(|since| later(*since) <= damping.now);
        // Times that are too far in the future are ignored: a wrong clock must not hide a failure.
        let is_implausible = times.iter().all(|since| *since > later(damping.now));
        if has_lasted || is_implausible {
            return (self.plain(), false);
        }
        let is_unknown = stored != self.good.name() || !self.of(Unknown).is_empty();
        let mut says = self.say(if is_unknown { Unknown } else { self.good });
        // The message names what the status holds back.
        let until = times.iter().min().map(|since| format!("not reported before {}: ", later(*since)));
        // The prefix takes room from the items. Where they hardly fit without it, no message is expected.
        let has_room = |text: &str| text.len() < 900;
        says[2] = match (until, self.named()) {
            (Some(until), Value::String(named)) if has_room(&named) => json!(until + &named),
            (Some(until), Value::Array(named))
                if named.first().and_then(Value::as_str).is_none_or(has_room) =>
            {
                [json!(until)].into_iter().chain(named).collect()
            }
            _ => Value::Null,
        };
        (says, true)
    }

    /// Progressing while a component is stuck.
    fn stuck(&self) -> Value {
        let stuck: Vec<_> = self.components.iter().filter(|it| is_stuck(it)).collect();
        let items = stuck.iter().map(|it| {
            let why = words(&it.degraded)?;
            Some(format!("{}: requires manual intervention: {why}", self.display_name(it)?))
        });
        let message = joined(&items.collect::<Vec<_>>());
        json!(["False", self.reason(&stuck, "NeedsHuman"), message])
    }

    fn say(&self, status: ConditionStatus) -> Value {
        let deciding = self.of(status);
        let otherwise = if status == self.good { "AllAsExpected" } else { "InstallInvalid" };
        let reason = self.reason(&deciding, otherwise);
        if status == self.good {
            return json!([status, reason, self.when_good()]);
        }
        json!([status, reason, self.named()])
    }

    /// The message that names bad components, then unknown ones.
    fn named(&self) -> Value {
        let named = self.of(self.bad()).into_iter().chain(self.of(Unknown));
        let items = named.map(|it| {
            let words = (self.which)(it).and_then(words)?;
            Some(format!("{}: {words}", self.display_name(it)?))
        });
        joined(&items.collect::<Vec<_>>())
    }

    /// The reason of the component that changed last; of several, of the first. None if that depends on a
    /// time that the oracle does not know.
    fn reason(&self, deciding: &[&Component], otherwise: &str) -> Option<String> {
        let mut latest: Option<(Option<Timestamp>, String)> = None;
        let says: Vec<_> = deciding.iter().filter_map(|it| (self.which)(it)).collect();
        let is_unclear = says.iter().any(|says| says.since == Since::Noticed);
        if is_unclear && says.windows(2).any(|pair| pair[0].reason != pair[1].reason) {
            return None;
        }
        for says in says {
            let since = match says.since {
                Since::At(since) => Some(since),
                Since::Unreported | Since::Noticed => None,
            };
            if latest.as_ref().is_none_or(|(time, _)| since > *time) {
                latest = Some((since, says.reason.clone()));
            }
        }
        let reason = latest.map_or_else(|| otherwise.to_owned(), |(_, reason)| reason);
        Some(legal_reason(reason).into_owned())
    }

    /// The name of a component in messages, with the namespace only if two components have the same name.
    fn display_name(&self, it: &Component) -> Option<String> {
        // The oracle does not know the name of a selector without matches. It cannot equal that of an object.
        if !it.is_one {
            return None;
        }
        let (kind, namespace, name) = identity(it, self.kinds);
        let has_same_name = |other: &&Component| {
            let (other_kind, _, other_name) = identity(other, self.kinds);
            other.is_one && (other_kind, other_name) == (kind.clone(), name.clone())
        };
        let is_unique = self.components.iter().filter(has_same_name).count() == 1;
        Some(if is_unique || namespace.is_empty() {
            format!("{kind}/{name}")
        } else {
            format!("{kind}/{namespace}/{name}")
        })
    }

    fn when_good(&self) -> &'static str {
        match (self.kind, self.good) {
            ("Available", _) => "All components are available",
            ("Degraded", _) => "No component is degraded",
            ("Progressing", True) => "All components are progressing",
            ("Progressing", _) => "No component is progressing",
            _ => "All components are upgradeable",
        }
    }
}

/// `status.components`: first those in error, then those with a warning or an objection, then the others.
fn listed(components: &[&Component], kinds: &BTreeSet<GroupKind>, upgradeable: bool) -> Vec<Value> {
    let mut components: Vec<_> = components.to_vec();
    components.sort_by_key(|it| {
        let triple = [&it.available, &it.progressing, &it.degraded].map(|says| json!(says.status));
        let objects = it.upgradeable.as_ref().is_some_and(|says| says.status != True);
        let rank = match health(&triple) {
            "Error" => 0,
            "Healthy" if !objects => 2,
            _ => 1,
        };
        (rank, identity(it, kinds))
    });
    let entry = |it: &&Component| {
        let Component { available, progressing, degraded, .. } = *it;
        let telling = [
            (available, False),
            (degraded, True),
            (available, Unknown),
            (degraded, Unknown),
            (progressing, Unknown),
            (progressing, True),
        ];
        let telling = telling.into_iter().find(|(says, status)| says.status == *status);
        let telling = telling.map_or(available, |(says, _)| says);
        let since = match telling.since {
            Since::At(since) => Some(since.to_string()),
            Since::Unreported => Some(String::new()),
            Since::Noticed => None,
        };
        json!({
            "object": [*it.kind.group, *it.kind.kind, *it.name.namespace, *it.name.name],
            "statuses": [available.status, progressing.status, degraded.status],
            "upgradeable": it.upgradeable.as_ref().filter(|_| upgradeable).map(|says| says.status),
            "reason": legal_reason(&*telling.reason), "message": telling.message, "since": since,
            "presence": it.presence,
        })
    };
    components.iter().map(entry).collect()
}

/// Error: not available, or degraded. Warning: progressing, or a status is unknown.
fn health([available, progressing, degraded]: &[Value; 3]) -> &'static str {
    if available == "False" || degraded == "True" {
        "Error"
    } else if progressing == "True" || [available, progressing, degraded].iter().any(|it| **it == "Unknown") {
        "Warning"
    } else {
        "Healthy"
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A stored status in the form of [`Expected::status`], so that both can be compared. Null replaces what the
/// oracle does not know.
pub fn shape(status: &Value, expected: &Value) -> Value {
    let unless_unknown =
        |expected: &Value, value: Value| if expected.is_null() { Value::Null } else { value };
    let find = |kind: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.find(|condition| condition["type"] == kind).cloned()
    };
    let condition = |kind: &str| {
        let [_, reason, message] = [0, 1, 2].map(|index| expected[kind].get(index).unwrap_or(&Value::Null));
        find(kind).map(|it| {
            let reason = unless_unknown(reason, it["reason"].clone());
            json!([it["status"], reason, said_as(message, &it["message"])])
        })
    };
    let components = status["components"].as_array().into_iter().flatten().enumerate();
    let components = components.map(|(index, it)| {
        let known = &expected["components"][index];
        let or_nothing = |field: &str| unless_unknown(&known[field], json!(text(&it[field])));
        let object = ["group", "kind", "namespace", "name"].map(|field| text(&it[field]));
        json!({
            "object": object, "statuses": [it["available"], it["progressing"], it["degraded"]],
            "upgradeable": it["upgradeable"],
            "reason": or_nothing("reason"), "message": or_nothing("message"), "since": or_nothing("since"),
            "presence": it["presence"],
        })
    });
    json!({
        "observedGeneration": status["observedGeneration"],
        "health": status["health"],
        "state": status["state"],
        "meaning": status["meaning"],
        "componentCount": status["componentCount"],
        "components": components.collect::<Vec<_>>(),
        "Available": condition("Available"),
        "Progressing": condition("Progressing"),
        "Degraded": condition("Degraded"),
        "Upgradeable": condition("Upgradeable"),
        "Resolved": condition("Resolved"),
    })
}
