//! Checks of the end state, when the run has come to rest.

use std::collections::BTreeMap;

use bellwether_api::Rollup;
use bellwether_engine::{EngineStats, GroupKind, NamespacedName};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    checks::{Adopted, may_own},
    known::Known,
    needed::{application_kinds, needed},
    object::Object,
    oracle::{Oracle, shape},
    process::Process,
    query_checks, rollup_oracle,
    site::Site,
    store::{Store, known},
    violation::{Violation, difference},
};

/// Checks statuses, owner references, health-check Pods and what controllers follow.
pub(crate) fn is_right(
    store: &Store,
    processes: &[Process],
    leader: Option<usize>,
    adopted: &Adopted,
    (now, also_needed): (Timestamp, &[GroupKind]),
) -> Result<(), Violation> {
    must!(leader.is_some(), "no controller leads");
    let kinds = all_kinds(store);
    let oracle = Oracle { kinds: kinds.iter().map(|(kind, known)| (kind.clone(), known)).collect(), now };
    for (name, app) in oracle.applications() {
        let Some(expected) = oracle.status(app) else {
            return Err(Violation::new(format!("at the end, the oracle has no status for {name}")));
        };
        let stored = store.get(&GroupKind::bellwether("Application"), name).map(|it| &it.value["status"]);
        let actual = shape(stored.unwrap_or(&Value::Null), &expected);
        must!(
            actual == expected,
            "at the end, the status of {name} differs from the oracle:{}",
            difference(&actual, &expected)
        );
        // The garbage collector deletes what it owns.
        if app.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let pods = GroupKind::pod();
        let checks = store.of_kind(&pods).filter(|pod| pod.is_check() && !pod.is_deleting());
        let checks = checks.filter(|pod| pod.owners().next() == app.metadata.uid.as_deref()).count();
        let check = app.spec.health_check.as_ref().map(|check| json!(check.template.spec));
        let image = check.as_ref().map(|check| check["containers"][0]["image"].as_str().unwrap_or_default());
        // While the API server rejects a template, the Pod of the previous one stays.
        let is_right = match image {
            None => checks == 0,
            Some("") => checks <= 1,
            Some(_) => checks == 1,
        };
        must!(is_right, "{name} has {checks} health-check Pods");
        let condition = |kind: &str| {
            let conditions = stored.and_then(|status| status["conditions"].as_array()).into_iter().flatten();
            let mut found = conditions.filter(|it| it["type"] == kind);
            found.next().and_then(|it| it["status"].as_str())
        };
        let valid = image.map(|image| if image.is_empty() { "False" } else { "True" });
        must!(
            condition("HealthCheckValid") == valid,
            "at the end, HealthCheckValid of {name} is {:?}, want {valid:?}",
            condition("HealthCheckValid")
        );
        for named in app.status.iter().flat_map(|status| &status.owned_kinds) {
            let kind = GroupKind::new(&named.group, &named.kind);
            must!(may_own(app, &kind), "at the end, status.ownedKinds of {name} still names {kind}");
        }
        must!(condition("Adopted").is_none(), "at the end, {name} still has the condition Adopted");
    }
    rollups_are_right(store, &oracle)?;
    let application_kinds = application_kinds(&oracle);
    let needed: Vec<_> = needed(&oracle).chain(also_needed.iter().cloned()).collect();
    for (kind, known) in &kinds {
        for object in known.objects.values() {
            let Some(expected) = oracle.owners(kind, object) else { continue };
            let owners: Vec<_> = object.owners().collect();
            let is_left = |uid: &&str| !expected.iter().any(|other| other == uid);
            let left = owners.iter().copied().filter(is_left).find(|uid| adopted.contains(object.uid(), uid));
            must!(left.is_none(), "{kind} {} was not released by {left:?}", object.name);
            if application_kinds.contains(kind) {
                must!(
                    owners == expected,
                    "the owners of {kind} {} are {owners:?}, want {expected:?}",
                    object.name
                );
            }
        }
    }
    processes.iter().filter(|process| process.alive).try_for_each(|process| {
        follows_only(store, process, &needed).and_then(|()| counts_rollups(store, process))
    })
}

/// All kinds of the store, and the kinds of plans that are never served.
fn all_kinds(store: &Store) -> BTreeMap<GroupKind, Known> {
    let mut kinds: BTreeMap<GroupKind, Known> = BTreeMap::new();
    for kind in store.kinds.keys() {
        kinds.insert(kind.clone(), known(store, kind));
    }
    for nowhere in ["Gone", "Widget"] {
        let unreadable = Some(bellwether_engine::Unreadable::NotServed);
        kinds.insert(GroupKind::new("no.where", nowhere), Known { unreadable, ..Known::default() });
    }
    kinds
}

