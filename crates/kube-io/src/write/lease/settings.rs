//! Which Lease it is, and what is written into it.

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

/// Which Lease, as whom, and how patient.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// The namespace of the Lease. It must exist.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// This process, unlike any other one.
    pub identity: String,
    /// How long a leader may stay silent before another takes over; at most ten minutes. The Lease has it in
    /// whole seconds, rounded up.
    pub duration: Duration,
    /// How long a leader that cannot renew goes on. At most two thirds of the duration.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed, or looked at. At most a quarter of the renew deadline: one failure is no reason to
    /// step down.
    pub retry: Duration,
}

impl LeaseSettings {
    /// The Lease of this name, as this process, with the times that most controllers have.
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
    /// The Lease as it is after a step: what is not ours in it stays.
    pub(super) fn claim(&self, lease: Option<Lease>, step: LeaseStep, now: Timestamp) -> Lease {
        let mut lease = lease.unwrap_or_default();
        lease.metadata.name = Some(self.name.clone());
        let spec = lease.spec.get_or_insert_default();
        if step == LeaseStep::Take {
            spec.acquire_time = Some(MicroTime(now));
            spec.lease_transitions =
                Some(spec.lease_transitions.map_or(0, |before| before.saturating_add(1)));
        }
        let whole = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        spec.lease_duration_seconds = Some(i32::try_from(whole.max(1)).unwrap_or(i32::MAX));
        spec.holder_identity = Some(self.identity.clone());
        spec.renew_time = Some(MicroTime(now));
        lease
    }

    /// What to do about an error.
    pub(super) fn explain(&self, error: &CallError) -> String {
        let namespace = &self.namespace;
        match error {
            CallError::Api(error) if error.class == ErrorClass::Forbidden => format!(
                "Bellwether may not use Leases in namespace {namespace}: grant it the verbs get, create and update on \
                 leases in the API group coordination.k8s.io"
            ),
            CallError::Api(error) if error.class == ErrorClass::NotFound => {
                format!("there is no namespace {namespace}: create it")
            }
            other => other.to_string(),
        }
    }

    /// Where Leases are created.
    pub(super) fn all_path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    /// Where the Lease is.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.all_path(), self.name)
    }

    /// As people look for it.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// What a Lease says about who leads.
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
    #[case::the_first_of_all(None, LeaseStep::Take, json!({
        "holderIdentity": "a", "leaseDurationSeconds": 2, "leaseTransitions": 0, "acquireTime": NOW, "renewTime": NOW,
    }))]
    #[case::from_another(
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
    fn a_step_is_written(#[case] before: Option<Value>, #[case] step: LeaseStep, #[case] after: Value) {
        let settings = LeaseSettings {
            duration: Duration::from_millis(1500),
            ..LeaseSettings::new("shop", "bellwether", "a")
        };
        let before = before.as_ref().map(lease);
        let claimed = settings.claim(before.clone(), step, NOW.parse().unwrap());
        assert_eq!(serde_json::to_value(&claimed).unwrap()["spec"], after);
        if let Some(before) = before {
            assert_eq!(claimed.metadata, before.metadata, "the version that it follows stays in it");
        }
    }

    #[rstest]
    #[case::held(json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": NOW}), Some("a"), 15)]
    #[case::released(json!({"holderIdentity": "", "leaseDurationSeconds": 15}), None, 15)]
    #[case::made_by_hand(json!({}), None, 0)]
    #[case::nonsense(json!({"holderIdentity": "a", "leaseDurationSeconds": -5}), Some("a"), 0)]
    fn a_lease_is_read(#[case] spec: Value, #[case] holder: Option<&str>, #[case] seconds: u64) {
        let record = record(&lease(&spec));
        assert_eq!((record.holder.as_deref(), record.duration), (holder, Duration::from_secs(seconds)));
    }
}
