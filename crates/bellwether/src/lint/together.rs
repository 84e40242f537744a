//! Errors between objects: duplicates, cycles of Rollups, and BindingPolicies with unknown StatusCollectors.

use std::collections::{HashMap, HashSet, VecDeque};

use bellwether_api::GROUP;
use bellwether_input::Lines;
use bellwether_model::{Object, Value};
use bellwether_terminal::first_few;

use super::{LintedObject, application::error};
use crate::{collectors::KIND, rules::Finding, schema::nearest};

/// What refers from an object to others.
#[derive(Default)]
pub(super) struct References {
    /// The line of metadata.name.
    line: usize,
    /// The name, field and line of each component that is a Rollup.
    rollups: Vec<(String, String, usize)>,
    /// The name, field and line of each StatusCollector of a BindingPolicy.
    collectors: Vec<(String, String, usize)>,
}

impl References {
    pub(super) fn of(object: &Object<'_>, lines: &Lines) -> Self {
        let components = object.at("spec.components").and_then(Value::as_list);
        let rollups = components.into_iter().flatten().enumerate().filter_map(|(index, component)| {
            let text = |field: &str| component.get(field).and_then(Value::as_text);
            let is_rollup = (text("group"), text("kind")) == (Some(GROUP), Some("Rollup"));
            let field = format!("spec.components[{index}]");
            let line = lines.of(&field);
            is_rollup.then_some((text("name")?.to_owned(), field, line))
        });
        let rollups = rollups.collect();
        Self { line: lines.of("metadata.name"), rollups, collectors: collectors_of(object, lines) }
    }
}

fn collectors_of(object: &Object<'_>, lines: &Lines) -> Vec<(String, String, usize)> {
    let clauses =
        object.at("spec.downsync").and_then(Value::as_list).filter(|_| object.kind() == "BindingPolicy");
    let mut collectors = Vec::new();
    for (clause_index, clause) in clauses.into_iter().flatten().enumerate() {
        let names = clause.get("statusCollectors").and_then(Value::as_list).unwrap_or_default();
        for (index, name) in names.iter().enumerate() {
            let field = format!("spec.downsync[{clause_index}].statusCollectors[{index}]");
            let line = lines.of(&field);
            collectors.extend(name.as_text().map(|name| (name.to_owned(), field, line)));
        }
    }
    collectors
}

/// Adds the errors between objects to each of them. Returns notes about what may be intended.
pub(super) fn check(checked: &mut [LintedObject]) -> Vec<String> {
    let (mut found, mut notes) = duplicates(checked);
    found.extend(cycles(checked));
    let (misspelt, unknown) = unknown_collectors(checked);
    found.extend(misspelt);
    notes.extend(unknown);
    for (index, finding) in found {
        if let Some(object) = checked.get_mut(index) {
            object.valid = false;
            object.errors.push(finding);
            object.errors.sort_by_key(|finding| finding.line);
        }
    }
    notes
}

/// Objects with the same kind, namespace and name: the last one applied wins. In two files they may be for
/// two clusters, so that is only a note.
fn duplicates(checked: &[LintedObject]) -> (Vec<(usize, Finding)>, Vec<String>) {
    let mut known = HashMap::new();
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    for (index, object) in checked.iter().enumerate().filter(|(_, object)| !object.name.is_empty()) {
        let LintedObject { file, kind, namespace, name, references, .. } = object;
        let first = *known.entry((kind, namespace, name)).or_insert(object);
        let message = format!("duplicate {kind} {name:?}: also in {}:{}", first.file, first.line);
        if std::ptr::eq(first, object) {
            continue;
        }
        if first.file == *file {
            findings.push((index, finding("metadata.name", message, references.line)));
        } else {
            notes.push(format!("{file}:{}: {message}", object.line));
        }
    }
    (findings, first_few(notes))
}

/// StatusCollectors that are not in the input. They may be in the cluster, so that is only a note, unless the
/// input has one with almost this name.
fn unknown_collectors(checked: &[LintedObject]) -> (Vec<(usize, Finding)>, Vec<String>) {
    let known: Vec<_> =
        checked.iter().filter(|object| object.kind == KIND).map(|object| object.name.as_str()).collect();
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    for (index, LintedObject { file, references, .. }) in checked.iter().enumerate() {
        for (name, field, line) in &references.collectors {
            match nearest(name, &known) {
                _ if known.contains(&name.as_str()) => {}
                Some(meant) => {
                    let message = format!("unknown StatusCollector {name:?} (did you mean {meant:?}?)");
                    findings.push((index, finding(field, message, *line)));
                }
                None => notes.push(format!("{file}:{line}: StatusCollector {name:?} is not in the input")),
            }
        }
    }
    (findings, first_few(notes))
}

/// Rollups that are components of one another. A Rollup that is its own component has an error already.
fn cycles<'c>(checked: &'c [LintedObject]) -> Vec<(usize, Finding)> {
    let rollups = || checked.iter().enumerate().filter(|(_, object)| object.kind == "Rollup");
    let references: HashMap<_, _> =
        rollups().map(|(_, object)| (object.name.as_str(), &object.references)).collect();
    let others = |of: &str| {
        let named = references.get(of).map(|references| references.rollups.as_slice()).unwrap_or_default();
        named.iter().map(|(name, ..)| name.as_str()).filter(|name| *name != of).collect::<Vec<_>>()
    };
    let cycle = |(index, object): (usize, &'c LintedObject)| {
        let path = shortest_cycle(&object.name, &others)?;
        let next = *path.get(1)?;
        let (_, field, line) = object.references.rollups.iter().find(|(name, ..)| name == next)?;
        let cycle = path.join(" -> ");
        let message = format!("component cycle: {cycle}: remove one of these components");
        Some((index, finding(field, message, *line)))
    };
    rollups().filter_map(cycle).collect()
}

/// The shortest path from a name back to itself, both ends included.
fn shortest_cycle<'n>(from: &'n str, others: &dyn Fn(&str) -> Vec<&'n str>) -> Option<Vec<&'n str>> {
    let mut paths = VecDeque::from([vec![from]]);
    let mut seen = HashSet::new();
    while let Some(path) = paths.pop_front() {
        for other in others(path.last()?) {
            let longer: Vec<_> = path.iter().copied().chain([other]).collect();
            if other == from {
                return Some(longer);
            }
            if seen.insert(other) {
                paths.push_back(longer);
            }
        }
    }
    None
}

fn finding(field: &str, message: String, line: usize) -> Finding {
    Finding::in_field(error(field, message)).at(Some(line))
}
