//! Parses Applications of `app.k8s.io/v1beta1`.
//!
//! Their CRD validates little, and manifests write API groups in many ways. So each field is parsed on its
//! own: an invalid one is reported and does not affect the others.

use bellwether_api::ComponentKind;
use bellwether_model::{Map, Object, Value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde::Serialize;

/// The fields of the spec that we use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AppK8sIoSpec {
    /// Without a selector, it has no members.
    pub selector: Option<LabelSelector>,
    /// Without duplicates; groups normalised.
    pub component_kinds: Vec<ComponentKind>,
    pub add_owner_ref: bool,
    /// `spec.descriptor.type`.
    pub type_: Option<String>,
    /// `spec.descriptor.version`.
    pub version: Option<String>,
    /// Invalid fields, each as `path: reason`.
    pub invalid_fields: Vec<String>,
}

/// Other fields of the status belong to other controllers.
const STATUS_FIELDS: [&str; 4] = ["observedGeneration", "conditions", "components", "componentsReady"];

impl AppK8sIoSpec {
    pub(crate) const FIELDS_READ: [&'static [&'static str]; 9] = [
        &["spec", "selector"],
        &["spec", "componentKinds"],
        &["spec", "addOwnerRef"],
        &["spec", "descriptor", "type"],
        &["spec", "descriptor", "version"],
        &["status", "observedGeneration"],
        &["status", "conditions"],
        &["status", "components"],
        &["status", "componentsReady"],
    ];

    pub(crate) fn read(object: &Object<'_>) -> Self {
        let text = |path: &str| object.at(path).and_then(Value::as_text).map(str::to_owned);
        let mut spec = Self {
            type_: text("spec.descriptor.type"),
            version: text("spec.descriptor.version"),
            add_owner_ref: object.at("spec.addOwnerRef").and_then(Value::as_bool) == Some(true),
            ..Self::default()
        };
        let field = |path: &str| object.at(path).filter(|value| !matches!(value, Value::Null));
        match field("spec.selector").map(selector).transpose() {
            Ok(selector) => spec.selector = selector,
            Err(compile_error) => spec.invalid_fields.push(compile_error),
        }
        match field("spec.componentKinds").map(|kinds| kinds.as_list().ok_or(kinds)).transpose() {
            Ok(kinds) => {
                for (index, entry) in kinds.unwrap_or_default().iter().enumerate() {
                    match component_kind(entry) {
                        Ok(kind) if spec.component_kinds.contains(&kind) => {}
                        Ok(kind) => spec.component_kinds.push(kind),
                        Err(why) => spec.invalid_fields.push(format!("spec.componentKinds[{index}]: {why}")),
                    }
                }
            }
            Err(_) => spec.invalid_fields.push("spec.componentKinds: must be a list".to_owned()),
        }
        spec
    }
}

/// Only the fields that we write.
pub(crate) fn status(object: &Object<'_>) -> serde_json::Value {
    let field = |name: &str| {
        let value = serde_json::to_value(object.at("status")?.get(name)?).ok()?;
        Some((name.to_owned(), value)).filter(|(_, value)| !value.is_null())
    };
    serde_json::Value::Object(STATUS_FIELDS.iter().filter_map(|name| field(name)).collect())
}

fn component_kind(entry: &Value<'_>) -> Result<ComponentKind, &'static str> {
    let fields = entry.as_map().ok_or("must be an object")?;
    let text = |field: &str| match non_null(fields, field) {
        None => Some(""),
        Some(value) => value.as_text().map(str::trim),
    };
    let kind = text("kind").filter(|kind| !kind.is_empty()).ok_or("kind required")?;
    // A missing group means the core group. An unreadable one must not, or it would select the wrong objects.
    let group = group(text("group").ok_or("group must be a string")?);
    Ok(ComponentKind { group: group.to_owned(), kind: kind.to_owned() })
}

fn non_null<'m, 'a>(fields: &'m Map<'a>, name: &str) -> Option<&'m Value<'a>> {
    fields.get(name).filter(|value| !matches!(value, Value::Null))
}

/// The API group that was meant. Manifests also contain `apps/v1`, `v1` or `core`.
fn group(text: &str) -> &str {
    let group = text.split_once('/').map_or(text, |(group, _)| group);
    if group == "core" || is_version(group) { "" } else { group }
}

/// True for `v1` or `v1beta1`, but not for a group that begins like a version.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['v', 'V']) else { return false };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let staged =
        |stage: &str| rest.split_once(stage).is_some_and(|(major, minor)| number(major) && number(minor));
    number(rest) || staged("alpha") || staged("beta")
}

/// An error if any part is invalid: skipping a part would select too many objects.
fn selector(value: &Value<'_>) -> Result<LabelSelector, String> {
    let Some(fields) = value.as_map() else {
        return Err("spec.selector: must be a label selector".to_owned());
    };
    let mut selector = LabelSelector::default();
    if let Some(labels) = non_null(fields, "matchLabels") {
        let labels = labels.as_map().ok_or("spec.selector.matchLabels: must be a map")?;
        for (key, value) in labels.iter() {
            let text = value
                .as_text()
                .ok_or_else(|| format!("spec.selector.matchLabels.{key}: must be a string"))?;
            selector.match_labels.get_or_insert_default().insert(key.to_owned(), text.to_owned());
        }
    }
    if let Some(expressions) = non_null(fields, "matchExpressions") {
        let expressions = expressions.as_list().ok_or("spec.selector.matchExpressions: must be a list")?;
        for (index, entry) in expressions.iter().enumerate() {
            let requirement = requirement(entry)
                .map_err(|why| format!("spec.selector.matchExpressions[{index}]: {why}"))?;
            selector.match_expressions.get_or_insert_default().push(requirement);
        }
    }
    Ok(selector)
}

