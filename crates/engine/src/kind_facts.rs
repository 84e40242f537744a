//! Reads the facts of kinds below members: Pods, the revisions of their owners, Services and their endpoints.

use bellwether_model::{ConditionStatus, Object, Plan, Value};

use crate::{
    facts::{KindFacts, PodFacts},
    id::GroupKind,
};

/// On Deployments and ReplicaSets, by the controller of Deployments: the number of the revision, which a rollback
/// renews.
const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";

/// On DaemonSets, by the API server; their Pods have it as the label `pod-template-generation`.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

#[derive(Clone, Copy)]
enum KnownKind {
    Pod,
    DaemonSet,
    Deployment,
    ReplicaSet,
    StatefulSet,
    Service,
    EndpointSlice,
}

impl KnownKind {
    fn of(kind: &GroupKind) -> Option<Self> {
        match (&*kind.group, &*kind.kind) {
            ("", "Pod") => Some(Self::Pod),
            ("", "Service") => Some(Self::Service),
            ("apps", "DaemonSet") => Some(Self::DaemonSet),
            ("apps", "Deployment") => Some(Self::Deployment),
            ("apps", "ReplicaSet") => Some(Self::ReplicaSet),
            ("apps", "StatefulSet") => Some(Self::StatefulSet),
            ("discovery.k8s.io", "EndpointSlice") => Some(Self::EndpointSlice),
            _ => None,
        }
    }

    fn fields(self) -> Vec<Vec<&'static str>> {
        match self {
            Self::Pod => vec![vec!["status", "conditions"], vec!["status", "phase"]],
            Self::DaemonSet => vec![
                vec!["metadata", "annotations", TEMPLATE_GENERATION],
                vec!["status", "desiredNumberScheduled"],
                vec!["status", "updatedNumberScheduled"],
            ],
            Self::Deployment | Self::ReplicaSet => vec![vec!["metadata", "annotations", DEPLOYMENT_REVISION]],
            Self::StatefulSet => vec![
                vec!["spec", "ordinals"],
                vec!["spec", "updateStrategy"],
                vec!["status", "updateRevision"],
            ],
            Self::Service => vec![vec!["spec", "selector"], vec!["spec", "type"]],
            Self::EndpointSlice => vec![vec!["endpoints", "conditions", "ready"]],
        }
    }
}

/// Adds the fields that [`read`] needs.
pub(crate) fn keep(kind: &GroupKind, plan: &mut Plan) {
    for path in KnownKind::of(kind).into_iter().flat_map(KnownKind::fields) {
        plan.keep(&path);
    }
}

pub(crate) fn read(kind: &GroupKind, object: &Object<'_>) -> KindFacts {
    let revision = |current: Option<&str>| {
        let revision = |current: &str| KindFacts::Revision { current: current.into(), updated_from: 0 };
        current.map_or(KindFacts::None, revision)
    };
    match KnownKind::of(kind) {
        None => KindFacts::None,
        Some(KnownKind::Pod) => KindFacts::Pod(pod(object)),
        Some(KnownKind::DaemonSet) => {
            revision(annotation(object, TEMPLATE_GENERATION).filter(|_| !are_all_pods_updated(object)))
        }
        Some(KnownKind::Deployment) => revision(annotation(object, DEPLOYMENT_REVISION)),
        Some(KnownKind::ReplicaSet) => {
            let revision = annotation(object, DEPLOYMENT_REVISION).and_then(|text| text.parse().ok());
            KindFacts::ReplicaSet { revision: revision.unwrap_or_default() }
        }
        Some(KnownKind::StatefulSet) => stateful_set(object),
        Some(KnownKind::Service) => {
            let selector = object.at("spec.selector").and_then(Value::as_map);
            let is_external = object.at("spec.type").and_then(Value::as_text) == Some("ExternalName");
            let selects_pods =
                !is_external && selector.is_some_and(|selector| selector.iter().next().is_some());
            KindFacts::Service { selects_pods }
        }
        Some(KnownKind::EndpointSlice) => {
            let endpoints = object.at("endpoints").and_then(Value::as_list).unwrap_or_default();
            // As the API says: an unset condition means ready.
            let is_ready = |endpoint: &Value<'_>| {
                endpoint.at("conditions.ready").and_then(Value::as_bool).unwrap_or(true)
            };
            KindFacts::EndpointSlice { has_ready_endpoint: endpoints.iter().any(is_ready) }
        }
    }
}

/// With OnDelete, and below the partition, the controller leaves Pods of old revisions as they are.
fn stateful_set(object: &Object<'_>) -> KindFacts {
    let current = object.at("status.updateRevision").and_then(Value::as_text);
    let strategy = object.at("spec.updateStrategy.type").and_then(Value::as_text);
    let Some(current) = current.filter(|_| strategy != Some("OnDelete")) else { return KindFacts::None };
    let number = |path: &str| object.at(path).and_then(Value::as_int).unwrap_or_default();
    let partition = number("spec.updateStrategy.rollingUpdate.partition");
    let updated_from =
        if partition > 0 { number("spec.ordinals.start").saturating_add(partition) } else { 0 };
    KindFacts::Revision {
        current: current.into(),
        updated_from: u32::try_from(updated_from.max(0)).unwrap_or(u32::MAX),
    }
}

/// After a rollback, Pods that were never replaced are of the current revision, although their label names
/// the generation that created them. Only the counters of the DaemonSet say so.
fn are_all_pods_updated(daemon_set: &Object<'_>) -> bool {
    let count = |counter: &str| daemon_set.at(counter).and_then(Value::as_int).unwrap_or_default();
    let desired = count("status.desiredNumberScheduled");
    desired > 0 && count("status.updatedNumberScheduled") >= desired
}

fn annotation<'o>(object: &'o Object<'_>, key: &str) -> Option<&'o str> {
    object.at("metadata.annotations")?.get(key)?.as_text()
}

fn pod(object: &Object<'_>) -> PodFacts {
    let conditions = object.at("status.conditions").and_then(Value::as_list).unwrap_or_default();
    let is_ready = |condition: &&Value<'_>| condition.get("type").and_then(Value::as_text) == Some("Ready");
    let status = |condition: &Value<'_>| ConditionStatus::read(condition.get("status"));
    let phase = object.at("status.phase").and_then(Value::as_text);
    PodFacts {
        ready: conditions.iter().find(is_ready).map(status),
        finished: matches!(phase, Some("Succeeded" | "Failed")),
    }
}
