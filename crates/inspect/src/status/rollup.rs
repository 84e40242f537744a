//! The parts of `bellwether status` that only Rollups have.

use std::fmt::Write as _;

use bellwether_engine::{Group, ReportedConditions, condition_types};
use bellwether_terminal::{Screen, first_items, printable, wrap};

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
        let paragraph = format!("{conditions} {why}");
        for (index, line) in wrap(&printable(&paragraph), screen.page() - 4).iter().enumerate() {
            let _ = writeln!(text, "{}{line}", if index == 0 { "  " } else { "    " });
        }
    }
    text
}

/// `Type=Status, …` and `(Reason): message`. Neighbours with the same reason and message share a paragraph.
/// `Resolved` is printed below the causes instead.
fn merged_conditions(group: &Group, wide: bool) -> Vec<(String, String)> {
    let mut merged: Vec<(String, String)> = Vec::new();
    for condition in
        group.notable_conditions().filter(|condition| condition.type_ != condition_types::RESOLVED)
    {
        let statement = &condition.statement;
        let status = format!("{}={}", condition.type_, statement.status.name());
        let message = if wide { statement.message.as_ref().into() } else { first_items(&statement.message) };
        let why = format!("({}): {message}", statement.reason);
        match merged.last_mut() {
            Some((before, same)) if *same == why => before.extend([", ", &status]),
            _ => merged.push((status, why)),
        }
    }
    merged
}

/// `Available=True Progressing=False Degraded=False`
pub(super) fn reported(conditions: ReportedConditions) -> String {
    let ReportedConditions { available, progressing, degraded, upgradeable } = conditions;
    let upgradeable = upgradeable.map(|status| format!(" Upgradeable={}", status.name())).unwrap_or_default();
    format!(
        "Available={} Progressing={} Degraded={}{upgradeable}",
        available.name(),
        progressing.name(),
        degraded.name()
    )
}
