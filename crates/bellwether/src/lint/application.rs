//! Errors in an Application that its schema does not find.

use bellwether_api::{Application, ApplicationSpec, GROUP};
use bellwether_inspect::observe::is_of_the_cluster;
use bellwether_model::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::schema::FieldError;

pub(super) fn errors(object: &Object<'_>) -> Vec<FieldError> {
    let typed = serde_json::to_value(object.fields()).and_then(serde_json::from_value::<Application>);
    match typed {
        Ok(application) => errors_in(object.name(), &application.spec),
        Err(invalid) => vec![error("spec", invalid.to_string())],
    }
}

fn errors_in(name: &str, spec: &ApplicationSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, _) in spec.dependencies.iter().enumerate().filter(|(_, dependency)| *dependency == name) {
        let field = format!("spec.dependencies[{index}]");
        errors.push(error(&field, "an Application cannot depend on itself: remove this entry"));
    }
    for (key, component) in &spec.components {
        let field = format!("spec.components.{key}");
        if component.group == GROUP
            && component.kind == "Application"
            && component.name.as_deref().unwrap_or(key) == name
        {
            errors.push(error(&field, "an Application cannot be a component of itself: remove this entry"));
        }
        errors.extend(cluster_scoped(&field, &component.group, &component.kind));
    }
    for (index, kind) in spec.component_kinds.iter().enumerate() {
        let field = format!("spec.componentKinds[{index}]");
        errors.extend(cluster_scoped(&field, &kind.group, &kind.kind));
    }
    errors.extend(contradictions("spec.selector", &spec.selector));
    errors
}

fn cluster_scoped(field: &str, group: &str, kind: &str) -> Option<FieldError> {
    is_of_the_cluster(group, kind).then(|| {
        let message = format!("{kind} is cluster-scoped and cannot be a member: remove this entry");
        error(&format!("{field}.kind"), message)
    })
}

/// Requirements in matchExpressions that contradict matchLabels, so that the selector matches no object.
pub(super) fn contradictions(place: &str, selector: &LabelSelector) -> Vec<FieldError> {
    let labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten().enumerate();
    let contradicts = |value: &String, requirement: &LabelSelectorRequirement| {
        let is_listed = requirement.values.iter().flatten().any(|listed| listed == value);
        match requirement.operator.as_str() {
            "In" => !is_listed,
            "NotIn" => is_listed,
            "DoesNotExist" => true,
            _ => false,
        }
    };
    let mut errors = Vec::new();
    for (key, value) in labels {
        for (index, requirement) in expressions.clone() {
            if requirement.key == *key && contradicts(value, requirement) {
                let field = format!("{place}.matchExpressions[{index}]");
                let message = format!("contradicts {key}={value} in matchLabels: remove one of them");
                errors.push(error(&field, message));
            }
        }
    }
    errors
}

pub(super) fn error(field: &str, message: impl Into<String>) -> FieldError {
    FieldError { field: field.to_owned(), message: message.into() }
}
