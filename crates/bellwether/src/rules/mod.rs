//! `bellwether rules`: validates and tests user rules.

mod finding;
mod lint;
mod load;
mod suite;
mod test;

use std::path::PathBuf;

use anyhow::Result;
use bellwether_health::user::UserRules;
use bellwether_model::{Object, Plan};
use bellwether_terminal::Screen;
use serde::Serialize;

pub(crate) use self::finding::{Finding, or_unnamed, place};
use self::load::Loaded;
use crate::{
    cli::{self, ExplainFormat},
    output::{BAD_INPUT, Outcome},
};

pub(crate) fn run(command: &cli::Rules, screen: Screen) -> Result<Outcome> {
    match command {
        cli::Rules::Lint(command) => lint::run(command, screen),
        cli::Rules::Test(command) => test::run(command, screen),
    }
}

/// The errors in the fields, expressions and script of a HealthRule, without lines.
pub(crate) fn findings(object: &Object<'_>) -> Vec<Finding> {
    load::read_rule(object).err().unwrap_or_default()
}

/// The user rules of a command, from `--rules`.
pub(crate) struct Chosen {
    pub(crate) rules: UserRules,
}

impl Chosen {
    /// Loads the rules in these files and directories. If one cannot be read or compiled, the outcome has all
    /// errors: the verdict of another rule would be wrong where that one decides.
    pub(crate) fn by(inputs: &[PathBuf]) -> Result<Self, Outcome> {
        let loaded = Loaded::from(inputs);
        let mut errors = loaded.errors();
        if !inputs.is_empty() && loaded.rules.is_empty() && errors.is_empty() {
            let inputs: Vec<_> = inputs.iter().map(|input| input.display().to_string()).collect();
            errors.push(format!("no rules in {}", inputs.join(", ")));
        }
        if errors.is_empty() {
            Ok(Self { rules: loaded.in_force() })
        } else {
            Err(Outcome { errors, code: BAD_INPUT, ..Outcome::default() })
        }
    }

    /// The fields of objects that the rules read.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = Plan::everything();
        self.rules.add_all_fields(&mut plan);
        plan
    }
}

/// The number with its noun: `1 rule`, `3 rules`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The last line of a check: `3 rules, 1 invalid.`
pub(crate) fn summary(total: usize, invalid: usize, what: &str) -> String {
    let result = match (total, invalid) {
        (1, 0) => "valid".to_owned(),
        (_, 0) => "all valid".to_owned(),
        _ => format!("{invalid} invalid"),
    };
    format!("{}, {result}.", counted(total, what))
}

/// The answer as text, JSON or YAML.
pub(crate) fn printed(
    answer: &impl Serialize,
    format: ExplainFormat,
    text: impl FnOnce() -> String,
) -> Result<String> {
    Ok(match format {
        ExplainFormat::Text => text(),
        ExplainFormat::Json => format!("{}\n", serde_json::to_string_pretty(answer)?),
        ExplainFormat::Yaml => serde_saphyr::to_string(answer)?,
    })
}
