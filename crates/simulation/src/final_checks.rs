//! What must be so in the end, when nothing is under way any more.

use std::collections::BTreeMap;

use bellwether_api::Rollup;
use bellwether_engine::{Census, GroupKind, NamespacedName};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    checks::{Adopted, may_own},
    known::Known,
    needed::{needed, wished},
    object::Object,
    oracle::{Oracle, shape},
    process::Process,
    query_checks, rollup_oracle,
    site::Site,
    store::{Store, known},
    violation::{Violation, difference},
};

/// Whether everything is as it should be, now that nothing is under way.
pub(crate) fn is_right(
    store: &Store,
    processes: &[Process],
    leader: Option<usize>,
    adopted: &Adopted,
    now: Timestamp,
) -> Result<(), Violation> {
    must!(leader.is_some(), "nobody leads");
    let kinds = all_kinds(store);
    let oracle = Oracle { kinds: kinds.iter().map(|(kind, known)| (kind.clone(), known)).collect(), now };
    for (name, app) in oracle.applications().filter(|(_, app)| app.metadata.deletion_timestamp.is_none()) {
        let Some(expected) = oracle.status(app) else {
            return Err(Violation::new(format!("in the end nobody can tell of {name}")));
        };
        let stored = store.get(&GroupKind::own("Application"), name).map(|it| &it.value["status"]);
        let said = shape(stored.unwrap_or(&Value::Null), &expected);
        must!(said == expected, "in the end {name} says{}", difference(&said, &expected));
        let pods = GroupKind::pod();
        let checks = store.of_kind(&pods).filter(|pod| pod.is_check() && !pod.is_deleting());
        let checks = checks.filter(|pod| pod.owners().next() == app.metadata.uid.as_deref()).count();
        let check = app.spec.health_check.as_ref().map(|check| json!(check.template.spec));
        let image = check.as_ref().map(|check| check["containers"][0]["image"].as_str().unwrap_or_default());
        // While a template is not accepted, the Pod of the one before stays.
        let is_right = match image {
            None => checks == 0,
            Some("") => checks <= 1,
            Some(_) => checks == 1,
        };
        must!(is_right, "{name} has {checks} Pods that check its health");
        let condition = |kind: &str| {
            let conditions = stored.and_then(|status| status["conditions"].as_array()).into_iter().flatten();
            let mut found = conditions.filter(|it| it["type"] == kind);
            found.next().and_then(|it| it["status"].as_str())
        };
        let valid = image.map(|image| if image.is_empty() { "False" } else { "True" });
        must!(
            condition("HealthCheckValid") == valid,
            "in the end {name} says {:?} of its check, and it is {valid:?}",
            condition("HealthCheckValid")
        );
        for named in app.status.iter().flat_map(|status| &status.owned_kinds) {
            let kind = GroupKind::new(&named.group, &named.kind);
            must!(may_own(app, &kind), "in the end {name} still speaks of {kind}, and owns nothing of it");
        }
        must!(condition("Adopted").is_none(), "in the end {name} still complains about owners");
    }
    rollups_are_right(store, &oracle)?;
    let (needed, wished): (Vec<_>, _) = (needed(&oracle).collect(), wished(&oracle));
    for (kind, known) in &kinds {
        for object in known.objects.values() {
            let Some(expected) = oracle.owners(kind, object) else { continue };
            let owners: Vec<_> = object.owners().collect();
            let is_left = |uid: &&str| !expected.iter().any(|other| other == uid);
            let left = owners.iter().copied().filter(is_left).find(|uid| adopted.contains(object.uid(), uid));
            must!(left.is_none(), "{kind} {} was not let go of by {left:?}", object.name);
            if wished.contains(kind) {
                must!(
                    owners == expected,
                    "the owners of {kind} {} are {owners:?}, not {expected:?}",
                    object.name
                );
            }
        }
    }
    processes.iter().filter(|process| process.alive).try_for_each(|process| {
        has_let_go(store, process, &needed).and_then(|()| counts_rollups(store, process))
    })
}

/// All that there is.
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

/// Whether those who ask a controller hear what there is to say, at the time that its clock says.
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

