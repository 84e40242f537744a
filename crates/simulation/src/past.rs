//! What was so since a controller last knew: who is said to be well must have been, at some moment.

use bellwether_api::{Application, Rollup, State};
use bellwether_engine::{GroupKind, NamespacedName};
use jiff::Timestamp;

use crate::{
    object::Object,
    oracle::{Oracle, belongs, is_counted},
    rollup_oracle,
    store::Store,
    violation::Violation,
};

/// What was so since a controller last knew.
pub(crate) struct Past<'a> {
    pub(crate) store: &'a Store,
    /// Up to which change each kind was known.
    pub(crate) knew: &'a [(GroupKind, u64)],
    /// The time, by the clock of the controller.
    pub(crate) now: Timestamp,
}

impl Past<'_> {
    /// Up to which change a kind was known.
    pub(crate) fn knew(&self, kind: &GroupKind) -> u64 {
        self.knew.iter().find(|(other, _)| other == kind).map_or(0, |(_, revision)| *revision)
    }

    /// An object of a kind that has been so all the time since it was last known.
    fn always(&self, kind: &GroupKind, is_so: impl Fn(&Object) -> bool) -> Option<&NamespacedName> {
        let names = self.store.log.iter().map(|change| &change.object).filter(|object| object.kind == *kind);
        let was_so = |name: &&NamespacedName| {
            let states = self.store.since(kind, name, self.knew(kind));
            states.iter().all(|state| state.is_some_and(|object| is_so(object)))
        };
        names.map(|object| &object.name).find(was_so)
    }

    /// Whether an Application can be ready: nothing of it was not, all the time since it was last known.
    pub(crate) fn is_ready(&self, app: &Application) -> Result<(), Violation> {
        let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
        let own = app.metadata.name.as_deref().unwrap_or_default();
        let is_bad = |state: State| !matches!(state, State::Ready | State::Suspended);
        for kind in Oracle::wishes(&app.spec).into_keys().filter(|kind| is_counted(app, kind)) {
            let wrong = self.always(&kind, |it| {
                *it.name.namespace == *namespace
                    && belongs(app, it)
                    && is_bad(it.verdict(self.now, Some(true)).state)
            });
            if let Some(name) = wrong {
                return Err(Violation::new(format!(
                    "{own} is said to be ready, and {kind} {name} has not been since it was known"
                )));
            }
        }
        for (key, component) in &app.spec.components {
            let kind = GroupKind::new(&component.group, &component.kind);
            let name = NamespacedName::new(namespace, component.name.as_ref().unwrap_or(key));
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
            let knew = self.knew(&GroupKind::pod());
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
    pub(crate) fn is_healthy(&self, rollup: &Rollup) -> Result<(), Violation> {
        let own = rollup.metadata.name.as_deref().unwrap_or_default();
        for entry in &rollup.spec.components {
            let kind = GroupKind::new(&entry.group, &entry.kind);
            let wrong = self.always(&kind, |it| {
                rollup_oracle::means(rollup, entry, it) && !rollup_oracle::is_well(&rollup.spec, it, self.now)
            });
            if let Some(name) = wrong {
                return Err(Violation::new(format!(
                    "{own} is said to be healthy, and {kind} {name} has not been since it was known"
                )));
            }
            if let Some(name) = &entry.name
                && rollup.spec.degraded_after.value().is_zero()
            {
                let name = NamespacedName::new(entry.namespace.as_deref().unwrap_or_default(), name);
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
    pub(crate) fn is_upgradeable(&self, rollup: &Rollup) -> Result<(), Violation> {
        let own = rollup.metadata.name.as_deref().unwrap_or_default();
        for entry in &rollup.spec.components {
            let kind = GroupKind::new(&entry.group, &entry.kind);
            // What Rollups say of each other does not always count.
            if kind == GroupKind::own("Rollup") {
                continue;
            }
            let wrong = self.always(&kind, |it| {
                rollup_oracle::means(rollup, entry, it) && rollup_oracle::objects_to_upgrades(it)
            });
            if let Some(name) = wrong {
                return Err(Violation::new(format!(
                    "{own} is said to be upgradeable, and {kind} {name} has objected since it was known"
                )));
            }
        }
        Ok(())
    }
}
