//! Parsed label selectors.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::facts::Labels;

/// Normalised: equal requirements in another order or notation compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector(Box<[Requirement]>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Requirement {
    In(Arc<str>, Box<[Arc<str>]>),
    NotIn(Arc<str>, Box<[Arc<str>]>),
    Exists(Arc<str>),
    Absent(Arc<str>),
    /// An unknown operator, which API servers reject, matches nothing.
    Nothing,
}

impl Selector {
    pub(crate) fn new(selector: &LabelSelector) -> Self {
        let labels = selector.match_labels.iter().flatten();
        let exact = labels
            .map(|(key, value)| Requirement::In(key.as_str().into(), Box::new([value.as_str().into()])));
        let expressions = selector.match_expressions.iter().flatten().map(|expression| {
            let key: Arc<str> = expression.key.as_str().into();
            let values = || {
                let values: BTreeSet<Arc<str>> =
                    expression.values.iter().flatten().map(|value| value.as_str().into()).collect();
                values.into_iter().collect()
            };
            match expression.operator.as_str() {
                "In" => Requirement::In(key, values()),
                "NotIn" => Requirement::NotIn(key, values()),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Absent(key),
                _ => Requirement::Nothing,
            }
        });
        let all: BTreeSet<_> = exact.chain(expressions).collect();
        Self(all.into_iter().collect())
    }

    pub(crate) fn nothing() -> Self {
        Self(Box::new([Requirement::Nothing]))
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }

    /// Labels that every matching object has, for the selector index.
    pub(crate) fn required_labels(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.0.iter().filter_map(|requirement| match requirement {
            Requirement::In(key, values) => match &**values {
                [value] => Some((key, value)),
                _ => None,
            },
            _ => None,
        })
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let has = |key: &str, values: &[Arc<str>]| {
            labels.get(key).is_some_and(|label| values.iter().any(|value| **value == *label))
        };
        match self {
            Self::In(key, values) => has(key, values),
            Self::NotIn(key, values) => !has(key, values),
            Self::Exists(key) => labels.get(key).is_some(),
            Self::Absent(key) => labels.get(key).is_none(),
            Self::Nothing => false,
        }
    }
}

/// As kubectl writes selectors: `tier=core,zone in (a,b)`.
pub(crate) fn text_of(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let (key, values) = (&expression.key, expression.values.as_deref().unwrap_or_default().join(","));
        match expression.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    });
    let requirements: Vec<_> = labels.chain(expressions).collect();
    if requirements.is_empty() { "any labels".to_owned() } else { requirements.join(",") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::labels(json!({"matchLabels": {"tier": "core", "app": "web"}}), "app=web,tier=core")]
    #[case::expressions(
        json!({"matchExpressions": [
            {"key": "a", "operator": "In", "values": ["x", "y"]}, {"key": "b", "operator": "NotIn", "values": ["z"]},
            {"key": "c", "operator": "Exists"}, {"key": "d", "operator": "DoesNotExist"},
        ]}),
        "a in (x,y),b notin (z),c,!d"
    )]
    #[case::nothing(json!({}), "any labels")]
    fn selectors_as_kubectl_writes_them(#[case] selector: Value, #[case] expected: &str) {
        assert_eq!(text_of(&serde_json::from_value(selector).expect("a selector")), expected);
    }

    #[rstest]
    #[case::empty(json!({}), true)]
    #[case::label(json!({"matchLabels": {"app": "web"}}), true)]
    #[case::other_value(json!({"matchLabels": {"app": "api"}}), false)]
    #[case::one_of_two(json!({"matchLabels": {"app": "web", "tier": "front"}}), false)]
    #[case::is_in(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["api", "web"]}]}), true)]
    #[case::not_in(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false)]
    #[case::not_in_without_label(json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}), true)]
    #[case::exists(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true)]
    #[case::exists_not(json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), false)]
    #[case::absent(json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), true)]
    #[case::absent_not(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false)]
    #[case::both(json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false)]
    #[case::no_such_operator(json!({"matchExpressions": [{"key": "app", "operator": "Like"}]}), false)]
    fn matching_an_object_with_app_web(#[case] selector: Value, #[case] matches: bool) {
        let selector: LabelSelector = serde_json::from_value(selector).expect("a selector");
        let labels: Labels =
            [("app".into(), "web".into()), ("version".into(), "1".into())].into_iter().collect();
        let selector = Selector::new(&selector);
        assert_eq!(selector.matches(&labels), matches);
        if matches {
            assert!(selector.required_labels().all(|(key, value)| labels.get(key) == Some(value)));
        }
    }
}
