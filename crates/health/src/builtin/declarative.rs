//! Kinds that no controller reports on: `Ready` as soon as they exist.

use super::{Evaluator, KindRule};
use crate::{generic, read::Reader, verdict::Verdict};

pub(super) const RULES: &[KindRule] = &[
    declarative("ConfigMap"),
    declarative("Secret"),
    declarative("ServiceAccount"),
    declarative("Endpoints"),
    declarative("LimitRange"),
    declarative("ResourceQuota"),
    declarative("Event"),
    declarative("PodTemplate"),
    declarative("apps/ControllerRevision"),
    declarative("admissionregistration.k8s.io/ValidatingAdmissionPolicy"),
    declarative("certificates.k8s.io/ClusterTrustBundle"),
    declarative("resource.k8s.io/ResourceClaimTemplate"),
    declarative("admissionregistration.k8s.io/MutatingWebhookConfiguration"),
    declarative("admissionregistration.k8s.io/ValidatingWebhookConfiguration"),
    declarative("admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding"),
    declarative("admissionregistration.k8s.io/MutatingAdmissionPolicy"),
    declarative("admissionregistration.k8s.io/MutatingAdmissionPolicyBinding"),
    declarative("coordination.k8s.io/Lease"),
    declarative("discovery.k8s.io/EndpointSlice"),
    declarative("events.k8s.io/Event"),
    declarative("networking.k8s.io/IngressClass"),
    declarative("networking.k8s.io/NetworkPolicy"),
    declarative("networking.k8s.io/IPAddress"),
    declarative("node.k8s.io/RuntimeClass"),
    declarative("rbac.authorization.k8s.io/ClusterRole"),
    declarative("rbac.authorization.k8s.io/ClusterRoleBinding"),
    declarative("rbac.authorization.k8s.io/Role"),
    declarative("rbac.authorization.k8s.io/RoleBinding"),
    declarative("resource.k8s.io/DeviceClass"),
    declarative("resource.k8s.io/ResourceSlice"),
    declarative("scheduling.k8s.io/PriorityClass"),
    declarative("storage.k8s.io/CSIDriver"),
    declarative("storage.k8s.io/CSINode"),
    declarative("storage.k8s.io/CSIStorageCapacity"),
    declarative("storage.k8s.io/StorageClass"),
    declarative("storage.k8s.io/VolumeAttributesClass"),
    declarative("gateway.networking.k8s.io/ReferenceGrant"),
];

pub(super) const fn declarative(id: &'static str) -> KindRule {
    KindRule { id, description: "Always `Ready`.", reads: &[], evaluator: Evaluator::Function(always_ready) }
}

fn always_ready(_: &Reader<'_>) -> Verdict {
    Verdict::no_status_expected()
}

/// A kind whose operator reports a status only in some versions.
pub(super) const fn declarative_unless_status(id: &'static str) -> KindRule {
    KindRule {
        id,
        description: "`Ready` without a status; otherwise the generic rules apply.",
        reads: generic::READS,
        evaluator: Evaluator::Function(ready_unless_status),
    }
}

/// The generic rules, if the status has any field.
pub(super) fn ready_unless_status(o: &Reader<'_>) -> Verdict {
    let mut status = o.at("status").fields();
    let is_empty = status.next().is_none();
    generic::evaluate(o).filter(|_| !is_empty).unwrap_or_else(Verdict::no_status_expected)
}
