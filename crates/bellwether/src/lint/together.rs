//! What is wrong with objects only beside one another: two of one name, and Rollups in a circle.

use std::collections::{HashMap, HashSet, VecDeque};

use bellwether_api::GROUP;
use bellwether_input::Lines;
use bellwether_model::{Object, Value};
use bellwether_terminal::first_few;

use super::{Checked, Fault, application::fault};
use crate::rules::Said;

/// What an object has to do with others.
#[derive(Default)]
pub(super) struct Ties {
    /// The line of its name.
    line: usize,
    /// The Rollups that are its components, with their fields and lines.
    rollups: Vec<(String, String, usize)>,
}

impl Ties {
    pub(super) fn of(object: &Object<'_>, lines: &Lines) -> Self {
        let components = object.at("spec.components").and_then(Value::as_list);
        let rollups = components.into_iter().flatten().enumerate().filter_map(|(index, component)| {
            let text = |field: &str| component.get(field).and_then(Value::as_text);
            let is_rollup = (text("group"), text("kind")) == (Some(GROUP), Some("Rollup"));
            let field = format!("spec.components[{index}]");
            let line = lines.of(&field);
            is_rollup.then_some((text("name")?.to_owned(), field, line))
        });
        Self { line: lines.of("metadata.name"), rollups: rollups.collect() }
    }
}

/// Says of each what is wrong with it beside the others. Gives back what may be meant so.
pub(super) fn look(checked: &mut [Checked]) -> Vec<String> {
    let (mut found, notes) = same_names(checked);
    found.extend(circles(checked));
    for (index, fault) in found {
        if let Some(object) = checked.get_mut(index) {
            object.valid = false;
            object.faults.push(fault);
            object.faults.sort_by_key(|fault| fault.line);
        }
    }
    notes
}

/// Of two that are one for a cluster, it has only the one that was applied last. In two files they may be meant for two
/// clusters.
fn same_names(checked: &[Checked]) -> (Vec<(usize, Fault)>, Vec<String>) {
    let mut known = HashMap::new();
    let (mut faults, mut notes) = (Vec::new(), Vec::new());
    for (index, object) in checked.iter().enumerate().filter(|(_, object)| !object.name.is_empty()) {
        let Checked { file, kind, namespace, name, ties, .. } = object;
        let first = *known.entry((kind, namespace, name)).or_insert(object);
        let text = format!("the same {kind} is also in {}:{}", first.file, first.line);
        if std::ptr::eq(first, object) {
            continue;
        }
        if first.file == *file {
            faults.push((index, said("metadata.name", text, ties.line)));
        } else {
            notes.push(format!("{file}:{}: {text}", object.line));
        }
    }
    (faults, first_few(notes))
}

/// Rollups that are components of one another; of one that is its own, its own field speaks.
fn circles<'c>(checked: &'c [Checked]) -> Vec<(usize, Fault)> {
    let rollups = || checked.iter().enumerate().filter(|(_, object)| object.kind == "Rollup");
    let ties: HashMap<_, _> = rollups().map(|(_, object)| (object.name.as_str(), &object.ties)).collect();
    let others = |of: &str| {
        let named = ties.get(of).map(|ties| ties.rollups.as_slice()).unwrap_or_default();
        named.iter().map(|(name, ..)| name.as_str()).filter(|name| *name != of).collect::<Vec<_>>()
    };
    let circle = |(index, object): (usize, &'c Checked)| {
        let way = way_back(&object.name, &others)?;
        let next = *way.get(1)?;
        let (_, field, line) = object.ties.rollups.iter().find(|(name, ..)| name == next)?;
        let text = format!("it leads in a circle: {}; leave one of them out", way.join(", "));
        Some((index, said(field, text, *line)))
    };
    rollups().filter_map(circle).collect()
}

/// The shortest way from one back to itself, which it begins and ends with.
fn way_back<'n>(from: &'n str, others: &dyn Fn(&str) -> Vec<&'n str>) -> Option<Vec<&'n str>> {
    let mut ways = VecDeque::from([vec![from]]);
    let mut seen = HashSet::new();
    while let Some(way) = ways.pop_front() {
        for other in others(way.last()?) {
            let longer: Vec<_> = way.iter().copied().chain([other]).collect();
            if other == from {
                return Some(longer);
            }
            if seen.insert(other) {
                ways.push_back(longer);
            }
        }
    }
    None
}

fn said(field: &str, text: String, line: usize) -> Fault {
    Fault::of(Said::of_shape(fault(field, text)), line)
}
