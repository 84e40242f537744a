//! How a rule's expressions read an object, and what comes of it when they cannot be evaluated.

use bellwether_expr::{Absent, Fuel, Input, Path, Program, Stop, Val};
use bellwether_model::Object;

use crate::{read::Reader, verdict::Verdict};

/// An object, read by expressions: every look can leave a trace.
pub(super) struct Looked<'a, 'o> {
    pub(super) object: &'a Object<'o>,
    pub(super) reader: &'a Reader<'a>,
}

impl Input for Looked<'_, '_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        let found = path.find(self.object.fields(), passed);
        self.reader.note(|| path.to_string(), found.ok());
        found.map(Val::from)
    }
}

/// What the answer to a question is.
pub(super) enum Answer<'v> {
    Yes,
    No,
    /// A field that it asks for is not there.
    Missing(String),
    /// It cannot be answered.
    Failed(Box<Verdict>),
    /// Something other than yes or no.
    Other(Val<'v>),
}

/// Asks a question of an object.
pub(super) fn ask<'v>(program: &'v Program, input: &'v Looked<'_, '_>, fuel: &mut Fuel) -> Answer<'v> {
    match program.evaluate(input, fuel) {
        Ok(Val::Bool(true)) => Answer::Yes,
        Ok(Val::Bool(false)) => Answer::No,
        Ok(other) => Answer::Other(other),
        Err(stop @ Stop::Missing(_)) => Answer::Missing(program.describe(&stop)),
        Err(stop) => Answer::Failed(Box::new(failed(program, &stop))),
    }
}

/// What is said of an object whose rule cannot be evaluated.
pub(super) fn failed(program: &Program, stop: &Stop<'_>) -> Verdict {
    let why = program.describe(stop);
    match stop {
        Stop::TooExpensive => {
            Verdict::unknown(TOO_EXPENSIVE, format!("the rule costs too much on this object: {why}"))
        }
        _ => Verdict::unknown(RULE_ERROR, why),
    }
}

/// The rule cannot be evaluated on the object.
pub(super) const RULE_ERROR: &str = "RuleError";

/// The rule uses up what it is given.
pub(super) const TOO_EXPENSIVE: &str = "RuleTooExpensive";
