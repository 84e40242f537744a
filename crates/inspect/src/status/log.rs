//! Groups that are watched: a line for each change.

use std::collections::BTreeMap;

use bellwether_engine::{Group, GroupKind, NamespacedName};
use bellwether_model::State;
use bellwether_terminal::{printable, sign};
use jiff::Timestamp;

use super::{called, why};

/// What was last said of each group, where each change is a line.
#[derive(Default)]
pub struct StatusLog {
    said: BTreeMap<(GroupKind, NamespacedName), (State, String)>,
    silent: bool,
}

impl StatusLog {
    /// A line for each group that is not as it was, and for a cluster that falls silent or speaks again.
    pub fn changes(&mut self, groups: &[&Group], silent: bool, now: Timestamp) -> Vec<String> {
        let time = now.strftime("%H:%M:%S");
        let mut lines = Vec::new();
        if self.silent != silent {
            let says = if silent {
                "the cluster is not heard from any more"
            } else {
                "the cluster is heard from again"
            };
            lines.push(format!("{time} {says}"));
            self.silent = silent;
        }
        let mut said = BTreeMap::new();
        for group in groups {
            let key = (group.kind.clone(), group.name.clone());
            let says = (group.state, format!("{}/{} ready", group.counts.ready, group.counts.total));
            if self.said.get(&key) != Some(&says) {
                let why = match why(group) {
                    why if why.is_empty() => why,
                    why => format!(": {why}"),
                };
                let state = format!("{} {}", sign(Some(group.state)), group.state.name());
                lines.push(format!(
                    "{time} {} {state}, {}{why}",
                    printable(&called(&group.kind, &group.name)),
                    says.1
                ));
            }
            said.insert(key, says);
        }
        for (kind, name) in self.said.keys().filter(|key| !said.contains_key(key)) {
            lines.push(format!("{time} {} is gone", printable(&called(kind, name))));
        }
        self.said = said;
        lines
    }
}
