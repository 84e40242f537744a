//! The simulated operators of the platform: three kinds, each with the conditions Available, Progressing and
//! Degraded.

use std::time::Duration;

use bellwether_engine::GroupKind;
use serde_json::{Value, json};

use super::{
    memory::{Memory, condition, count, text, uid},
    store::Store,
};

struct Operator {
    group: &'static str,
    kind: &'static str,
    /// The noun for what its objects consist of.
    part: &'static str,
    /// The time to install or upgrade a part.
    pace: Duration,
}

const OPERATORS: [Operator; 3] = [
    Operator {
        group: "guests.example.com",
        kind: "Hypervisor",
        part: "host",
        pace: Duration::from_millis(1200),
    },
    Operator { group: "disks.example.com", kind: "DiskPool", part: "disk", pace: Duration::from_millis(800) },
    Operator { group: "net.example.com", kind: "Fabric", part: "switch", pace: Duration::from_millis(400) },
];

/// The time to rebuild a part that was replaced.
const REBUILDS_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn act(store: &mut Store, memory: &mut Memory) {
    for operator in &OPERATORS {
        let kind = GroupKind::new(operator.group, operator.kind);
        for it in store.all(&kind) {
            let status = operator.status(memory, &it, &store.time());
            store.patch(&kind, text(&it["metadata"]["name"]), &json!({ "status": status }));
        }
    }
}

impl Operator {
    /// The status of an object by its spec, its failed parts, and the time since either changed.
    fn status(&self, memory: &mut Memory, it: &Value, time: &str) -> Value {
        let (version, before) = (text(&it["spec"]["version"]), text(&it["status"]["version"]));
        let (parts, failed) = (count(&it["spec"]["parts"]), count(&it["status"]["failed"]));
        let worked = memory.unchanged(uid(it), "version", version.to_owned());
        let replaced = memory.unchanged(uid(it), "failed", failed.to_string());
        let done = i64::try_from(worked.as_millis() / self.pace.as_millis()).unwrap_or(parts).min(parts);
        let is_installed = !before.is_empty() || done == parts;
        let is_rebuilding = failed == 0 && count(&it["status"]["missed"]) > 0 && replaced < REBUILDS_WITHIN;
        let missed = if is_rebuilding { count(&it["status"]["missed"]) } else { failed };
        let as_expected = (false, "AsExpected", String::new());
        let progressing = if done < parts {
            let reason = if is_installed { "UpgradeInProgress" } else { "InstallInProgress" };
            (true, reason, format!("{done} of {} with version {version}", self.counted(parts)))
        } else if is_rebuilding {
            (true, "HealInProgress", format!("rebuilding the new {}", self.part))
        } else {
            as_expected.clone()
        };
        let degraded = match (failed, is_rebuilding) {
            (0, false) => as_expected,
            (0, true) => (true, "HealInProgress", format!("rebuilding the new {}", self.part)),
            _ => {
                let all = self.counted(parts);
                (true, "HealFailed", format!("{failed} of {all} failed, no spare {}", self.part))
            }
        };
        let available = if is_installed {
            (true, "AsExpected", String::new())
        } else {
            (false, "InstallInProgress", format!("{done} of {} installed", self.counted(parts)))
        };
        let condition = |type_: &str, (is, reason, message): (bool, &str, String)| {
            condition(it, type_, (is, reason, &message), time)
        };
        json!({
            "observedGeneration": it["metadata"]["generation"],
            "version": if done == parts { version } else { before },
            "missed": missed,
            "conditions": [
                condition("Available", available), condition("Progressing", progressing), condition("Degraded", degraded),
            ],
        })
    }

    /// `4 disks`
    fn counted(&self, count: i64) -> String {
        let several = if self.part.ends_with('h') { "es" } else { "s" };
        format!("{count} {}{}", self.part, if count == 1 { "" } else { several })
    }
}
