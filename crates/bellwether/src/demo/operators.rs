//! Those who look after the platform: operators of three kinds, each of which says in three conditions how its object is.
//! They do as operators do, as far as the story needs it.

use std::time::Duration;

use bellwether_engine::GroupKind;
use serde_json::{Value, json};

use super::{
    memory::{Memory, condition, count, text, uid},
    store::Store,
};

/// An operator, and what it looks after.
struct Operator {
    group: &'static str,
    kind: &'static str,
    /// What its objects are made of.
    part: &'static str,
    /// How long each part takes.
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

/// So long it takes until a part that was replaced does its work.
const HEALS_WITHIN: Duration = Duration::from_secs(2);

/// Everybody has a look, and does what comes next.
pub(super) fn act(store: &mut Store, memory: &mut Memory) {
    for operator in &OPERATORS {
        let kind = GroupKind::new(operator.group, operator.kind);
        for it in store.all(&kind) {
            let status = operator.says(memory, &it, &store.time());
            store.patch(&kind, text(&it["metadata"]["name"]), &json!({ "status": status }));
        }
    }
}

impl Operator {
    /// The status of an object, by what is wanted of it, what has become of its parts, and how long that has been so.
    fn says(&self, memory: &mut Memory, it: &Value, time: &str) -> Value {
        let (version, before) = (text(&it["spec"]["version"]), text(&it["status"]["version"]));
        let (parts, failed) = (count(&it["spec"]["parts"]), count(&it["status"]["failed"]));
        let worked = memory.unchanged(uid(it), "version", version.to_owned());
        let replaced = memory.unchanged(uid(it), "failed", failed.to_string());
        let done = i64::try_from(worked.as_millis() / self.pace.as_millis()).unwrap_or(parts).min(parts);
        let is_installed = !before.is_empty() || done == parts;
        let heals = failed == 0 && count(&it["status"]["missed"]) > 0 && replaced < HEALS_WITHIN;
        let missed = if heals { count(&it["status"]["missed"]) } else { failed };
        let fine = (false, "AsExpected", String::new());
        let progressing = if done < parts {
            let reason = if is_installed { "UpgradeInProgress" } else { "InstallInProgress" };
            (true, reason, format!("{done} of {} with version {version}", self.in_words(parts)))
        } else if heals {
            (true, "HealInProgress", format!("the new {} is being filled", self.part))
        } else {
            fine.clone()
        };
        let degraded = match (failed, heals) {
            (0, false) => fine,
            (0, true) => (true, "HealInProgress", format!("the new {} is being filled", self.part)),
            _ => {
                let all = self.in_words(parts);
                (true, "HealFailed", format!("{failed} of {all} has failed, and there is no spare one"))
            }
        };
        let available = if is_installed {
            (true, "AsExpected", String::new())
        } else {
            (false, "InstallInProgress", format!("{done} of {} installed", self.in_words(parts)))
        };
        let say = |kind: &str, (is, reason, message): (bool, &str, String)| {
            condition(it, kind, (is, reason, &message), time)
        };
        json!({
            "observedGeneration": it["metadata"]["generation"],
            "version": if done == parts { version } else { before },
            "missed": missed,
            "conditions": [
                say("Available", available), say("Progressing", progressing), say("Degraded", degraded),
            ],
        })
    }

    fn in_words(&self, count: i64) -> String {
        let several = if self.part.ends_with('h') { "es" } else { "s" };
        format!("{count} {}{}", self.part, if count == 1 { "" } else { several })
    }
}
