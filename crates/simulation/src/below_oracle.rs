//! The oracle for what is below members: finds Pods and endpoints by plain loops over all known objects.

use std::{rc::Rc, sync::Arc};

use bellwether_api::ObjectStatus;
use bellwether_engine::{FAILED_AFTER, GroupKind, Unreadable};
use bellwether_health::{Source, Verdict, user::CompiledRule};
use bellwether_model::State;
use jiff::Timestamp;
use serde_json::Value;

use crate::{known::Known, object::Object, oracle::Oracle};

/// What is below a member.
#[derive(Debug)]
pub(crate) enum Below {
    /// Nothing that changes how it counts.
    Nothing,
    /// The Pod because of which it is not ready.
    Cause(Rc<Object>),
    /// It is Failed because this Pod is.
    FailedPod(Rc<Object>, Verdict),
    /// It is Failed because of a Pod, by the stored status.
    StoredFailure(ObjectStatus),
    /// A Service without a ready endpoint.
    NoReadyEndpoints,
}

impl Below {
    /// The name of the Pod because of which the member is not ready.
    pub(crate) fn cause(&self) -> Option<String> {
        match self {
            Self::Cause(pod) | Self::FailedPod(pod, _) => Some(pod.name.name.to_string()),
            Self::StoredFailure(stored) => stored.cause.as_ref().map(|cause| cause.name.clone()),
            Self::Nothing | Self::NoReadyEndpoints => None,
        }
    }
}

/// The kinds below those of a spec.
pub fn kinds_below(kinds: impl IntoIterator<Item = GroupKind>) -> impl Iterator<Item = GroupKind> {
    let below = |kind: GroupKind| match &*kind.kind {
        "Deployment" => vec!["ReplicaSet.apps", "Pod"],
        "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => vec!["Pod"],
        "Service" => vec!["EndpointSlice.discovery.k8s.io"],
        _ => Vec::new(),
    };
    kinds.into_iter().flat_map(below).map(crate::objects::kind)
}

