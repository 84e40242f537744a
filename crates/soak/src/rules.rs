//! The HealthRule for Widgets in its variants.

use std::rc::Rc;

use bellwether_api::State;
use bellwether_simulation::object::Object;
use serde_json::{Value as Json, json};

use crate::objects::{GROUP, Kind};

/// The name of the HealthRule.
pub(crate) const NAME: &str = "widgets";

struct Variant {
    clauses: &'static [(&'static str, State)],
    is_valid: bool,
}

/// The first stands for a missing rule.
const VARIANTS: [Variant; 4] = [
    Variant { clauses: &[], is_valid: true },
    Variant {
        clauses: &[
            ("status.level > 7", State::Failed),
            ("status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", State::Ready),
        ],
        is_valid: true,
    },
    Variant {
        clauses: &[("status.level >= 1", State::Ready), ("status.level == 0", State::Suspended)],
        is_valid: true,
    },
    Variant { clauses: &[("status.level >=", State::Ready)], is_valid: false },
];

/// The number of variants, including the missing rule.
pub(crate) const CHOICES: usize = VARIANTS.len();

/// The manifest of a variant.
pub(crate) fn written(choice: usize) -> Json {
    let clauses = VARIANTS[choice].clauses.iter();
    let clauses: Vec<_> = clauses.map(|(when, state)| json!({ "when": when, "state": state })).collect();
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule", "metadata": { "name": NAME },
        "spec": { "for": { "group": GROUP, "kind": Kind::Widget.name() }, "cel": clauses },
    })
}

/// Whether a stored rule is valid.
pub(crate) fn is_valid(rule: &Json) -> bool {
    let stored = |choice: &usize| written(*choice)["spec"]["cel"] == rule["spec"]["cel"];
    (1..CHOICES).find(stored).is_none_or(|choice| VARIANTS[choice].is_valid)
}

/// Every valid version that a stored rule may have had.
pub(crate) fn valid_versions(rule: &Object) -> impl Iterator<Item = Rc<Object>> {
    let version = move |choice: usize| {
        let mut value = rule.value.clone();
        value["spec"] = written(choice)["spec"].take();
        Rc::new(Object::new(value))
    };
    (1..CHOICES).filter(|choice| VARIANTS[*choice].is_valid).map(version)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_oracle_agrees_on_which_rules_are_valid() {
        let widget = Object::new(json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": Kind::Widget.name(),
            "metadata": { "name": "one", "namespace": "shop" }, "status": { "level": 1 },
        }));
        for choice in 1..CHOICES {
            let stored = Object::new(written(choice));
            let rule = Arc::clone(stored.health_rule().unwrap());
            let verdict = widget.verdict_by(&[rule], Timestamp::UNIX_EPOCH, Some(true));
            assert_eq!(verdict.reason != "RuleInvalid", is_valid(&stored.value), "{:#}", stored.value);
        }
    }
}