/// Checks the answers of a controller to queries at the end. `now` is the time of its clock.
pub(crate) fn answers_are_right(
    store: &Store,
    process: &Process,
    leads: bool,
    now: Timestamp,
) -> Result<(), Violation> {
    let kinds = all_kinds(store);
    let oracle = Oracle { kinds: kinds.iter().map(|(kind, known)| (kind.clone(), known)).collect(), now };
    query_checks::is_right(&oracle, &process.driver, leads, now)?;
    process.answers.are_up_to_date(&process.driver, now)
}

/// Checks the status of every Rollup, and that damping holds nothing back.
fn rollups_are_right(store: &Store, oracle: &Oracle<'_>) -> Result<(), Violation> {
    let stays = |(_, rollup): &(&NamespacedName, &Rollup)| rollup.metadata.deletion_timestamp.is_none();
    for (name, rollup) in rollup_oracle::rollups(oracle).filter(stays) {
        let stored = store.get(&GroupKind::bellwether("Rollup"), name).map(|it| &it.value["status"]);
        let stored = stored.unwrap_or(&Value::Null);
        let Some(expected) = rollup_oracle::status(oracle, rollup, stored, stored) else {
            return Err(Violation::new(format!("at the end, the oracle has no status for {name}")));
        };
        let actual = rollup_oracle::shape(stored, &expected.status);
        must!(
            actual == expected.status,
            "at the end, the status of {name} differs from the oracle:{}",
            difference(&actual, &expected.status)
        );
        must!(!expected.held, "at the end, {name} still holds back a transition");
    }
    Ok(())
}

/// Checks that a restarted controller keeps as much as it did before.
pub(crate) fn keeps_as_much(before: &EngineStats, now: &EngineStats) -> Result<(), Violation> {
    let without_clusters = |stats: &EngineStats| EngineStats { clusters: Vec::new(), ..stats.clone() };
    let (before, now) = (without_clusters(before), without_clusters(now));
    must!(before == now, "after the restart, the statistics are {now:?}, want {before:?}");
    Ok(())
}

/// Checks the counts of Rollups by health. Skipped while one is being deleted, because its status is stale.
fn counts_rollups(store: &Store, process: &Process) -> Result<(), Violation> {
    let own = GroupKind::bellwether("Rollup");
    if store.of_kind(&own).any(|rollup| rollup.is_deleting()) {
        return Ok(());
    }
    let stored = ["Healthy", "Warning", "Error"].map(|health| {
        store.of_kind(&own).filter(|rollup| rollup.value["status"]["health"] == health).count()
    });
    let counted = process.driver.stats().rollups;
    must!(counted == stored, "the statistics have {counted:?} Rollups, want {stored:?}");
    Ok(())
}

/// Checks that a controller follows only the kinds that it needs.
fn follows_only(store: &Store, process: &Process, needed: &[GroupKind]) -> Result<(), Violation> {
    let stats = process.driver.stats();
    let own = GroupKind::bellwether("Application");
    let apps: Vec<_> = store.of_kind(&own).collect();
    for feed in process.feeds_of(Site::Hub) {
        let kind = feed.reflector.kind();
        let living: Vec<_> = apps.iter().map(|app| app.uid()).collect();
        let is_ours = |object: &Object| object.owners().any(|uid| living.contains(&uid));
        let is_owned = store.of_kind(kind).any(|object| is_ours(object));
        must!(needed.contains(kind) || is_owned, "{kind} is followed, but no group needs it");
    }
    must!(
        stats.feeds == process.feeds.len(),
        "{} kinds are followed, but the statistics have {}",
        process.feeds.len(),
        stats.feeds
    );
    Ok(())
}

/// Checks that a controller keeps exactly the objects of the kinds that it follows.
pub(crate) fn counts_objects(stores: [(Site, &Store); 4], process: &Process) -> Result<(), Violation> {
    let count = |(site, store): (Site, &Store)| -> usize {
        process.feeds_of(site).map(|feed| store.of_kind(feed.reflector.kind()).count()).sum()
    };
    let (kept, objects) = (process.driver.stats().objects, stores.map(count).into_iter().sum::<usize>());
    must!(kept == objects, "{kept} objects are kept, want {objects}");
    Ok(())
}

/// Checks that verdicts in another cluster do not come from objects of the same names in the hub.
pub(crate) fn verdicts_are_right(
    (site, store): (Site, &Store),
    process: &Process,
    now: Timestamp,
) -> Result<(), Violation> {
    for feed in process.feeds_of(site).filter(|feed| feed.view.unreadable.is_none()) {
        let kind = feed.reflector.kind();
        let has_status = store.kinds.get(kind).map(|served| served.has_status);
        let expected = store.of_kind(kind);
        let expected: BTreeMap<_, _> =
            expected.map(|object| (object.name.clone(), object.verdict(now, has_status))).collect();
        let verdicts = process.driver.verdicts(&site.cluster(), kind);
        must!(verdicts == expected, "verdicts of {kind} in {site:?} are {verdicts:?}, want {expected:?}");
    }
    Ok(())
}
