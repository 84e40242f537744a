//! What must be so whenever something is written about a Rollup.

use bellwether_engine::{Change, GroupKind, NamespacedName};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    object::{Object, merge},
    oracle::Oracle,
    rollup_oracle,
    store::Store,
    violation::Violation,
};

/// What there is to say of a Rollup by what is known; nothing if it is not known itself. What is stored counts, too: a turn
/// for the worse may have to last before it is told.
pub(crate) fn expected(
    oracle: &Oracle<'_>,
    name: &NamespacedName,
    change: &Change,
    store: &Store,
) -> Result<Option<Value>, Violation> {
    let Some((_, rollup)) = rollup_oracle::rollups(oracle).find(|(other, _)| *other == name) else {
        return Ok(None);
    };
    let Change::Status { uid, version, patch, .. } = change else { return Ok(None) };
    let is_it = |it: &&Object| *it.uid() == **uid && it.version().to_string() == version.as_str();
    let stored = store.log.iter().map(|entry| &*entry.object).find(is_it);
    let stored = stored.map_or(Value::Null, |it| it.value["status"].clone());
    let mut said = stored.clone();
    merge(&mut said, patch);
    let expected = rollup_oracle::status(oracle, rollup, &stored, &said);
    must!(expected.is_some(), "something is said of {name} before all that it needs is known");
    Ok(expected.map(|expected| expected.status))
}

/// What is written of components that are not there, and when.
pub(crate) struct MissingComponents<'a> {
    pub(crate) store: &'a Store,
    /// The Rollup.
    pub(crate) uid: &'a str,
    /// When the controller that writes it began, by its clock,
    pub(crate) began: Timestamp,
    /// and what its clock says now.
    pub(crate) now: Timestamp,
}

impl MissingComponents<'_> {
    /// Whether it can be since then that they are missed: as was written before, or since a moment of this life. What never
    /// was there, and was said to be missed, is missed since then still, unless for a while nobody could tell.
    pub(crate) fn check(
        &self,
        version: &str,
        patch: &Value,
        is_fickle: impl Fn(&GroupKind) -> bool,
    ) -> Result<(), Violation> {
        let log = || self.store.log.iter().map(|entry| &entry.object);
        let mine = || log().filter(|it| *it.uid() == *self.uid);
        let before = |miss: &MissingComponent, object: &Object| {
            missed(&object.value["status"])
                .find(|other| (&other.kind, &other.name) == (&miss.kind, &miss.name))
        };
        for miss in missed(patch) {
            let MissingComponent { kind, name, presence, since } = &miss;
            let stored = mine().find(|it| it.version().to_string() == version);
            let stored =
                stored.and_then(|stored| before(&miss, stored)).filter(|it| it.presence == *presence);
            let was_there = log().any(|it| it.kind == *kind && it.name == *name);
            if let Some(stored) = stored.filter(|_| !was_there && !is_fickle(kind)) {
                let then = stored.since;
                must!(*since == then, "{kind} {name} is missed since {then:?}, and {since:?} is said");
                continue;
            }
            let was_said = mine().any(|it| before(&miss, it).is_some_and(|other| other.since == *since));
            let is_of_this_life =
                since.is_some_and(|since| self.began.as_second() <= since.as_second() && since <= self.now);
            must!(was_said || is_of_this_life, "{kind} {name} cannot be missed since {since:?}");
        }
        Ok(())
    }
}

/// A component that is said not to be there.
struct MissingComponent {
    kind: GroupKind,
    name: NamespacedName,
    presence: String,
    since: Option<Timestamp>,
}

/// The components that a status says are not there.
fn missed(status: &Value) -> impl Iterator<Item = MissingComponent> {
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