/// Whether every Rollup says what there is to say, and holds nothing back any more.
fn rollups_are_right(store: &Store, oracle: &Oracle<'_>) -> Result<(), Violation> {
    let stays = |(_, rollup): &(&NamespacedName, &Rollup)| rollup.metadata.deletion_timestamp.is_none();
    for (name, rollup) in rollup_oracle::rollups(oracle).filter(stays) {
        let stored = store.get(&GroupKind::own("Rollup"), name).map(|it| &it.value["status"]);
        let stored = stored.unwrap_or(&Value::Null);
        let Some(expected) = rollup_oracle::status(oracle, rollup, stored, stored) else {
            return Err(Violation::new(format!("in the end nobody can tell of {name}")));
        };
        let said = rollup_oracle::shape(stored, &expected.status);
        must!(said == expected.status, "in the end {name} says{}", difference(&said, &expected.status));
        must!(!expected.held, "in the end {name} still holds something back");
    }
    Ok(())
}

/// Whether a controller that has begun anew keeps as much as the one before it did in the end.
pub(crate) fn keeps_as_much(before: &Census, now: &Census) -> Result<(), Violation> {
    must!(before == now, "who begins anew keeps {now:?}, and before it was {before:?}");
    Ok(())
}

/// Whether a controller counts as many Rollups of each health as say so. What is said of one that is deleted is old.
fn counts_rollups(store: &Store, process: &Process) -> Result<(), Violation> {
    let own = GroupKind::own("Rollup");
    if store.of_kind(&own).any(|rollup| rollup.is_deleting()) {
        return Ok(());
    }
    let said = ["Healthy", "Warning", "Error"].map(|health| {
        store.of_kind(&own).filter(|rollup| rollup.value["status"]["health"] == health).count()
    });
    let counted = process.driver.census().rollups;
    must!(counted == said, "{counted:?} Rollups are counted, and {said:?} say so");
    Ok(())
}

/// Whether a controller keeps no more than it needs.
fn has_let_go(store: &Store, process: &Process, needed: &[GroupKind]) -> Result<(), Violation> {
    let census = process.driver.census();
    let own = GroupKind::own("Application");
    let apps: Vec<_> = store.of_kind(&own).collect();
    for feed in process.feeds_of(Site::Hub) {
        let kind = feed.follower.kind();
        let living: Vec<_> = apps.iter().map(|app| app.uid()).collect();
        let is_ours = |object: &Object| object.owners().any(|uid| living.contains(&uid));
        let is_owned = store.of_kind(kind).any(|object| is_ours(object));
        must!(needed.contains(kind) || is_owned, "{kind} is followed, and nobody needs it");
    }
    must!(
        census.feeds == process.feeds.len(),
        "{} kinds are followed, not {}",
        process.feeds.len(),
        census.feeds
    );
    Ok(())
}

/// Whether a controller keeps as many objects as there are of the kinds that it follows.
pub(crate) fn counts_objects(stores: [(Site, &Store); 2], process: &Process) -> Result<(), Violation> {
    let count = |(site, store): (Site, &Store)| -> usize {
        process.feeds_of(site).map(|feed| store.of_kind(feed.follower.kind()).count()).sum()
    };
    let (kept, objects) = (process.driver.census().objects, stores.map(count).into_iter().sum::<usize>());
    must!(kept == objects, "{kept} objects are kept, and there are {objects}");
    Ok(())
}

/// Whether a controller judges the objects of another cluster by what they are there, whatever has their names in the hub.
pub(crate) fn verdicts_are_right(store: &Store, process: &Process, now: Timestamp) -> Result<(), Violation> {
    for feed in process.feeds_of(Site::East).filter(|feed| feed.view.unreadable.is_none()) {
        let kind = feed.follower.kind();
        let has_status = store.kinds.get(kind).map(|served| served.has_status);
        let expected = store.of_kind(kind);
        let expected: BTreeMap<_, _> =
            expected.map(|object| (object.name.clone(), object.verdict(now, has_status))).collect();
        let verdicts = process.driver.verdicts(&Site::East.cluster(), kind);
        must!(verdicts == expected, "in the other cluster {kind} are {verdicts:?}, not {expected:?}");
    }
    Ok(())
}
