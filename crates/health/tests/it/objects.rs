//! Strategies for objects: shaped like their kind, mutated, and arbitrary JSON.

use std::{ops::Range, sync::LazyLock};

use bellwether_health::{Source, rules};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use crate::cases;

/// A kind, with the names in the description of its rule.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    api_version: String,
    name: String,
    /// Fields, such as `status.phase`.
    paths: Vec<String>,
    /// Condition types and field values.
    words: Vec<String>,
}

/// The kinds of all built-in rules, and some without a rule.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let known = rules().into_iter().filter(|rule| rule.source == Source::Builtin).map(|rule| {
        // A description names fields and values: "`Failed` if `status.phase` is `Broken`".
        let quoted = rule.description.split('`').skip(1).step_by(2).map(str::to_owned);
        let quoted = quoted.filter(|word| !STATES.contains(&word.as_str()));
        let (paths, words) =
            quoted.partition(|word| word.starts_with("status.") || word.starts_with("spec."));
        let (group, kind) = rule.id.split_once('/').unwrap_or(("", rule.id));
        let version =
            if group.is_empty() { "v1".to_owned() } else { format!("{}/v1", group.replace('*', "a.b")) };
        Kind { api_version: version, name: kind.replace('*', "Gadget"), paths, words }
    });
    let unknown = ["Widget", "WidgetBackup", ""].map(|kind| Kind {
        api_version: "acme.io/v1".to_owned(),
        name: kind.to_owned(),
        paths: Vec::new(),
        words: Vec::new(),
    });
    known.chain(unknown).collect()
});

/// States in the descriptions of rules. [`WORDS`] has those that are also values of fields.
const STATES: &[&str] = &["Ready", "InProgress", "Failed", "Suspended", "Terminating", "Unknown"];

/// Fields that rules read, besides those in their descriptions.
const FIELDS: &[&str] = &[
    "spec.completions",
    "spec.instances",
    "spec.minReadySeconds",
    "spec.parentRefs",
    "spec.paused",
    "spec.replicas",
    "spec.suspend",
    "spec.type",
    "spec.unschedulable",
    "spec.updateStrategy.rollingUpdate.partition",
    "spec.updateStrategy.type",
    "status.active",
    "status.availableReplicas",
    "status.currentHealthy",
    "status.currentNumberScheduled",
    "status.currentReplicas",
    "status.currentRevision",
    "status.desiredHealthy",
    "status.desiredNumberScheduled",
    "status.desiredReplicas",
    "status.error",
    "status.failed",
    "status.health",
    "status.lastScheduleTime",
    "status.lastSuccessfulTime",
    "status.loadBalancer.ingress",
    "status.message",
    "status.numberAvailable",
    "status.numberReady",
    "status.observedGeneration",
    "status.phase",
    "status.ready",
    "status.readyReplicas",
    "status.reason",
    "status.replicas",
    "status.startTime",
    "status.state",
    "status.succeeded",
    "status.updateRevision",
    "status.updatedNumberScheduled",
    "status.updatedReplicas",
];

/// Words with and without a meaning.
const WORDS: &[&str] = &[
    "",
    "Accepted",
    "Active",
    "Bound",
    "CrashLoopBackOff",
    "Creating",
    "Deleting",
    "Error",
    "Failed",
    "LoadBalancer",
    "Lost",
    "Not Ready",
    "OnDelete",
    "Paused",
    "Pending",
    "Progressing",
    "Purple",
    "Ready",
    "Running",
    "SecretNotFound",
    "Succeeded",
    "Terminating",
    "Unknown",
    "Unschedulable",
    "in-progress",
    "two\nlines",
    "…",
];

/// Condition types of every polarity.
const TYPES: &[&str] = &[
    "AbleToScale",
    "Accepted",
    "Available",
    "Complete",
    "Conflicted",
    "Degraded",
    "Established",
    "Failed",
    "NamesAccepted",
    "PodScheduled",
    "Progressing",
    "Ready",
    "Reconciling",
    "ReplicaFailure",
    "ScalingActive",
    "Sparkle",
    "Stalled",
    "Succeeded",
    "Suspended",
    "Terminating",
    "Valid",
];

