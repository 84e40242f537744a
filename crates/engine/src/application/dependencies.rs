//! Dependencies between Applications, and cycles among them.

use std::sync::Arc;

use bellwether_api::{ConditionStatus, DependencyStatus};

use crate::{condition_types::READY, id::NamespacedName, stored_condition};

use super::{Applications, application_state::ApplicationState};

impl Applications {
    pub(super) fn dependency_statuses(&self, app: &ApplicationState) -> Vec<DependencyStatus> {
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
        app.spec.dependencies.iter().map(dependency).collect()
    }

    /// The dependencies of an Application changed, or the Application was deleted: updates the cycles of all
    /// that depend on it.
    pub(super) fn update_cycles(&mut self, name: &NamespacedName) {
        self.mark_all_dirty(&self.dependencies.dependents_of(name));
        for name in self.dependencies.transitive_dependents(name).into_iter().chain([name.clone()]) {
            let Some(id) = self.bellwether_app(&name) else { continue };
            if let Some(app) = self.apps.get_mut(id) {
                let cycle = self.dependencies.cycle(&name);
                if app.cycle != cycle {
                    app.cycle = cycle;
                    self.apps.mark_dirty(id);
                }
            }
        }
    }
}
