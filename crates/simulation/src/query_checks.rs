//! What those hear who ask a controller: a probe, OLM, somebody at a terminal.
//!
//! In the end it is what there is to say. On the way, who is said to be well must have been, at some moment since the
//! controller knew, and so must who is said to be upgradeable; and it is noted since when it says what, so that nobody can
//! say that something turned before.

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
    feed::{Feed, View},
    load::{APP, ROLLUP},
    object::Object,
    objects,
    oracle::{Oracle, shape},
    past::Past,
    rollup_oracle,
    store::Store,
    violation::{Violation, difference},
};

/// What a controller has said of one object: for each condition, when it first had a status, by the clock of the controller.
pub(crate) type ReportedStatuses = BTreeMap<&'static str, Vec<(ConditionStatus, Timestamp)>>;

/// What a controller has told those who asked, in one of its lives.
#[derive(Default)]
pub(crate) struct Answers {
    /// Of each Application and Rollup, by its uid.
    sayings: BTreeMap<String, ReportedStatuses>,
    /// Up to which change each kind was known when all of them last were, each of one time.
    whole: Vec<(GroupKind, u64)>,
    /// Of which nothing could be noted, and since when.
    unclear: BTreeMap<(GroupKind, NamespacedName), Timestamp>,
    /// The answers to a follower, which asks only about the groups that have changed.
    followed: BTreeMap<(GroupKind, NamespacedName), GroupStatus>,
    /// The groups that have changed since they asked; without a name, all of a kind.
    changed: BTreeSet<(OwnKind, Option<NamespacedName>)>,
}

/// All that may be asked about.
fn targets() -> impl Iterator<Item = (GroupKind, NamespacedName)> {
    let apps = ["a", "b", "c"].map(|name| objects::key(APP, name));
    apps.into_iter().chain(["r", "s", "t"].map(|name| objects::key(ROLLUP, name)))
}

impl Answers {
    /// What was told of an object.
    pub(crate) fn of(&self, uid: &str) -> ReportedStatuses {
        self.sayings.get(uid).cloned().unwrap_or_default()
    }

    /// A group may be told of in other words than before; without a name, all of its kind.
    pub(crate) fn changed(&mut self, kind: OwnKind, name: Option<NamespacedName>) {
        self.changed.insert((kind, name));
    }

    /// Asks about those that have changed.
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

    /// Whether those who ask only about what has changed have heard what is said.
    pub(crate) fn are_up_to_date(&self, driver: &Driver, now: Timestamp) -> Result<(), Violation> {
        for (kind, name) in targets() {
            let (heard, says) =
                (self.followed.get(&(kind.clone(), name.clone())), driver.summary(now, &kind, &name));
            must!(
                heard == Some(&says),
                "who follows {kind} {name} has heard {heard:?}, who asks hears {says:?}"
            );
        }
        Ok(())
    }

    /// Asks about everything. While a kind is being listed again, the last word counts: it must have been true when all was
    /// last known.
    pub(crate) fn ask(
        &mut self,
        driver: &Driver,
        feeds: &[&Feed],
        knew: &[(GroupKind, u64)],
        store: &Store,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let find = |kind: &GroupKind| feeds.iter().find(|feed| feed.follower.kind() == kind);
        if feeds.iter().all(|feed| feed.view.is_in_focus()) {
            knew.clone_into(&mut self.whole);
        }
        for (kind, name) in targets() {
            // In the middle of a list of its own kind, nobody can tell what is known of it.
            let Some(own) = find(&kind) else { continue };
            if own.view.telling {
                self.unclear.entry((kind, name)).or_insert(now);
                continue;
            }
            let GroupStatus::Known(summary) = driver.summary(now, &kind, &name) else { continue };
            let Some(object) = store.get_at(&kind, &name, own.view.revision) else { continue };
            if object.is_deleting() {
                must!(!summary.healthy, "{kind} {name} is said to be well, and is being deleted");
                continue;
            }
            let needs = needs(object);
            let are = |is_so: fn(&View) -> bool| {
                needs.iter().all(|kind| find(kind).is_some_and(|feed| is_so(&feed.view)))
            };
            if are(View::is_whole) {
                let since = self.unclear.remove(&(kind, name)).unwrap_or(now);
                self.note(object.uid(), &summary, since);
            }
            let past = Past { store, knew: if are(View::is_in_focus) { knew } else { &self.whole }, now };
            if let Some(app) = object.application().filter(|_| summary.healthy) {
                past.is_ready(app)?;
            }
            let Some(rollup) = object.rollup() else { continue };
            if summary.healthy {
                past.is_healthy(rollup)?;
            }
            // This is what OLM goes by.
            if summary.condition("Upgradeable").is_some_and(|says| says.status == ConditionStatus::True) {
                past.is_upgradeable(rollup)?;
            }
        }
        Ok(())
    }

