//! How Applications and Rollups are, in words: many of them, or all about one.

mod list;
mod log;
mod rollup;
mod single;

use std::fmt::Write as _;

use bellwether_engine::{Detail, Group, GroupKind, NamespacedName};
use bellwether_terminal::printable;

pub use list::{List, why};
pub use log::StatusLog;
pub use rollup::meaning;
pub use single::{SingleGroup, headline, needs};

/// What a group is called: as `bellwether status` takes it.
pub fn title(group: &Group) -> String {
    called(&group.kind, &group.name)
}

/// The same where the namespace is told beside it.
fn short_title(group: &Group) -> String {
    match group.detail {
        Detail::Application { .. } => group.name.name.to_string(),
        Detail::Rollup { .. } => title(group),
    }
}

fn called(kind: &GroupKind, name: &NamespacedName) -> String {
    if kind.is_rollup() { format!("rollup/{}", name.name) } else { name.to_string() }
}

/// The names of groups, as kubectl takes them, one on a line.
pub fn names(groups: &[Group]) -> String {
    groups.iter().fold(String::new(), |mut names, group| {
        let _ = writeln!(names, "{}/{}", group.kind.to_string().to_lowercase(), printable(&group.name.name));
        names
    })
}
