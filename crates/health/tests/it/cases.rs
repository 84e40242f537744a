//! Tables of objects with the expected verdict.
//!
//! A table is a file in `cases`. Write expectations from the meaning of the fields, not from the output of
//! the rules.

use std::{
    collections::BTreeSet,
    fmt::{Display, Write as _},
    fs,
    path::PathBuf,
};

use bellwether_health::{
    Context, Explained, SERVICE_ENDPOINTS, Source, Verdict, assess, explain, plan, reasons, rules,
};
use bellwether_model::{
    Object, Plan, State,
    text::{capitalised, legal_reason},
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The default time of a case.
pub(crate) const NOON: &str = "2026-03-01T12:00:00Z";

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Default fields of the objects.
    #[serde(default)]
    object: Map<String, Value>,
    /// Default rule of the cases.
    #[serde(default)]
    rule: Option<String>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    name: String,
    #[serde(default)]
    now: Option<String>,
    /// Whether the kind has a status subresource, by discovery.
    #[serde(default)]
    has_status: Option<bool>,
    #[serde(default)]
    object: Map<String, Value>,
    expect: Expect,
}

/// Fields that are left out are not compared, except `later` and `blocks`: without `later`, the verdict must
/// have none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    state: State,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    progress: Option<u8>,
    /// The source and the id: `builtin apps/Deployment`.
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    blocks: bool,
    #[serde(default)]
    later: Option<Later>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Later {
    at: String,
    state: State,
}

