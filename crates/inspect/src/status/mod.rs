//! The health of groups as text: a list of them, or one in detail.

mod clusters;
mod list;
mod log;
mod rollup;
mod single;

use std::fmt::Write as _;

use bellwether_engine::{Detail, Group, GroupKind, NamespacedName};
use bellwether_model::State;
use bellwether_terminal::{WORST_FIRST, columns, printable, wrap};

pub(crate) use clusters::why_empty;
pub use list::{List, why};
pub use log::StatusLog;
pub use rollup::meaning;
pub use single::{SingleGroup, dependency, headline};

/// `Application shop/checkout`, `Rollup platform`, `Application.app.k8s.io blog/web`.
pub fn heading(kind: &GroupKind, name: &NamespacedName) -> String {
    if kind.is_bellwether() { format!("{} {name}", kind.kind) } else { format!("{kind} {name}") }
}

/// The group as an argument of `bellwether status`, with `-n` beside it.
fn argument(group: &Group) -> String {
    let Group { kind, name, detail, .. } = group;
    match detail {
        Detail::Application { .. } if kind.is_bellwether() => name.name.to_string(),
        Detail::Application { .. } => format!("{}/{}", kind.to_string().to_lowercase(), name.name),
        Detail::Rollup { .. } => format!("rollup/{}", name.name),
        Detail::BindingPolicy { .. } => format!("policy/{}", name.name),
    }
}

/// The groups as `kubectl get -o name` prints them.
pub fn names(groups: &[Group]) -> String {
    groups.iter().fold(String::new(), |mut names, group| {
        let _ = writeln!(names, "{}/{}", group.kind.to_string().to_lowercase(), printable(&group.name.name));
        names
    })
}

/// How many are in which state, the worst first: `1 Suspended, 3 Ready`. The noun follows the first count:
/// `1 member Suspended, 3 Ready`.
pub(crate) fn counts(
    states: impl IntoIterator<Item = State>,
    noun: impl Fn(usize) -> &'static str,
) -> String {
    let states: Vec<_> = states.into_iter().collect();
    let mut parts: Vec<String> = Vec::new();
    for state in WORST_FIRST.iter().flatten() {
        let count = states.iter().filter(|other| *other == state).count();
        let noun = if parts.is_empty() { noun(count) } else { "" };
        match (count, noun) {
            (0, _) => {}
            (count, "") => parts.push(format!("{count} {}", state.name())),
            (count, noun) => parts.push(format!("{count} {noun} {}", state.name())),
        }
    }
    parts.join(", ")
}

/// `: text`, or nothing if the text is empty.
pub(crate) fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Adds a text with this indentation. If it is wider than `width` columns, it is wrapped with a hanging
/// indent.
pub(crate) fn push_paragraph(text: &mut String, indent: &str, paragraph: &str, width: usize) {
    let paragraph = printable(paragraph);
    if indent.len() + columns(&paragraph) <= width {
        let _ = writeln!(text, "{indent}{paragraph}");
        return;
    }
    let hanging = indent.len() + 2;
    for (index, line) in wrap(&paragraph, width.saturating_sub(hanging)).iter().enumerate() {
        let _ = writeln!(text, "{}{line}", if index == 0 { indent.to_owned() } else { " ".repeat(hanging) });
    }
}

/// Commands to run next. Each has a line of its own and is never cut: people copy it.
pub(crate) fn next_commands(indent: &str, commands: &[String]) -> String {
    let mut text = format!("{indent}Next:\n");
    for command in commands {
        let _ = writeln!(text, "{indent}  {}", printable(command));
    }
    text
}
