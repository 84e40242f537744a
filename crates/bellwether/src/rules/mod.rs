//! `bellwether rules`: rules that users write, checked and tried.

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

pub(crate) use self::lint::{Said, paragraph};
use self::load::{Fault, Loaded};
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

/// All that is wrong with a HealthRule: its fields, its expressions, its script.
pub(crate) fn faults(object: &Object<'_>) -> Vec<Said> {
    let (_, rule) = load::read_rule(object);
    rule.err().into_iter().flatten().map(|fault| Said::of(&fault)).collect()
}

/// The rules that a command judges by.
pub(crate) struct Chosen {
    pub(crate) rules: UserRules,
    errors: Vec<String>,
}

impl Chosen {
    /// Those in these files and directories.
    pub(crate) fn by(inputs: &[PathBuf]) -> Self {
        let loaded = Loaded::from(inputs);
        let mut errors = loaded.errors();
        let rules = loaded.in_force();
        if !inputs.is_empty() && loaded.rules.is_empty() && errors.is_empty() {
            let inputs: Vec<_> = inputs.iter().map(|input| input.display().to_string()).collect();
            errors.push(format!("there is no rule in {}", inputs.join(", ")));
        }
        Self { rules, errors }
    }

    /// What must be read of objects for the rules to judge them.
    pub(crate) fn plan(&self) -> Plan {
        let mut plan = Plan::everything();
        self.rules.keep_for_all(&mut plan);
        plan
    }

    /// The outcome, with what is wrong with the rules before all else.
    pub(crate) fn spoken_of(self, mut outcome: Outcome) -> Outcome {
        if !self.errors.is_empty() {
            outcome.code = BAD_INPUT;
            outcome.errors.splice(..0, self.errors);
        }
        outcome
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shape(fault) => write!(f, "{}: {}", fault.field, fault.text),
            Self::Flaw(flaw) => flaw.fmt(f),
        }
    }
}

/// The answer for a person, or for programs.
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
