//! Robustness: arbitrary, contradictory and malformed events neither panic nor loop.

use std::sync::Arc;

use bellwether_engine::{
    Cluster, ClusterEvent, Dialect, Effect, Engine, Event, FeedEvent, FeedId, Group, GroupKind, GroupRef,
    GroupStatus, Lens, NamespacedName, ObjectKey, Outcome, OwnKind, Part, Patched, ProjectionContext,
    RequestedFields, RequiredOwner, ResourceVersion, Slot, Unreadable, Write,
};
use bellwether_memory_cluster::Object;
use jiff::{SignedDuration, Timestamp};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{actions, objects};

#[derive(Clone, Debug)]
enum RandomEvent {
    Feed(prop::sample::Index, RandomFeedEvent),
    Written(Slot, Write, Outcome),
    Later(i64),
    /// In seconds before now.
    Heard(i64),
    Lost,
}

#[derive(Clone, Debug)]
enum RandomFeedEvent {
    Served(bool),
    Unreadable(Unreadable),
    Listing,
    Listed,
    Gone(NamespacedName),
    /// An object, delivered as one of any kind, with or without conditions.
    Seen(Value, bool),
}

fn name() -> impl Strategy<Value = NamespacedName> {
    (select(&["shop", "elsewhere", ""][..]), select(&["a", "b", "x", "y", ""][..]))
        .prop_map(|(namespace, name)| NamespacedName::new(namespace, name))
}

fn kind() -> impl Strategy<Value = GroupKind> {
    let kinds = [
        "Application.bellwether.dev",
        "HealthRule.bellwether.dev",
        "Rollup.bellwether.dev",
        "Deployment.apps",
        "Pod",
        "Gone.no.where",
    ];
    select(kinds.to_vec()).prop_map(objects::kind)
}

fn object() -> impl Strategy<Value = Value> {
    let uid = select(&["u1", "u2", "u3", ""][..]);
    let version = select(&["1", "2", "3", "99999999999999999999", "opaque", ""][..]);
    let spoilt = proptest::option::weighted(0.4, (place(), json()));
    let object = (actions::anything(), spoilt, uid, version, any::<bool>());
    object.prop_map(|(mut object, spoilt, uid, version, owned)| {
        if let Some((place, value)) = spoilt {
            spoil(&mut object, place, value);
        }
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["resourceVersion"] = version.into();
        object["metadata"]["generation"] = json!(1);
        if owned {
            let owner = json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "a", "uid": "u1"});
            object["metadata"]["ownerReferences"] = json!([owner]);
        }
        object
    })
}

/// JSON pointers to fields to overwrite.
fn place() -> impl Strategy<Value = &'static str> {
    select(vec![
        "/status",
        "/status/conditions",
        "/status/conditions/0",
        "/status/conditions/0/type",
        "/status/conditions/0/status",
        "/status/conditions/1/lastTransitionTime",
        "/status/conditions/1/observedGeneration",
        "/status/conditions/2/reason",
        "/status/conditions/2/message",
        "/status/observedGeneration",
        "/status/components",
        "/spec/components",
        "/spec/components/0",
        "/spec/components/0/selector",
        "/spec/degradedAfter",
        "/spec/progressing",
        "/metadata/labels",
        "/metadata/generation",
        "/metadata/creationTimestamp",
    ])
}

