//! What stands in an Application, in whichever dialect it is written.

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

use super::{app::LegacySpec, app_k8s_io, status};

/// What stands in an Application.
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

    /// What is asked for, in our own words, and what these have no words for.
    pub(super) fn spec(self) -> (ApplicationSpec, Option<LegacySpec>) {
        match self {
            Self::Bellwether(written) => (written.spec.clone(), None),
            Self::AppK8sIo(OwnManifest { spec, .. }) => {
                let legacy = LegacySpec {
                    adds_owner: spec.add_owner_ref,
                    selects: spec.selector.is_some(),
                    invalid_fields: spec.mistakes.clone(),
                };
                let spec = ApplicationSpec {
                    selector: spec.selector.clone().unwrap_or_default(),
                    // Where nothing is selected, nothing has to be read.
                    component_kinds: spec
                        .component_kinds
                        .iter()
                        .filter(|_| legacy.selects)
                        .cloned()
                        .collect(),
                    ownership: Ownership::Observe,
                    type_: spec.type_.clone(),
                    version: spec.version.clone(),
                    ..ApplicationSpec::default()
                };
                (spec, Some(legacy))
            }
        }
    }

    /// Our own status, which remembers more than the other does.
    pub(super) fn status(self) -> Option<&'a ApplicationStatus> {
        match self {
            Self::Bellwether(written) => Some(&written.status),
            Self::AppK8sIo(_) => None,
        }
    }

    pub(super) fn publication(self, group: GroupRef, facts: &Facts) -> Publication {
        match self {
            Self::Bellwether(OwnManifest { generation, status, .. }) => {
                Publication::new(group, &status::CONDITIONS, facts, *generation, status)
            }
            Self::AppK8sIo(OwnManifest { generation, status, .. }) => {
                Publication::new(group, &app_k8s_io::CONDITIONS, facts, *generation, status)
            }
        }
    }

    /// Compares it with what was published. Gives back whether that has to be looked at.
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
