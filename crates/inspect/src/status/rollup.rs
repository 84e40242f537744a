//! What there is to be said of Rollups, and of nothing else.

use std::fmt::Write as _;

use bellwether_engine::{Group, ReportedConditions, condition_types};
use bellwether_terminal::{Screen, first_items, printable, wrap};

/// What the conditions of a Rollup mean together, in a sentence. Of anything else, nothing.
pub fn meaning(group: &Group, screen: Screen) -> String {
    let Some(meaning) = group.meaning() else { return String::new() };
    let full_stop = if meaning.ends_with('.') { "" } else { "." };
    wrap(&printable(&format!("{meaning}{full_stop}")), screen.page()).join("\n") + "\n"
}

/// The conditions of a Rollup that are the reason, a paragraph each; a short one, unless somebody wants to see all.
pub(super) fn because(group: &Group, wide: bool, screen: Screen) -> String {
    let mut text = String::new();
    for (is, why) in reasons(group, wide) {
        for (index, line) in wrap(&printable(&format!("{is} {why}")), screen.page() - 4).iter().enumerate() {
            let _ = writeln!(text, "{}{line}", if index == 0 { "  " } else { "    " });
        }
    }
    text
}

/// The conditions that are not as they should be: what they are, and why. Those that say the same say it together.
/// Whether all that is asked for can be had is told elsewhere.
fn reasons(group: &Group, wide: bool) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    for condition in group.remarkable().filter(|condition| condition.type_ != condition_types::RESOLVED) {
        let says = &condition.statement;
        let still = if condition.held_until.is_some() { "still " } else { "" };
        let is = format!("{} is {still}{:?}", condition.type_, says.status);
        let message = if wide { says.message.as_ref().into() } else { first_items(&says.message) };
        let why = format!("({}): {message}", says.reason);
        match reasons.last_mut() {
            Some((before, same)) if *same == why => before.extend([", ", &is]),
            _ => reasons.push((is, why)),
        }
    }
    reasons
}

/// What an operator says of a component, in a line.
pub(super) fn operator(says: ReportedConditions) -> String {
    let ReportedConditions { available, progressing, degraded, upgradeable } = says;
    let upgradeable = upgradeable.map(|status| format!(" Upgradeable={status:?}")).unwrap_or_default();
    format!("Available={available:?} Progressing={progressing:?} Degraded={degraded:?}{upgradeable}")
}
