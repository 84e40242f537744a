//! Errors in a BindingPolicy that its schema does not find.

use bellwether_api::{BindingPolicy, BindingPolicySpec};
use bellwether_inspect::observe::plural_of_builtin;
use bellwether_model::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::application::{contradictions, error};
use crate::schema::FieldError;

pub(super) fn errors(object: &Object<'_>) -> Vec<FieldError> {
    let typed = serde_json::to_value(object.fields()).and_then(serde_json::from_value::<BindingPolicy>);
    match typed {
        Ok(policy) => errors_in(&policy.spec),
        Err(invalid) => vec![error("spec", invalid.to_string())],
    }
}

fn errors_in(spec: &BindingPolicySpec) -> Vec<FieldError> {
    let mut errors = in_selectors("spec.clusterSelectors", &spec.cluster_selectors);
    for (index, clause) in spec.downsync.iter().enumerate() {
        let field = format!("spec.downsync[{index}]");
        errors.extend(in_selectors(&format!("{field}.namespaceSelectors"), &clause.namespace_selectors));
        errors.extend(in_selectors(&format!("{field}.objectSelectors"), &clause.object_selectors));
        for (index, resource) in clause.resources.iter().enumerate() {
            if let Some(plural) = plural_of_builtin(resource) {
                let message = format!("{resource:?} is not a resource: use the plural, {plural}");
                errors.push(error(&format!("{field}.resources[{index}]"), message));
            }
        }
    }
    errors
}

fn in_selectors(field: &str, selectors: &[LabelSelector]) -> Vec<FieldError> {
    let selectors = selectors.iter().enumerate();
    selectors.flat_map(|(index, selector)| contradictions(&format!("{field}[{index}]"), selector)).collect()
}
