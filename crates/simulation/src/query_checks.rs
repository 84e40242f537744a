//! Checks of the answers of a controller to queries, as probes, OLM and the command line make them.
//!
//! At the end of a run, answers must equal the oracle. During a run, a group that is reported healthy or
//! upgradeable must have been so at some point since the state that the controller knows. The first time of
//! each reported status is kept: `checks.rs` compares it with `lastTransitionTime`.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use bellwether_api::{ConditionStatus, Rollup, State};
use bellwether_conditions::Statement;
use bellwether_engine::{
    Detail, Driver, Group, GroupKind, GroupStatus, Member, NamespacedName, OwnKind, StandsFor, StatusSummary,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    below_oracle::kinds_below,
    feed::{Feed, View},
    load::{APP, ROLLUP},
    object::Object,
    objects,
    oracle::{Oracle, is_counted, shape},
    past::Past,
    rollup_oracle,
    store::Store,
    violation::{Violation, difference},
};

/// For each condition of one object, when the controller first reported a status, by its clock.
pub(crate) type ReportedStatuses = BTreeMap<&'static str, Vec<(ConditionStatus, Timestamp)>>;

/// The answers of a controller since its start.
#[derive(Default)]
pub(crate) struct Answers {
    /// By UID of the Application or Rollup.
    reported: BTreeMap<String, ReportedStatuses>,
    /// The revision of each kind when all kinds were last complete and decoded with their current lenses.
    complete: Vec<(GroupKind, u64)>,
    /// Groups whose status could not be recorded, and since when.
    unclear: BTreeMap<(GroupKind, NamespacedName), Timestamp>,
    /// What a subscriber knows, which queries only the groups of `Effect::Changed`.
    followed: BTreeMap<(GroupKind, NamespacedName), GroupStatus>,
    /// The groups of `Effect::Changed` since the last query of the subscriber. Without a name, all of a kind.
    changed: BTreeSet<(OwnKind, Option<NamespacedName>)>,
}

/// All groups of all plans.
fn targets() -> impl Iterator<Item = (GroupKind, NamespacedName)> {
    let apps = ["a", "b", "c"].map(|name| objects::key(APP, name));
    apps.into_iter().chain(["r", "s", "t"].map(|name| objects::key(ROLLUP, name)))
}

impl Answers {
    pub(crate) fn of(&self, uid: &str) -> ReportedStatuses {
        self.reported.get(uid).cloned().unwrap_or_default()
    }

    /// Notes an `Effect::Changed`.
    pub(crate) fn changed(&mut self, kind: OwnKind, name: Option<NamespacedName>) {
        self.changed.insert((kind, name));
    }

    /// The subscriber queries the groups that have changed.
    pub(crate) fn follow(&mut self, driver: &Driver, now: Timestamp) {
        let changed = mem::take(&mut self.changed);
        for (kind, name) in targets() {
            let is_it = |(own, of): &(OwnKind, Option<NamespacedName>)| {
                own.kind() == kind && of.as_ref().is_none_or(|of| *of == name)
            };
            if changed.iter().any(is_it) {
                self.followed.insert((kind.clone(), name.clone()), driver.summary(now, &kind, &name));
            }
        }
    }

    /// Checks that the subscriber knows the current status of every group.
    pub(crate) fn are_up_to_date(&self, driver: &Driver, now: Timestamp) -> Result<(), Violation> {
        for (kind, name) in targets() {
            let (subscribed, current) =
                (self.followed.get(&(kind.clone(), name.clone())), driver.summary(now, &kind, &name));
            must!(
                subscribed == Some(&current),
                "a subscriber of {kind} {name} has {subscribed:?}, but a query returns {current:?}"
            );
        }
        Ok(())
    }

