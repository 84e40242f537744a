//! Schemas of the pieces that several kinds share, and the rules in them that the API server itself enforces.
//!
//! Every rule's message names what is wrong and the way out; the API server puts the field's path before it. The bounds
//! on lists, maps and strings are generous for people, and they keep the rules within the API server's CEL cost budget,
//! which it computes from the worst case before it accepts a CRD.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The longest name of an object.
pub(crate) const NAME_LENGTH: u32 = 253;
/// The longest label key: a prefix of 253, a slash and a name of 63.
const LABEL_KEY_LENGTH: u32 = 317;
/// The longest label value, name segment, kind or resource.
const LABEL_LENGTH: u32 = 63;

/// A CEL rule of the API server.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A label selector, as Kubernetes has it, and checked where Kubernetes leaves that to each controller.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    label_selector_of(
        &json!({
            "description": "The label's key.",
            "type": "string",
            "maxLength": LABEL_KEY_LENGTH,
            "x-kubernetes-validations": [rule(
                "!format.qualifiedName().validate(self).hasValue()",
                "key is no label key: use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a \
                 letter or digit, after an optional DNS prefix and '/'",
            )],
        }),
        &json!({ "type": "string", "maxLength": LABEL_LENGTH, "x-kubernetes-validations": [label_value()] }),
    )
}

/// A label selector inside a list. A rule on every key and value of every selector is beyond the budget there; a pattern
/// costs nothing, and only its message is worse.
pub(crate) fn listed_label_selector(_: &mut SchemaGenerator) -> Schema {
    label_selector_of(
        &json!({
            "description": "The label's key.",
            "type": "string",
            "maxLength": LABEL_KEY_LENGTH,
            "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                        ([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$",
        }),
        &json!({
            "type": "string",
            "maxLength": LABEL_LENGTH,
            "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        }),
    )
}

/// A list of label selectors, one of which must match.
pub(crate) fn label_selectors(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "atomic",
        "items": listed_label_selector(generator),
    })
}

fn label_selector_of(key: &Value, value: &Value) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "description": "Labels that an object must have, each with exactly this value.",
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": {
                    "type": "string",
                    "maxLength": LABEL_LENGTH,
                    "x-kubernetes-validations": [label_value()],
                },
                "x-kubernetes-validations": [rule(
                    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                    "matchLabels has a key that is no label key: use at most 63 letters, digits, '-', '_' and '.', \
                     beginning and ending with a letter or digit, after an optional DNS prefix and '/'",
                )],
            },
            "matchExpressions": {
                "description": "Requirements that an object's labels must meet, all of them.",
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": key,
                        "operator": {
                            "description": "How the label is compared: In and NotIn with values, Exists and \
                                            DoesNotExist without.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "What In and NotIn compare with.",
                            "type": "array",
                            "maxItems": 256,
                            "x-kubernetes-list-type": "atomic",
                            "items": value,
                        },
                    },
                    "x-kubernetes-validations": [
                        rule(
                            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                            "values must not be empty with the operators In and NotIn: list the label's values, or use \
                             Exists or DoesNotExist",
                        ),
                        rule(
                            "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || \
                             size(self.values) == 0",
                            "values must be empty with the operators Exists and DoesNotExist: leave them out, or use In \
                             or NotIn",
                        ),
                    ],
                },
            },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

fn label_value() -> Value {
    rule(
        "!format.labelValue().validate(self).hasValue()",
        "this is no label value: use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter \
         or digit, or leave it empty",
    )
}

/// The status conditions of an object, with the limits that Kubernetes sets for them.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": "What the condition is about.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                                (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "Whether it holds: True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "The generation of this object that the condition was computed for.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "When the status last changed from one value to another.",
                    "type": "string",
                    "format": "date-time",
                },
                "reason": {
                    "description": "One word for programs: why the status is what it is.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "The same for people, with the objects that decided it.",
                    "type": "string",
                    "maxLength": 32768,
                },
            },
        },
    })
}

