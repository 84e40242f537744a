//! PersistentVolumeClaim, PersistentVolume, VolumeAttachment, ResourceClaim.

use super::{Evaluator, KindRule};
use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "PersistentVolumeClaim",
        description: "`Failed` if the volume is lost or a resize failed; `Ready` if bound; otherwise \
                      `InProgress`, also while waiting for the first consumer.",
        reads: &["spec.storageClassName", "spec.volumeName", "status.phase", "status.conditions"],
        evaluator: Evaluator::Function(claim),
    },
    KindRule {
        id: "PersistentVolume",
        description: "`Ready` if available, bound, or released with reclaim policy Retain; `Failed` if \
                      reclaim failed; otherwise `InProgress`.",
        reads: &[
            "spec.persistentVolumeReclaimPolicy",
            "status.phase",
            "status.reason",
            "status.message",
            "status.lastPhaseTransitionTime",
        ],
        evaluator: Evaluator::Function(volume),
    },
    KindRule {
        id: "storage.k8s.io/VolumeAttachment",
        description: "`Failed` on an attach or detach error; `Ready` if attached; otherwise `InProgress`.",
        reads: &["status"],
        evaluator: Evaluator::Function(attachment),
    },
    KindRule {
        id: "resource.k8s.io/ResourceClaim",
        description: "`Ready` if devices are allocated; otherwise `InProgress`.",
        reads: &["status.allocation.nodeSelector", "status.allocation.devices.*"],
        evaluator: Evaluator::Function(resource_claim),
    },
];

fn attachment(o: &Reader<'_>) -> Verdict {
    for (error, reason) in
        [("status.attachError", reasons::ATTACH_FAILED), ("status.detachError", reasons::DETACH_FAILED)]
    {
        if o.has(error) {
            let error = o.at(error);
            return Verdict::failed(reason, error.text("message").to_owned()).since(error.time("time"));
        }
    }
    if o.flag("status.attached") {
        return Verdict::ready(reasons::ATTACHED, "attached");
    }
    Verdict::in_progress(reasons::NOT_ATTACHED, "not attached")
}

fn resource_claim(o: &Reader<'_>) -> Verdict {
    if o.has("status.allocation") {
        return Verdict::ready(reasons::ALLOCATED, "devices allocated");
    }
    Verdict::in_progress(reasons::NOT_ALLOCATED, "no devices allocated")
}

fn claim(o: &Reader<'_>) -> Verdict {
    let volume = o.text("spec.volumeName");
    match o.text("status.phase") {
        "Bound" => {
            let resize_error = ["ControllerResizeError", "NodeResizeError"]
                .into_iter()
                .find_map(|kind| o.condition(kind).filter(Condition::is_true));
            match resize_error {
                Some(error) => {
                    Verdict::failed(error.kind.to_owned(), error.message_or_reason()).since(error.since())
                }
                None if volume.is_empty() => Verdict::ready(reasons::BOUND, "bound"),
                None => Verdict::ready(reasons::BOUND, format!("bound to {volume}")),
            }
        }
        "Lost" if volume.is_empty() => Verdict::failed(reasons::LOST, "volume lost"),
        "Lost" => Verdict::failed(reasons::LOST, format!("volume {volume} lost")),
        "Pending" => Verdict::in_progress(reasons::PENDING, pending(o)),
        "" => Verdict::not_observed(),
        phase => Verdict::unrecognized_phase(phase),
    }
}

fn pending(o: &Reader<'_>) -> String {
    match o.text("spec.storageClassName") {
        "" => "pending".to_owned(),
        class => format!("pending (storage class {class})"),
    }
}

fn volume(o: &Reader<'_>) -> Verdict {
    let verdict = match o.text("status.phase") {
        "Available" => Verdict::ready(reasons::AVAILABLE, "available"),
        "Bound" => Verdict::ready(reasons::BOUND, "bound"),
        "Released" if o.text("spec.persistentVolumeReclaimPolicy") == "Retain" => {
            Verdict::ready(reasons::RETAINED, "released, reclaim policy Retain")
        }
        "Released" => Verdict::in_progress(reasons::RELEASED, "released, not reclaimed yet"),
        "Failed" => {
            let message = match o.text("status.message") {
                "" => "reclaim failed",
                message => message,
            };
            Verdict::failed(reasons::RECLAIM_FAILED, message.to_owned())
        }
        "Pending" | "" => Verdict::in_progress(reasons::PENDING, "pending"),
        phase => Verdict::unrecognized_phase(phase),
    };
    verdict.since(o.time("status.lastPhaseTransitionTime"))
}