/// For a workload, whether it is scaled to zero.
pub(crate) fn is_scaled_to_zero(kind: &GroupKind, verdict: &Verdict) -> Option<bool> {
    matches!(&*kind.kind, "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        .then_some(matches!(&*verdict.reason, "ScaledToZero" | "NoMatchingNodes"))
}

fn is_failing(known: &Known) -> bool {
    matches!(known.unreadable, Some(Unreadable::Failing { .. }))
}

/// Whether a failed Pod makes the workload Failed.
fn may_fail(workload: &Verdict) -> bool {
    match workload.state {
        _ if workload.rule.source == Source::User => false,
        State::Failed => &*workload.reason == "ProgressDeadlineExceeded",
        state => matches!(state, State::InProgress | State::Suspended),
    }
}

impl Oracle<'_> {
    /// `stored`: the object in the stored status. It counts while a kind below has never been listed, because
    /// the API server fails.
    pub(crate) fn below(
        &self,
        object: &Object,
        verdict: &Verdict,
        rules: &[Arc<CompiledRule>],
        stored: Option<&ObjectStatus>,
    ) -> Below {
        let is_failing = |kind| self.kinds.get(&kind).is_some_and(|known| !known.listed && is_failing(known));
        let stored = stored.filter(|_| kinds_below([object.kind.clone()]).any(is_failing));
        let uid = object.uid();
        if &*object.kind.kind != "Service" && !object.is_latest_observed(verdict) {
            return Below::Nothing;
        }
        let (owner, label) = match &*object.kind.kind {
            "Service" => return self.below_service(object, verdict, stored),
            _ if stored.is_some() => return Self::stored_failure(verdict, stored),
            "Deployment" => {
                let sets = self.children("ReplicaSet.apps", object, uid);
                let revision = |object: &Object| {
                    let text = object.metadata()["annotations"]["deployment.kubernetes.io/revision"].as_str();
                    Some(text?.parse::<u64>().unwrap_or(0))
                };
                let number = |set: &Object| revision(set).unwrap_or(0);
                let newest = sets.iter().max_by_key(|set| (number(set), set.name.name.clone()));
                let is_current = |set: &&Rc<Object>| revision(object).is_none_or(|it| it == number(set));
                let Some(newest) = newest.filter(is_current) else { return Below::Nothing };
                (newest.uid().to_owned(), None)
            }
            "StatefulSet" => {
                let strategy = &object.value["spec"]["updateStrategy"];
                let revision = object.value["status"]["updateRevision"].as_str();
                let revision = revision.filter(|_| strategy["type"] != "OnDelete");
                (uid.to_owned(), revision.map(|revision| ("controller-revision-hash", revision)))
            }
            "DaemonSet" => {
                let generation =
                    object.metadata()["annotations"]["deprecated.daemonset.template.generation"].as_str();
                let count = |field: &str| object.value["status"][field].as_i64().unwrap_or(0);
                // By the label alone, a Pod that an undone rollout did not reach would look old.
                let desired = count("desiredNumberScheduled");
                let has_old_pods = desired == 0 || count("updatedNumberScheduled") < desired;
                let generation = generation.filter(|_| has_old_pods);
                (uid.to_owned(), generation.map(|generation| ("pod-template-generation", generation)))
            }
            "ReplicaSet" | "Job" => (uid.to_owned(), None),
            _ => return Below::Nothing,
        };
        let is_workload_state = matches!(verdict.state, State::Failed | State::InProgress | State::Suspended);
        if !is_workload_state {
            return Below::Nothing;
        }
        let has_status = self.readable("Pod").and_then(|known| known.served.as_ref()).map(|it| it.has_status);
        let mut pods: Vec<_> = self
            .children("Pod", object, &owner)
            .into_iter()
            .filter(|pod| !pod.is_deleting())
            .filter(|pod| {
                let Some((label, current)) = label else { return true };
                pod.metadata()["labels"][label].as_str().is_none_or(|own| own == current)
            })
            .map(|pod| (pod.verdict_by(rules, self.now, has_status), pod))
            .collect();
        pods.sort_by_key(|(verdict, pod)| (verdict.since, pod.name.name.clone()));
        self.worst(verdict, &pods)
    }

    fn worst(&self, workload: &Verdict, pods: &[(Verdict, Rc<Object>)]) -> Below {
        let has_lasted =
            |since: Option<Timestamp>| since.is_none_or(|since| since + FAILED_AFTER <= self.now);
        let is_finished =
            |pod: &Object| matches!(pod.value["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        let running = || pods.iter().filter(|(_, pod)| !is_finished(pod));
        let failed = || running().filter(|(verdict, _)| verdict.state == State::Failed);
        let permanent = failed()
            .find(|(verdict, _)| matches!(&*verdict.reason, "ErrImageNeverPull" | "InvalidImageName"));
        let may_fail = may_fail(workload);
        if let Some((verdict, pod)) = permanent.or_else(|| failed().next()) {
            let fails = may_fail && (permanent.is_some() || has_lasted(verdict.since));
            let pod = Rc::clone(pod);
            return if fails { Below::FailedPod(pod, verdict.clone()) } else { Below::Cause(pod) };
        }
        let unready = |verdict: &Verdict| matches!(verdict.state, State::InProgress | State::Unknown);
        let slow = running().find(|(verdict, _)| unready(verdict) && verdict.since.is_some());
        if let Some((verdict, pod)) = slow {
            return if has_lasted(verdict.since) { Below::Cause(Rc::clone(pod)) } else { Below::Nothing };
        }
        let mut finished = pods.iter().filter(|(it, pod)| it.state == State::Failed && is_finished(pod));
        match finished.next().filter(|_| workload.state == State::Failed) {
            Some((_, pod)) => Below::Cause(Rc::clone(pod)),
            None => Below::Nothing,
        }
    }

    fn stored_failure(workload: &Verdict, stored: Option<&ObjectStatus>) -> Below {
        let is_of_pod = |stored: &&ObjectStatus| {
            let cause = stored.cause.as_ref().and_then(|cause| cause.reason.as_ref());
            stored.status == State::Failed && cause.is_some() && cause == stored.reason.as_ref()
        };
        match stored.filter(is_of_pod).filter(|_| may_fail(workload)) {
            Some(stored) => Below::StoredFailure(stored.clone()),
            None => Below::Nothing,
        }
    }

    /// Whether all workloads are scaled to zero is decided by the caller.
    fn below_service(&self, service: &Object, verdict: &Verdict, stored: Option<&ObjectStatus>) -> Below {
        let selects = service.value["spec"]["selector"].as_object().is_some_and(|it| !it.is_empty());
        if !selects || verdict.state != State::Ready || verdict.rule.source == Source::User {
            return Below::Nothing;
        }
        let had_none = |stored: &ObjectStatus| {
            stored.status == State::InProgress && stored.reason.as_deref() == Some("NoReadyEndpoints")
        };
        let Some(slices) = self.readable("EndpointSlice.discovery.k8s.io") else {
            return if stored.is_some_and(had_none) { Below::NoReadyEndpoints } else { Below::Nothing };
        };
        let is_ready = |slice: &&Rc<Object>| {
            let endpoints = slice.value["endpoints"].as_array().into_iter().flatten();
            slice.name.namespace == service.name.namespace
                && slice.metadata()["labels"]["kubernetes.io/service-name"] == *service.name.name
                && endpoints.into_iter().any(|endpoint| endpoint["conditions"]["ready"] != Value::Bool(false))
        };
        if slices.objects.values().any(|slice| is_ready(&slice)) {
            Below::Nothing
        } else {
            Below::NoReadyEndpoints
        }
    }

    /// A kind that was listed counts, also while the API server fails.
    fn readable(&self, kind: &str) -> Option<&Known> {
        let known = self.kinds.get(&crate::objects::kind(kind)).copied()?;
        (known.listed && (known.unreadable.is_none() || is_failing(known))).then_some(known)
    }

    /// The objects of a kind that name an owner, in the namespace of `near`.
    fn children(&self, kind: &str, near: &Object, owner: &str) -> Vec<Rc<Object>> {
        let objects = self.readable(kind).into_iter().flat_map(|known| known.objects.values());
        let is_child = |object: &&Rc<Object>| {
            object.name.namespace == near.name.namespace && object.owners().any(|uid| uid == owner)
        };
        objects.filter(is_child).cloned().collect()
    }
}
