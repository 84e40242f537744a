//! Keys of clusters, kinds, objects and feeds.

use std::{fmt, sync::Arc};

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cluster(Option<Arc<str>>);

impl Cluster {
    pub fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }

    /// The cluster that holds Bellwether's own objects.
    pub fn hub() -> Self {
        Self(None)
    }

    /// Empty for the hub.
    pub fn name(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// [`Cluster::name`], shared.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.0.clone().unwrap_or_default()
    }

    pub fn is_hub(&self) -> bool {
        self.0.is_none()
    }
}

/// A kind in any version, like `schema.GroupKind` of apimachinery.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// First, because lists of objects are sorted by kind.
    pub kind: Arc<str>,
    /// Empty for the core group.
    pub group: Arc<str>,
}

impl GroupKind {
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// A kind of the API group `bellwether.dev`.
    pub fn bellwether(kind: &str) -> Self {
        Self::new(bellwether_api::GROUP, kind)
    }

    pub fn is_bellwether(&self) -> bool {
        *self.group == *bellwether_api::GROUP
    }

    pub fn is_rollup(&self) -> bool {
        self.is_bellwether() && *self.kind == *"Rollup"
    }

    /// The core kind, whose objects are requested as metadata only.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && *self.kind == *"Secret"
    }

    /// The core kinds whose objects are data. A request over HTTP reads only their metadata.
    pub fn holds_data(&self) -> bool {
        self.is_secret() || (self.group.is_empty() && *self.kind == *"ConfigMap")
    }

    pub fn pod() -> Self {
        Self::new("", "Pod")
    }
}

/// As kubectl writes kinds: `StatefulSet.apps`, `Service`.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Like `types.NamespacedName` of apimachinery.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedName {
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl NamespacedName {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    pub cluster: Cluster,
    pub kind: GroupKind,
    pub name: NamespacedName,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_hub() {
            write!(f, "{}: ", self.cluster.name())?;
        }
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// Identifies one run of a feed: one kind in one cluster, listed and watched. A feed that ends and starts
/// again gets a new id, so that late events of the earlier run are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(pub(crate) u32);

impl fmt::Display for FeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
