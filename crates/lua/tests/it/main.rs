//! Health scripts: the library, the errors, the limits, and that results are reproducible.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a mistake in a table or in a helper fails the test that uses it; bombs print how long they took"
)]

mod argo;
mod bombs;
mod library;
mod limits;
mod patterns;
mod same;
mod script_errors;

use bellwether_lua::{Budget, Failure, Outcome, Script};
use bellwether_model::Value;
use jiff::Timestamp;

/// The time of every run, a Sunday.
const NOW: &str = "2026-03-01T12:34:56Z";

fn now() -> Timestamp {
    NOW.parse().expect("a timestamp")
}

fn run_on(source: &str, object: &Value<'_>) -> Result<Outcome, Failure> {
    Script::compile(source).expect("valid Lua").run(object, now(), Budget::default())
}

fn run_json(source: &str, object: &str) -> Result<Outcome, Failure> {
    run_on(source, &value(&serde_json::from_str(object).expect("valid JSON")))
}

fn value(json: &serde_json::Value) -> Value<'_> {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| Value::Float(number.as_f64().expect("fits a double")), Value::Int)
        }
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Array(list) => Value::List(list.iter().map(value).collect()),
        Json::Object(map) => {
            Value::Map(map.iter().map(|(key, own)| (key.as_str().into(), value(own))).collect())
        }
    }
}

/// The value of an expression, as `tostring` prints it.
fn eval(expression: &str) -> String {
    output(&format!("return {expression}"))
}

/// The results of a chunk, as `tostring` prints them, or its error.
fn output(chunk: &str) -> String {
    let source = format!(
        "local function join(...)
           local words = {{}}
           for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end
           return {{ message = table.concat(words, ' ') }}
         end
         local function chunk() {chunk} end
         return join(chunk())"
    );
    match run_on(&source, &Value::Null) {
        Ok(outcome) => outcome.message,
        Err(failure) => failure.to_string(),
    }
}