fn json() -> impl Strategy<Value = Value> {
    let times = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-14T10:00:00.5+02:00", "soon"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(&["True", "False", "Available", "Degraded", "1000000h", ""][..]).prop_map(Value::from),
        select(times.to_vec()).prop_map(Value::from),
        "(?s).{0,40}".prop_map(Value::from),
        (1..4000usize).prop_map(|length| "ä".repeat(length).into()),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let key =
            select(&["type", "status", "reason", "message", "kind", "name", "since", "matchLabels"][..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Overwrites an existing field.
fn spoil(object: &mut Value, place: &str, value: Value) {
    if let Some(field) = object.pointer_mut(place) {
        *field = value;
    }
}

fn change() -> impl Strategy<Value = Write> {
    let version = ResourceVersion::new("2");
    let owner = RequiredOwner {
        kind: Dialect::Bellwether.kind(),
        api_version: Dialect::Bellwether.version().into(),
        plural: "applications".into(),
        name: NamespacedName::new("shop", "a"),
        uid: "u1".into(),
    };
    select(vec![
        Write::Status {
            uid: "u1".into(),
            resource_version: version.clone(),
            patch: Arc::new(json!({"ready": "True"})),
            transitions: Box::default(),
            owned_kinds: Box::new([GroupKind::pod()]),
        },
        Write::Status {
            uid: "u1".into(),
            resource_version: version.clone(),
            patch: Arc::new(json!({"ready": 7})),
            transitions: Box::default(),
            owned_kinds: Box::new([GroupKind::pod()]),
        },
        Write::Status {
            uid: "u1".into(),
            resource_version: version.clone(),
            patch: Arc::new(json!(null)),
            transitions: Box::default(),
            owned_kinds: Box::new([GroupKind::pod()]),
        },
        Write::OwnerReferences {
            uid: "u2".into(),
            resource_version: version,
            owners: Arc::new([]),
            required_owner: Some(Box::new(owner)),
        },
        Write::SetFields {
            uid: "u1".into(),
            resource_version: ResourceVersion::new("2"),
            part: Patched::Object,
            fields: [(["results".into()].into(), json!([]))].into(),
        },
        Write::Apply {
            uid: "u1".into(),
            resource_version: ResourceVersion::new("2"),
            manager: "m".into(),
            status: Arc::new(json!({})),
            force: false,
        },
        Write::Create { manifest: Arc::new(json!(null)), owner: "u2".into(), dry_run: true },
        Write::Create { manifest: Arc::new(json!({})), owner: "u1".into(), dry_run: false },
        Write::Delete { uid: "u1".into() },
    ])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    select(vec![
        Outcome::Written(None),
        Outcome::Written(Some(ResourceVersion::new("3"))),
        Outcome::Written(Some(ResourceVersion::new("opaque"))),
        Outcome::Conflict,
        Outcome::FieldConflict([].into()),
        Outcome::NotFound,
        Outcome::Rejected("no".into()),
        Outcome::Failed("no".into()),
    ])
}

fn random_event() -> impl Strategy<Value = RandomEvent> {
    let feed_event = prop_oneof![
        2 => any::<bool>().prop_map(RandomFeedEvent::Served),
        1 => Just(RandomFeedEvent::Unreadable(Unreadable::NotServed)),
        1 => Just(RandomFeedEvent::Unreadable(Unreadable::Failing { why: "overloaded".into() })),
        2 => Just(RandomFeedEvent::Listing),
        4 => Just(RandomFeedEvent::Listed),
        2 => name().prop_map(RandomFeedEvent::Gone),
        12 => (object(), any::<bool>()).prop_map(|(object, operator)| RandomFeedEvent::Seen(object, operator)),
    ];
    let group = GroupRef::new(OwnKind::Application(Dialect::Bellwether), NamespacedName::new("shop", "a"));
    let part =
        select(vec![Part::Status, Part::OwnerReferences, Part::Object(group.clone()), Part::ForeignStatus]);
    let cluster = select(vec![Cluster::hub(), Cluster::named("east")]);
    let slot = (cluster, kind(), name(), part)
        .prop_map(|(cluster, kind, name, part)| Slot { object: ObjectKey { cluster, kind, name }, part });
    prop_oneof![
        12 => (any::<prop::sample::Index>(), feed_event).prop_map(|(feed, event)| RandomEvent::Feed(feed, event)),
        4 => (slot, change(), outcome()).prop_map(|(slot, change, outcome)| RandomEvent::Written(slot, change, outcome)),
        2 => (0..100i64).prop_map(RandomEvent::Later),
        1 => (0..200i64).prop_map(RandomEvent::Heard),
        1 => Just(RandomEvent::Lost),
    ]
}

fn feed_event(random: RandomFeedEvent, now: Timestamp) -> FeedEvent {
    match random {
        RandomFeedEvent::Served(namespaced) => FeedEvent::Served(bellwether_engine::ServedResource {
            version: "v1".into(),
            versions: Box::new(["v1".into()]),
            plural: "things".into(),
            namespaced,
            has_status: true,
        }),
        RandomFeedEvent::Unreadable(why) => FeedEvent::Unreadable(why),
        RandomFeedEvent::Listing => FeedEvent::ListStarted,
        RandomFeedEvent::Listed => FeedEvent::ListCompleted,
        RandomFeedEvent::Gone(name) => FeedEvent::Deleted(name),
        RandomFeedEvent::Seen(object, operator) => {
            let object = Object::new(object);
            let wanted = RequestedFields { conditions: operator, ..RequestedFields::default() };
            let lens = Lens::with(&object.kind, Arc::default(), Arc::new(wanted));
            let (name, seen) =
                object.seen(&lens, ProjectionContext { now, has_status: None }).expect("it can be decoded");
            FeedEvent::Applied(name, Box::new(seen))
        }
    }
}

fn follows(effects: &[Effect]) -> impl Iterator<Item = FeedId> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Follow { feed, .. } => Some(*feed),
        _ => None,
    })
}

