//! What there is to say of an Application, found out from scratch with plain loops over all objects.
//!
//! It is in parts, one for each kind, because what a controller knows of one kind may be older than what it knows of
//! another: no API server tells of two kinds in one order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Result;
use bellwether_api::{ApplicationSpec, ApplicationStatus, Membership, ObjectCounts, Ownership};
use bellwether_model::State;
use serde_json::Value as Json;

use super::{cast::Kind, fact::Fact};

/// The members of a kind in a namespace, by name.
pub(super) type Objects = BTreeMap<String, Arc<Fact>>;

/// An Application as it is stored.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) deleting: bool,
    pub(super) spec: ApplicationSpec,
    pub(super) status: ApplicationStatus,
}

/// What there is to say of the objects of one kind, or of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Members, and components that are missing, with how they are.
    pub(super) objects: BTreeMap<(Kind, String), State>,
    /// The named components that are there, and those that are not.
    pub(super) installed: BTreeSet<String>,
    pub(super) missing: BTreeSet<String>,
    /// Whether the controllers of all of them have acted on their latest generations.
    pub(super) behind: bool,
}

impl App {
    /// From the object.
    pub(super) fn read(object: &Json) -> Result<Self> {
        let metadata = &object["metadata"];
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let status = Some(object["status"].clone()).filter(|status| !status.is_null());
        Ok(Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            generation: metadata["generation"].as_i64().unwrap_or(0),
            deleting: !metadata["deletionTimestamp"].is_null(),
            spec: serde_json::from_value(object["spec"].clone())?,
            status: status.map(serde_json::from_value).transpose()?.unwrap_or_default(),
        })
    }

    /// The kinds that it asks for.
    pub(super) fn kinds(&self) -> BTreeSet<Kind> {
        let components = self.spec.components.values().map(|it| (&it.group, &it.kind));
        let kinds = self.spec.component_kinds.iter().map(|it| (&it.group, &it.kind));
        components.chain(kinds).filter_map(|(group, kind)| Kind::find(group, kind)).collect()
    }

    /// Whether an object of its namespace, of a kind that it asks for, is a member.
    pub(super) fn has(&self, fact: &Fact) -> bool {
        let selector = &self.spec.selector;
        let exact =
            selector.match_labels.iter().flatten().all(|(key, value)| fact.labels.get(key) == Some(value));
        let expressions = selector.match_expressions.iter().flatten().all(|it| {
            let label = fact.labels.get(&it.key);
            let is_among = label.is_some_and(|label| it.values.iter().flatten().any(|value| value == label));
            match it.operator.as_str() {
                "In" => is_among,
                "NotIn" => !is_among,
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        });
        let is_named = match (&fact.application, self.spec.membership) {
            (Some(name), _) => *name == self.name,
            (None, Membership::Selected) => true,
            (None, Membership::Annotated) => false,
        };
        exact && expressions && is_named
    }

    /// Whether it is to own an object.
    pub(super) fn owns(&self, kind: Kind, fact: &Fact) -> bool {
        !self.deleting
            && self.spec.ownership == Ownership::Adopt
            && fact.application.as_ref() == Some(&self.name)
            && self.kinds().contains(&kind)
            && self.has(fact)
    }

    /// Whether its status names a kind of which it owns objects.
    pub(super) fn says_it_owns(&self, kind: Kind) -> bool {
        self.status.owned_kinds.iter().any(|it| Kind::find(&it.group, &it.kind) == Some(kind))
    }

    /// What there is to say of its objects of a kind, while a rule is in force.
    pub(super) fn share(&self, kind: Kind, objects: &Objects, rule: usize) -> Share {
        let mut share = Share::default();
        for (name, fact) in objects.iter().filter(|(_, fact)| self.has(fact)) {
            share.objects.insert((kind, name.clone()), fact.states[rule]);
            share.behind |= !fact.settled;
        }
        for (key, component) in &self.spec.components {
            if Kind::find(&component.group, &component.kind) != Some(kind) {
                continue;
            }
            let name = component.name.as_ref().unwrap_or(key);
            if objects.get(name).is_some_and(|fact| self.has(fact)) {
                share.installed.insert(key.clone());
            } else {
                share.missing.insert(key.clone());
                share.objects.insert((kind, name.clone()), State::Missing);
            }
        }
        share
    }

    /// What is said of its objects of a kind in the status that is stored.
    pub(super) fn published(&self, kind: Kind) -> Share {
        let of_kind = self.status.objects.iter().filter(|it| Kind::find(&it.group, &it.kind) == Some(kind));
        let components = self.spec.components.iter();
        let named: BTreeSet<_> = components
            .filter(|(_, it)| Kind::find(&it.group, &it.kind) == Some(kind))
            .map(|(key, _)| key.clone())
            .collect();
        let among = |names: &[String]| names.iter().filter(|name| named.contains(*name)).cloned().collect();
        Share {
            objects: of_kind.map(|it| ((kind, it.name.clone()), it.status)).collect(),
            installed: among(&self.status.installed),
            missing: among(&self.status.missing),
            behind: false,
        }
    }

    /// A condition of the status that is stored: its status and its reason.
    pub(super) fn condition(&self, kind: &str) -> Option<(&str, &str)> {
        let condition = self.status.conditions.iter().find(|condition| condition.type_ == kind)?;
        Some((&condition.status, &condition.reason))
    }
}

impl Share {
    /// Puts the shares of several kinds together.
    pub(super) fn join(shares: impl IntoIterator<Item = Self>) -> Self {
        shares.into_iter().fold(Self::default(), |mut all, share| {
            all.objects.extend(share.objects);
            all.installed.extend(share.installed);
            all.missing.extend(share.missing);
            all.behind |= share.behind;
            all
        })
    }

    /// The condition Ready that follows from it where all kinds can be read: its status and its reason.
    pub(super) fn ready(&self) -> (&'static str, &'static str) {
        let has = |wanted: &[State]| self.objects.values().any(|state| wanted.contains(state));
        if has(&[State::Missing]) {
            ("False", "ComponentsMissing")
        } else if has(&[State::Failed, State::InProgress, State::Terminating]) {
            ("False", "ComponentsNotReady")
        } else if has(&[State::Unknown]) {
            ("Unknown", "ComponentsUnknown")
        } else if self.objects.is_empty() {
            ("Unknown", "NoComponents")
        } else {
            ("True", "ComponentsReady")
        }
    }

    /// How many are how.
    pub(super) fn counts(&self) -> ObjectCounts {
        let of = |wanted: State| {
            i32::try_from(self.objects.values().filter(|state| **state == wanted).count()).unwrap_or(i32::MAX)
        };
        ObjectCounts {
            total: i32::try_from(self.objects.len()).unwrap_or(i32::MAX),
            ready: of(State::Ready),
            in_progress: of(State::InProgress),
            failed: of(State::Failed),
            suspended: of(State::Suspended),
            terminating: of(State::Terminating),
            unknown: of(State::Unknown),
            missing: of(State::Missing),
        }
    }
}