#[test]
fn each_object_has_the_expected_verdict() {
    let mut differences = Vec::new();
    for (file, table) in tables() {
        let mut names = BTreeSet::new();
        for case in &table.cases {
            let about = |what: &str| format!("{file}: {}: {what}", case.name);
            if !names.insert(&case.name) {
                differences.push(about("duplicate name"));
            }
            differences.extend(difference(&table, case).map(|difference| about(&difference)));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n- {}", differences.len(), differences.join("\n- "));
}

#[test]
fn every_rule_has_a_case() {
    let decided: BTreeSet<String> = tables()
        .flat_map(|(_, table)| {
            table.cases.iter().map(|case| named(&verdict(&table, case, None))).collect::<Vec<_>>()
        })
        .collect();
    let without: Vec<String> = rules()
        .into_iter()
        .map(|rule| match rule.id {
            // The last generic rule has source None.
            "none" => name_of(Source::None, "none"),
            id => name_of(rule.source, id),
        })
        // Not decided by the object alone.
        .filter(|rule| *rule != name_of(SERVICE_ENDPOINTS.source, &SERVICE_ENDPOINTS.id))
        .filter(|rule| !decided.contains(rule))
        .collect();
    assert!(without.is_empty(), "{} rules have no case:\n- {}", without.len(), without.join("\n- "));
}

/// Any other reason is a literal in a rule: add it to `mod reasons`.
#[test]
fn every_reason_is_listed_or_from_the_object() {
    let mut unlisted = Vec::new();
    for (file, table) in tables() {
        for case in &table.cases {
            let Explained { verdict, evidence } = evaluate(&table, case, None, explain);
            let names: Vec<_> =
                evidence.iter().filter_map(|field| field.path.rsplit('.').next()).map(capitalised).collect();
            let object = Value::Object(whole(&table, case));
            let later = verdict.later.iter().map(|later| &later.verdict.reason);
            for reason in later.chain([&verdict.reason]) {
                let is_listed = reasons::ALL.iter().any(|listed| listed.name == *reason);
                let is_in_family = || {
                    let prefixes =
                        reasons::FAMILIES.iter().filter_map(|family| family.name.strip_suffix("<Field>"));
                    prefixes
                        .filter_map(|prefix| reason.strip_prefix(prefix))
                        .any(|name| names.iter().any(|known| known == name))
                };
                if !is_listed && !is_in_family() && !has_text(&object, reason) {
                    unlisted.push(format!("{reason} ({file}: {})", case.name));
                }
            }
        }
    }
    assert!(unlisted.is_empty(), "{} reasons:\n- {}", unlisted.len(), unlisted.join("\n- "));
}

/// Whether a text in the object becomes the reason.
fn has_text(value: &Value, reason: &str) -> bool {
    match value {
        Value::String(text) => legal_reason(text) == reason || legal_reason(capitalised(text)) == reason,
        Value::Array(list) => list.iter().any(|entry| has_text(entry, reason)),
        Value::Object(map) => map.values().any(|field| has_text(field, reason)),
        _ => false,
    }
}

/// The difference between verdict and expectation, if any.
fn difference(table: &Table, case: &Case) -> Option<String> {
    let whole = verdict(table, case, Some(&Plan::everything()));
    let pruned = verdict(table, case, None);
    if whole != pruned {
        return Some(format!("verdict on the whole object: {whole:?}, on the planned fields: {pruned:?}"));
    }
    let expect = &case.expect;
    let mut differences = String::new();
    let mut compare = |what: &str, expected: Option<String>, found: String| {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            let _ = write!(differences, "\n    {what}: {found}\n      expected: {expected}");
        }
    };
    let rule = expect.rule.as_ref().or(table.rule.as_ref());
    compare("state", Some(format!("{:?}", expect.state)), format!("{:?}", whole.state));
    compare("reason", expect.reason.clone(), whole.reason.to_string());
    compare("message", expect.message.clone(), whole.message.to_string());
    compare("progress", expect.progress.map(|progress| progress.to_string()), whole.progress.to_string());
    compare("blocks", Some(expect.blocks.to_string()), whole.blocks.to_string());
    compare("rule", rule.cloned(), named(&whole));
    compare(
        "since",
        expect.since.clone(),
        whole.since.map_or_else(|| "unknown".to_owned(), |since| since.to_string()),
    );
    let nothing = || "none".to_owned();
    let later = |at: &dyn Display, state: State| format!("{state:?} at {at}");
    compare(
        "later",
        Some(expect.later.as_ref().map_or_else(nothing, |expected| later(&expected.at, expected.state))),
        whole.later.as_ref().map_or_else(nothing, |found| later(&found.at, found.verdict.state)),
    );
    (!differences.is_empty()).then(|| {
        format!(
            "{differences}\n    verdict: {:?} {} {}% {:?}",
            whole.state, whole.reason, whole.progress, whole.message
        )
    })
}

pub(crate) fn objects() -> Vec<Value> {
    tables()
        .flat_map(|(_, table)| {
            table.cases.iter().map(|case| Value::Object(whole(&table, case))).collect::<Vec<_>>()
        })
        .collect()
}

/// The object of a case with the default fields of its table.
fn whole(table: &Table, case: &Case) -> Map<String, Value> {
    let mut object = case.object.clone();
    for (field, value) in &table.object {
        object.entry(field.clone()).or_insert_with(|| value.clone());
    }
    object
}

/// Decodes the object with a plan, by default that of its kind, as a watch does.
fn evaluate<T>(
    table: &Table,
    case: &Case,
    with: Option<&Plan>,
    evaluate: fn(&Object<'_>, &Context<'_>) -> T,
) -> T {
    let json = serde_json::to_vec(&whole(table, case)).expect("a JSON map");
    let object = Object::from_json(&json, &Plan::identity()).expect("a JSON object");
    let own = plan(object.group(), object.kind());
    let object = Object::from_json(&json, with.unwrap_or(&own)).expect("a JSON object");
    let now: Timestamp = case.now.as_deref().unwrap_or(NOON).parse().expect("a time");
    evaluate(&object, &Context { has_status: case.has_status, ..Context::at(now) })
}

fn verdict(table: &Table, case: &Case, with: Option<&Plan>) -> Verdict {
    evaluate(table, case, with, assess)
}

fn named(verdict: &Verdict) -> String {
    name_of(verdict.rule.source, &verdict.rule.id)
}

fn name_of(source: Source, id: &str) -> String {
    format!("{} {id}", format!("{source:?}").to_lowercase())
}

/// With file names.
fn tables() -> impl Iterator<Item = (String, Table)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cases");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the directory of tables")
        .map(|file| file.expect("a directory entry").path())
        .collect();
    files.sort();
    files.into_iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a readable table");
        let table = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, table)
    })
}
