//! The log of `bellwether status --watch`: a line for each change.

use std::collections::BTreeMap;

use bellwether_engine::{Group, GroupKind, NamespacedName, ready};
use bellwether_model::State;
use bellwether_terminal::printable;
use jiff::Timestamp;

use super::{after_colon, heading, list::Why};

/// What was last printed.
#[derive(Default)]
pub struct StatusLog {
    /// The state of each group, how many members are ready, and why.
    groups: BTreeMap<(GroupKind, NamespacedName), (State, String, String)>,
    is_silent: bool,
}

impl StatusLog {
    /// A line for each group whose state, count or cause has changed, and for a connection that was lost or
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
            let why = Why::of(group);
            let status = (group.state, ready(group), why.topic());
            if self.groups.get(&key) != Some(&status) {
                lines.push(format!(
                    "{time} {}: {}, {} ready{}",
                    printable(&heading(&group.kind, &group.name)),
                    group.state.name(),
                    status.1,
                    after_colon(&why.text())
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

#[cfg(test)]
mod tests {
    use bellwether_api::ObjectCounts;
    use bellwether_engine::{Detail, Member, StandsFor};

    use super::*;

    fn failed(reason: &str, message: &str) -> Group {
        let name = |name: &str| NamespacedName::new("shop", name);
        let member = Member {
            kind: GroupKind::new("apps", "Deployment"),
            name: name("web"),
            cluster: None,
            stands_for: StandsFor::Object,
            uid: None,
            state: State::Failed,
            progress: 0,
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: None,
            rule: None,
            cause: None,
            component_conditions: None,
        };
        Group {
            kind: GroupKind::bellwether("Application"),
            name: name("checkout"),
            state: State::Failed,
            deleting: false,
            since: None,
            conditions: Vec::new(),
            counts: ObjectCounts { total: 1, failed: 1, ..ObjectCounts::default() },
            progress: Some(0),
            members: vec![member],
            clusters: None,
            detail: Detail::Application { type_: None, version: None, dependencies: Vec::new() },
        }
    }

    /// A new cause is a change, also in the same state. Numbers of a message are not.
    #[test]
    fn a_line_for_each_cause() {
        let mut log = StatusLog::default();
        let mut lines = |group: &Group| log.changes(&[group], false, Timestamp::UNIX_EPOCH);
        let of = |why: &str| vec![format!("00:00:00 Application shop/checkout: Failed, 0/1 ready: {why}")];
        let pull = failed("ImagePullBackOff", "cannot pull");
        assert_eq!(lines(&pull), of("Deployment/web: ImagePullBackOff: cannot pull"));
        assert!(lines(&pull).is_empty());
        let crash = |count: u8| failed("CrashLoopBackOff", &format!("{count} restarts"));
        assert_eq!(lines(&crash(3)), of("Deployment/web: CrashLoopBackOff: 3 restarts"));
        assert!(lines(&crash(4)).is_empty());
    }
}
