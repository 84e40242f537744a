//! The part of an Application's status about the objects of one kind, as published or as the oracle computes
//! it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display, Formatter},
};

use bellwether_api::{Application, ApplicationStatus, ObjectStatus, State};
use bellwether_simulation::oracle::{Oracle, Part, Totals};

use crate::objects::Kind;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The members, including missing components.
    pub(crate) objects: BTreeMap<String, MemberStatement>,
    pub(crate) installed: BTreeSet<String>,
    pub(crate) missing: BTreeSet<String>,
    /// The oracle: whether a suspended member keeps the Application from being ready. A status does not say it
    /// of single members.
    pub(crate) blocks: bool,
}

/// What a status says about one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberStatement {
    pub(crate) state: State,
    /// None for a missing component.
    pub(crate) reason: Option<String>,
    /// The name of the Pod because of which it is not ready.
    pub(crate) cause: Option<String>,
}

impl Display for MemberStatement {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.state.name(), self.reason.as_deref().unwrap_or("-"))?;
        self.cause.iter().try_for_each(|cause| write!(to, " because of {cause}"))
    }
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
        let member = |it: &ObjectStatus| MemberStatement {
            state: it.status,
            reason: it.reason.clone().filter(|_| it.status != State::Missing),
            cause: it.cause.as_ref().map(|cause| cause.name.clone()),
        };
        Self {
            objects: objects.map(|it| (it.name.clone(), member(it))).collect(),
            installed: components(&status.installed),
            missing: components(&status.missing),
            blocks: false,
        }
    }
}

impl From<Totals> for Statement {
    fn from(share: Totals) -> Self {
        let blocks = share.parts.iter().any(|part| part.blocks);
        let member = |part: Part| {
            let reason = part.reason().map(str::to_owned);
            (part.name, MemberStatement { state: part.state, reason, cause: part.cause })
        };
        let objects = share.parts.into_iter().map(member).collect();
        Self { objects, installed: share.installed, missing: share.missing, blocks }
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