/// Shaped like its kind, or mutated from the tables.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    prop_oneof![shaped(), mutated()]
}

/// Any JSON map, often with the usual field names.
pub(crate) fn any_map() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        2 => select(vec!["apiVersion", "kind", "metadata", "spec", "status", "conditions", "type"]).prop_map(str::to_owned),
        1 => ".{0,8}",
    ];
    vec((field, json_value()), 0..8).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// Around noon, invalid, or at the limits of the range.
pub(crate) fn time() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (11..13_u8, 0..60_u8, 0..60_u8)
            .prop_map(|(hour, minute, second)| format!("2026-03-01T{hour}:{minute:02}:{second:02}Z")),
        1 => select(vec!["9999-12-30T22:00:00.999999999Z", "-009999-01-02T01:59:59Z", "noon", ""]).prop_map(str::to_owned),
    ]
}

/// With conditions, fields and parts that its rule or another one reads.
fn shaped() -> impl Strategy<Value = Value> {
    select(KINDS.as_slice()).prop_flat_map(|kind| {
        let own = kind.paths.clone();
        let path = one_of(own, FIELDS);
        let metadata =
            (option::of(0..4_i64), option::of(time()), option::weighted(0.2, vec(scalar(WORDS_ONLY), 0..3)));
        let fields = vec((path, value(kind.words.clone())), 0..8);
        let list = || conditions(kind.words.clone());
        let parts = vec((select(vec!["parents", "ancestors", "listeners", "zones"]), list()), 0..3);
        (metadata, fields, option::weighted(0.8, list()), parts, option::weighted(0.3, containers()))
            .prop_map(move |(metadata, fields, conditions, parts, containers)| {
                let mut object = json!({"apiVersion": kind.api_version, "kind": kind.name});
                let (generation, created, finalizers) = metadata;
                put(&mut object, "metadata.generation", generation.map(Value::from));
                put(&mut object, "metadata.creationTimestamp", created.map(Value::from));
                put(&mut object, "metadata.finalizers", finalizers.map(Value::from));
                for (path, value) in fields {
                    put(&mut object, &path, Some(value));
                }
                put(&mut object, "status.conditions", conditions);
                put(&mut object, "status.containerStatuses", containers);
                for (list, conditions) in parts {
                    let part = json!({"name": "one", "parentRef": {"name": "one"}, "conditions": conditions});
                    put(&mut object, &format!("status.{list}"), Some(json!([part])));
                }
                object
            })
    })
}

/// An object of the tables with some values replaced or null.
fn mutated() -> impl Strategy<Value = Value> {
    static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(cases::objects);
    let changes = vec((any::<prop::sample::Index>(), option::of(value(Vec::new()))), 0..4);
    (select(OBJECTS.as_slice()), changes).prop_map(|(mut object, changes)| {
        for (place, change) in changes {
            let mut left = place.index(size(&object));
            alter(&mut object, &mut left, &change.unwrap_or_default());
        }
        object
    })
}

/// The number of nested values, at least 1.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|entry| 1 + size(entry)).sum(),
        Value::Object(map) => map.values().map(|field| 1 + size(field)).sum(),
        _ => 0,
    }
    .max(1)
}

/// Replaces the value at index `left` in depth-first order.
fn alter(value: &mut Value, left: &mut usize, change: &Value) -> bool {
    let mut here = |inner: &mut Value| {
        if *left == 0 {
            *inner = change.clone();
            return true;
        }
        *left -= 1;
        alter(inner, left, change)
    };
    match value {
        Value::Array(list) => list.iter_mut().any(&mut here),
        Value::Object(map) => map.values_mut().any(&mut here),
        _ => false,
    }
}

