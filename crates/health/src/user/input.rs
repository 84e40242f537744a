//! Evaluation of CEL expressions on an object.

use bellwether_expr::{Absent, Fuel, Input, Path, Program, Stop, Val};
use bellwether_model::Object;

use crate::{read::Reader, reasons, verdict::Verdict};

/// The input of expressions. Records each read as evidence.
pub(super) struct ObjectInput<'a, 'o> {
    pub(super) object: &'a Object<'o>,
    pub(super) reader: &'a Reader<'a>,
}

impl Input for ObjectInput<'_, '_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        let found = path.find(self.object.fields(), passed);
        self.reader.record(|| path.to_string(), found.ok());
        found.map(Val::from)
    }
}

/// The result of an expression that should be a bool.
pub(super) enum Outcome<'v> {
    True,
    False,
    /// The expression reads an absent field.
    Missing(String),
    Error(Box<Verdict>),
    /// Not a bool.
    Other(Val<'v>),
}

pub(super) fn evaluate<'v>(
    program: &'v Program,
    input: &'v ObjectInput<'_, '_>,
    fuel: &mut Fuel,
) -> Outcome<'v> {
    match program.evaluate(input, fuel) {
        Ok(Val::Bool(true)) => Outcome::True,
        Ok(Val::Bool(false)) => Outcome::False,
        Ok(other) => Outcome::Other(other),
        Err(stop @ Stop::Missing(_)) => Outcome::Missing(program.describe(&stop)),
        Err(stop) => Outcome::Error(Box::new(error(program, &stop))),
    }
}

fn error(program: &Program, stop: &Stop<'_>) -> Verdict {
    match stop {
        Stop::TooExpensive => {
            Verdict::unknown(reasons::RULE_TOO_EXPENSIVE, "CEL expression exceeded its cost limit")
        }
        _ => Verdict::unknown(reasons::RULE_ERROR, program.describe(stop)),
    }
}
