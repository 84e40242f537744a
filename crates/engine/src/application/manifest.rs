//! The manifest of an Application, in either dialect.

use bellwether_api::{ApplicationSpec, ApplicationStatus, Ownership};
use serde_json::Value;

use crate::{
    app_k8s_io::AppK8sIoSpec,
    dialect::Dialect,
    effect_queue::EffectQueue,
    facts::{Facts, OwnManifest},
    group_ref::GroupRef,
    publication::Publication,
};

use super::{app_k8s_io, application_state::AppK8sIoExtras, status};

#[derive(Clone, Copy)]
pub(super) enum ApplicationManifest<'a> {
    Bellwether(&'a OwnManifest<ApplicationSpec, ApplicationStatus>),
    AppK8sIo(&'a OwnManifest<AppK8sIoSpec, Value>),
}

impl<'a> ApplicationManifest<'a> {
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Bellwether(_) => Dialect::Bellwether,
            Self::AppK8sIo(_) => Dialect::AppK8sIo,
        }
    }

    /// The spec in our own form, and what that form cannot express.
    pub(super) fn spec(self) -> (ApplicationSpec, Option<AppK8sIoExtras>) {
        match self {
            Self::Bellwether(written) => (written.spec.clone(), None),
            Self::AppK8sIo(OwnManifest { spec, .. }) => {
                let app_k8s_io = AppK8sIoExtras {
                    adds_owner: spec.add_owner_ref,
                    has_selector: spec.selector.is_some(),
                    invalid_fields: spec.invalid_fields.clone(),
                };
                let spec = ApplicationSpec {
                    selector: spec.selector.clone().unwrap_or_default(),
                    // Without a selector there are no members, so nothing needs to be watched.
                    component_kinds: spec
                        .component_kinds
                        .iter()
                        .filter(|_| app_k8s_io.has_selector)
                        .cloned()
                        .collect(),
                    ownership: Ownership::Observe,
                    type_: spec.type_.clone(),
                    version: spec.version.clone(),
                    ..ApplicationSpec::default()
                };
                (spec, Some(app_k8s_io))
            }
        }
    }

    /// `None` for `app.k8s.io`, whose status does not store times or owned kinds.
    pub(super) fn status(self) -> Option<&'a ApplicationStatus> {
        match self {
            Self::Bellwether(written) => Some(&written.status),
            Self::AppK8sIo(_) => None,
        }
    }

    pub(super) fn publication(self, group: GroupRef, facts: &Facts) -> Publication {
        match self {
            Self::Bellwether(OwnManifest { generation, created, status, .. }) => {
                Publication::new(group, &status::CONDITIONS, facts, (*generation, *created), status)
            }
            Self::AppK8sIo(OwnManifest { generation, created, status, .. }) => {
                Publication::new(group, &app_k8s_io::CONDITIONS, facts, (*generation, *created), status)
            }
        }
    }

    /// Returns whether the Application has to be evaluated.
    pub(super) fn observe(
        self,
        publication: &mut Publication,
        facts: &Facts,
        queue: &mut EffectQueue,
    ) -> bool {
        match self {
            Self::Bellwether(OwnManifest { generation, status, .. }) => {
                publication.observe(facts, *generation, status, queue)
            }
            Self::AppK8sIo(OwnManifest { generation, status, .. }) => {
                publication.observe(facts, *generation, status, queue)
            }
        }
    }
}
