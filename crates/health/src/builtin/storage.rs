//! Volumes: PersistentVolumeClaim, PersistentVolume.

use super::{Judge, KindRule};
use crate::{
    read::{Condition, Reader},
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "PersistentVolumeClaim",
        says: "Ready when bound. Failed when its volume is lost or cannot be resized. Pending is in progress: a claim may \
               wait for its first consumer.",
        reads: &["spec.storageClassName", "spec.volumeName", "status.phase", "status.conditions"],
        judge: Judge::By(claim),
    },
    KindRule {
        id: "PersistentVolume",
        says: "Ready when available, bound, or kept on purpose after its claim has gone. Failed when it could not be \
               reclaimed.",
        reads: &[
            "spec.persistentVolumeReclaimPolicy",
            "status.phase",
            "status.reason",
            "status.message",
            "status.lastPhaseTransitionTime",
        ],
        judge: Judge::By(volume),
    },
    KindRule {
        id: "storage.k8s.io/VolumeAttachment",
        says: "Ready when attached. Failed when it could not be attached or detached.",
        reads: &["status"],
        judge: Judge::By(attachment),
    },
    KindRule {
        id: "resource.k8s.io/ResourceClaim",
        says: "Ready when devices are allocated to it. Before that it waits for its consumer.",
        reads: &["status.allocation.nodeSelector", "status.allocation.devices.*"],
        judge: Judge::By(resource_claim),
    },
];

fn attachment(o: &Reader<'_>) -> Verdict {
    for (error, reason) in [("status.attachError", "AttachFailed"), ("status.detachError", "DetachFailed")] {
        if o.has(error) {
            let error = o.at(error);
            return Verdict::failed(reason, error.text("message").to_owned()).since(error.time("time"));
        }
    }
    if o.flag("status.attached") {
        return Verdict::ready("Attached", "it is attached");
    }
    Verdict::in_progress("NotAttached", "it is not attached yet")
}

fn resource_claim(o: &Reader<'_>) -> Verdict {
    if o.has("status.allocation") {
        return Verdict::ready("Allocated", "devices are allocated to it");
    }
    Verdict::in_progress("NotAllocated", "it waits for its consumer")
}

fn claim(o: &Reader<'_>) -> Verdict {
    let volume = o.text("spec.volumeName");
    match o.text("status.phase") {
        "Bound" => {
            let cannot_resize = ["ControllerResizeError", "NodeResizeError"]
                .into_iter()
                .find_map(|kind| o.condition(kind).filter(Condition::is_true));
            match cannot_resize {
                Some(error) => {
                    Verdict::failed(error.kind.to_owned(), format!("it cannot be resized: {}", error.says()))
                        .since(error.since())
                }
                None => Verdict::ready("Bound", format!("bound to volume {volume}")),
            }
        }
        "Lost" => Verdict::failed("Lost", format!("its volume {volume} is lost")),
        "Pending" => Verdict::in_progress("Pending", waits_for(o)),
        "" => Verdict::in_progress("NotObserved", waits_for(o)),
        phase => Verdict::unknown("UnknownPhase", format!("no rule knows its phase {phase}")),
    }
}

fn waits_for(o: &Reader<'_>) -> String {
    match o.text("spec.storageClassName") {
        "" => "it waits for a volume".to_owned(),
        class => format!("it waits for a volume of storage class {class}"),
    }
}

fn volume(o: &Reader<'_>) -> Verdict {
    let verdict = match o.text("status.phase") {
        "Available" => Verdict::ready("Available", "free to be claimed"),
        "Bound" => Verdict::ready("Bound", "bound to its claim"),
        "Released" if o.text("spec.persistentVolumeReclaimPolicy") == "Retain" => {
            Verdict::ready("Retained", "its claim has gone, and it is kept on purpose")
        }
        "Released" => Verdict::in_progress("Released", "its claim has gone, and it is about to be reclaimed"),
        "Failed" => {
            let message = match o.text("status.message") {
                "" => "it could not be reclaimed".to_owned(),
                message => format!("it could not be reclaimed: {message}"),
            };
            Verdict::failed("ReclaimFailed", message)
        }
        "Pending" | "" => Verdict::in_progress("Pending", "it is not available yet"),
        phase => Verdict::unknown("UnknownPhase", format!("no rule knows its phase {phase}")),
    };
    verdict.since(o.time("status.lastPhaseTransitionTime"))
}
