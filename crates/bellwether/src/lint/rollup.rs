//! What is wrong with a Rollup that its schema allows.

use bellwether_api::{Rollup, RollupSpec};
use bellwether_engine::rollup_mistakes;
use bellwether_inspect::observe::is_of_the_cluster;
use bellwether_model::Object;

use super::application::{contradictions, fault};
use crate::schema::Fault;

/// All that is wrong with a Rollup whose shape is right.
pub(super) fn faults(object: &Object<'_>) -> Vec<Fault> {
    let typed = serde_json::to_value(object.fields()).and_then(serde_json::from_value::<Rollup>);
    match typed {
        Ok(rollup) => faults_of(object.name(), &rollup.spec),
        Err(error) => vec![fault("spec", error.to_string())],
    }
}

fn faults_of(name: &str, spec: &RollupSpec) -> Vec<Fault> {
    let mistakes = rollup_mistakes(name, spec).into_iter().map(|(field, text)| fault(&field, text));
    let mut faults: Vec<_> = mistakes.collect();
    for (index, component) in spec.components.iter().enumerate() {
        let field = format!("spec.components[{index}]");
        if component.namespace.is_some() && is_of_the_cluster(&component.group, &component.kind) {
            let text = format!("a {} is in no namespace: leave it out", component.kind);
            faults.push(fault(&format!("{field}.namespace"), text));
        }
        if let Some(selector) = &component.selector {
            faults.extend(contradictions(&format!("{field}.selector"), selector));
        }
    }
    faults
}