/// What a group is, in CEL. `core` and `v1` are what people write who mean the core group, which has no name.
pub(crate) const IS_GROUP: &str = "!format.dns1123Subdomain().validate(self).hasValue() && self != 'core' && \
                                   !self.matches('^v[0-9]+((alpha|beta)[0-9]+)?$')";

/// The API group of a kind; empty or absent for the core group.
pub(crate) fn group(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": NAME_LENGTH,
        "x-kubernetes-validations": [rule(
            &format!("self == '' || ({IS_GROUP})"),
            "group must be the name of an API group such as apps or acme.io, without a version; leave it out for the \
             core group",
        )],
    })
}

/// The version of a kind; absent for the one that the cluster prefers.
pub(crate) fn version(_: &mut SchemaGenerator) -> Schema {
    version_or("the one that the cluster prefers")
}

/// The version of a kind; absent for every version.
pub(crate) fn version_or_any(_: &mut SchemaGenerator) -> Schema {
    version_or("every version")
}

fn version_or(absent: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH,
        "x-kubernetes-validations": [rule(
            "!format.dns1035Label().validate(self).hasValue()",
            &format!(
                "version must be the version of an API such as v1 or v1beta1, without the group; leave it out for {absent}"
            ),
        )],
    })
}

/// What a kind is, in CEL: CamelCase by custom, but not by law.
const IS_KIND: &str = "self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')";

/// A kind.
pub(crate) fn kind(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH,
        "x-kubernetes-validations": [rule(
            IS_KIND,
            "kind must be a kind such as StatefulSet, without its group and version",
        )],
    })
}

/// A kind, or `*`.
pub(crate) fn kind_or_any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH,
        "x-kubernetes-validations": [rule(
            &format!("self == '*' || {IS_KIND}"),
            "kind must be a kind such as Widget, or '*' for every kind of the group",
        )],
    })
}

/// What the name of an object of any kind is, in CEL.
pub(crate) fn is_object_name(what: &str) -> String {
    format!("{what}.matches('^[^/%\\\\pC]+$') && {what} != '.' && {what} != '..'")
}

/// The name of an object of any kind: all of them are segments of a URL's path, not all are DNS names.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": NAME_LENGTH,
        "x-kubernetes-validations": [rule(
            &is_object_name("self"),
            "name must be the name of an object: not empty, and without '/', '%' and control characters",
        )],
    })
}

/// A namespace.
pub(crate) fn namespace(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH,
        "x-kubernetes-validations": [rule(
            "!format.dns1123Label().validate(self).hasValue()",
            "namespace must be the name of a namespace: lower-case letters, digits and '-', beginning and ending with a \
             letter or digit; leave it out for cluster-scoped objects",
        )],
    })
}

/// Names of Applications.
pub(crate) fn names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "string",
            "maxLength": NAME_LENGTH,
            "x-kubernetes-validations": [rule(
                "!format.dns1123Subdomain().validate(self).hasValue()",
                "this is no name of an object: use lower-case letters, digits, '-' and '.', beginning and ending with a \
                 letter or digit",
            )],
        },
    })
}

/// An address of a page.
pub(crate) fn url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 2048,
        "x-kubernetes-validations": [rule(
            &format!("self == '' || ({IS_PAGE})"),
            "this is no address of a page: write it in full, like https://example.com/docs",
        )],
    })
}

/// What the address of a page is, in CEL: nothing that a browser would run.
const IS_PAGE: &str =
    "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''";

/// A licence: its short name, or where it can be read.
pub(crate) fn license(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 2048,
        "x-kubernetes-validations": [rule(
            &format!("self.matches('^[-A-Za-z0-9 .+()]*$') || ({IS_PAGE})"),
            "this is no licence: write its short name, like Apache-2.0, or its address, like https://example.com/LICENSE",
        )],
    })
}

/// An object about which nothing is known.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Short texts, none of them twice.
pub(crate) fn words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "minLength": 1, "maxLength": 256 },
    })
}
