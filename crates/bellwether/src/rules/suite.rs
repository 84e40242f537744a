//! Suites of tests: objects, and what is expected of them.
//!
//! A suite is a YAML file whose name ends in `_test.yaml`, with a list of `tests`. Argo CD's have `inputPath` and
//! `healthStatus`; ours have `input` or `object`, and `expect`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bellwether_model::{Object, Plan, State};
use jiff::Timestamp;
use serde_json::{Map, Value as Json};

/// A suite.
pub(super) struct Suite {
    pub(super) file: PathBuf,
    pub(super) cases: Vec<Case>,
}

/// An object, and what is expected of it.
pub(super) struct Case {
    /// What it is called, or the file of the object.
    pub(super) name: String,
    pub(super) object: Result<Object<'static>, String>,
    pub(super) now: Option<Timestamp>,
    pub(super) expected: Expected,
}

/// What is expected.
pub(super) enum Expected {
    /// In Argo CD's words: both, exactly.
    Argo { status: String, message: String },
    /// In ours: what is said of it, and nothing of what is not.
    Ours { state: Option<State>, reason: Option<String>, message: Option<String>, progress: Option<i64> },
}

impl Suite {
    /// Reads a suite; none if the file is a suite of something else.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        let wrong = |what: String| format!("{}: {what}", file.display());
        let text =
            fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let suite: Json =
            serde_saphyr::from_str(&text).map_err(|error| wrong(format!("it is no YAML: {error}")))?;
        let fields = suite.as_object().ok_or_else(|| wrong("it is no map".to_owned()))?;
        let Some(tests) = field(fields, "tests") else {
            // Argo CD tests the actions of its kinds with files of much the same name.
            let is_of_actions =
                ["actionTests", "discoveryTests"].iter().any(|name| field(fields, name).is_some());
            return if is_of_actions { Ok(None) } else { Err(wrong("it has no list of tests".to_owned())) };
        };
        let tests = tests.as_array().ok_or_else(|| wrong("tests is no list".to_owned()))?;
        if tests.is_empty() {
            return Err(wrong("its list of tests is empty".to_owned()));
        }
        let directory = file.parent().unwrap_or(Path::new("."));
        let cases = tests.iter().enumerate().map(|(index, written)| {
            Case::read(written, directory, index).map_err(|what| wrong(format!("tests[{index}]: {what}")))
        });
        Ok(Some(Self { file: file.to_owned(), cases: cases.collect::<Result<_, _>>()? }))
    }
}

impl Case {
    fn read(written: &Json, directory: &Path, index: usize) -> Result<Self, String> {
        const KNOWN: [&str; 7] = ["name", "input", "inputPath", "object", "now", "expect", "healthStatus"];
        let fields = written.as_object().ok_or("it is no map")?;
        let is_known = |name: &str| KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name));
        if let Some(stray) = fields.keys().find(|name| !is_known(name)) {
            return Err(format!("there is no `{stray}`; there is {}", KNOWN.join(", ")));
        }
        let input = match text(fields, "inputPath")? {
            Some(input) => Some(input),
            None => text(fields, "input")?,
        };
        let (name, object) = match (input, field(fields, "object")) {
            (Some(input), None) => (input.clone(), first_object(&directory.join(input))),
            (None, Some(object)) => (format!("tests[{index}]"), inline(object)),
            (Some(_), Some(_)) => return Err("it has an input and an object: leave one out".to_owned()),
            (None, None) => {
                return Err("it has no object: give `input`, the name of a file, or `object`".to_owned());
            }
        };
        let expected = match (field(fields, "healthStatus"), field(fields, "expect")) {
            (Some(expected), None) => argo(expected)?,
            (None, Some(expected)) => ours(expected)?,
            _ => return Err("it has nothing that is expected: give `expect: {state: Ready}`".to_owned()),
        };
        let now = match text(fields, "now")? {
            Some(now) => Some(
                now.parse()
                    .map_err(|_| format!("now is `{now}`, and should look like 2026-11-14T12:00:00Z"))?,
            ),
            None => None,
        };
        Ok(Self { name: text(fields, "name")?.unwrap_or(name), object, now, expected })
    }
}

/// The text of a field, if there is one.
fn text(fields: &Map<String, Json>, name: &str) -> Result<Option<String>, String> {
    match field(fields, name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("{name} is {other}, and should be text")),
    }
}

fn argo(expected: &Json) -> Result<Expected, String> {
    let fields = expected.as_object().ok_or("healthStatus is no map")?;
    let text = |name: &str| text(fields, name).map(Option::unwrap_or_default);
    Ok(Expected::Argo { status: text("status")?, message: text("message")? })
}

fn ours(expected: &Json) -> Result<Expected, String> {
    const KNOWN: [&str; 4] = ["state", "reason", "message", "progress"];
    let fields = expected.as_object().ok_or("expect is no map")?;
    if let Some(stray) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("expect has no `{stray}`; it has {}", KNOWN.join(", ")));
    }
    if fields.is_empty() {
        return Err("expect is empty: give a state".to_owned());
    }
    let state = match text(fields, "state")? {
        Some(state) => Some(serde_json::from_value::<State>(Json::String(state.clone())).map_err(|_| {
            format!("there is no state `{state}`: give Ready, InProgress, Failed, Suspended, Terminating or Unknown")
        })?),
        None => None,
    };
    let progress = match fields.get("progress") {
        None => None,
        Some(progress) => {
            Some(progress.as_i64().ok_or(format!("progress is {progress}, and should be a number"))?)
        }
    };
    Ok(Expected::Ours { state, reason: text(fields, "reason")?, message: text(fields, "message")?, progress })
}

/// The first object of a file. Argo CD looks at no other.
fn first_object(file: &Path) -> Result<Object<'static>, String> {
    let entries = bellwether_input::read(&[file.to_owned()], &Plan::whole(), &|object| object.to_static());
    entries.into_iter().next().ok_or("the file is empty")?.map_err(|problem| problem.to_string())
}

fn inline(object: &Json) -> Result<Object<'static>, String> {
    Object::from_json(object.to_string().as_bytes(), &Plan::whole())
        .map(|object| object.to_static())
        .map_err(|error| error.to_string())
}

/// A field by its name, as Go finds it: large or small letters are the same.
fn field<'j>(fields: &'j Map<String, Json>, name: &str) -> Option<&'j Json> {
    fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