    /// What is said now, and was never said before, is said since then.
    fn note(&mut self, uid: &str, summary: &StatusSummary, then: Timestamp) {
        let sayings = self.sayings.entry(uid.to_owned()).or_default();
        for (kind, says) in &summary.conditions {
            let said = sayings.entry(kind).or_default();
            if !said.iter().any(|(status, _)| *status == says.status) {
                said.push((says.status, then));
            }
        }
    }
}

/// The kinds that an Application or a Rollup needs.
fn needs(object: &Object) -> BTreeSet<GroupKind> {
    let app = object.application().map(|app| Oracle::wishes(&app.spec).into_keys().collect());
    app.or_else(|| object.rollup().map(|rollup| rollup_oracle::wishes(&rollup.spec))).unwrap_or_default()
}

/// Whether all that a controller tells in the end is what there is to say.
pub(crate) fn is_right(
    oracle: &Oracle<'_>,
    driver: &Driver,
    leads: bool,
    now: Timestamp,
) -> Result<(), Violation> {
    let groups = driver.groups(now);
    for (kind, name) in targets() {
        let object = oracle.kinds.get(&kind).and_then(|known| known.objects.get(&name));
        let insight = driver.summary(now, &kind, &name);
        let group = groups.iter().find(|group| group.kind == kind && group.name == name);
        let (summary, group) = match (object, insight, group) {
            (None, GroupStatus::NotFound, None) => continue,
            (Some(_), GroupStatus::Known(summary), Some(group)) => (summary, group),
            (object, insight, group) => {
                let is_there = if object.is_some() { "it is there" } else { "there is none" };
                let is_seen = if group.is_some() { "sees it" } else { "does not see it" };
                return Err(Violation::new(format!(
                    "who asks for {kind} {name} hears {insight:?}, who looks {is_seen}, and {is_there}"
                )));
            }
        };
        let Some(object) = object else { continue };
        let expected = if object.is_deleting() {
            ExpectedAnswer { healthy: false, state: State::Terminating, words: json!({}), members: None }
        } else if let Some(rollup) = object.rollup() {
            ExpectedAnswer::of_rollup(oracle, rollup, &object.value["status"], leads)?
        } else {
            ExpectedAnswer::of_application(oracle, object)?
        };
        must!(
            (summary.healthy, summary.state, group.state)
                == (expected.healthy, expected.state, expected.state),
            "who asks for {kind} {name} hears that it is {:?} (well: {}) or {:?}, and it is {:?}",
            summary.state,
            summary.healthy,
            group.state,
            expected.state
        );
        let seen: Vec<_> = group.conditions.iter().map(|it| (it.type_, it.statement.clone())).collect();
        let heard = [
            ("asks for", &summary.conditions, summary.meaning.as_deref()),
            ("looks at", &seen, group.meaning()),
        ];
        for (who, conditions, meaning) in heard {
            let said = as_status(group, conditions, meaning, &expected.words);
            let words = difference(&said, &expected.words);
            must!(words.is_empty(), "who {who} {kind} {name} hears{words}");
        }
        if let Some(expected) = expected.members {
            let members = members(group);
            must!(members == expected, "who looks at {name} sees {members:?}, and there is {expected:?}");
        }
    }
    Ok(())
}

/// What there is to tell somebody who asks.
struct ExpectedAnswer {
    healthy: bool,
    state: State,
    /// In the shape of the status, as far as it is told.
    words: Value,
    /// The components of a Rollup. Those of an Application are among the words.
    members: Option<Vec<String>>,
}

