//! Property tests: convergence for any order of events, determinism, idempotent writes, and failed, lost or
//! slow writes.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::Application;
use bellwether_engine::{Dialect, Effect, Event, GroupKind, NamespacedName, Outcome, Part, Write};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    actions::{Action, action},
    against_oracle::{compare, is_a_check, not_needed, oracle, slot},
    needed::needed,
    server::merge,
    world::World,
    writes::Fault,
};

const LONG: SignedDuration = SignedDuration::from_hours(1);

fn some(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Actions without restarts and unreadable kinds.
fn quiet_action(checks: bool) -> impl Strategy<Value = Action> {
    action(checks).prop_filter("something that lasts", |action| {
        matches!(action, Action::Put(_) | Action::Delete(..) | Action::Mark(..) | Action::Own(..))
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    use Fault::{Conflict, Fail, LoseResponse, NoVersion, None, NotFound, Refuse, WatchFirst};
    proptest::sample::select(vec![
        None,
        None,
        None,
        WatchFirst,
        Refuse,
        Fail,
        LoseResponse,
        Conflict,
        NotFound,
        NoVersion,
    ])
}

/// Every status without times, and the owner references of all objects of used kinds. Removing references
/// from kinds that are no longer used depends on history.
fn view(world: &World) -> BTreeMap<String, Value> {
    let needed: BTreeSet<_> = needed(&oracle(world)).collect();
    let mut view = BTreeMap::new();
    for ((kind, name), object) in &world.server.objects {
        if [GroupKind::bellwether("Application"), GroupKind::bellwether("Rollup"), Dialect::AppK8sIo.kind()]
            .contains(kind)
        {
            let mut status = object.value["status"].clone();
            if let Some(Write::Status { patch, .. }) = world.wanted(&slot(kind, name, Part::Status)) {
                merge(&mut status, &patch);
            }
            without_times(&mut status);
            // `ownedKinds` depends on history.
            status.as_object_mut().map(|fields| fields.remove("ownedKinds"));
            view.insert(format!("status of {kind} {name}"), status);
        }
        if let Some(Write::OwnerReferences { owners, .. }) =
            world.wanted(&slot(kind, name, Part::OwnerReferences))
            && needed.contains(kind)
        {
            view.insert(format!("owners of {kind} {name}"), json!(*owners));
        }
    }
    view
}

fn without_times(status: &mut Value) {
    for (list, time) in [
        ("conditions", "lastTransitionTime"),
        ("conditions", "lastUpdateTime"),
        ("objects", "since"),
        ("components", "since"),
    ] {
        for entry in status[list].as_array_mut().into_iter().flatten() {
            entry.as_object_mut().map(|fields| fields.remove(time));
        }
    }
}

fn wants(world: &World) -> usize {
    world.effects.iter().filter(|effect| matches!(effect, Effect::EnqueueWrite(..))).count()
}

proptest! {
    #![proptest_config(some(64))]

    /// Delivered one by one, or all at the end, in any order of feeds or in batches, with relists, duplicates
    /// and stale events: the result is the same.
    #[test]
    fn any_order_of_events_converges(
        actions in prop::collection::vec(quiet_action(false), 1..30),
        seed in any::<u64>(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..30),
        batches in any::<bool>(),
    ) {
        let (mut prompt, mut late) = (World::new(), World::new());
        for world in [&mut prompt, &mut late] {
            world.writing = false;
        }
        let mut history = Vec::new();
        for action in &actions {
            action.apply(&mut prompt);
            prompt.settle_now();
            action.apply(&mut late);
            history.extend(late.server.objects.values().cloned());
        }
        late.shuffle(seed);
        late.step(Event::Tick);
        if batches {
            late.deliver_in_batches();
        }
        for (index, again) in noise.iter().filter(|_| !history.is_empty()) {
            for _ in 0..3 {
                late.deliver();
            }
            let object = index.get(&history);
            late.repeat(object);
            if *again {
                late.relist(&object.kind);
            }
            if batches {
                late.deliver_in_batches();
            }
        }
        late.settle_now();
        prop_assert_eq!(view(&prompt), view(&late));
    }

    #[test]
    fn the_engine_is_deterministic(actions in prop::collection::vec(action(true), 1..30), seed in any::<u64>()) {
        let effects = || {
            let mut world = World::new();
            world.shuffle(seed);
            for action in &actions {
                action.apply(&mut world);
                world.settle();
            }
            world.effects
        };
        let text = |effect: &Effect| match effect {
            Effect::Follow { feed, kind, .. } => format!("{feed} {kind}"),
            other => format!("{other:?}"),
        };
        let [first, second] = [effects(), effects()].map(|effects| effects.iter().map(text).collect::<Vec<_>>());
        prop_assert_eq!(first, second);
    }

    /// No write is repeated, whether the response or the watch event comes first. After a restart nothing is
    /// written. Changes without a meaning, such as managedFields, cause no write.
    #[test]
    fn writes_are_idempotent(actions in prop::collection::vec(action(true), 1..30), echoes in any::<u64>()) {
        let mut world = World::new();
        for (number, action) in actions.iter().enumerate() {
            let fault = if echoes >> (number % 64) & 1 == 1 { Fault::WatchFirst } else { Fault::None };
            world.faults = std::iter::repeat_n(fault, 20).collect();
            action.apply(&mut world);
            world.settle();
        }
        prop_assert_eq!(world.server.no_op_writes, 0);
        for kind in ["Widget.acme.io", "Platform.acme.io", "Pod"] {
            world.unreadable(kind, None);
        }
        world.pass(LONG);
        let done = |world: &World| {
            let is_done = |(_, change, outcome): &&(_, Write, Outcome)| {
                !is_a_check(change) && matches!(outcome, Outcome::Written(_))
            };
            world.writes.iter().filter(is_done).count()
        };
        let before = done(&world);
        world.restart();
        world.settle();
        prop_assert_eq!(done(&world), before, "{:?}", world.writes.last());

        let before = wants(&world);
        for (kind, name) in world.server.objects.keys().cloned().collect::<Vec<_>>() {
            world.server.edit(&kind, &name, |object| {
                merge(&mut object["metadata"], &json!({"annotations": {"example.com/seen": "yes"}, "managedFields": [{}]}));
            });
        }
        world.settle_now();
        prop_assert_eq!(wants(&world), before, "{:?}", world.effects.last());
    }

    /// Whatever happens to writes, everything converges and then stays quiet.
    #[test]
    fn everything_converges_and_stays_quiet(
        actions in prop::collection::vec((action(true), prop::collection::vec(fault(), 0..6), 0..40_usize), 1..30),
        seed in any::<u64>(),
        slow in any::<bool>(),
    ) {
        let mut world = World::new();
        world.shuffle(seed);
        world.slow = slow;
        world.step(Event::Tick);
        for (action, faults, moves) in actions {
            world.faults = faults.into();
            action.apply(&mut world);
            for _ in 0..moves {
                world.advance();
            }
            world.now += SignedDuration::from_millis(100 * i64::try_from(moves % 7).expect("a small number"));
        }
        world.faults.clear();
        let written = world.writes.len();
        world.pass(LONG);
        prop_assert!(world.writes.len() < written + 60, "{} writes", world.writes.len() - written);
        compare(&world);
        prop_assert_eq!(not_needed(&oracle(&world)), Vec::new());
        prop_assert!(world.wants().values().all(is_a_check), "{:?}", world.wants());
        // The status of a terminating Application is not written any more.
        let stays = |(_, app): &(&NamespacedName, &Application)| app.metadata.deletion_timestamp.is_none();
        for (name, _) in oracle(&world).applications().filter(stays) {
            prop_assert_eq!(world.of_app(&name.name, "Adopted"), "none");
        }
    }
}
