//! Test suites: objects and their expected verdicts.
//!
//! A suite is a YAML file whose name ends in `_test.yaml`, with a list of `tests`. Suites for Argo CD have
//! `inputPath` and `healthStatus`; suites for Bellwether have `input` or `object`, and `expect`.

use std::path::{Path, PathBuf};

use bellwether_input::ObjectLocation;
use bellwether_model::{Object, Plan, State};
use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use crate::schema::not_one_of;

pub(super) struct Suite {
    pub(super) file: PathBuf,
    pub(super) cases: Vec<Case>,
}

pub(super) struct Case {
    /// The name of the case, or the file of the object.
    pub(super) name: String,
    pub(super) object: Result<Object<'static>, String>,
    pub(super) now: Option<Timestamp>,
    pub(super) expected: Expected,
}

pub(super) enum Expected {
    /// The exact status and message of Argo CD.
    Argo { status: String, message: String },
    /// The verdict. Only fields that are set are compared.
    Ours { state: Option<State>, reason: Option<String>, message: Option<String>, progress: Option<i64> },
}

impl Suite {
    /// Reads a suite. `None` if the file has tests of Argo CD actions.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        let invalid = |what: String| format!("{}: {what}", file.display());
        let suite = bellwether_input::read_value(file).map_err(|error| error.to_string())?;
        let fields =
            suite.as_object().ok_or_else(|| invalid("must be a map with a list of tests".to_owned()))?;
        let Some(tests) = field(fields, "tests") else {
            // Argo CD has tests of actions in files with similar names.
            let is_of_actions =
                ["actionTests", "discoveryTests"].iter().any(|name| field(fields, name).is_some());
            return if is_of_actions { Ok(None) } else { Err(invalid("tests: required".to_owned())) };
        };
        let tests = tests.as_array().ok_or_else(|| invalid("tests: must be a list".to_owned()))?;
        if has_actions(file, tests) {
            return Ok(None);
        }
        if tests.is_empty() {
            return Err(invalid("tests: must have at least 1 entry, has 0".to_owned()));
        }
        let directory = file.parent().unwrap_or(Path::new("."));
        let cases = tests.iter().enumerate().map(|(index, written)| {
            Case::read(written, directory, index).map_err(|what| invalid(format!("tests[{index}]: {what}")))
        });
        Ok(Some(Self { file: file.to_owned(), cases: cases.collect::<Result<_, _>>()? }))
    }
}

/// Whether the file has tests of Argo CD actions: its name says so, and no case has an object.
fn has_actions(file: &Path, tests: &[Json]) -> bool {
    let has = |case: &Json, name| case.as_object().is_some_and(|fields| field(fields, name).is_some());
    let has_object = |case: &Json| ["input", "inputPath", "object"].iter().any(|name| has(case, name));
    let is_name = file.file_stem().is_some_and(|name| name == "actions_test" || name == "action_test");
    is_name && !tests.iter().any(has_object)
}

impl Case {
    fn read(written: &Json, directory: &Path, index: usize) -> Result<Self, String> {
        const KNOWN: [&str; 7] = ["name", "input", "inputPath", "object", "now", "expect", "healthStatus"];
        let fields = written.as_object().ok_or("must be a map")?;
        let is_known = |name: &str| KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name));
        if let Some(stray) = fields.keys().find(|name| !is_known(name)) {
            return Err(not_one_of(&format!("unknown field {stray:?}"), stray, &KNOWN));
        }
        let input = match text(fields, "inputPath")? {
            Some(input) => Some(input),
            None => text(fields, "input")?,
        };
        let (name, object) = match (input, field(fields, "object")) {
            (Some(input), None) => (input.clone(), first_object(&directory.join(input))),
            (None, Some(object)) => (format!("tests[{index}]"), inline(object)),
            (Some(_), Some(_)) => return Err("set only one of input and object".to_owned()),
            (None, None) => {
                return Err("set input to the name of a file, or object to an object".to_owned());
            }
        };
        let expected = match (field(fields, "healthStatus"), field(fields, "expect")) {
            (Some(expected), None) => argo(expected)?,
            (None, Some(expected)) => ours(expected)?,
            _ => {
                return Err("set exactly one of expect and healthStatus, for example expect: {state: Ready}"
                    .to_owned());
            }
        };
        let now = match text(fields, "now")? {
            Some(now) => Some(now.parse().map_err(|_| {
                format!("now: invalid time {now:?}: use a time such as 2026-11-14T12:00:00Z")
            })?),
            None => None,
        };
        Ok(Self { name: text(fields, "name")?.unwrap_or(name), object, now, expected })
    }
}

/// The string in a field, if it is set.
fn text(fields: &Map<String, Json>, name: &str) -> Result<Option<String>, String> {
    match field(fields, name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("{name}: must be a string, not {other}")),
    }
}

fn argo(expected: &Json) -> Result<Expected, String> {
    let fields = expected.as_object().ok_or("healthStatus: must be a map")?;
    let text = |name: &str| text(fields, name).map(Option::unwrap_or_default);
    Ok(Expected::Argo { status: text("status")?, message: text("message")? })
}

fn ours(expected: &Json) -> Result<Expected, String> {
    const KNOWN: [&str; 4] = ["state", "reason", "message", "progress"];
    let fields = expected.as_object().ok_or("expect: must be a map")?;
    if let Some(stray) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(not_one_of(&format!("expect: unknown field {stray:?}"), stray, &KNOWN));
    }
    if fields.is_empty() {
        return Err("expect: must not be empty: set state".to_owned());
    }
    let state = match text(fields, "state")? {
        Some(state) => Some(serde_json::from_value::<State>(Json::String(state.clone())).map_err(|_| {
            let states = ["Ready", "InProgress", "Failed", "Suspended", "Terminating", "Unknown"];
            not_one_of(&format!("state: unsupported value {state:?}"), &state, &states)
        })?),
        None => None,
    };
    let progress = match fields.get("progress") {
        None => None,
        Some(progress) => {
            Some(progress.as_i64().ok_or(format!("progress: must be an integer, not {progress}"))?)
        }
    };
    Ok(Expected::Ours { state, reason: text(fields, "reason")?, message: text(fields, "message")?, progress })
}

/// The first object in a file; as in Argo CD, all others are ignored.
fn first_object(file: &Path) -> Result<Object<'static>, String> {
    let read = |object: &Object<'_>, _: &ObjectLocation<'_>| object.to_static();
    // Argo CD accepts duplicate keys, and has some.
    let entries = bellwether_input::read_with_duplicate_keys(&[file.to_owned()], &Plan::whole(), &read);
    entries
        .into_iter()
        .next()
        .ok_or_else(|| format!("no objects in {}", file.display()))?
        .map_err(|problem| problem.to_string())
}

fn inline(object: &Json) -> Result<Object<'static>, String> {
    Object::from_json(object.to_string().as_bytes(), &Plan::whole())
        .map(|object| object.to_static())
        .map_err(|error| error.to_string())
}

/// A field by its name, ignoring case as Go does.
fn field<'j>(fields: &'j Map<String, Json>, name: &str) -> Option<&'j Json> {
    fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
