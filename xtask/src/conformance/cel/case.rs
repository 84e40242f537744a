//! One case of the suite: an expression, what its names stand for, and what must come of it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::value::Tagged;

/// A case, as the program that reads the suite tells it.
#[derive(Debug, Deserialize)]
pub(super) struct Case {
    pub(super) file: String,
    pub(super) section: String,
    pub(super) name: String,
    pub(super) expr: String,
    /// The values of the variables.
    #[serde(default)]
    pub(super) bindings: BTreeMap<String, Tagged>,
    /// The package that names are looked up in.
    #[serde(default)]
    container: String,
    #[serde(default)]
    disable_check: bool,
    #[serde(default)]
    disable_macros: bool,
    /// The names that are declared, those with values among them.
    #[serde(default)]
    type_env_names: Vec<String>,
    /// It makes sense only where there are protobuf messages.
    #[serde(default)]
    protobuf: bool,
    expect: Expect,
}

/// What must come of a case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Value(Tagged),
    Error,
    /// That the checker deduces a certain type.
    Typed,
    /// That the evaluator says which variables it would need.
    Unknown,
}

/// Why a case says nothing about us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LeftOut {
    Messages,
    Deduced,
    Unchecked,
    Macros,
    Unknowns,
    Packages,
}

/// What came of a case.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Passed,
    Failed { expected: String, got: String },
    LeftOut(LeftOut),
}

impl LeftOut {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Messages => "protobuf messages",
            Self::Deduced => "deduced types",
            Self::Unchecked => "evaluation without a check",
            Self::Macros => "parsing without macros",
            Self::Unknowns => "unknown values",
            Self::Packages => "variables in packages",
        }
    }
}

impl Case {
    /// What comes of it with an evaluator. An error that is expected may come as early as it likes: we refuse before there
    /// are values what others refuse when they see them.
    pub(super) fn judge(&self, evaluate: impl Fn(&Self) -> Result<Tagged, String>) -> Verdict {
        if let Some(why) = self.left_out() {
            return Verdict::LeftOut(why);
        }
        match (&self.expect, evaluate(self)) {
            (Expect::Value(expected), Ok(got)) if *expected == got => Verdict::Passed,
            (Expect::Error, Err(_)) => Verdict::Passed,
            (expect, got) => Verdict::Failed {
                expected: match expect {
                    Expect::Value(value) => value.to_string(),
                    _ => "an error".to_owned(),
                },
                got: match got {
                    Ok(value) => value.to_string(),
                    Err(error) => format!("error: {error}"),
                },
            },
        }
    }

    fn left_out(&self) -> Option<LeftOut> {
        let dotted = |name: &String| name.contains('.');
        match self.expect {
            _ if self.protobuf => Some(LeftOut::Messages),
            Expect::Typed => Some(LeftOut::Deduced),
            Expect::Unknown => Some(LeftOut::Unknowns),
            _ if self.disable_macros => Some(LeftOut::Macros),
            _ if !self.container.is_empty() || self.type_env_names.iter().any(dotted) => {
                Some(LeftOut::Packages)
            }
            // Our compiler cannot be told to let pass what it knows to be wrong.
            Expect::Value(_) if self.disable_check => Some(LeftOut::Unchecked),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;

    fn case(mut fields: Json) -> Case {
        for (field, text) in [("file", "basic"), ("section", "it"), ("name", "it"), ("expr", "1")] {
            fields[field] = text.into();
        }
        serde_json::from_value(fields).unwrap()
    }

    #[rstest]
    #[case(json!({"value": {"int": "1"}}), Ok(Tagged::Int(1)), true)]
    #[case(json!({"value": {"int": "1"}}), Ok(Tagged::Uint(1)), false)]
    #[case(json!({"value": {"int": "1"}}), Err("it does not compile".to_owned()), false)]
    #[case(json!("error"), Err("it does not compile".to_owned()), true)]
    #[case(json!("error"), Ok(Tagged::Int(1)), false)]
    fn a_case_passes_if_what_it_expects_comes_of_it(
        #[case] expect: Json,
        #[case] got: Result<Tagged, String>,
        #[case] passes: bool,
    ) {
        let verdict = case(json!({ "expect": expect })).judge(|_| got.clone());
        assert_eq!(verdict == Verdict::Passed, passes, "{verdict:?}");
    }

    #[rstest]
    #[case(json!({"expect": "error", "protobuf": true}), LeftOut::Messages)]
    #[case(json!({"expect": "typed"}), LeftOut::Deduced)]
    #[case(json!({"expect": "unknown"}), LeftOut::Unknowns)]
    #[case(json!({"expect": {"value": "null"}, "disable_check": true}), LeftOut::Unchecked)]
    #[case(json!({"expect": "error", "disable_macros": true}), LeftOut::Macros)]
    #[case(json!({"expect": "error", "container": "com.example"}), LeftOut::Packages)]
    #[case(json!({"expect": "error", "type_env_names": ["x", "x.y"]}), LeftOut::Packages)]
    fn a_case_that_says_nothing_about_us_is_not_evaluated(#[case] fields: Json, #[case] why: LeftOut) {
        let verdict = case(fields).judge(|_| panic!("it is left out"));
        assert_eq!(verdict, Verdict::LeftOut(why));
    }

    #[test]
    fn an_error_counts_with_a_check_or_without() {
        let case = case(json!({"expect": "error", "disable_check": true}));
        assert_eq!(case.judge(|_| Err("it does not compile".to_owned())), Verdict::Passed);
    }
}
