//! The oracle for Applications of `app.k8s.io`: computes a status from scratch.

use bellwether_engine::{Dialect, GroupKind, NamespacedName};
use bellwether_model::State;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::{
    below_oracle::{Below, is_scaled_to_zero, kinds_below},
    object::Object,
    oracle::{Oracle, selects},
};

/// All known Applications of `app.k8s.io`.
pub fn applications<'o>(oracle: &'o Oracle<'_>) -> impl Iterator<Item = (&'o NamespacedName, &'o Object)> {
    let known = oracle.kinds.get(&Dialect::AppK8sIo.kind());
    known.into_iter().flat_map(|known| &known.objects).map(|(name, object)| (name, &**object))
}

/// The kinds of `spec.componentKinds`, in order. Unlike users, tests always write the right group.
pub fn kinds_of_spec(app: &Object) -> Vec<GroupKind> {
    let kinds = app.value["spec"]["componentKinds"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kinds = kinds.map(|kind| GroupKind::new(&text(&kind["group"]), &text(&kind["kind"])));
    kinds.filter(|_| selector(app).is_some()).collect()
}

fn selector(app: &Object) -> Option<LabelSelector> {
    serde_json::from_value(app.value["spec"]["selector"].clone()).ok()?
}

/// Components, counts and conditions without messages. None while a kind is unknown or torn.
pub fn status(oracle: &Oracle<'_>, app: &Object) -> Option<Value> {
    let (mut components, mut has_errors) = (Vec::new(), false);
    let rules = oracle.rules();
    for kind in kinds_below(kinds_of_spec(app)) {
        oracle.kinds.get(&kind).filter(|known| known.is_known())?;
    }
    let (mut services, mut workloads) = (Vec::new(), Vec::new());
    for kind in kinds_of_spec(app) {
        let known = oracle.kinds.get(&kind).filter(|known| known.is_known() && !known.is_torn())?;
        has_errors |= known.unreadable.is_some() || oracle.are_rules_unreadable();
        let has_status = known.served.as_ref().map(|served| served.has_status);
        let mut objects: Vec<_> = known.objects.values().filter(|object| belongs(app, object)).collect();
        objects.sort_by_key(|object| object.name.name.clone());
        for object in objects {
            let verdict = object.verdict_by(&rules, oracle.now, has_status);
            let is_readable = known.unreadable.is_none();
            let state = if is_readable { verdict.state } else { State::Unknown };
            workloads.extend(is_scaled_to_zero(&kind, &verdict));
            // A Pod below makes it Failed, which counts as in progress here, as it was before.
            if is_readable && matches!(oracle.below(object, &verdict, &rules, None), Below::NoReadyEndpoints)
            {
                services.push(components.len());
            }
            let status = match state {
                State::Suspended if verdict.blocks => "InProgress",
                State::Ready | State::Suspended => "Ready",
                State::Unknown => "Unknown",
                _ => "InProgress",
            };
            components.push(json!([*kind.group, *kind.kind, *object.name.name, status]));
        }
    }
    if workloads.is_empty() || workloads.contains(&false) {
        for service in services {
            components[service][3] = json!("InProgress");
        }
    }
    let of = |status: &str| components.iter().filter(|component| component[3] == status).count();
    let total = components.len();
    let ready = match (has_errors, of("InProgress"), of("Unknown")) {
        (false, 1.., _) => "False ComponentsNotReady",
        (false, 0, 0) if total > 0 => "True ComponentsReady",
        _ => "Unknown ComponentsReadyUnknown",
    };
    let error = if has_errors { "True ErrorSeen" } else { "False NoError" };
    Some(json!({
        "observedGeneration": app.metadata()["generation"], "componentsReady": format!("{}/{total}", of("Ready")),
        "components": components, "Ready": ready, "Error": error,
    }))
}

/// A stored status in the form of [`status`].
pub fn shape(status: &Value) -> Value {
    let condition = |kind: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let condition = conditions.find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    };
    let components = status["components"].as_array().into_iter().flatten();
    let component =
        |it: &Value| json!([it["group"].as_str().unwrap_or_default(), it["kind"], it["name"], it["status"]]);
    json!({
        "observedGeneration": status["observedGeneration"], "componentsReady": status["componentsReady"],
        "components": components.map(component).collect::<Vec<_>>(),
        "Ready": condition("Ready"), "Error": condition("Error"),
    })
}

/// A cluster-scoped object is a member of every Application whose selector matches.
fn belongs(app: &Object, object: &Object) -> bool {
    let namespace = &object.name.namespace;
    let is_near = *namespace == app.name.namespace || namespace.is_empty();
    let is_selected = selector(app).is_some_and(|selector| selects(&selector, &object.metadata()["labels"]));
    is_near && is_selected && !object.is_check() && object.uid() != app.uid()
}
