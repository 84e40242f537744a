//! Kinds of which nothing has to happen: they are ready as soon as they exist.

use super::{Judge, KindRule};
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
    KindRule {
        id,
        says: "Ready as soon as it exists: nothing has to happen to it.",
        reads: &[],
        judge: Judge::By(judge),
    }
}

fn judge(_: &Reader<'_>) -> Verdict {
    Verdict::no_status_expected()
}

/// A kind of an operator that has a status only in some versions: what it says counts where there is one.
pub(super) const fn declarative_at_first(id: &'static str) -> KindRule {
    KindRule {
        id,
        says: "Ready as soon as it exists, unless it has a status: then what the generic rules say.",
        reads: generic::READS,
        judge: Judge::By(unless_it_has_a_status),
    }
}

/// What the generic rules say of its status, if it has one.
pub(super) fn unless_it_has_a_status(o: &Reader<'_>) -> Verdict {
    let mut status = o.at("status").fields();
    let says_nothing = status.next().is_none();
    generic::judge(o).filter(|_| !says_nothing).unwrap_or_else(Verdict::no_status_expected)
}
