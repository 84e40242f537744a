//! The check without load and faults: every status matches the oracle, and then the controllers stop writing.

use std::{
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_engine::GroupKind;
use bellwether_simulation::{
    known::Known,
    object::Object,
    oracle::{Oracle, shape},
};
use bellwether_testkit::eventually;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value as Json;
use tokio::time::sleep;

use crate::{
    alarm::Alarms,
    environment::Environment,
    fault_windows::FaultWindows,
    history::Missed,
    objects::{APPLICATION, ApiResource, HEALTH_RULE, Kind, Objects, ROLLUP},
    observer::Observer,
    rules,
    status_checks::GRACE,
    watch::list,
};

/// How long it may take until all statuses are right.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How long the controllers must not write anything afterwards.
const QUIET: Duration = Duration::from_secs(5);

/// How long it may take until that quiet time begins: for a minute or so, time alone changes what Pods say and
/// whether an unknown state is reported as a Warning.
const QUIET_WITHIN: Duration = Duration::from_secs(150);

/// All objects, as the API server lists them.
struct ClusterState(BTreeMap<GroupKind, Known>);

/// Waits until all statuses are right, then until the controllers stop writing. Returns the time until the
/// statuses were right; `None` after a timeout.
pub(crate) async fn settle(
    environment: &Environment,
    observer: &Observer,
    windows: &FaultWindows,
    alarms: &Alarms,
) -> Result<Option<Duration>> {
    let begun = Instant::now();
    let differences = async || -> Result<Vec<String>> {
        let state = ClusterState::read(environment.client()).await?;
        Ok(state.differences(&rules_in_force(environment, observer, windows)))
    };
    let right = loop {
        let differences = differences().await?;
        if differences.is_empty() {
            break begun.elapsed();
        }
        if begun.elapsed() > TIMEOUT {
            let some: Vec<_> = differences.iter().take(5).map(String::as_str).collect();
            alarms.raise(&format!(
                "{} differences from the oracle after {} s: {}",
                differences.len(),
                TIMEOUT.as_secs(),
                some.join("; ")
            ));
            return Ok(None);
        }
        sleep(Duration::from_millis(250)).await;
    };
    wait_until_quiet(environment, alarms).await?;
    for replica in environment.replicas() {
        // The standby watches all kinds, too.
        let watches =
            eventually(TIMEOUT, "all watches are open", async || Ok(replica.watches_all().await)).await;
        if watches.is_err() {
            alarms.raise(&format!("controller {} does not have a watch for every kind", replica.name()));
        }
    }
    // The last writes must not have made anything wrong. Time alone may have changed what Pods say just now.
    let mut mistakes = differences().await?;
    let begun = Instant::now();
    while !mistakes.is_empty() && begun.elapsed() < QUIET {
        sleep(Duration::from_millis(250)).await;
        mistakes = differences().await?;
    }
    if let Some(mistake) = mistakes.first() {
        alarms.raise(&format!("a status became wrong although no object had changed: {mistake}"));
    }
    Ok(Some(right))
}

/// What a controller may apply as the HealthRule now: it depends on what it has seen.
fn rules_in_force(
    environment: &Environment,
    observer: &Observer,
    windows: &FaultWindows,
) -> Vec<Option<Rc<Object>>> {
    let starts = environment.starts();
    let missed = Missed {
        version: &|begin, end| windows.may_hide_rule(begin, end),
        all_before: &|replaced| starts.iter().any(|start| windows.is_late(*start, replaced)),
    };
    observer.seen().history.rules_now(&missed)
}

/// Waits until the controllers stop writing.
async fn wait_until_quiet(environment: &Environment, alarms: &Alarms) -> Result<()> {
    let begun = Instant::now();
    let mut before = (Instant::now(), environment.writes());
    while before.0.elapsed() < QUIET {
        sleep(Duration::from_millis(250)).await;
        let writes = environment.writes();
        if writes == before.1 {
            continue;
        }
        if begun.elapsed() > QUIET_WITHIN {
            let difference: Vec<_> = writes
                .iter()
                .map(|(what, count)| (what, count - before.1.get(what).copied().unwrap_or(0)))
                .filter(|(_, more)| *more > 0)
                .map(|(what, more)| format!("{more} {what}"))
                .collect();
            let difference = difference.join(", ");
            alarms.raise(&format!(
                "the controllers do not stop writing although all statuses are right: {difference}"
            ));
            return Ok(());
        }
        before = (Instant::now(), writes);
    }
    Ok(())
}

impl ClusterState {
    async fn read(client: &Client) -> Result<Self> {
        let objects = async |resource: ApiResource| -> Result<Objects> {
            let (_, items) = list(client, resource)
                .await?
                .with_context(|| format!("{} are not served", resource.plural))?;
            Ok(items.into_iter().map(|item| (item.name.clone(), item)).collect())
        };
        let mut kinds = BTreeMap::new();
        for kind in Kind::ALL {
            kinds.insert(kind.api_resource().group_kind(), kind.known(objects(kind.api_resource()).await?));
        }
        for own in [APPLICATION, HEALTH_RULE, ROLLUP] {
            let objects = objects(own).await?;
            kinds.insert(own.group_kind(), Known { listed: true, objects, ..Known::default() });
        }
        Ok(Self(kinds))
    }

    /// All differences from the oracle, for the best of the HealthRules that may be in force.
    fn differences(&self, in_force: &[Option<Rc<Object>>]) -> Vec<String> {
        let all = in_force.iter().map(|rule| self.differences_by(rule.as_ref()));
        all.min_by_key(Vec::len).unwrap_or_default()
    }

    /// All differences from the oracle if this is the HealthRule in force.
    fn differences_by(&self, in_force: Option<&Rc<Object>>) -> Vec<String> {
        let mut kinds: BTreeMap<_, _> = self.0.iter().map(|(kind, known)| (kind.clone(), known)).collect();
        let objects = in_force.map(|rule| (rule.name.clone(), Rc::clone(rule))).into_iter().collect();
        let rules = Known { listed: true, objects, ..Known::default() };
        kinds.insert(HEALTH_RULE.group_kind(), &rules);
        let oracle = Oracle { kinds, now: Timestamp::now() };
        let mut differences = Vec::new();
        for object in self.objects(&APPLICATION.group_kind()).filter(|app| !app.is_deleting()) {
            differences.extend(status_differences(&oracle, object));
        }
        for kind in Kind::MEMBERS.map(|kind| kind.api_resource().group_kind()) {
            for object in self.objects(&kind) {
                let Some(should) = oracle.owners(&kind, object) else { continue };
                let is: Vec<_> = object.owners().collect();
                if is != should {
                    let name = &object.name;
                    differences.push(format!("{kind} {name}: owners are {is:?}, want {should:?}"));
                }
            }
        }
        let is_valid = in_force.is_some_and(|rule| rules::is_valid(&rule.value));
        for rule in self.objects(&HEALTH_RULE.group_kind()).map(|rule| &rule.value) {
            let valid = condition(&rule["status"], "Valid");
            let valid = valid.map(|it| [&it["status"], &it["reason"]]);
            let should = match (rules::is_valid(rule), is_valid) {
                (true, _) => ["True", "Active"],
                (false, true) => ["False", "LastValidInForce"],
                (false, false) => ["False", "Invalid"],
            };
            if valid.is_none_or(|valid| valid != should)
                || rule["status"]["observedGeneration"] != rule["metadata"]["generation"]
            {
                differences.push(format!("HealthRule: Valid is {valid:?}, want {should:?}"));
            }
        }
        if self.objects(&HEALTH_RULE.group_kind()).next().is_none() != in_force.is_none() {
            differences.push("the observer does not know the current HealthRule".to_owned());
        }
        differences
    }

    fn objects(&self, kind: &GroupKind) -> impl Iterator<Item = &Rc<Object>> {
        self.0.get(kind).into_iter().flat_map(|known| known.objects.values())
    }
}

fn status_differences(oracle: &Oracle<'_>, object: &Object) -> Vec<String> {
    let name = &object.name;
    let Some(expected) = object.application().and_then(|app| oracle.status(app)) else {
        return vec![format!("{name}: the oracle cannot compute a status")];
    };
    let status = &object.value["status"];
    let published = shape(status, &expected);
    let fields = expected.as_object().into_iter().flatten();
    let differing = fields.filter(|(field, should)| published[*field] != **should);
    let mut differences: Vec<_> = differing
        .map(|(field, should)| format!("{name}: {field} is {}, want {should}", published[field]))
        .collect();
    let created = object.metadata()["creationTimestamp"].as_str().and_then(|it| it.parse().ok());
    let is_reported = |state: &Json| status["lastEvent"]["state"] == *state;
    if created.is_none_or(|created: Timestamp| created + GRACE < oracle.now) && !is_reported(&status["state"])
    {
        differences
            .push(format!("{name}: lastEvent is {}, state is {}", status["lastEvent"], status["state"]));
    }
    if let Some(adopted) = condition(status, "Adopted") {
        differences.push(format!("{name}: unexpected condition {adopted}"));
    }
    differences
}

fn condition<'a>(status: &'a Json, kind: &str) -> Option<&'a Json> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
