//! One case of the suite: an expression, its variables, and the expected result.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::value::Tagged;

/// A case as the Go program prints it.
#[derive(Debug, Deserialize)]
pub(super) struct CelCase {
    pub(super) file: String,
    pub(super) section: String,
    pub(super) name: String,
    pub(super) expr: String,
    #[serde(default)]
    pub(super) bindings: BTreeMap<String, Tagged>,
    /// The package in which names are resolved.
    #[serde(default)]
    container: String,
    #[serde(default)]
    disable_check: bool,
    #[serde(default)]
    disable_macros: bool,
    /// The declared names, with or without a value.
    #[serde(default)]
    type_env_names: Vec<String>,
    /// Whether the case requires protobuf messages.
    #[serde(default)]
    protobuf: bool,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Value(Tagged),
    Error,
    /// The checker deduces a type.
    Typed,
    /// The evaluator reports the variables that it needs.
    Unknown,
}

/// Why a case does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SkipReason {
    Messages,
    Deduced,
    Unchecked,
    Macros,
    Unknowns,
    Packages,
}

#[derive(Debug, PartialEq)]
pub(super) enum CelOutcome {
    Passed,
    Failed { expected: String, got: String },
    Skipped(SkipReason),
}

impl SkipReason {
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

impl CelCase {
    /// An expected error may come from the compiler as well: Bellwether's compiler rejects some expressions
    /// that others reject during the evaluation.
    pub(super) fn run(&self, evaluate: impl Fn(&Self) -> Result<Tagged, String>) -> CelOutcome {
        if let Some(why) = self.skip_reason() {
            return CelOutcome::Skipped(why);
        }
        match (&self.expect, evaluate(self)) {
            (Expect::Value(expected), Ok(got)) if *expected == got => CelOutcome::Passed,
            (Expect::Error, Err(_)) => CelOutcome::Passed,
            (expect, got) => CelOutcome::Failed {
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

    fn skip_reason(&self) -> Option<SkipReason> {
        let dotted = |name: &String| name.contains('.');
        match self.expect {
            _ if self.protobuf => Some(SkipReason::Messages),
            Expect::Typed => Some(SkipReason::Deduced),
            Expect::Unknown => Some(SkipReason::Unknowns),
            _ if self.disable_macros => Some(SkipReason::Macros),
            _ if !self.container.is_empty() || self.type_env_names.iter().any(dotted) => {
                Some(SkipReason::Packages)
            }
            // The type check of Bellwether's compiler cannot be disabled.
            Expect::Value(_) if self.disable_check => Some(SkipReason::Unchecked),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;

    fn case(mut fields: Json) -> CelCase {
        for (field, text) in [("file", "basic"), ("section", "it"), ("name", "it"), ("expr", "1")] {
            fields[field] = text.into();
        }
        serde_json::from_value(fields).unwrap()
    }

    #[rstest]
    #[case(json!({"value": {"int": "1"}}), Ok(Tagged::Int(1)), true)]
    #[case(json!({"value": {"int": "1"}}), Ok(Tagged::Uint(1)), false)]
    #[case(json!({"value": {"int": "1"}}), Err("cannot compile".to_owned()), false)]
    #[case(json!("error"), Err("cannot compile".to_owned()), true)]
    #[case(json!("error"), Ok(Tagged::Int(1)), false)]
    fn a_case_passes_with_the_expected_result(
        #[case] expect: Json,
        #[case] got: Result<Tagged, String>,
        #[case] passes: bool,
    ) {
        let outcome = case(json!({ "expect": expect })).run(|_| got.clone());
        assert_eq!(outcome == CelOutcome::Passed, passes, "{outcome:?}");
    }

    #[rstest]
    #[case(json!({"expect": "error", "protobuf": true}), SkipReason::Messages)]
    #[case(json!({"expect": "typed"}), SkipReason::Deduced)]
    #[case(json!({"expect": "unknown"}), SkipReason::Unknowns)]
    #[case(json!({"expect": {"value": "null"}, "disable_check": true}), SkipReason::Unchecked)]
    #[case(json!({"expect": "error", "disable_macros": true}), SkipReason::Macros)]
    #[case(json!({"expect": "error", "container": "com.example"}), SkipReason::Packages)]
    #[case(json!({"expect": "error", "type_env_names": ["x", "x.y"]}), SkipReason::Packages)]
    fn a_case_that_does_not_apply_is_not_evaluated(#[case] fields: Json, #[case] why: SkipReason) {
        let outcome = case(fields).run(|_| panic!("the case is skipped"));
        assert_eq!(outcome, CelOutcome::Skipped(why));
    }

    #[test]
    fn an_expected_error_counts_without_the_type_check() {
        let case = case(json!({"expect": "error", "disable_check": true}));
        assert_eq!(case.run(|_| Err("cannot compile".to_owned())), CelOutcome::Passed);
    }
}
