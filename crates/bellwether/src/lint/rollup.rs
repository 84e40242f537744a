//! Errors in a Rollup that its schema does not find.

use bellwether_api::{Rollup, RollupSpec};
use bellwether_engine::invalid_components;
use bellwether_inspect::observe::is_of_the_cluster;
use bellwether_model::Object;

use super::application::{contradictions, error};
use crate::schema::FieldError;

pub(super) fn errors(object: &Object<'_>) -> Vec<FieldError> {
    let typed = serde_json::to_value(object.fields()).and_then(serde_json::from_value::<Rollup>);
    match typed {
        Ok(rollup) => errors_in(object.name(), &rollup.spec),
        Err(invalid) => vec![error("spec", invalid.to_string())],
    }
}

fn errors_in(name: &str, spec: &RollupSpec) -> Vec<FieldError> {
    let errors = invalid_components(name, spec).into_iter().map(|(field, message)| error(&field, message));
    let mut errors: Vec<_> = errors.collect();
    for (index, component) in spec.components.iter().enumerate() {
        let field = format!("spec.components[{index}]");
        if component.namespace.is_some() && is_of_the_cluster(&component.group, &component.kind) {
            let message = format!("{} is cluster-scoped: remove the namespace", component.kind);
            errors.push(error(&format!("{field}.namespace"), message));
        }
        if let Some(selector) = &component.selector {
            errors.extend(contradictions(&format!("{field}.selector"), selector));
        }
    }
    errors
}
