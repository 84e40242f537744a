//! Objects of KubeStellar, whose kinds have the names of ours.

use bellwether_api::{GROUP, VERSION};
use bellwether_input::ObjectLocation;
use bellwether_model::Object;

use crate::rules::{or_unnamed, place};

const KUBESTELLAR: &str = "control.kubestellar.io";

/// What to change so that Bellwether reads an object of KubeStellar; `None` for any other object.
pub(crate) fn of_kubestellar(object: &Object<'_>, location: &ObjectLocation<'_>) -> Option<String> {
    let is_ours = matches!(object.kind(), "StatusCollector" | "BindingPolicy" | "CombinedStatus");
    (is_ours && object.group() == KUBESTELLAR).then(|| {
        let (kind, name) = (object.kind(), or_unnamed(object.name()));
        let place = place(&location.file(), Some(location.lines().first()));
        format!("{place}: {kind} {name} is of {KUBESTELLAR}: change apiVersion to {GROUP}/{VERSION}")
    })
}
