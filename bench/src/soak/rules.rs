//! The rules for Widgets that come and go.

use anyhow::{Result, anyhow};
use bellwether_health::user::{Clause, Form, JudgedKind, UserRule, UserRules};
use bellwether_model::State;
use serde_json::{Value as Json, json};

use super::cast::{GROUP, Kind};

/// What the one HealthRule is called.
pub(super) const NAME: &str = "widgets";

/// So many different rules can be in force, none among them.
pub(super) const IN_FORCE: usize = 3;

/// A rule as it can be: what it says, and whether that can be understood.
struct Variant {
    clauses: &'static [(&'static str, State)],
    is_valid: bool,
}

/// The first is no rule at all.
const VARIANTS: [Variant; IN_FORCE + 1] = [
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

/// How many there are to choose from, none among them.
pub(super) const CHOICES: usize = VARIANTS.len();

/// The rule as it is written.
pub(super) fn written(choice: usize) -> Json {
    let clauses = VARIANTS[choice].clauses.iter();
    let clauses: Vec<_> = clauses.map(|(when, state)| json!({ "when": when, "state": state })).collect();
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule", "metadata": { "name": NAME },
        "spec": { "for": { "group": GROUP, "kind": Kind::Widget.name() }, "cel": clauses },
    })
}

/// Whether the rule that is stored can be understood.
pub(super) fn is_valid(object: &Json) -> bool {
    VARIANTS[choice(object)].is_valid
}

/// Which rule is in force if this one is stored: one that cannot be understood is as good as none.
pub(super) fn in_force(object: &Json) -> usize {
    let choice = choice(object);
    if VARIANTS[choice].is_valid { choice } else { 0 }
}

fn choice(object: &Json) -> usize {
    let is_it = |choice: &usize| written(*choice)["spec"]["cel"] == object["spec"]["cel"];
    (1..CHOICES).find(is_it).unwrap_or(0)
}

/// The rules in force for each of the choices.
pub(super) fn books() -> Result<[UserRules; IN_FORCE]> {
    let book = |choice: usize| -> Result<UserRules> {
        let clause = |(when, state): &(&str, State)| Clause {
            when: (*when).to_owned(),
            state: *state,
            reason: None,
            message: None,
        };
        let rule = UserRule {
            name: NAME.to_owned(),
            created: None,
            kind: JudgedKind {
                group: GROUP.to_owned(),
                version: None,
                kind: Some(Kind::Widget.name().to_owned()),
            },
            form: Form::Clauses(VARIANTS[choice].clauses.iter().map(clause).collect()),
        };
        let compiled = rule.compile().map_err(|flaws| anyhow!("a rule of the soak is wrong: {flaws:?}"))?;
        Ok(UserRules::new([compiled.into()]))
    };
    Ok([UserRules::default(), book(1)?, book(2)?])
}
