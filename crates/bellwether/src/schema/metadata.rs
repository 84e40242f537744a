//! The schema of `metadata`, which is the same for all kinds and not in their CRDs.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The fields and types of `metadata`.
pub(super) static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let strings = || of_type("string");
    let fields = [
        ("annotations", map_of(strings())),
        ("creationTimestamp", strings()),
        ("deletionGracePeriodSeconds", of_type("integer")),
        ("deletionTimestamp", strings()),
        ("finalizers", list_of(strings())),
        ("generateName", strings()),
        ("generation", of_type("integer")),
        ("labels", map_of(strings())),
        ("managedFields", list_of(anything())),
        // The head of an object has its own check of the name.
        ("name", anything()),
        ("namespace", strings()),
        ("ownerReferences", list_of(anything())),
        ("resourceVersion", strings()),
        ("selfLink", strings()),
        ("uid", strings()),
    ];
    let properties = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema));
    Schema { properties: Some(properties.collect()), ..of_type("object") }
});

fn of_type(name: &str) -> Schema {
    Schema { type_: Some(name.to_owned()), ..Schema::default() }
}

fn anything() -> Schema {
    Schema { x_kubernetes_preserve_unknown_fields: Some(true), ..Schema::default() }
}

fn map_of(value: Schema) -> Schema {
    let value = JSONSchemaPropsOrBool::Schema(Box::new(value));
    Schema { additional_properties: Some(value), ..of_type("object") }
}

fn list_of(entry: Schema) -> Schema {
    Schema { items: Some(JSONSchemaPropsOrArray::Schema(Box::new(entry))), ..of_type("array") }
}