/// Mostly well formed.
pub(crate) fn conditions(words: Vec<String>) -> impl Strategy<Value = Value> {
    let kind = one_of(words.clone(), TYPES).prop_map(Value::from);
    let status = prop_oneof![
        8 => select(vec!["True", "False", "Unknown"]).prop_map(Value::from),
        1 => any_scalar(),
    ];
    let condition = (
        kind,
        status,
        option::of(value(words)),
        option::of(any_scalar()),
        option::of(prop_oneof![(0..4_i64).prop_map(Value::from), any_scalar()]),
        option::of(time()),
    )
        .prop_map(|(kind, status, reason, message, generation, since)| {
            let mut condition = json!({"type": kind, "status": status});
            put(&mut condition, "reason", reason);
            put(&mut condition, "message", message);
            put(&mut condition, "observedGeneration", generation);
            put(&mut condition, "lastTransitionTime", since.map(Value::from));
            condition
        });
    prop_oneof![
        9 => vec(prop_oneof![9 => condition, 1 => json_value()], 0..5).prop_map(Value::from),
        1 => json_value(),
    ]
}

/// Container statuses, mostly well formed.
fn containers() -> impl Strategy<Value = Value> {
    let reason =
        || prop_oneof![select(WORDS).prop_map(Value::from), Just(Value::from("OOMKilled")), any_scalar()];
    let state = prop_oneof![
        Just(json!({"running": {}})),
        time().prop_map(|time| json!({"running": {"startedAt": time}})),
        reason().prop_map(|reason| json!({"waiting": {"reason": reason}})),
        (reason(), any_scalar(), option::of(time()), time()).prop_map(|(reason, code, started, finished)| {
            let end =
                json!({"reason": reason, "exitCode": code, "startedAt": started, "finishedAt": finished});
            json!({"terminated": end})
        }),
        json_value(),
    ];
    let container = (state.clone(), state, any_scalar(), any_scalar()).prop_map(|(state, last, restarts, ready)| {
        json!({"name": "app", "state": state, "lastState": last, "restartCount": restarts, "ready": ready})
    });
    vec(prop_oneof![9 => container, 1 => json_value()], 0..3).prop_map(Value::from)
}

/// Prefers the words of the rule.
fn one_of(own: Vec<String>, all: &'static [&'static str]) -> impl Strategy<Value = String> {
    let share = if own.is_empty() { 0 } else { 3 };
    let own = if own.is_empty() { vec![String::new()] } else { own };
    prop_oneof![share => select(own), 2 => select(all).prop_map(str::to_owned)]
}

/// Often a value that the rule knows.
fn value(words: Vec<String>) -> impl Strategy<Value = Value> {
    let own = one_of(words, WORDS).prop_map(Value::from);
    prop_oneof![4 => own, 6 => any_scalar(), 1 => json_value()]
}

const WORDS_ONLY: Range<u8> = 0..1;
const ANYTHING: Range<u8> = 0..6;

fn any_scalar() -> impl Strategy<Value = Value> {
    scalar(ANYTHING)
}

fn scalar(which: Range<u8>) -> impl Strategy<Value = Value> {
    which.prop_flat_map(|which| match which {
        0 => select(WORDS).prop_map(Value::from).boxed(),
        1 => (0..4_i64).prop_map(Value::from).boxed(),
        2 => any::<bool>().prop_map(Value::from).boxed(),
        3 => (-1..4_i64).prop_map(|number| Value::from(number.to_string())).boxed(),
        4 => time().prop_map(Value::from).boxed(),
        _ => prop_oneof![
            Just(Value::Null),
            select(vec![i64::MIN, -1, i64::MAX]).prop_map(Value::from),
            Just(Value::from(u64::MAX)),
            any::<f64>().prop_map(Value::from),
            "(?s).{0,12}".prop_map(Value::from),
        ]
        .boxed(),
    })
}

/// Any JSON of bounded size.
fn json_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((select(WORDS), inner), 0..4)
                .prop_map(|fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<Map<_, _>>())
                .prop_map(Value::from),
        ]
    })
}

/// All true.
pub(crate) fn conditions_of(types: &[&str]) -> Value {
    types.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
}

/// Sets the value at a path; no change for `None`.
pub(crate) fn put(object: &mut Value, path: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    let mut place = object;
    for field in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[field];
    }
    *place = value;
}