    /// Queries every group. During a relist the engine reports the last status, which is checked against the
    /// state in which all kinds were last complete.
    pub(crate) fn ask(
        &mut self,
        driver: &Driver,
        feeds: &[&Feed],
        knew: &[(GroupKind, u64)],
        store: &Store,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let find = |kind: &GroupKind| feeds.iter().find(|feed| feed.reflector.kind() == kind);
        if feeds.iter().all(|feed| feed.view.is_in_focus()) {
            knew.clone_into(&mut self.complete);
        }
        for (kind, name) in targets() {
            // During a relist of its own kind, `View` does not say which state of the group the engine knows.
            let Some(own) = find(&kind) else { continue };
            if own.view.telling {
                self.unclear.entry((kind, name)).or_insert(now);
                continue;
            }
            let GroupStatus::Known(summary) = driver.summary(now, &kind, &name) else { continue };
            let Some(object) = store.get_at(&kind, &name, own.view.revision) else { continue };
            if object.is_deleting() {
                must!(!summary.healthy, "{kind} {name} is reported healthy, but is being deleted");
                continue;
            }
            let needs = needs(object);
            let all = |holds: fn(&View) -> bool| {
                needs.iter().all(|kind| find(kind).is_some_and(|feed| holds(&feed.view)))
            };
            if all(View::is_whole) {
                let since = self.unclear.remove(&(kind, name)).unwrap_or(now);
                self.note(object.uid(), &summary, since);
            }
            let past = Past { store, knew: if all(View::is_in_focus) { knew } else { &self.complete }, now };
            if let Some(app) = object.application().filter(|_| summary.healthy) {
                past.is_ready(app)?;
            }
            let Some(rollup) = object.rollup() else { continue };
            if summary.healthy {
                past.is_healthy(rollup)?;
            }
            // OLM upgrades an operator by this condition.
            if summary.condition("Upgradeable").is_some_and(|it| it.status == ConditionStatus::True) {
                past.is_upgradeable(rollup)?;
            }
        }
        Ok(())
    }

    /// Records the statuses that are reported for the first time.
    fn note(&mut self, uid: &str, summary: &StatusSummary, since: Timestamp) {
        let reported = self.reported.entry(uid.to_owned()).or_default();
        for (kind, statement) in &summary.conditions {
            let statuses = reported.entry(kind).or_default();
            if !statuses.iter().any(|(status, _)| *status == statement.status) {
                statuses.push((statement.status, since));
            }
        }
    }
}

/// The kinds that an Application or a Rollup uses.
fn needs(object: &Object) -> BTreeSet<GroupKind> {
    let app = object.application().map(|app| {
        let kinds: BTreeSet<_> = Oracle::kinds_of_spec(&app.spec).into_keys().collect();
        let members = kinds.iter().filter(|kind| is_counted(app, kind)).cloned();
        kinds_below(members).chain(kinds.iter().cloned()).collect()
    });
    app.or_else(|| object.rollup().map(|rollup| rollup_oracle::kinds_of_spec(&rollup.spec)))
        .unwrap_or_default()
}

/// Checks the answers at the end of a run against the oracle.
pub(crate) fn is_right(
    oracle: &Oracle<'_>,
    driver: &Driver,
    leads: bool,
    now: Timestamp,
) -> Result<(), Violation> {
    let groups = driver.groups(now);
    for (kind, name) in targets() {
        let object = oracle.kinds.get(&kind).and_then(|known| known.objects.get(&name));
        let answer = driver.summary(now, &kind, &name);
        let group = groups.iter().find(|group| group.kind == kind && group.name == name);
        let (summary, group) = match (object, answer, group) {
            (None, GroupStatus::NotFound, None) => continue,
            (Some(_), GroupStatus::Known(summary), Some(group)) => (summary, group),
            (object, answer, group) => {
                let exists = if object.is_some() { "exists" } else { "does not exist" };
                let is_listed = if group.is_some() { "lists it" } else { "does not list it" };
                return Err(Violation::new(format!(
                    "{kind} {name} {exists}, but a query returns {answer:?} and groups() {is_listed}"
                )));
            }
        };
        let Some(object) = object else { continue };
        let expected = if object.is_deleting() {
            ExpectedAnswer { healthy: false, state: State::Terminating, status: json!({}), members: None }
        } else if let Some(rollup) = object.rollup() {
            ExpectedAnswer::of_rollup(oracle, rollup, &object.value["status"], leads)?
        } else {
            ExpectedAnswer::of_application(oracle, object)?
        };
        must!(
            (summary.healthy, summary.state, group.state)
                == (expected.healthy, expected.state, expected.state),
            "{kind} {name} is {:?} (healthy: {}) in a query and {:?} in groups(), want {:?}",
            summary.state,
            summary.healthy,
            group.state,
            expected.state
        );
        let listed: Vec<_> = group.conditions.iter().map(|it| (it.type_, it.statement.clone())).collect();
        let answers = [
            ("a query", &summary.conditions, summary.meaning.as_deref()),
            ("groups()", &listed, group.meaning()),
        ];
        for (source, conditions, meaning) in answers {
            let actual = as_status(group, conditions, meaning, &expected.status);
            let differs = difference(&actual, &expected.status);
            must!(differs.is_empty(), "{kind} {name} in {source} differs from the oracle:{differs}");
        }
        if let Some(expected) = expected.members {
            let members = members(group);
            must!(members == expected, "the members of {name} are {members:?}, want {expected:?}");
        }
    }
    Ok(())
}

