//! The parts of `bellwether status` that only Rollups have.

use bellwether_engine::{
    Group, ReportedConditions,
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING, RESOLVED, UPGRADEABLE},
};
use bellwether_terminal::{Screen, first_items, printable, wrap};

use super::push_paragraph;

/// What the conditions of a Rollup mean together. Empty for other groups.
pub fn meaning(group: &Group, screen: Screen) -> String {
    let Some(meaning) = group.meaning() else { return String::new() };
    wrap(&printable(meaning), screen.page()).join("\n") + "\n"
}

/// The conditions of a Rollup that are not at their healthy value, a paragraph each. Messages are shortened
/// unless `wide`.
pub(super) fn conditions(group: &Group, wide: bool, screen: Screen) -> String {
    let mut text = String::new();
    for (conditions, why) in merged_conditions(group, wide) {
        push_paragraph(&mut text, "  ", &format!("{conditions} {why}"), screen.page());
    }
    text
}

/// The order of the columns of components.
const ORDER: [&str; 4] = [AVAILABLE, PROGRESSING, DEGRADED, UPGRADEABLE];

/// `Type=Status, …` and `(Reason): message`. Conditions with the same reason and message share a paragraph.
/// `Resolved` is printed below the causes instead.
fn merged_conditions(group: &Group, wide: bool) -> Vec<(String, String)> {
    let mut conditions: Vec<_> =
        group.notable_conditions().filter(|condition| condition.type_ != RESOLVED).collect();
    conditions.sort_by_key(|condition| {
        ORDER.iter().position(|type_| *type_ == condition.type_).unwrap_or(ORDER.len())
    });
    let mut merged: Vec<(String, String)> = Vec::new();
    for condition in conditions {
        let statement = &condition.statement;
        let status = format!("{}={}", condition.type_, statement.status.name());
        let message = if wide { statement.message.as_ref().into() } else { first_items(&statement.message) };
        let why = format!("({}): {message}", statement.reason);
        match merged.iter_mut().find(|(_, same)| *same == why) {
            Some((before, _)) => before.extend([", ", &status]),
            None => merged.push((status, why)),
        }
    }
    merged
}

/// `Available=True, Progressing=False, Degraded=False`
pub(super) fn reported(conditions: ReportedConditions) -> String {
    let ReportedConditions { available, progressing, degraded, upgradeable } = conditions;
    let upgradeable =
        upgradeable.map(|status| format!(", Upgradeable={}", status.name())).unwrap_or_default();
    format!(
        "Available={}, Progressing={}, Degraded={}{upgradeable}",
        available.name(),
        progressing.name(),
        degraded.name()
    )
}
