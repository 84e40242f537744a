//! Property tests against an oracle: after every event, statuses and owner references are what an evaluation
//! from scratch yields.

use std::collections::BTreeSet;

use bellwether_api::{Application, Rollup};
use bellwether_engine::{
    Cluster, Detail, Dialect, Group, GroupKind, GroupStatus, NamespacedName, ObjectKey, Part, Slot, Write,
};
use bellwether_simulation::{app_k8s_io_oracle, known::Known, rollup_oracle};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    actions::{Action, action},
    needed::{application_kinds, needed},
    oracle::{Oracle, shape},
    server::merge,
    views,
    world::{Feed, World},
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without writes, so that every pending change is visible: after every single event.
    #[test]
    fn pending_changes_equal_the_oracle_after_every_event(
        actions in prop::collection::vec(action(false), 1..30),
        seed in any::<u64>(),
    ) {
        let mut world = World::new();
        world.writing = false;
        world.shuffle(seed);
        world.settle_now();
        for action in &actions {
            action.apply(&mut world);
            if matches!(action, Action::Restart) {
                world.settle_now();
            }
            while world.deliver() {
                compare(&world);
            }
            compare(&world);
        }
    }

    /// With all writes: whenever nothing is left to do.
    #[test]
    fn stored_statuses_equal_the_oracle_when_settled(
        actions in prop::collection::vec(action(true), 1..30),
        seed in any::<u64>(),
    ) {
        let mut world = World::new();
        world.shuffle(seed);
        world.settle();
        for action in &actions {
            action.apply(&mut world);
            world.settle();
            compare(&world);
            prop_assert!(world.wants().values().all(is_a_check), "{:?}", world.wants());
            let oracle = oracle(&world);
            for (_, app) in oracle.applications() {
                prop_assert!(pods(&world, app) <= 1, "a Pod of an earlier template is left");
            }
        }
    }
}

/// The dry run of an invalid Pod template is retried for ever.
pub(crate) fn is_a_check(change: &Write) -> bool {
    matches!(change, Write::Create { dry_run: true, .. })
}

/// Health-check Pods of an Application; 0 if its template is invalid.
fn pods(world: &World, app: &Application) -> usize {
    let Some(check) = &app.spec.health_check else { return 0 };
    if check.template.spec.containers[0].image.is_empty() {
        return 0;
    }
    let is_its = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == json!(app.metadata.uid);
    let is_check = |pod: &&Value| !pod["metadata"]["labels"]["bellwether.dev/health-check"].is_null();
    world.server.list(&GroupKind::pod()).filter(is_its).filter(is_check).count()
}

pub(crate) fn oracle(world: &World) -> Oracle<'_> {
    let kinds = world.feeds.values().map(|feed| (feed.kind.clone(), &feed.received.known)).collect();
    Oracle { kinds, now: world.now }
}

/// Kinds that are watched although no group uses them and no owner reference can be left.
pub(crate) fn not_needed(oracle: &Oracle<'_>) -> Vec<GroupKind> {
    let needed: BTreeSet<_> = needed(oracle).collect();
    let may_be_left = |known: &Known| {
        let is_owned = known.objects.values().any(|object| object.owners().next().is_some());
        is_owned || known.unreadable.is_some()
    };
    let kinds = oracle.kinds.iter().filter(|(kind, known)| !needed.contains(kind) && !may_be_left(known));
    kinds.map(|(kind, _)| kind.clone()).collect()
}

fn followed(world: &World, kind: &GroupKind) -> usize {
    world.feeds.values().filter(|feed| feed.kind == *kind).count()
}

