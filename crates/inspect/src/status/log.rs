//! The log of `bellwether status --watch`: a line for each change.

use std::collections::BTreeMap;

use bellwether_engine::{Group, GroupKind, NamespacedName, ready};
use bellwether_model::State;
use bellwether_terminal::printable;
use jiff::Timestamp;

use super::{after_colon, heading, why};

/// What was last printed.
#[derive(Default)]
pub struct StatusLog {
    groups: BTreeMap<(GroupKind, NamespacedName), (State, String)>,
    is_silent: bool,
}

impl StatusLog {
    /// A line for each group whose state or count has changed, and for a connection that was lost or
    /// restored.
    pub fn changes(&mut self, groups: &[&Group], is_silent: bool, now: Timestamp) -> Vec<String> {
        let time = now.strftime("%H:%M:%S");
        let mut lines = Vec::new();
        if self.is_silent != is_silent {
            let change = if is_silent { "lost" } else { "restored" };
            lines.push(format!("{time} connection to the API server {change}"));
            self.is_silent = is_silent;
        }
        let mut current = BTreeMap::new();
        for group in groups {
            let key = (group.kind.clone(), group.name.clone());
            let status = (group.state, ready(group));
            if self.groups.get(&key) != Some(&status) {
                lines.push(format!(
                    "{time} {}: {}, {} ready{}",
                    printable(&heading(&group.kind, &group.name)),
                    group.state.name(),
                    status.1,
                    after_colon(&why(group))
                ));
            }
            current.insert(key, status);
        }
        for (kind, name) in self.groups.keys().filter(|key| !current.contains_key(key)) {
            lines.push(format!("{time} {}: deleted", printable(&heading(kind, name))));
        }
        self.groups = current;
        lines
    }
}
