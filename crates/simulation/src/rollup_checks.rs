//! What must be so whenever something is written about a Rollup.

use bellwether_api::Rollup;
use bellwether_engine::{Change, Kind, Name};
use serde_json::Value;

use crate::{
    checks::Wrong,
    object::{Object, merge},
    oracle::Oracle,
    rollup_oracle,
    store::Store,
};

/// What there is to say of a Rollup by what is known; nothing if it is not known itself. What is stored counts, too: a turn
/// for the worse may have to last before it is told.
pub(crate) fn expected(
    oracle: &Oracle<'_>,
    name: &Name,
    change: &Change,
    store: &Store,
) -> Result<Option<Value>, Wrong> {
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

/// Whether a Rollup can be healthy: none of its components has been anything else all the time since it was last known, as
/// far as nothing may be held back.
pub(crate) fn is_healthy(rollup: &Rollup, store: &Store, knew: impl Fn(&Kind) -> u64) -> Result<(), Wrong> {
    if !rollup.spec.degraded_after.value().is_zero() {
        return Ok(());
    }
    let own = rollup.metadata.name.as_deref().unwrap_or_default();
    for entry in &rollup.spec.components {
        let kind = Kind::new(&entry.group, &entry.kind);
        let is_bad =
            |object: &Object| rollup_oracle::means(rollup, entry, object) && !rollup_oracle::is_well(object);
        let objects = store.log.iter().map(|change| &change.object);
        for object in objects.filter(|object| object.kind == kind) {
            let states = store.since(&kind, &object.name, knew(&kind));
            must!(
                !states.iter().all(|state| state.is_some_and(|object| is_bad(object))),
                "{own} is said to be healthy, and {kind} {} has not been since it was known",
                object.name
            );
        }
        if let Some(name) = &entry.name {
            let name = Name::new(entry.namespace.as_deref().unwrap_or_default(), name);
            let states = store.since(&kind, &name, knew(&kind));
            must!(
                states.iter().any(Option::is_some),
                "{own} is said to be healthy, and there is no {kind} {name}"
            );
        }
    }
    Ok(())
}
