//! The part of an Application's status about the objects of one kind, as published or as the oracle computes
//! it.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::{Application, ApplicationStatus, State};
use bellwether_simulation::oracle::{Oracle, Totals};

use crate::objects::Kind;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The states of the members, including missing components.
    pub(crate) objects: BTreeMap<String, State>,
    pub(crate) installed: BTreeSet<String>,
    pub(crate) missing: BTreeSet<String>,
}

impl Statement {
    pub(crate) fn published(app: &Application, status: &ApplicationStatus, kind: Kind) -> Self {
        let objects = status.objects.iter().filter(|it| Kind::find(&it.group, &it.kind) == Some(kind));
        // These lists contain dependencies, too.
        let is_of_kind = |key: &&String| {
            let component = app.spec.components.get(*key);
            component.is_some_and(|it| Kind::find(&it.group, &it.kind) == Some(kind))
        };
        let components = |keys: &[String]| keys.iter().filter(is_of_kind).cloned().collect();
        Self {
            objects: objects.map(|it| (it.name.clone(), it.status)).collect(),
            installed: components(&status.installed),
            missing: components(&status.missing),
        }
    }
}

impl From<Totals> for Statement {
    fn from(share: Totals) -> Self {
        let objects = share.parts.into_iter().map(|part| (part.name, part.state)).collect();
        Self { objects, installed: share.installed, missing: share.missing }
    }
}

/// The kinds in the spec of an Application.
pub(crate) fn kinds(app: &Application) -> Vec<Kind> {
    let kinds = Oracle::kinds_of_spec(&app.spec).into_keys();
    kinds.filter_map(|kind| Kind::find(&kind.group, &kind.kind)).collect()
}

/// The status and the reason of a condition.
pub(crate) fn condition<'a>(status: &'a ApplicationStatus, kind: &str) -> Option<(&'a str, &'a str)> {
    let condition = status.conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((&condition.status, &condition.reason))
}
