//! The settings of the election, and the content of the Lease.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

use bellwether_wire::{
    ErrorClass,
    election::{LeaseStep, Record},
};

use crate::write::call::CallError;

#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Must exist.
    pub namespace: String,
    pub name: String,
    /// Unique for each process.
    pub identity: String,
    /// Other processes take over if the Lease was not renewed for this time; at most ten minutes. The Lease
    /// has it in whole seconds, rounded up.
    pub duration: Duration,
    /// A leader steps down if it could not renew the Lease for this time; at most two thirds of the duration.
    pub renew_deadline: Duration,
    /// The interval of attempts; at most a quarter of the renew deadline, so that one failure does not end a
    /// term.
    pub retry: Duration,
}

impl LeaseSettings {
    /// With the default times of kube-controller-manager.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl LeaseSettings {
    /// The Lease to write for a step. Fields of other writers stay.
    pub(super) fn lease_to_write(&self, lease: Option<Lease>, step: LeaseStep, now: Timestamp) -> Lease {
        let mut lease = lease.unwrap_or_default();
        lease.metadata.name = Some(self.name.clone());
        let spec = lease.spec.get_or_insert_default();
        if step == LeaseStep::Take {
            spec.acquire_time = Some(MicroTime(now));
            spec.lease_transitions =
                Some(spec.lease_transitions.map_or(0, |before| before.saturating_add(1)));
        }
        let seconds = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        spec.lease_duration_seconds = Some(i32::try_from(seconds.max(1)).unwrap_or(i32::MAX));
        spec.holder_identity = Some(self.identity.clone());
        spec.renew_time = Some(MicroTime(now));
        lease
    }

    /// The error message, with the way out where it is known.
    pub(super) fn explain(&self, error: &CallError) -> String {
        let namespace = &self.namespace;
        match error {
            CallError::Api(error) if error.class == ErrorClass::Forbidden => format!(
                "cannot get, create or update leases in namespace {namespace}: forbidden. Grant Bellwether the verbs get, \
                 create and update on leases in the API group coordination.k8s.io"
            ),
            CallError::Api(error) if error.class == ErrorClass::NotFound => {
                format!("namespace {namespace} not found. Run: kubectl create namespace {namespace}")
            }
            other => other.to_string(),
        }
    }

    /// The path to create Leases.
    pub(super) fn collection_path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection_path(), self.name)
    }

    /// `NAMESPACE/NAME`.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

pub(super) fn record(lease: &Lease) -> Record {
    let LeaseSpec { holder_identity, lease_duration_seconds, acquire_time, renew_time, .. } =
        lease.spec.clone().unwrap_or_default();
    let seconds = lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Record {
        holder: holder_identity.filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(seconds.unwrap_or_default()),
        acquired: acquire_time.map(|time| time.0),
        renewed: renew_time.map(|time| time.0),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-14T10:00:00.123456Z";

    fn lease(spec: &Value) -> Lease {
        serde_json::from_value(json!({
            "metadata": { "name": "bellwether", "uid": "u", "resourceVersion": "7", "labels": { "team": "a" } },
            "spec": spec,
        }))
        .unwrap()
    }

    #[rstest]
    #[case::new(None, LeaseStep::Take, json!({
        "holderIdentity": "a", "leaseDurationSeconds": 2, "leaseTransitions": 0, "acquireTime": NOW, "renewTime": NOW,
    }))]
    #[case::taken_from_another(
        Some(json!({
            "holderIdentity": "b", "leaseDurationSeconds": 60, "leaseTransitions": 4,
            "acquireTime": "2026-11-14T09:00:00.000000Z", "renewTime": "2026-11-14T09:59:00.000000Z",
        })),
        LeaseStep::Take,
        json!({
            "holderIdentity": "a", "leaseDurationSeconds": 2, "leaseTransitions": 5, "acquireTime": NOW,
            "renewTime": NOW,
        }),
    )]
    #[case::renewed(
        Some(json!({
            "holderIdentity": "a", "leaseDurationSeconds": 2, "leaseTransitions": 5, "preferredHolder": "c",
            "acquireTime": "2026-11-14T09:00:00.000000Z", "renewTime": "2026-11-14T09:59:00.000000Z",
        })),
        LeaseStep::Renew,
        json!({
            "holderIdentity": "a", "leaseDurationSeconds": 2, "leaseTransitions": 5, "preferredHolder": "c",
            "acquireTime": "2026-11-14T09:00:00.000000Z", "renewTime": NOW,
        }),
    )]
    fn each_step_has_its_lease(#[case] before: Option<Value>, #[case] step: LeaseStep, #[case] after: Value) {
        let settings = LeaseSettings {
            duration: Duration::from_millis(1500),
            ..LeaseSettings::new("shop", "bellwether", "a")
        };
        let before = before.as_ref().map(lease);
        let claimed = settings.lease_to_write(before.clone(), step, NOW.parse().unwrap());
        assert_eq!(serde_json::to_value(&claimed).unwrap()["spec"], after);
        if let Some(before) = before {
            assert_eq!(claimed.metadata, before.metadata, "the resourceVersion guards the write");
        }
    }

    #[rstest]
    #[case::held(json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": NOW}), Some("a"), 15)]
    #[case::released(json!({"holderIdentity": "", "leaseDurationSeconds": 15}), None, 15)]
    #[case::empty(json!({}), None, 0)]
    #[case::negative_duration(json!({"holderIdentity": "a", "leaseDurationSeconds": -5}), Some("a"), 0)]
    fn each_lease_has_its_record(#[case] spec: Value, #[case] holder: Option<&str>, #[case] seconds: u64) {
        let record = record(&lease(&spec));
        assert_eq!((record.holder.as_deref(), record.duration), (holder, Duration::from_secs(seconds)));
    }
}
