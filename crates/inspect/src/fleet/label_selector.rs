//! Label selectors as kubectl's `-l` has them.

use std::fmt;

use bellwether_model::{Object, Value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// A label selector: `app=web,tier!=test,region in (eu, us)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    text: String,
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Selector {
    /// Parses a selector.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = end_of_requirement(rest);
            let one = rest[..end].trim();
            requirements.push(requirement(one).ok_or_else(|| {
                format!(
                    "invalid label selector {one:?}: use KEY=VALUE, KEY!=VALUE, KEY, !KEY, or KEY in (A, B)"
                )
            })?);
            rest = rest[end..].trim_start_matches(',').trim();
        }
        if requirements.is_empty() {
            return Err("the label selector is empty: use KEY=VALUE".to_owned());
        }
        Ok(Self { text: text.trim().to_owned(), requirements })
    }

    /// As in the spec of an object.
    pub fn to_label_selector(&self) -> LabelSelector {
        let requirement = |Requirement { key, test }: &Requirement| {
            let (operator, values) = match test {
                Test::In(values) => ("In", Some(values.clone())),
                Test::NotIn(values) => ("NotIn", Some(values.clone())),
                Test::Exists => ("Exists", None),
                Test::Absent => ("DoesNotExist", None),
            };
            LabelSelectorRequirement { key: key.clone(), operator: operator.to_owned(), values }
        };
        let requirements: Vec<_> = self.requirements.iter().map(requirement).collect();
        let match_expressions = (!requirements.is_empty()).then_some(requirements);
        LabelSelector { match_expressions, ..LabelSelector::default() }
    }

    /// The text for an API server; None if everything matches.
    pub(super) fn as_parameter(&self) -> Option<&str> {
        (!self.text.is_empty()).then_some(&*self.text)
    }

    pub(super) fn matches(&self, object: &Object<'_>) -> bool {
        let labels = object.at("metadata.labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_text);
        self.requirements.iter().all(|Requirement { key, test }| {
            let value = label(key);
            match test {
                Test::In(values) => value.is_some_and(|value| values.iter().any(|own| own == value)),
                Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|own| own != value)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
            }
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Commas in parentheses separate values.
fn end_of_requirement(text: &str) -> usize {
    let mut is_inside = false;
    for (index, char) in text.char_indices() {
        match char {
            '(' => is_inside = true,
            ')' => is_inside = false,
            ',' if !is_inside => return index,
            _ => {}
        }
    }
    text.len()
}

fn requirement(text: &str) -> Option<Requirement> {
    let of = |key: &str, test: Test| {
        let key = key.trim();
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        is_key.then(|| Requirement { key: key.to_owned(), test })
    };
    let value = |value: &str| {
        let value = value.trim();
        value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)).then(|| value.to_owned())
    };
    if let Some(key) = text.strip_prefix('!') {
        return of(key, Test::Absent);
    }
    if let Some((key, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values: Vec<_> = values.split(',').map(value).collect::<Option<_>>()?;
        let key = key.trim();
        return match key.rsplit_once(char::is_whitespace)? {
            (key, "in") => of(key, Test::In(values)),
            (key, "notin") => of(key, Test::NotIn(values)),
            _ => None,
        };
    }
    if let Some((key, other)) = text.split_once("!=") {
        return of(key, Test::NotIn(vec![value(other)?]));
    }
    match text.split_once("==").or_else(|| text.split_once('=')) {
        Some((key, own)) => of(key, Test::In(vec![value(own)?])),
        None => of(text, Test::Exists),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_model::Plan;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("app=web", true)]
    #[case("app == web", true)]
    #[case("app=db", false)]
    #[case("app!=db", true)]
    #[case("other!=db", true)]
    #[case("app", true)]
    #[case("!app", false)]
    #[case("!other", true)]
    #[case("app in (web, db),x.io/team", true)]
    #[case("app notin (web)", false)]
    #[case("app=web,x.io/team=b", false)]
    fn matching(#[case] text: &str, #[case] expected: bool) {
        let json = br#"{"metadata": {"labels": {"app": "web", "x.io/team": "a"}}}"#;
        let object = Object::from_json(json, &Plan::whole()).expect("an object");
        assert_eq!(Selector::parse(text).expect(text).matches(&object), expected);
    }

    #[rstest]
    #[case("")]
    #[case("=web")]
    #[case("app=a b")]
    #[case("app is (a)")]
    #[case("app in (a, b")]
    #[case("a b")]
    fn invalid(#[case] text: &str) {
        assert!(Selector::parse(text).is_err());
    }
}
