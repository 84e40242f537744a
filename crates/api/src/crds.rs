//! The CRDs of all kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;

use crate::{Application, BindingPolicy, CombinedStatus, HealthRule, Rollup, StatusCollector};

/// The CRD of every kind, ready to be applied.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        Application::crd(),
        BindingPolicy::crd(),
        CombinedStatus::crd(),
        HealthRule::crd(),
        Rollup::crd(),
        StatusCollector::crd(),
    ];
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            polish(schema);
        }
    }
    crds
}

/// Adjusts what the derive macros cannot express.
fn polish(schema: &mut JSONSchemaProps) {
    // An absent field means the same as null, so neither rules nor clients have to handle null. If a user
    // writes null, the API server drops it, or rejects it in a server-side apply.
    schema.nullable = None;
    // `kubectl explain` wraps lines itself.
    schema.description = schema.description.take().map(|text| join_lines(&text));

    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(polish);
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(items)) => polish(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(polish),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = schema.additional_properties.as_mut() {
        polish(values);
    }
}

/// Joins the lines of each paragraph.
fn join_lines(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` with every schema in a CRD and its path.
    fn walk(path: &str, schema: &JSONSchemaProps, look: &mut impl FnMut(&str, &JSONSchemaProps)) {
        look(path, schema);
        for (name, property) in schema.properties.iter().flatten() {
            walk(&format!("{path}.{name}"), property, look);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            walk(&format!("{path}[]"), items, look);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
            walk(&format!("{path}{{}}"), values, look);
        }
    }

    fn walk_all(mut look: impl FnMut(&str, &JSONSchemaProps)) {
        for crd in crds() {
            for version in &crd.spec.versions {
                let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
                walk(&crd.spec.names.kind, schema.expect("a schema"), &mut look);
            }
        }
    }

    #[test]
    fn every_field_is_described() {
        walk_all(|path, schema| {
            for (name, property) in schema.properties.iter().flatten() {
                let described = property.description.as_deref().is_some_and(|text| text.ends_with('.'));
                assert!(described, "{path}.{name} has no description");
            }
        });
    }

    #[test]
    fn every_rule_has_a_message() {
        walk_all(|path, schema| {
            for rule in schema.x_kubernetes_validations.iter().flatten() {
                assert!(rule.message.is_some(), "{path}: no message for {:?}", rule.rule);
            }
        });
    }

    #[test]
    fn everything_that_can_grow_is_bounded() {
        walk_all(|path, schema| {
            // The result of a user's expression has no bound here; the whole object is bounded when it is
            // written.
            if path.starts_with("CombinedStatus.results[].rows[]") {
                return;
            }
            let bounded = match schema.type_.as_deref() {
                Some("array") => schema.max_items.is_some(),
                Some("string") => {
                    schema.max_length.is_some() || schema.enum_.is_some() || schema.format.is_some()
                }
                Some("object") if schema.additional_properties.is_some() => schema.max_properties.is_some(),
                _ => true,
            };
            assert!(bounded, "{path} has no limit");
        });
    }

    #[test]
    fn no_field_is_nullable() {
        walk_all(|path, schema| assert_eq!(schema.nullable, None, "{path}"));
    }
}