fn requirement(entry: &Value<'_>) -> Result<LabelSelectorRequirement, String> {
    let fields = entry.as_map().ok_or("must be an object")?;
    let text = |field: &str| fields.get(field).and_then(Value::as_text).unwrap_or_default().to_owned();
    let (key, operator) = (text("key"), text("operator"));
    let values = match non_null(fields, "values") {
        None => Vec::new(),
        Some(values) => {
            let values = values.as_list().ok_or("values must be a list")?;
            let texts: Option<Vec<_>> =
                values.iter().map(|value| value.as_text().map(str::to_owned)).collect();
            texts.ok_or("values must be strings")?
        }
    };
    if key.is_empty() {
        return Err("key required".to_owned());
    }
    match (operator.as_str(), values.is_empty()) {
        ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
        ("In" | "NotIn", true) => return Err(format!("values required for operator {operator}")),
        ("Exists" | "DoesNotExist", false) => {
            return Err(format!("values not allowed for operator {operator}"));
        }
        _ => {
            return Err(format!("unsupported operator {operator:?}: use In, NotIn, Exists or DoesNotExist"));
        }
    }
    Ok(LabelSelectorRequirement { key, operator, values: Some(values).filter(|values| !values.is_empty()) })
}

#[cfg(test)]
mod tests {
    use bellwether_model::Plan;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read(spec: &serde_json::Value) -> AppK8sIoSpec {
        let text =
            json!({"apiVersion": "app.k8s.io/v1beta1", "kind": "Application", "spec": spec}).to_string();
        AppK8sIoSpec::read(&Object::from_json(text.as_bytes(), &Plan::whole()).unwrap())
    }

    #[rstest]
    #[case::core("", "")]
    #[case::core_by_version("v1", "")]
    #[case::core_by_slash("/v1", "")]
    #[case::core_by_name("core", "")]
    #[case::core_by_both("core/v1", "")]
    #[case::a_version_that_core_never_had("v1beta1", "")]
    #[case::in_capitals("V1", "")]
    #[case::itself("apps", "apps")]
    #[case::with_version("apps/v1", "apps")]
    #[case::with_other_version("networking.k8s.io/v1beta1", "networking.k8s.io")]
    #[case::looks_like_a_version("v2x.example.com", "v2x.example.com")]
    #[case::looks_like_one_and_has_one("v2.example.com/v1", "v2.example.com")]
    #[case::spaces(" apps ", "apps")]
    fn api_groups_are_normalised(#[case] written: &str, #[case] meant: &str) {
        let spec = read(&json!({"componentKinds": [{"group": written, "kind": "Thing"}]}));
        assert_eq!(spec.component_kinds, [ComponentKind { group: meant.into(), kind: "Thing".into() }]);
    }

    #[test]
    fn duplicate_kinds_are_merged() {
        let kinds = json!([{"group": "v1", "kind": "Service"}, {"group": "core", "kind": "Service"}]);
        assert_eq!(read(&json!({"componentKinds": kinds})).component_kinds.len(), 1);
    }

    #[rstest]
    #[case::nothing(json!({}), &[])]
    #[case::null(json!({"selector": null, "componentKinds": null}), &[])]
    #[case::no_kind(json!({"componentKinds": [{"group": "apps"}]}), &["spec.componentKinds[0]: kind required"])]
    #[case::no_selector(json!({"selector": "app=web"}), &["spec.selector: must be a label selector"])]
    #[case::kinds_not_a_list(json!({"componentKinds": {"kind": "Pod"}}), &["spec.componentKinds: must be a list"])]
    #[case::kind_not_a_map(json!({"componentKinds": ["Pod"]}), &["spec.componentKinds[0]: must be an object"])]
    #[case::group_not_a_string(
        json!({"componentKinds": [{"group": 3, "kind": "Pod"}]}), &["spec.componentKinds[0]: group must be a string"],
    )]
    #[case::labels_not_a_map(
        json!({"selector": {"matchLabels": [{"app": "web"}]}}), &["spec.selector.matchLabels: must be a map"],
    )]
    #[case::expressions_not_a_list(
        json!({"selector": {"matchExpressions": {"key": "a", "operator": "Exists"}}}),
        &["spec.selector.matchExpressions: must be a list"],
    )]
    #[case::expression_not_a_map(
        json!({"selector": {"matchExpressions": ["a"]}}), &["spec.selector.matchExpressions[0]: must be an object"],
    )]
    #[case::values_not_a_list(
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]}}),
        &["spec.selector.matchExpressions[0]: values must be a list"],
    )]
    #[case::value_not_a_string(
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", 3]}]}}),
        &["spec.selector.matchExpressions[0]: values must be strings"],
    )]
    #[case::label_not_a_string(json!({"selector": {"matchLabels": {"tier": 3}}}), &["spec.selector.matchLabels.tier: must be a string"])]
    #[case::no_key(
        json!({"selector": {"matchExpressions": [{"operator": "Exists"}]}}),
        &["spec.selector.matchExpressions[0]: key required"],
    )]
    #[case::no_values(
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        &["spec.selector.matchExpressions[0]: values required for operator In"],
    )]
    #[case::values(
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
        &["spec.selector.matchExpressions[0]: values not allowed for operator Exists"],
    )]
    #[case::no_operator(
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}}),
        &["spec.selector.matchExpressions[0]: unsupported operator \"Like\": use In, NotIn, Exists or DoesNotExist"],
    )]
    fn invalid_fields_are_reported(#[case] spec: serde_json::Value, #[case] invalid_fields: &[&str]) {
        let spec = read(&spec);
        assert_eq!(spec.invalid_fields, invalid_fields);
        assert_eq!((spec.selector, spec.component_kinds), (None, Vec::new()));
    }
}
