//! Dependencies between Applications, and cycles among them.

use std::{ops::Deref, sync::Arc};

use bellwether_api::{ConditionStatus, DependencyStatus};

use crate::{
    condition_types::READY,
    dependency_graph::{Cycle, DependencyGraph},
    id::NamespacedName,
    stored_condition,
};

use super::{Applications, application_state::ApplicationState};

impl Applications {
    pub(super) fn dependency_statuses(&self, app: &ApplicationState) -> Dependencies<'_> {
        let dependency = |name: &String| {
            let key =
                NamespacedName { namespace: Arc::clone(&app.name.namespace), name: name.as_str().into() };
            let other = self.bellwether_app(&key).and_then(|id| self.apps.get(id));
            let ready = other.and_then(|other| {
                other.last_ready.or_else(|| stored_condition::status(other.publication.stored(), READY))
            });
            DependencyStatus {
                name: name.clone(),
                installed: other.is_some(),
                ready: ready.unwrap_or(ConditionStatus::Unknown),
            }
        };
        let statuses = app.spec.dependencies.iter().map(dependency).collect();
        Dependencies { statuses, graph: &self.dependencies }
    }

    /// The dependencies of an Application changed, or the Application was deleted.
    pub(super) fn update_cycles(&mut self, name: &NamespacedName, dependencies: &[NamespacedName]) {
        let Some(concerned) = self.dependencies.set(name, dependencies) else { return };
        self.mark_all_dirty(&concerned);
    }
}

/// The dependencies of an Application, as in its status, and the cycles among them.
pub(super) struct Dependencies<'a> {
    pub(super) statuses: Vec<DependencyStatus>,
    graph: &'a DependencyGraph,
}

impl Dependencies<'_> {
    pub(super) fn is_cyclic(&self, app: &ApplicationState) -> bool {
        self.graph.is_in_cycle(&app.name)
    }

    /// The path from the Application back to itself, in words.
    pub(super) fn cycle(&self, app: &ApplicationState) -> Option<String> {
        let path = |names: Vec<NamespacedName>| {
            names.iter().map(|name| &*name.name).collect::<Vec<_>>().join(" -> ")
        };
        Some(match self.graph.cycle(&app.name)? {
            Cycle::Whole(names) => path(names),
            Cycle::Beginning(names, size) => {
                format!("{} -> ... ({size} Applications depend on one another)", path(names))
            }
        })
    }
}

impl Deref for Dependencies<'_> {
    type Target = [DependencyStatus];

    fn deref(&self) -> &Self::Target {
        &self.statuses
    }
}