/// The summary and the full view of every group that may exist.
fn views_of_all(engine: &Engine, now: Timestamp) -> Vec<(GroupRef, GroupStatus, Option<Group>)> {
    let kinds = ["Application.bellwether.dev", "Rollup.bellwether.dev"].map(objects::kind);
    let names =
        [("shop", "a"), ("shop", "b"), ("elsewhere", "a"), ("", "a"), ("", "r"), ("", "s"), ("", "t")];
    let all = kinds
        .iter()
        .flat_map(|kind| names.map(|(namespace, name)| (kind.clone(), NamespacedName::new(namespace, name))));
    all.filter_map(|(kind, name)| {
        let group = GroupRef::new(OwnKind::of(&kind)?, name.clone());
        Some((group.clone(), engine.summary(now, &kind, &name), engine.group(now, &group)))
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Events of feeds that ended or never existed, objects of other kinds, lists that complete before they
    /// start, deletions of unknown objects, outcomes of writes that were never requested.
    #[test]
    fn no_event_breaks_the_engine(randoms in prop::collection::vec(random_event(), 1..60), [open, nested] in any::<[bool; 2]>()) {
        let mut engine = if nested { Engine::new().with_nested_evaluation() } else { Engine::new() };
        let mut now: Timestamp = "2026-11-14T10:00:00Z".parse().expect("a time");
        let mut feeds: Vec<FeedId> = Vec::new();
        let mut events = vec![Event::Tick];
        let mut views = views_of_all(&engine, now);
        for random in randoms {
            let mut effects = engine.step(now, events);
            if open && feeds.is_empty() {
                let begun: Vec<_> = follows(&effects).map(|feed| Event::Feed(feed, FeedEvent::ListCompleted)).collect();
                effects.extend(engine.step(now, begun));
            }
            prop_assert!(effects.len() < 100, "{effects:?}");
            // Everything that is wanted can be rendered.
            for effect in &effects {
                if let Effect::EnqueueWrite(slot, Some(_)) = effect {
                    engine.render_write(now, slot);
                }
            }
            engine.groups(now);
            let new_views = views_of_all(&engine, now);
            for (before, after) in views.iter().zip(&new_views).filter(|(before, after)| before != after) {
                let group = &before.0;
                let is_it = |effect: &Effect| matches!(effect, Effect::Changed(kind, name)
                    if *kind == group.kind && name.as_ref().is_none_or(|name| *name == group.name));
                prop_assert!(effects.iter().any(is_it), "no Changed effect for {group}: {before:?} became {after:?}");
            }
            views = new_views;
            feeds.extend(follows(&effects));
            events = vec![match random {
                RandomEvent::Feed(index, random) => Event::Feed(*index.get(&feeds), feed_event(random, now)),
                RandomEvent::Written(slot, change, outcome) => Event::Written { slot, write: change, outcome },
                RandomEvent::Later(seconds) => {
                    now += SignedDuration::from_secs(seconds);
                    Event::Tick
                }
                RandomEvent::Heard(ago) => {
                    Event::Cluster(Cluster::hub(), ClusterEvent::Heard(now - SignedDuration::from_secs(ago)))
                }
                RandomEvent::Lost => Event::Cluster(Cluster::hub(), ClusterEvent::Disconnected),
            }];
        }
        engine.step(now, events);
        prop_assert!(engine.step(now, [Event::Tick]).is_empty(), "a second tick has no effects");
    }
}
