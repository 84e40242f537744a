//! What is kept of an object.

use std::sync::Arc;

use bellwether_api::{
    ApplicationSpec, ApplicationStatus, HealthRuleSpec, HealthRuleStatus, RollupSpec, RollupStatus,
};
use bellwether_health::Verdict;
use bellwether_model::ConditionStatus;
use jiff::Timestamp;

use crate::{
    app_k8s_io::AppK8sIoSpec, component_conditions::ComponentConditions, dialect::Dialect, digest::Digest,
    group_ref::OwnKind, wanted::Values,
};

/// What is kept of an object: enough to say where it belongs and how it is, and no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its identity. Another object under the same name has another one.
    pub uid: Box<str>,
    /// The version of this state of it.
    pub version: ResourceVersion,
    /// Its labels, in the order of their keys.
    pub labels: Labels,
    /// The Application that its annotation names.
    pub application: Option<Box<str>>,
    /// Those that own it, in their order.
    pub owners: Box<[Owner]>,
    /// Whether its controller has acted on its latest generation, as far as it says.
    pub settled: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// How it is.
    pub verdict: Verdict,
    /// More about a Pod.
    pub pod: Option<PodFacts>,
    /// What an operator says of it in its conditions. Nothing where nobody wants to know.
    pub operator: Option<Box<ComponentConditions>>,
    /// The values that somebody wants to know. Nothing where nobody does.
    pub values: Option<Box<Values>>,
}

/// What is kept of a Pod besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// The status of its Ready condition, if it has one.
    pub ready: Option<ConditionStatus>,
    /// Whether its containers have ended for good.
    pub finished: bool,
}

/// The version of an object. API servers number them; what is no number can be told from others, but not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceVersion(Box<str>);

impl ResourceVersion {
    /// The version that an API server calls so.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// One that is neither before nor after any other.
    pub(crate) fn unknown() -> Self {
        Self::new("")
    }

    /// Whether it is one.
    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// As the API server wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is certainly before the other.
    pub fn is_before(&self, other: &Self) -> bool {
        match (self.0.parse::<u64>(), other.0.parse::<u64>()) {
            (Ok(own), Ok(other)) => own < other,
            _ => false,
        }
    }
}

/// A label: its key and its value.
pub(crate) type Label = (Arc<str>, Arc<str>);

/// Labels, in the order of their keys. Most objects share theirs with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[Arc<Label>]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|label| (*label.0).cmp(key)).ok()?;
        self.0.get(at).map(|label| &*label.1)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter().map(|label| &**label)
    }

    /// The same labels, each of which may be replaced by one that says the same.
    pub(crate) fn replace_each(&mut self, replace: impl FnMut(&mut Arc<Label>)) {
        self.0.iter_mut().for_each(replace);
    }
}

impl FromIterator<(Arc<str>, Arc<str>)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(labels: I) -> Self {
        let mut labels: Vec<_> = labels.into_iter().map(Arc::new).collect();
        labels.sort();
        labels.dedup_by(|a, b| a.0 == b.0);
        Self(labels.into())
    }
}

/// One that owns an object.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The group and version of its kind.
    pub api_version: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
    /// Whether it manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether it waits for the object when it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// What a cluster says of a kind that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The version that is followed: `v1`.
    pub version: Arc<str>,
    /// All versions that there are.
    pub versions: Box<[Box<str>]>,
    /// The kind as it stands in paths: `statefulsets`.
    pub plural: Arc<str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether they have a status of their own.
    pub has_status: bool,
}

/// One of our own objects, as it was written.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct OwnManifest<S, T> {
    /// The generation of its spec.
    pub generation: i64,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// What a user wrote.
    pub spec: S,
    /// What we wrote.
    pub status: T,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedObject {
    /// What is kept of it.
    pub facts: Facts,
    /// What was written in it, if it is one of ours.
    pub own: Option<OwnObject>,
}

/// One of our own objects.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub enum OwnObject {
    /// An Application.
    Application(Box<OwnManifest<ApplicationSpec, ApplicationStatus>>),
    /// An Application of `app.k8s.io`, and as much of its status as we write.
    AppK8sIo(Box<OwnManifest<AppK8sIoSpec, serde_json::Value>>),
    /// A HealthRule.
    HealthRule(Box<OwnManifest<HealthRuleSpec, HealthRuleStatus>>),
    /// A Rollup.
    Rollup(Box<OwnManifest<RollupSpec, RollupStatus>>),
}

/// What is kept of what was written in one of our own objects. Whoever needs more of it has taken it when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnFingerprint {
    pub(crate) kind: OwnKind,
    digest: Digest,
}

impl OwnFingerprint {
    /// We have written since it was seen: whatever is seen next is news.
    pub(crate) fn invalidate(&mut self) {
        self.digest = Digest::of(&());
    }

    pub(crate) fn of(own: &OwnObject) -> Self {
        let kind = match own {
            OwnObject::Application(_) => OwnKind::Application(Dialect::Bellwether),
            OwnObject::AppK8sIo(_) => OwnKind::Application(Dialect::AppK8sIo),
            OwnObject::HealthRule(_) => OwnKind::HealthRule,
            OwnObject::Rollup(_) => OwnKind::Rollup,
        };
        Self { kind, digest: Digest::of(own) }
    }
}
