//! Schemas that several kinds share, and their CEL rules, which the API server enforces.
//!
//! The message of a rule names the error and the way out; the API server prefixes it with the field and the
//! value. The bounds on lists, maps and strings keep the rules within the CEL cost budget, which the API
//! server computes from the worst case before it accepts a CRD.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The maximum length of an object name.
pub(crate) const NAME_LENGTH: u32 = 253;
/// The maximum length of a label key: a prefix of 253 characters, a slash and a name of 63.
const LABEL_KEY_LENGTH: u32 = 317;
/// The maximum length of a label value, namespace, kind or resource.
const LABEL_LENGTH: u32 = 63;

/// An entry of `x-kubernetes-validations`.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A label selector. It has the validation that Kubernetes leaves to each controller.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    label_selector_of(
        &json!({
            "description": "The label key.",
            "type": "string",
            "maxLength": LABEL_KEY_LENGTH,
            "x-kubernetes-validations": [rule(
                "!format.qualifiedName().validate(self).hasValue()",
                INVALID_LABEL_KEY,
            )],
        }),
        &json!({ "type": "string", "maxLength": LABEL_LENGTH, "x-kubernetes-validations": [label_value()] }),
    )
}

/// A label selector inside a list. CEL rules on every key and value would exceed the cost budget there. A
/// pattern costs nothing, but its message is worse.
pub(crate) fn listed_label_selector(_: &mut SchemaGenerator) -> Schema {
    label_selector_of(
        &json!({
            "description": "The label key.",
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

/// A list of label selectors, at least one of which must match.
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
                "description": "Labels that an object must have, with these values.",
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": {
                    "type": "string",
                    "maxLength": LABEL_LENGTH,
                    "x-kubernetes-validations": [label_value()],
                },
                "x-kubernetes-validations": [rule(
                    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                    INVALID_LABEL_KEY,
                )],
            },
            "matchExpressions": {
                "description": "Requirements that the labels of an object must all meet.",
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": key,
                        "operator": {
                            "description": "The operator: In and NotIn need values, Exists and DoesNotExist take none.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "The label values for In and NotIn.",
                            "type": "array",
                            "maxItems": 256,
                            "x-kubernetes-list-type": "atomic",
                            "items": value,
                        },
                    },
                    "x-kubernetes-validations": [
                        rule(
                            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                            "values is required with In and NotIn: list the label values, or use Exists or DoesNotExist",
                        ),
                        rule(
                            "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || \
                             size(self.values) == 0",
                            "values is not allowed with Exists and DoesNotExist: remove it, or use In or NotIn",
                        ),
                    ],
                },
            },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

const INVALID_LABEL_KEY: &str = "invalid label key: use at most 63 letters, digits, '-', '_' and '.', starting and \
                                 ending with a letter or digit, after an optional DNS prefix and '/'";

fn label_value() -> Value {
    rule(
        "!format.labelValue().validate(self).hasValue()",
        "invalid label value: use at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or \
         digit",
    )
}

/// The status conditions of an object, with the limits of `metav1.Condition`.
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
                    "description": "The type of the condition.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                                (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "The status of the condition: True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition was computed for.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "When the status of the condition last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "reason": {
                    "description": "The reason for the status, as one word in CamelCase.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "The reason for the status, in a sentence for people.",
                    "type": "string",
                    "maxLength": 32768,
                },
            },
        },
    })
}

/// The status of a condition. An optional enum loses the description of its field; this schema keeps it.
pub(crate) fn condition_status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["True", "False", "Unknown"] })
}

/// The state of a group: a group is never Suspended. An optional enum loses the description of its field; this
/// schema keeps it.
pub(crate) fn group_state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "enum": ["Ready", "InProgress", "Failed", "Terminating", "Unknown", "Missing"]
    })
}

/// As [`group_state`], for a field that is not optional.
pub(crate) fn required_group_state(generator: &mut SchemaGenerator) -> Schema {
    group_state(generator)
}

/// CEL for an API group that is not the core group. `core` and `v1` are common mistakes for the core group,
/// whose name is empty.
pub(crate) const IS_GROUP: &str = "!format.dns1123Subdomain().validate(self).hasValue() && self != 'core' && \
                                   !self.matches('^v[0-9]+((alpha|beta)[0-9]+)?$')";

/// The API group of a kind. Defaults to the core group.
pub(crate) fn group(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": NAME_LENGTH,
        "x-kubernetes-validations": [rule(
            &format!("self == '' || ({IS_GROUP})"),
            "invalid API group: use a name such as apps or acme.io without a version, or omit it for the core group",
        )],
    })
}

/// The API version of a kind. Defaults to the version that the API server prefers.
pub(crate) fn version(_: &mut SchemaGenerator) -> Schema {
    version_or("the preferred version")
}

/// The API version of a kind. Defaults to every version.
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
                "invalid API version: use a version such as v1 or v1beta1 without the group, or omit it for {absent}"
            ),
        )],
    })
}

/// CEL for a kind. Kubernetes does not enforce CamelCase.
const IS_KIND: &str = "self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')";

/// A kind such as `StatefulSet`.
pub(crate) fn kind(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH,
        "x-kubernetes-validations": [rule(
            IS_KIND,
            "invalid kind: use a kind such as StatefulSet, without group and version",
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
            "invalid kind: use a kind such as Widget, or '*' for every kind of the group",
        )],
    })
}

/// CEL for the name of an object of any kind.
pub(crate) fn is_object_name(what: &str) -> String {
    format!("{what}.matches('^[^/%\\\\pC]+$') && {what} != '.' && {what} != '..'")
}

/// The name of an object of any kind. Every name is a path segment of a URL; not every name is a DNS name.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": NAME_LENGTH,
        "x-kubernetes-validations": [rule(
            &is_object_name("self"),
            "invalid name: use at least one character, without '/', '%' and control characters",
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
            "invalid namespace: use lower-case letters, digits and '-', starting and ending with a letter or digit, or \
             omit it for cluster-scoped objects",
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
                "invalid name: use lower-case letters, digits, '-' and '.', starting and ending with a letter or digit",
            )],
        },
    })
}

/// An http or https URL, or an empty string.
pub(crate) fn url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 2048,
        "x-kubernetes-validations": [rule(
            &format!("self == '' || ({IS_URL})"),
            "invalid URL: write an absolute http or https URL such as https://example.com/docs",
        )],
    })
}

/// CEL for an http or https URL. Other schemes, such as `javascript`, could run code in a browser.
const IS_URL: &str =
    "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''";

/// A license: an SPDX expression or a URL.
pub(crate) fn license(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 2048,
        "x-kubernetes-validations": [rule(
            &format!("self.matches('^[-A-Za-z0-9 .+()]*$') || ({IS_URL})"),
            "invalid license: use an SPDX identifier such as Apache-2.0, or a URL such as https://example.com/LICENSE",
        )],
    })
}

/// A JSON object with any fields.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A set of short strings.
pub(crate) fn words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "minLength": 1, "maxLength": 256 },
    })
}
