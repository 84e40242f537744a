//! The input of the expression benchmark: an expression, and objects (rows) to evaluate it for.

use std::{
    env, fs,
    hint::black_box,
    io::{Write as _, stdout},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use bellwether_expr::{Absence, CompileError, Facts, Fuel, Input, Program, Scope};
use bellwether_model::{Object, Plan, Value};
use serde_json::{Value as Json, json};

/// A compiled expression, and for each row the values that it reads.
#[derive(Debug)]
pub struct Expression<'r> {
    text: &'r str,
    scope: Scope,
    program: Program,
    rows: &'r [Object<'r>],
    facts: Vec<Vec<Option<Value<'static>>>>,
}

impl<'r> Expression<'r> {
    /// Compiles the expression and extracts the values that it reads.
    pub fn read(text: &'r str, rows: &'r [Object<'r>]) -> Result<Self> {
        let scope = Scope::object(Absence::NotYet);
        let program = Program::cel(text, &scope)?;
        let kept = |row: &Object<'_>| {
            let found = program.paths().iter().map(|path| path.find(row.fields(), &mut 0).ok());
            found.map(|value| value.map(Value::to_static)).collect()
        };
        let facts = rows.iter().map(kept).collect();
        Ok(Self { text, scope, program, rows, facts })
    }

    pub fn compile(&self) -> Result<Program, CompileError> {
        Program::cel(self.text, &self.scope)
    }

    /// Evaluates the expression for all rows, on whole objects.
    pub fn over_objects(&self) {
        for row in self.rows {
            self.evaluate(row);
        }
    }

    /// Evaluates the expression for all rows, on the extracted values only.
    pub fn over_facts(&self) {
        for row in &self.facts {
            self.evaluate(&Facts(row));
        }
    }

    fn evaluate(&self, row: &dyn Input) {
        let _ = black_box(self.program.evaluate(row, &mut Fuel::default()));
    }

    /// The result for each row. Fails if facts and objects have different results.
    pub fn values(&self) -> Result<Vec<Json>> {
        let both = self.rows.iter().zip(&self.facts);
        both.map(|(object, facts)| {
            let value = self.value(object)?;
            ensure!(value == self.value(&Facts(facts))?, "the result over facts is not {value}");
            Ok(value)
        })
        .collect()
    }

    fn value(&self, row: &dyn Input) -> Result<Json> {
        let value = self.program.evaluate(row, &mut Fuel::default());
        let value = value.map_err(|stop| anyhow!(self.program.describe(&stop)))?;
        Ok(json!(value.to_value().context("the result has no JSON representation")?))
    }
}

/// Calls `measure` for each expression on the command line, and prints its result as a line of JSON. The
/// first argument is the file with the rows, one object in each line.
pub fn report_expressions(measure: impl Fn(&str, &[Object<'_>]) -> Result<Json>) -> Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().context("missing argument: file with rows")?;
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let plan = Plan::whole();
    let rows: Vec<_> =
        text.lines().map(|row| Object::from_json(row.as_bytes(), &plan)).collect::<Result<_, _>>()?;
    for expression in arguments {
        let line = measure(&expression, &rows).with_context(|| format!("cannot measure `{expression}`"))?;
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}
