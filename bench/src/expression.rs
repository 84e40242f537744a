//! What is measured: an expression over rows, each of them an object, as rules and tables evaluate it.

use std::{
    env, fs,
    hint::black_box,
    io::{Write as _, stdout},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use bellwether_expr::{Absence, Facts, Fuel, Input, Mistake, Program, Scope};
use bellwether_model::{Object, Plan, Value};
use serde_json::{Value as Json, json};

/// An expression that was read once, and what it reads of each row.
#[derive(Debug)]
pub struct Expression<'r> {
    text: &'r str,
    scope: Scope,
    program: Program,
    rows: &'r [Object<'r>],
    facts: Vec<Vec<Option<Value<'static>>>>,
}

impl<'r> Expression<'r> {
    /// Reads it, and keeps of the rows what it needs.
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

    /// Reads it once more.
    pub fn compile(&self) -> Result<Program, Mistake> {
        Program::cel(self.text, &self.scope)
    }

    /// Evaluates it on all rows, whole objects.
    pub fn over_objects(&self) {
        for row in self.rows {
            self.evaluate(row);
        }
    }

    /// Evaluates it on all rows, of which only that is there which it reads.
    pub fn over_facts(&self) {
        for row in &self.facts {
            self.evaluate(&Facts(row));
        }
    }

    fn evaluate(&self, row: &dyn Input) {
        let _ = black_box(self.program.evaluate(row, &mut Fuel::default()));
    }

    /// What it gives for each row; an error unless facts and objects give the same.
    pub fn values(&self) -> Result<Vec<Json>> {
        let both = self.rows.iter().zip(&self.facts);
        both.map(|(object, facts)| {
            let value = self.value(object)?;
            ensure!(value == self.value(&Facts(facts))?, "over facts, it is not {value}");
            Ok(value)
        })
        .collect()
    }

    fn value(&self, row: &dyn Input) -> Result<Json> {
        let value = self.program.evaluate(row, &mut Fuel::default());
        let value = value.map_err(|stop| anyhow!(self.program.describe(&stop)))?;
        Ok(json!(value.to_value().context("JSON cannot tell its value")?))
    }
}

/// Measures the expressions of the command line, and prints for each a line of JSON with what `measure` found. The first
/// argument names the file with the rows, an object in each line.
pub fn report_expressions(measure: impl Fn(&str, &[Object<'_>]) -> Result<Json>) -> Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().context("which file has the rows?")?;
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