/// Compares pending and stored statuses and owner references with the oracle.
pub(crate) fn compare(world: &World) {
    let oracle = oracle(world);
    if !oracle.is_open() {
        assert!(world.wants().is_empty(), "nothing is pending before the base kinds are listed");
        return;
    }
    for (name, app) in oracle.applications() {
        let Some(expected) = oracle.status(app) else { continue };
        let mut status = json!(app.status);
        if let Some(Write::Status { patch, .. }) =
            world.wanted(&slot(&GroupKind::bellwether("Application"), name, Part::Status))
        {
            merge(&mut status, &patch);
        }
        assert_eq!(shape(&status, &expected), expected, "of {name}: {status:#}");
    }
    for (name, app) in app_k8s_io_oracle::applications(&oracle).filter(|(_, app)| !app.is_deleting()) {
        let Some(expected) = app_k8s_io_oracle::status(&oracle, app) else { continue };
        let mut status = app.value["status"].clone();
        if let Some(Write::Status { patch, .. }) =
            world.wanted(&slot(&Dialect::AppK8sIo.kind(), name, Part::Status))
        {
            merge(&mut status, &patch);
        }
        assert_eq!(app_k8s_io_oracle::shape(&status), expected, "of {name}, of app.k8s.io: {status:#}");
    }
    compare_rollups(world, &oracle);
    for (kind, count) in needed(&oracle).map(|kind| (kind.clone(), followed(world, &kind))) {
        assert_eq!(count, 1, "{kind} has one feed");
    }
    let application_kinds = application_kinds(&oracle);
    let rolled_up: BTreeSet<_> = rollup_oracle::rollups(&oracle)
        .flat_map(|(_, rollup)| rollup_oracle::kinds_of_spec(&rollup.spec))
        .collect();
    for (kind, known) in &oracle.kinds {
        // Our own kinds are always watched, and some kinds are watched for Rollups, which own nothing. Owner
        // references are managed only for kinds that an Application uses.
        if (kind.is_bellwether() || rolled_up.contains(kind)) && !application_kinds.contains(kind) {
            continue;
        }
        for (name, object) in &known.objects {
            let mut owners: Vec<_> = object.owners().map(str::to_owned).collect();
            let wanted = world.wanted(&slot(kind, name, Part::OwnerReferences));
            if let Some(Write::OwnerReferences { owners: wanted, .. }) = &wanted {
                owners = wanted.iter().map(|owner| owner.uid.to_string()).collect();
            }
            match oracle.owners(kind, object) {
                Some(expected) => assert_eq!(owners, expected, "the owners of {kind} {name}"),
                None => assert!(wanted.is_none(), "the owners of {kind} {name} are not managed"),
            }
        }
    }
}

/// The same for Rollups. While a kind is relisted through a wider lens, nothing is published.
fn compare_rollups(world: &World, oracle: &Oracle<'_>) {
    let kind = GroupKind::bellwether("Rollup");
    let stays = |(_, rollup): &(&NamespacedName, &Rollup)| rollup.metadata.deletion_timestamp.is_none();
    for (name, rollup) in rollup_oracle::rollups(oracle).filter(stays) {
        let kinds_of_spec = rollup_oracle::kinds_of_spec(&rollup.spec);
        let lacks_conditions =
            |feed: &Feed| kinds_of_spec.contains(&feed.kind) && feed.received.lacks_conditions();
        if world.feeds.values().any(lacks_conditions) {
            continue;
        }
        let stored = &oracle.kinds[&kind].objects[name].value["status"];
        let mut status = stored.clone();
        if let Some(Write::Status { patch, .. }) = world.wanted(&slot(&kind, name, Part::Status)) {
            merge(&mut status, &patch);
        }
        let Some(expected) = rollup_oracle::status(oracle, rollup, stored, &status) else { continue };
        assert_eq!(rollup_oracle::shape(&status, &expected.status), expected.status, "of {name}: {status:#}");
        compare_group(world, name, &status);
    }
}

/// The answers to queries equal the status in the cluster.
fn compare_group(world: &World, name: &NamespacedName, status: &Value) {
    let groups = world.engine.groups(world.now);
    let is_it = |group: &&Group| group.kind == GroupKind::bellwether("Rollup") && group.name == *name;
    let group = groups.iter().find(is_it).expect("the engine has a view of it");
    let Detail::Rollup { health, meaning } = &group.detail else { panic!("{name} is a Rollup") };
    assert_eq!(json!(meaning), status["meaning"], "of {name}");
    let GroupStatus::Known(summary) = world.engine.summary(world.now, &group.kind, name) else {
        panic!("nothing is known of {name}");
    };
    assert_eq!(
        (&summary.conditions, &summary.meaning),
        (&views::statements(group), &Some(meaning.clone())),
        "of {name}"
    );
    assert_eq!(json!(health), status["health"], "of {name}");
    assert_eq!(summary.healthy, status["health"] == "Healthy", "of {name}");
    for (kind, statement) in &summary.conditions {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let stored = conditions
            .filter(|it| it["type"] == **kind)
            .map(|it| json!([it["status"], it["reason"], it["message"]]));
        let own = json!([statement.status, statement.reason, statement.message]);
        assert_eq!(stored.collect::<Vec<_>>(), [own], "{kind} of {name}");
    }
}

pub(crate) fn slot(kind: &GroupKind, name: &NamespacedName, part: Part) -> Slot {
    Slot { object: ObjectKey { cluster: Cluster::hub(), kind: kind.clone(), name: name.clone() }, part }
}