/// The answer according to the oracle.
struct ExpectedAnswer {
    healthy: bool,
    state: State,
    /// In the form of the oracle's status, with the fields that queries return.
    status: Value,
    /// The components of a Rollup. Those of an Application are part of `status`.
    members: Option<Vec<String>>,
}

impl ExpectedAnswer {
    fn of_application(oracle: &Oracle<'_>, object: &Object) -> Result<Self, Violation> {
        let expected = object.application().and_then(|app| oracle.status(app));
        let Some(expected) = expected else {
            return Err(Violation::new(format!("at the end, the oracle has no status for {}", object.name)));
        };
        let ready = expected["Ready"][0].as_str().unwrap_or_default();
        let state: State = serde_json::from_value(expected["state"].clone())
            .map_err(|error| Violation::new(format!("{}: {error}", object.name)))?;
        let fields = ["Ready", "Settled", "Installed", "Resolved", "DependencyCycle"];
        let fields = fields.into_iter().chain(["objects", "objectCounts", "progress", "dependencies"]);
        Ok(Self { healthy: ready == "True", state, status: only(&expected, fields), members: None })
    }

    fn of_rollup(
        oracle: &Oracle<'_>,
        rollup: &Rollup,
        stored: &Value,
        leads: bool,
    ) -> Result<Self, Violation> {
        let Some(expected) = rollup_oracle::status(oracle, rollup, stored, stored) else {
            let name = rollup.metadata.name.as_deref().unwrap_or_default();
            return Err(Violation::new(format!("at the end, the oracle has no status for {name}")));
        };
        let fields = ["Available", "Progressing", "Degraded", "Upgradeable", "Resolved", "meaning"];
        let mut status = only(&expected.status, fields);
        // A standby may have seen a component come and go that the leader never saw. Then the two know
        // different times since when it is missing, and may report the reasons of different components.
        let mut components = expected.status["components"].as_array().into_iter().flatten();
        if !leads && components.any(|it| it["presence"] == "Missing") {
            for condition in ["Available", "Progressing", "Degraded"] {
                if let Some(reason) = status[condition].get_mut(1) {
                    *reason = Value::Null;
                }
            }
        }
        Ok(Self {
            healthy: expected.status["health"] == "Healthy",
            state: expected.state,
            status,
            members: Some(expected.members),
        })
    }
}

fn only<'a>(value: &Value, fields: impl IntoIterator<Item = &'a str>) -> Value {
    let fields = fields.into_iter().map(|field| (field.to_owned(), value[field].clone()));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// An answer in the form of the oracle's status.
fn as_status(
    group: &Group,
    conditions: &[(&'static str, Statement)],
    meaning: Option<&str>,
    expected: &Value,
) -> Value {
    let condition = |(kind, it): &(&'static str, Statement)| json!({"type": kind, "status": it.status, "reason": it.reason, "message": it.message});
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    let dependencies = match &group.detail {
        Detail::Application { dependencies, .. } => dependencies,
        Detail::BindingPolicy { .. } => return Value::Null,
        Detail::Rollup { .. } => {
            return rollup_oracle::shape(&json!({"conditions": conditions, "meaning": meaning}), expected);
        }
    };
    let objects = group.members.iter().enumerate();
    let objects: Vec<_> =
        objects.map(|(index, member)| status_object(member, &expected["objects"][index])).collect();
    let status = json!({
        "conditions": conditions, "objects": objects, "objectCounts": group.counts, "progress": group.progress,
        "dependencies": dependencies,
    });
    shape(&status, expected)
}

/// A member of an Application as its status lists it. Answers have no link.
fn status_object(member: &Member, expected: &Value) -> Value {
    let rule = member.rule.as_ref();
    let rule = rule.map(|rule| format!("{}/{}", json!(rule.source).as_str().unwrap_or_default(), rule.id));
    json!({
        "link": expected["link"], "name": *member.name.name, "group": *member.kind.group, "kind": *member.kind.kind,
        "status": member.state, "progress": member.progress,
        "reason": member.reason, "message": member.message, "rule": rule, "cause": member.cause,
    })
}

/// The components of a Rollup, one line each. The oracle does not know names of selectors without matches.
fn members(group: &Group) -> Vec<String> {
    let line = |it: &Member| {
        let name = if it.stands_for == StandsFor::Selector { String::new() } else { it.name.to_string() };
        let statuses = it.component_conditions.map(|it| [it.available, it.progressing, it.degraded]);
        rollup_oracle::one_line(&it.kind, &name, it.state, statuses)
    };
    let mut members: Vec<_> = group.members.iter().map(line).collect();
    members.sort();
    members
}