impl ExpectedAnswer {
    fn of_application(oracle: &Oracle<'_>, object: &Object) -> Result<Self, Violation> {
        let expected = object.application().and_then(|app| oracle.status(app));
        let Some(expected) = expected else {
            return Err(Violation::new(format!("in the end nobody can tell of {}", object.name)));
        };
        let ready = expected["Ready"][0].as_str().unwrap_or_default();
        let counts = &expected["objectCounts"];
        let worst = [
            ("failed", State::Failed),
            ("missing", State::Missing),
            ("inProgress", State::InProgress),
            ("terminating", State::Terminating),
        ];
        let worst =
            worst.into_iter().find(|(field, _)| counts[field].as_i64().is_some_and(|count| count > 0));
        let state = match ready {
            "True" => State::Ready,
            "False" => worst.map_or(State::InProgress, |(_, state)| state),
            _ => State::Unknown,
        };
        let fields = ["Ready", "Settled", "Installed", "Resolved", "DependencyCycle"];
        let fields = fields.into_iter().chain(["objects", "objectCounts", "progress", "dependencies"]);
        Ok(Self { healthy: ready == "True", state, words: only(&expected, fields), members: None })
    }

    fn of_rollup(
        oracle: &Oracle<'_>,
        rollup: &Rollup,
        stored: &Value,
        leads: bool,
    ) -> Result<Self, Violation> {
        let Some(expected) = rollup_oracle::status(oracle, rollup, stored, stored) else {
            return Err(Violation::new(format!("in the end nobody can tell of {:?}", rollup.metadata.name)));
        };
        let fields = ["Available", "Progressing", "Degraded", "Upgradeable", "Resolved", "meaning"];
        let mut words = only(&expected.status, fields);
        // A standby may have seen a component come and go that the leader never saw. So it misses it since another time than
        // the status says, and the reason is that of the one that changed last.
        let mut components = expected.status["components"].as_array().into_iter().flatten();
        if !leads && components.any(|it| it["presence"] == "Missing") {
            for condition in ["Available", "Progressing", "Degraded"] {
                if let Some(reason) = words[condition].get_mut(1) {
                    *reason = Value::Null;
                }
            }
        }
        Ok(Self {
            healthy: expected.status["health"] == "Healthy",
            state: expected.state,
            words,
            members: Some(expected.members),
        })
    }
}

fn only<'a>(value: &Value, fields: impl IntoIterator<Item = &'a str>) -> Value {
    let fields = fields.into_iter().map(|field| (field.to_owned(), value[field].clone()));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// What is told of a group in the shape of the oracle's.
fn as_status(
    group: &Group,
    conditions: &[(&'static str, Statement)],
    meaning: Option<&str>,
    expected: &Value,
) -> Value {
    let condition = |(kind, says): &(&'static str, Statement)| json!({"type": kind, "status": says.status, "reason": says.reason, "message": says.message});
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    let dependencies = match &group.detail {
        Detail::Application { dependencies, .. } => dependencies,
        Detail::Rollup { .. } => {
            return rollup_oracle::shape(&json!({"conditions": conditions, "meaning": meaning}), expected);
        }
    };
    let objects = group.members.iter().enumerate();
    let objects: Vec<_> =
        objects.map(|(index, member)| listed(member, &expected["objects"][index])).collect();
    let status = json!({
        "conditions": conditions, "objects": objects, "objectCounts": group.counts, "progress": group.progress,
        "dependencies": dependencies,
    });
    shape(&status, expected)
}

/// A member of an Application as its status lists it. Where it is to be found is not told.
fn listed(member: &Member, expected: &Value) -> Value {
    let rule = member.rule.as_ref();
    let rule = rule.map(|rule| format!("{}/{}", json!(rule.source).as_str().unwrap_or_default(), rule.id));
    json!({
        "link": expected["link"], "name": *member.name.name, "group": *member.kind.group, "kind": *member.kind.kind,
        "status": member.state, "progress": member.progress,
        "reason": member.reason, "message": member.message, "rule": rule,
    })
}

/// The components of a Rollup in a line each, with what stands for them. What a selector that matches nothing is called is
/// not for us to say.
fn members(group: &Group) -> Vec<String> {
    let line = |it: &Member| {
        let name = if it.stands_for == StandsFor::Selector { String::new() } else { it.name.to_string() };
        let says = it.operator.map(|says| [says.available, says.progressing, says.degraded]);
        rollup_oracle::in_a_line(&it.kind, &name, it.state, says)
    };
    let mut members: Vec<_> = group.members.iter().map(line).collect();
    members.sort();
    members
}
