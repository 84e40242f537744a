//! What the page and the log show of a CombinedStatus.

use std::{collections::BTreeMap, iter};

use bellwether_api::{CombinedResult, CombinedStatusFields, TypedValue};
use bellwether_model::State;
use bellwether_terminal::{Screen, style};
use serde::Deserialize as _;
use serde_json::Value;

use super::memory::text;
use crate::result_table;

/// The columns of the StatusCollector of the story that are read.
const CLUSTER: &str = "cluster";
const STATE: &str = "state";

/// In the column `state`, where other rows have a state of health.
const STALE: &str = "stale";

pub(super) struct CombinedStatus {
    /// Of the object.
    pub(super) kind: String,
    pub(super) name: String,
    bound: i32,
    /// Of the first collector: a row for each cluster.
    result: CombinedResult,
}

impl CombinedStatus {
    /// `None` while it has no result.
    pub(super) fn of(stored: &Value) -> Option<Self> {
        let CombinedStatusFields { results, clusters } = CombinedStatusFields::deserialize(stored).ok()?;
        let object = &stored["metadata"]["ownerReferences"][0];
        Some(Self {
            kind: text(&object["kind"]).to_owned(),
            name: text(&object["name"]).to_owned(),
            bound: clusters?.bound,
            result: results.into_iter().next()?,
        })
    }

    /// `3 clusters, 1 stale`
    pub(super) fn counts(&self) -> String {
        self.with_states(|state, clusters| format!("{} {state}", clusters.len()))
    }

    /// `3 clusters, 1 stale: west`
    pub(super) fn summary(&self) -> String {
        self.with_states(|state, clusters| format!("{} {state}: {}", clusters.len(), clusters.join(", ")))
    }

    fn with_states(&self, clusters_in: impl Fn(&str, &[&str]) -> String) -> String {
        let mut states: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in self.result.rows.iter().map(|row| &row.columns) {
            if let (Some(cluster), Some(state)) = (self.value(row, CLUSTER), self.value(row, STATE)) {
                states.entry(state).or_default().push(cluster);
            }
        }
        states.remove(State::Ready.name());
        let states: Vec<_> = states.iter().map(|(state, clusters)| clusters_in(state, clusters)).collect();
        let states =
            if states.is_empty() { format!("all {}", State::Ready.name()) } else { states.join("; ") };
        format!("{} clusters, {states}", self.bound)
    }

    fn value<'r>(&self, row: &'r [TypedValue], column: &str) -> Option<&'r str> {
        let index = self.result.column_names.iter().position(|name| name == column)?;
        row.get(index)?.string.as_deref()
    }

    /// As `bellwether query` prints it; stale rows in the colour of an unknown state.
    pub(super) fn table(&self, screen: Screen) -> String {
        let (names, rows) = (&self.result.column_names, &self.result.rows);
        let columns = names.iter().map(String::as_str);
        let table = result_table::print(columns, rows.iter().map(|row| row.columns.iter()), None, screen);
        let states = rows.iter().map(|row| self.value(&row.columns, STATE));
        // The headers are the first line.
        let lines = table.lines().zip(iter::once(None).chain(states));
        let paint = |(line, state): (&str, Option<&str>)| match state {
            Some(STALE) => format!("{}\n", screen.paint(line, style(Some(State::Unknown)))),
            _ => format!("{line}\n"),
        };
        lines.map(paint).collect()
    }
}
