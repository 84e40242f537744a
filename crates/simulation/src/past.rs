//! What was so since a controller last knew: who is said to be well must have been, at some moment.

use bellwether_api::{Application, Rollup, State};
use bellwether_engine::{Kind, Name};
use jiff::Timestamp;

use crate::{
    checks::{Wrong, counts},
    object::Object,
    oracle::{Oracle, belongs},
    rollup_oracle,
    store::Store,
};

/// What was so since a controller last knew.
pub(crate) struct Past<'a> {
    pub(crate) store: &'a Store,
    /// Up to which change each kind was known.
    pub(crate) knew: &'a [(Kind, u64)],
    /// The time, by the clock of the controller.
    pub(crate) now: Timestamp,
}

impl Past<'_> {
    /// Up to which change a kind was known.
    pub(crate) fn knew(&self, kind: &Kind) -> u64 {
        self.knew.iter().find(|(other, _)| other == kind).map_or(0, |(_, revision)| *revision)
    }

    /// Whether an Application can be ready: nothing of it was not, all the time since it was last known.
    pub(crate) fn is_ready(&self, app: &Application) -> Result<(), Wrong> {
        let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
        let own = app.metadata.name.as_deref().unwrap_or_default();
        let is_bad = |state: State| !matches!(state, State::Ready | State::Suspended);
        for kind in Oracle::wishes(&app.spec).into_keys() {
            let names: Vec<_> =
                self.store.log.iter().map(|entry| &entry.object).filter(|it| it.kind == kind).collect();
            for object in names {
                if *object.name.namespace != *namespace || !counts(app, &kind) {
                    continue;
                }
                let states = self.store.since(&kind, &object.name, self.knew(&kind));
                let is_wrong = states.iter().all(|state| {
                    state.is_some_and(|it| belongs(app, it) && is_bad(it.verdict(self.now, Some(true)).state))
                });
                must!(
                    !is_wrong,
                    "{own} is said to be ready, and {kind} {} has not been since it was known",
                    object.name
                );
            }
        }
        for (key, component) in &app.spec.components {
            let kind = Kind::new(&component.group, &component.kind);
            let name = Name::new(namespace, component.name.as_ref().unwrap_or(key));
            let states = self.store.since(&kind, &name, self.knew(&kind));
            must!(
                states.iter().any(Option::is_some),
                "{own} is said to be ready, and there is no {kind} {name}"
            );
        }
        if app.spec.health_check.is_some() {
            let uid = app.metadata.uid.as_deref();
            let was_ready = |pod: &Object| {
                let mut conditions = pod.value["status"]["conditions"].as_array().into_iter().flatten();
                conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
            };
            let pods = self.store.log.iter().map(|entry| &entry.object);
            let mut checks = pods.filter(|pod| pod.is_check() && pod.owners().next() == uid);
            let knew = self.knew(&Kind::pod());
            must!(
                checks.any(|pod| {
                    let states = self.store.since(&pod.kind, &pod.name, knew);
                    states.iter().flatten().any(|state| was_ready(state))
                }),
                "{own} is said to be ready, and its check has not been since it was known"
            );
        }
        Ok(())
    }

    /// Whether a Rollup can be healthy: none of its components has been anything else all the time since it was last known,
    /// as far as that may not be held back. Since when one is missed is not to be known here: where that may be held back,
    /// it is left alone.
    pub(crate) fn is_healthy(&self, rollup: &Rollup) -> Result<(), Wrong> {
        let own = rollup.metadata.name.as_deref().unwrap_or_default();
        for entry in &rollup.spec.components {
            let kind = Kind::new(&entry.group, &entry.kind);
            let is_bad = |object: &Object| {
                rollup_oracle::means(rollup, entry, object)
                    && !rollup_oracle::is_well(&rollup.spec, object, self.now)
            };
            let objects = self.store.log.iter().map(|change| &change.object);
            for object in objects.filter(|object| object.kind == kind) {
                let states = self.store.since(&kind, &object.name, self.knew(&kind));
                must!(
                    !states.iter().all(|state| state.is_some_and(|object| is_bad(object))),
                    "{own} is said to be healthy, and {kind} {} has not been since it was known",
                    object.name
                );
            }
            if let Some(name) = &entry.name
                && rollup.spec.degraded_after.value().is_zero()
            {
                let name = Name::new(entry.namespace.as_deref().unwrap_or_default(), name);
                let states = self.store.since(&kind, &name, self.knew(&kind));
                must!(
                    states.iter().any(Option::is_some),
                    "{own} is said to be healthy, and there is no {kind} {name}"
                );
            }
        }
        Ok(())
    }

    /// Whether nobody can object to an upgrade: no component of a Rollup has all the time since it was last known.
    pub(crate) fn is_upgradeable(&self, rollup: &Rollup) -> Result<(), Wrong> {
        let own = rollup.metadata.name.as_deref().unwrap_or_default();
        for entry in &rollup.spec.components {
            let kind = Kind::new(&entry.group, &entry.kind);
            // What Rollups say of each other does not always count.
            if kind == Kind::own("Rollup") {
                continue;
            }
            let objects_to_it = |object: &Object| {
                rollup_oracle::means(rollup, entry, object) && rollup_oracle::objects_to_upgrades(object)
            };
            let objects = self.store.log.iter().map(|change| &change.object);
            for object in objects.filter(|object| object.kind == kind) {
                let states = self.store.since(&kind, &object.name, self.knew(&kind));
                must!(
                    !states.iter().all(|state| state.is_some_and(|object| objects_to_it(object))),
                    "{own} is said to be upgradeable, and {kind} {} has objected since it was known",
                    object.name
                );
            }
        }
        Ok(())
    }
}
