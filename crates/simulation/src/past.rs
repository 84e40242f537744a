//! Checks of good statuses against the past: what a controller reports as good must have been good at some
//! point since the state that it knows.

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

/// The past since the state that a controller knows.
pub(crate) struct Past<'a> {
    pub(crate) store: &'a Store,
    /// The revision up to which the controller knew each kind.
    pub(crate) knew: &'a [(GroupKind, u64)],
    /// By the clock of the controller.
    pub(crate) now: Timestamp,
}

impl Past<'_> {
    pub(crate) fn knew(&self, kind: &GroupKind) -> u64 {
        self.knew.iter().find(|(other, _)| other == kind).map_or(0, |(_, revision)| *revision)
    }

    /// An object of a kind for which `holds` is true in every state since the controller knew the kind.
    fn always(&self, kind: &GroupKind, holds: impl Fn(&Object) -> bool) -> Option<&NamespacedName> {
        let names = self.store.log.iter().map(|change| &change.object).filter(|object| object.kind == *kind);
        let always_holds = |name: &&NamespacedName| {
            let states = self.store.since(kind, name, self.knew(kind));
            states.iter().all(|state| state.is_some_and(|object| holds(object)))
        };
        names.map(|object| &object.name).find(always_holds)
    }

    /// Checks that an Application can be Ready: no member was unready, and no component missing, all the time
    /// since the controller knew it.
    pub(crate) fn is_ready(&self, app: &Application) -> Result<(), Violation> {
        let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
        let own = app.metadata.name.as_deref().unwrap_or_default();
        let is_bad = |state: State| !matches!(state, State::Ready | State::Suspended);
        for kind in Oracle::kinds_of_spec(&app.spec).into_keys().filter(|kind| is_counted(app, kind)) {
            let bad = self.always(&kind, |it| {
                *it.name.namespace == *namespace
                    && belongs(app, it)
                    && is_bad(it.verdict(self.now, Some(true)).state)
            });
            if let Some(name) = bad {
                return Err(Violation::new(format!(
                    "{own} is reported Ready, but {kind} {name} was never ready since it was known"
                )));
            }
        }
        for (key, component) in &app.spec.components {
            let kind = GroupKind::new(&component.group, &component.kind);
            let name = NamespacedName::new(namespace, component.name.as_ref().unwrap_or(key));
            let states = self.store.since(&kind, &name, self.knew(&kind));
            must!(
                states.iter().any(Option::is_some),
                "{own} is reported Ready, but {kind} {name} does not exist"
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
                "{own} is reported Ready, but its health check was never ready since it was known"
            );
        }
        Ok(())
    }

    /// Checks that a Rollup can be Healthy: no component was bad all the time since the controller knew it,
    /// unless damping may hold that back. Missing components are checked only without damping, because the
    /// time since when they are missing is unknown here.
    pub(crate) fn is_healthy(&self, rollup: &Rollup) -> Result<(), Violation> {
        let own = rollup.metadata.name.as_deref().unwrap_or_default();
        for entry in &rollup.spec.components {
            let kind = GroupKind::new(&entry.group, &entry.kind);
            let bad = self.always(&kind, |it| {
                rollup_oracle::means(rollup, entry, it) && !rollup_oracle::is_well(&rollup.spec, it, self.now)
            });
            if let Some(name) = bad {
                return Err(Violation::new(format!(
                    "{own} is reported Healthy, but {kind} {name} was never good since it was known"
                )));
            }
            if let Some(name) = &entry.name
                && rollup.spec.degraded_after.value().is_zero()
            {
                let name = NamespacedName::new(entry.namespace.as_deref().unwrap_or_default(), name);
                let states = self.store.since(&kind, &name, self.knew(&kind));
                must!(
                    states.iter().any(Option::is_some),
                    "{own} is reported Healthy, but {kind} {name} does not exist"
                );
            }
        }
        Ok(())
    }

    /// Checks that a Rollup can be Upgradeable: no component objected in every state since it was known.
    pub(crate) fn is_upgradeable(&self, rollup: &Rollup) -> Result<(), Violation> {
        let own = rollup.metadata.name.as_deref().unwrap_or_default();
        for entry in &rollup.spec.components {
            let kind = GroupKind::new(&entry.group, &entry.kind);
            // A Rollup that is part of a cycle does not count.
            if kind == GroupKind::bellwether("Rollup") {
                continue;
            }
            let bad = self.always(&kind, |it| {
                rollup_oracle::means(rollup, entry, it) && rollup_oracle::objects_to_upgrades(it)
            });
            if let Some(name) = bad {
                return Err(Violation::new(format!(
                    "{own} is reported Upgradeable, but {kind} {name} objected since it was known"
                )));
            }
        }
        Ok(())
    }
}
