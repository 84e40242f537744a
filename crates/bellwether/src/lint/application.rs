//! What is wrong with an Application that its schema allows.

use bellwether_api::{Application, ApplicationSpec, GROUP};
use bellwether_inspect::observe::is_of_the_cluster;
use bellwether_model::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::schema::Fault;

/// All that is wrong with an Application whose shape is right.
pub(super) fn faults(object: &Object<'_>) -> Vec<Fault> {
    let typed = serde_json::to_value(object.fields()).and_then(serde_json::from_value::<Application>);
    match typed {
        Ok(application) => faults_of(object.name(), &application.spec),
        Err(error) => vec![fault("spec", error.to_string())],
    }
}

fn faults_of(name: &str, spec: &ApplicationSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (index, _) in spec.dependencies.iter().enumerate().filter(|(_, dependency)| *dependency == name) {
        let field = format!("spec.dependencies[{index}]");
        faults.push(fault(&field, "it would depend on itself: leave it out"));
    }
    for (key, component) in &spec.components {
        let field = format!("spec.components.{key}");
        if component.group == GROUP
            && component.kind == "Application"
            && component.name.as_deref().unwrap_or(key) == name
        {
            faults.push(fault(&field, "it would be a component of itself: leave it out"));
        }
        faults.extend(in_no_namespace(&field, &component.group, &component.kind));
    }
    for (index, kind) in spec.component_kinds.iter().enumerate() {
        let field = format!("spec.componentKinds[{index}]");
        faults.extend(in_no_namespace(&field, &kind.group, &kind.kind));
    }
    faults.extend(contradictions("spec.selector", &spec.selector));
    faults
}

fn in_no_namespace(field: &str, group: &str, kind: &str) -> Option<Fault> {
    is_of_the_cluster(group, kind).then(|| {
        let text = format!(
            "a {kind} is in no namespace, and an Application has members in its own only: leave it out"
        );
        fault(&format!("{field}.kind"), text)
    })
}

/// Requirements that no object meets which has the labels. Then the selector matches nothing, whatever there is.
pub(super) fn contradictions(place: &str, selector: &LabelSelector) -> Vec<Fault> {
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
    let mut faults = Vec::new();
    for (key, value) in labels {
        for (index, requirement) in expressions.clone() {
            if requirement.key == *key && contradicts(value, requirement) {
                let field = format!("{place}.matchExpressions[{index}]");
                let text =
                    format!("no object meets it and has {key}={value} of matchLabels: give one of the two");
                faults.push(fault(&field, text));
            }
        }
    }
    faults
}

pub(super) fn fault(field: &str, text: impl Into<String>) -> Fault {
    Fault { field: field.to_owned(), text: text.into() }
}
