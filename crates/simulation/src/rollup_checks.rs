//! Checks of writes to the status of a Rollup.

use bellwether_engine::{GroupKind, NamespacedName, Write};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    object::{Object, merge},
    oracle::Oracle,
    rollup_oracle,
    store::Store,
    violation::Violation,
};

/// The status that a write must have, computed by the oracle. None if the controller did not know the Rollup.
/// The stored status is an input, because damping depends on it.
pub(crate) fn expected(
    oracle: &Oracle<'_>,
    name: &NamespacedName,
    change: &Write,
    store: &Store,
) -> Result<Option<Value>, Violation> {
    let Some((_, rollup)) = rollup_oracle::rollups(oracle).find(|(other, _)| *other == name) else {
        return Ok(None);
    };
    let Write::Status { uid, resource_version: version, patch, .. } = change else { return Ok(None) };
    let is_it = |it: &&Object| *it.uid() == **uid && it.version().to_string() == version.as_str();
    let stored = store.log.iter().map(|entry| &*entry.object).find(is_it);
    let stored = stored.map_or(Value::Null, |it| it.value["status"].clone());
    let mut written = stored.clone();
    merge(&mut written, patch);
    let expected = rollup_oracle::status(oracle, rollup, &stored, &written);
    must!(expected.is_some(), "{name} is evaluated before all kinds it uses are known");
    Ok(expected.map(|expected| expected.status))
}

/// Checks `since` of missing components in a status that is written.
pub(crate) struct MissingComponents<'a> {
    pub(crate) store: &'a Store,
    /// UID of the Rollup.
    pub(crate) uid: &'a str,
    /// When the controller started, by its clock.
    pub(crate) began: Timestamp,
    /// The time of the same clock.
    pub(crate) now: Timestamp,
}

impl MissingComponents<'_> {
    /// `since` must equal a value that was stored before, or a time since the start of the controller. It
    /// must not change for a component that never existed, unless its kind was unreadable or the spec did not name
    /// it for a while.
    pub(crate) fn check(
        &self,
        version: &str,
        patch: &Value,
        is_fickle: impl Fn(&GroupKind) -> bool,
    ) -> Result<(), Violation> {
        let log = || self.store.log.iter().map(|entry| &entry.object);
        let mine = || log().filter(|it| *it.uid() == *self.uid);
        let in_status = |component: &MissingComponent, object: &Object| {
            missing_components(&object.value["status"])
                .find(|other| (&other.kind, &other.name) == (&component.kind, &component.name))
        };
        for component in missing_components(patch) {
            let MissingComponent { kind, name, presence, since } = &component;
            let stored = mine().find(|it| it.version().to_string() == version);
            let stored =
                stored.and_then(|stored| in_status(&component, stored)).filter(|it| it.presence == *presence);
            let existed = log().any(|it| it.kind == *kind && it.name == *name);
            let is_named_since = |stored: &MissingComponent| {
                let is_it = |other: MissingComponent| other.since == stored.since;
                let mut versions = mine().skip_while(|it| !in_status(&component, it).is_some_and(is_it));
                versions.all(|it| component.is_named_by(it))
            };
            let stored = stored.filter(|_| !existed && !is_fickle(kind)).filter(is_named_since);
            if let Some(stored) = stored {
                let then = stored.since;
                must!(*since == then, "since of missing {kind} {name} changed from {then:?} to {since:?}");
                continue;
            }
            let was_stored =
                mine().any(|it| in_status(&component, it).is_some_and(|other| other.since == *since));
            let is_after_start =
                since.is_some_and(|since| self.began.as_second() <= since.as_second() && since <= self.now);
            must!(was_stored || is_after_start, "{kind} {name} cannot be missing since {since:?}");
        }
        Ok(())
    }
}

struct MissingComponent {
    kind: GroupKind,
    name: NamespacedName,
    presence: String,
    since: Option<Timestamp>,
}

impl MissingComponent {
    fn is_named_by(&self, rollup: &Object) -> bool {
        let mut components = rollup.value["spec"]["components"].as_array().into_iter().flatten();
        let is = |value: &Value, text: &str| value.as_str().unwrap_or_default() == text;
        components.any(|it| {
            is(&it["group"], &self.kind.group)
                && is(&it["kind"], &self.kind.kind)
                && is(&it["name"], &self.name.name)
        })
    }
}

/// The missing components of a status.
fn missing_components(status: &Value) -> impl Iterator<Item = MissingComponent> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let components = status["components"].as_array().into_iter().flatten();
    let components = components.filter(|it| it["presence"].is_string());
    components.map(move |it| MissingComponent {
        kind: GroupKind::new(&text(&it["group"]), &text(&it["kind"])),
        name: NamespacedName::new(&text(&it["namespace"]), &text(&it["name"])),
        presence: text(&it["presence"]),
        since: text(&it["since"]).parse().ok(),
    })
}
