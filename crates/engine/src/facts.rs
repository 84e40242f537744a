//! Facts: what the store keeps of an object.

use std::sync::Arc;

use bellwether_api::{
    ApplicationSpec, ApplicationStatus, BindingPolicySpec, BindingPolicyStatus, CombinedStatusFields,
    HealthRuleSpec, HealthRuleStatus, RollupSpec, RollupStatus, StatusCollectorSpec, StatusCollectorStatus,
};
use bellwether_health::Verdict;
use bellwether_model::ConditionStatus;
use jiff::Timestamp;

use crate::{
    app_k8s_io::AppK8sIoSpec, component_conditions::ComponentConditions, dialect::Dialect, digest::Digest,
    group_ref::OwnKind, requested_fields::RequestedValues,
};

/// Enough to know to which groups the object belongs and how healthy it is, and no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub uid: Box<str>,
    pub resource_version: ResourceVersion,
    pub labels: Labels,
    /// The value of the annotation that names an Application.
    pub application: Option<Box<str>>,
    pub owners: Box<[OwnerReference]>,
    /// `observedGeneration` has reached `generation`, or the object does not have both.
    pub settled: bool,
    /// It has a `deletionTimestamp`, or the API server confirmed our delete.
    pub deleting: bool,
    pub verdict: Verdict,
    pub kind_facts: KindFacts,
    /// Kept only if a feed's [`RequestedFields`](crate::RequestedFields) asks for conditions.
    pub component_conditions: Option<Box<ComponentConditions>>,
    /// Kept only if a feed's [`RequestedFields`](crate::RequestedFields) asks for paths.
    pub values: Option<Box<RequestedValues>>,
}

/// What is kept of some kinds only, because groups look below their members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KindFacts {
    #[default]
    None,
    Pod(PodFacts),
    ReplicaSet {
        /// Its number among those of the Deployment, which a rollback renews; 0 if unknown.
        revision: u64,
    },
    Revision {
        /// DaemonSet, StatefulSet: the revision of its template, as its Pods' labels have it, unless Pods of other
        /// revisions count as well. Deployment: the number of its newest ReplicaSet.
        current: Box<str>,
        /// StatefulSet: Pods below this ordinal stay at their revision.
        updated_from: u32,
    },
    Service {
        /// It has a selector, so that Kubernetes keeps its EndpointSlices.
        selects_pods: bool,
    },
    EndpointSlice {
        has_ready_endpoint: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// The status of its Ready condition, if it has one.
    pub ready: Option<ConditionStatus>,
    /// The phase is Succeeded or Failed.
    pub finished: bool,
}

impl Facts {
    /// Pods only.
    pub(crate) fn pod(&self) -> Option<PodFacts> {
        match self.kind_facts {
            KindFacts::Pod(pod) => Some(pod),
            _ => None,
        }
    }
}

/// Numeric on API servers. Other values can be tested for equality, but have no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceVersion(Box<str>);

impl ResourceVersion {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Neither before nor after any other.
    pub(crate) fn unknown() -> Self {
        Self::new("")
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True only if both are numeric.
    pub fn is_before(&self, other: &Self) -> bool {
        match (self.0.parse::<u64>(), other.0.parse::<u64>()) {
            (Ok(own), Ok(other)) => own < other,
            _ => false,
        }
    }
}

pub(crate) type Label = (Arc<str>, Arc<str>);

/// Sorted by key. The interner shares equal labels between objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[Arc<Label>]>);

impl Labels {
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|label| (*label.0).cmp(key)).ok()?;
        self.0.get(at).map(|label| &*label.1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter().map(|label| &**label)
    }

    /// Lets `replace` swap each label for an equal one, to share memory.
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

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    pub api_version: Box<str>,
    pub kind: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// What discovery reports about a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResource {
    /// The version that is watched: `v1`.
    pub version: Arc<str>,
    pub versions: Box<[Box<str>]>,
    /// As in URLs: `statefulsets`.
    pub plural: Arc<str>,
    pub namespaced: bool,
    /// Whether the kind has a status subresource.
    pub has_status: bool,
}

/// The decoded manifest of one of our own objects.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct OwnManifest<S, T> {
    pub generation: i64,
    pub created: Option<Timestamp>,
    pub spec: S,
    /// As stored in the cluster; written by us.
    pub status: T,
}

/// An object decoded through a [`Lens`](crate::Lens).
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedObject {
    pub facts: Facts,
    /// The manifest, if it is one of our own kinds.
    pub own: Option<OwnObject>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub enum OwnObject {
    Application(Box<OwnManifest<ApplicationSpec, ApplicationStatus>>),
    /// With only those fields of its status that we write.
    AppK8sIo(Box<OwnManifest<AppK8sIoSpec, serde_json::Value>>),
    BindingPolicy(Box<OwnManifest<BindingPolicySpec, BindingPolicyStatus>>),
    /// It has no spec.
    CombinedStatus(Box<CombinedStatusFields>),
    HealthRule(Box<OwnManifest<HealthRuleSpec, HealthRuleStatus>>),
    Rollup(Box<OwnManifest<RollupSpec, RollupStatus>>),
    StatusCollector(Box<OwnManifest<StatusCollectorSpec, StatusCollectorStatus>>),
}

/// A digest of the manifest of one of our own objects, to detect changes. The grouping keeps the manifest
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnFingerprint {
    pub(crate) kind: OwnKind,
    digest: Digest,
}

impl OwnFingerprint {
    /// We wrote to the object: treat the next watch event as a change.
    pub(crate) fn invalidate(&mut self) {
        self.digest = Digest::of(&());
    }

    pub(crate) fn of(own: &OwnObject) -> Self {
        let kind = match own {
            OwnObject::Application(_) => OwnKind::Application(Dialect::Bellwether),
            OwnObject::AppK8sIo(_) => OwnKind::Application(Dialect::AppK8sIo),
            OwnObject::BindingPolicy(_) => OwnKind::BindingPolicy,
            OwnObject::CombinedStatus(_) => OwnKind::CombinedStatus,
            OwnObject::HealthRule(_) => OwnKind::HealthRule,
            OwnObject::Rollup(_) => OwnKind::Rollup,
            OwnObject::StatusCollector(_) => OwnKind::StatusCollector,
        };
        Self { kind, digest: Digest::of(own) }
    }
}
