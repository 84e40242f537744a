//! What there is to be said of Rollups, and of nothing else.

use std::fmt::Write as _;

use bellwether_engine::{Group, OperatorSays};
use bellwether_model::ConditionStatus;

use crate::terminal::{Screen, printable, wrap};

/// The conditions of a Rollup, each with its status as long as nobody needs to be told.
const FINE: [(&str, ConditionStatus); 4] = [
    ("Available", ConditionStatus::True),
    ("Degraded", ConditionStatus::False),
    ("Progressing", ConditionStatus::False),
    ("Upgradeable", ConditionStatus::True),
];

/// What the conditions of a Rollup mean together, in a sentence. Of anything else, nothing.
pub(crate) fn meaning(group: &Group, screen: Screen) -> String {
    let Some(meaning) = &group.meaning else { return String::new() };
    let full_stop = if meaning.ends_with('.') { "" } else { "." };
    wrap(&printable(&format!("{meaning}{full_stop}")), screen.page()).join("\n") + "\n"
}

/// The conditions of a Rollup that are the reason, a paragraph each.
pub(super) fn because(group: &Group, screen: Screen) -> String {
    let mut text = String::new();
    for (is, why) in reasons(group) {
        for (index, line) in wrap(&printable(&format!("{is} {why}")), screen.page() - 4).iter().enumerate() {
            let _ = writeln!(text, "{}{line}", if index == 0 { "  " } else { "    " });
        }
    }
    text
}

/// The conditions that are not as they should be: what they are, and why. Those that say the same say it together.
fn reasons(group: &Group) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    if !group.is_rollup() {
        return reasons;
    }
    for (wanted, fine) in FINE {
        let mut found = group.conditions.iter().filter(|(condition, _)| *condition == wanted);
        let Some((condition, says)) = found.next().filter(|(_, says)| says.status != fine) else { continue };
        let is = format!("{condition} is {:?}", says.status);
        let why = format!("({}): {}", says.reason, says.message);
        match reasons.last_mut() {
            Some((before, same)) if *same == why => before.extend([", ", &is]),
            _ => reasons.push((is, why)),
        }
    }
    reasons
}

/// What an operator says of a component, in a line.
pub(super) fn operator(OperatorSays { available, progressing, degraded }: OperatorSays) -> String {
    format!("Available={available:?} Progressing={progressing:?} Degraded={degraded:?}")
}
