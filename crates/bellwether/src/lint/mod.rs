//! `bellwether lint`: what is wrong with objects of Bellwether's kinds, and on which lines, before anybody applies them.

mod application;
mod rollup;
mod together;

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stdin},
    path::PathBuf,
};

use anyhow::Result;
use bellwether_api::GROUP;
use bellwether_input::Spot;
use bellwether_model::{Object, Plan, State};
use bellwether_terminal::{Screen, printable, sign, style};
use serde::Serialize;

use crate::{
    cli::Lint,
    output::{BAD_INPUT, Outcome},
    rules::{self, Said, paragraph, printed},
    schema::{self, KindSchema},
};
use together::Ties;

/// What is said of an object.
#[derive(Serialize)]
struct Checked {
    file: String,
    line: usize,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Fault>,
    #[serde(skip)]
    ties: Ties,
}

/// One thing that is wrong, and where.
#[derive(Serialize)]
struct Fault {
    /// The line of the file.
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Where it is in the text of the field, if that has places of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<Within>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip)]
    paragraph: String,
}

/// A place in the text of a field.
#[derive(Serialize)]
struct Within {
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

pub(crate) fn run(command: &Lint, screen: Screen) -> Result<Outcome> {
    let inputs = match inputs(command) {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let (mut checked, mut errors, mut others) = (Vec::new(), Vec::new(), 0);
    let check =
        |object: &Object<'_>, spot: &Spot<'_>| (object.group() == GROUP).then(|| Checked::of(object, spot));
    for entry in bellwether_input::read_with_spots(&inputs, &Plan::whole(), &check) {
        match entry {
            Ok(Some(object)) => checked.push(object),
            Ok(None) => others += 1,
            Err(problem) => errors.push(problem.to_string()),
        }
    }
    let notes = together::look(&mut checked);
    if checked.is_empty() && errors.is_empty() {
        let inputs: Vec<_> = inputs.iter().map(|input| input.display().to_string()).collect();
        errors.push(format!("there is no object of Bellwether's kinds in {}", inputs.join(", ")));
    }
    let text = printed(&checked, command.output, || page(&checked, others, screen))?;
    let is_wrong = checked.iter().any(|object| !object.valid);
    let code = if errors.is_empty() { u8::from(is_wrong) } else { BAD_INPUT };
    Ok(Outcome { text, errors, notes, code })
}

fn inputs(command: &Lint) -> Result<Vec<PathBuf>, String> {
    let inputs: Vec<_> = command.named.iter().chain(&command.files).cloned().collect();
    if inputs.is_empty() && stdin().is_terminal() {
        return Err("there is nothing to look at: name files or directories, or pipe objects in, as in \
                    bellwether lint - < application.yaml"
            .to_owned());
    }
    Ok(if inputs.is_empty() { vec![PathBuf::from("-")] } else { inputs })
}

/// All that is wrong with one of our own objects.
fn faults(object: &Object<'_>) -> Vec<Said> {
    if object.kind() == "HealthRule" {
        return rules::faults(object);
    }
    let faults = match KindSchema::of(object.kind()) {
        Some(schema) => {
            let shape = schema.check(object.fields()).into_iter().chain(schema::wrong_with_head(object));
            let shape: Vec<_> = shape.collect();
            match object.kind() {
                "Application" if shape.is_empty() => application::faults(object),
                "Rollup" if shape.is_empty() => rollup::faults(object),
                _ => shape,
            }
        }
        None => vec![schema::Fault {
            field: "kind".to_owned(),
            text: format!("there is no such kind in {GROUP}; there is {}", KindSchema::kinds().join(", ")),
        }],
    };
    faults.into_iter().map(Said::of_shape).collect()
}

impl Checked {
    fn of(object: &Object<'_>, spot: &Spot<'_>) -> Self {
        let lines = spot.lines();
        let said = faults(object).into_iter().map(|said| {
            let line = said.field.as_deref().map_or_else(|| lines.first(), |field| lines.of(field));
            Fault::of(said, line)
        });
        let repeated = lines.repeated().into_iter().map(|(field, line)| {
            let text = "it is there twice in the same map: leave one of the two out".to_owned();
            Fault::of(Said::of_shape(schema::Fault { field, text }), line)
        });
        let mut faults: Vec<_> = said.chain(repeated).collect();
        faults.sort_by_key(|fault| fault.line);
        Self {
            file: spot.file(),
            line: lines.first(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            valid: faults.is_empty(),
            faults,
            ties: Ties::of(object, &lines),
        }
    }
}

impl Fault {
    fn of(said: Said, line: usize) -> Self {
        let paragraph = paragraph(&said);
        let within = said.line.map(|line| Within { line, column: said.column });
        Self { line, field: said.field, within, text: said.text, hint: said.hint, paragraph }
    }
}

fn page(checked: &[Checked], others: usize, screen: Screen) -> String {
    let mut text = String::new();
    for object in checked {
        let state = Some(if object.valid { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let name = if object.name.is_empty() { "without a name" } else { &object.name };
        let place = format!("{}:{}", object.file, object.line);
        let _ =
            writeln!(text, "{sign} {} {} ({})", printable(&object.kind), printable(name), printable(&place));
        for fault in &object.faults {
            let place = format!("{}:{}", object.file, fault.line);
            let _ = write!(text, "    {}: {}", printable(&place), fault.paragraph.trim_start());
        }
    }
    if !checked.is_empty() {
        let wrong = checked.iter().filter(|object| !object.valid).count();
        let wrong = if wrong == 0 { "nothing".to_owned() } else { wrong.to_string() };
        let _ = write!(text, "{}, {wrong} wrong.", count(checked.len(), "object"));
        if others > 0 {
            let were = if others == 1 { "was" } else { "were" };
            let _ = write!(text, " {} of other kinds {were} not looked at.", count(others, "object"));
        }
        text.push('\n');
    }
    text
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
