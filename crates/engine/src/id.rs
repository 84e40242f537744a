//! Names: of clusters, of kinds, of objects.

use std::{fmt, sync::Arc};

/// A cluster, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cluster(Option<Arc<str>>);

impl Cluster {
    /// A workload cluster.
    pub fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }

    /// The cluster that holds Bellwether's own objects.
    pub fn hub() -> Self {
        Self(None)
    }

    /// Its name; empty for the hub.
    pub fn name(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether it is the cluster that holds Bellwether's own objects.
    pub fn is_hub(&self) -> bool {
        self.0.is_none()
    }
}

/// A kind, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// The kind itself: `StatefulSet`. Lists of objects are in the order of kinds, so it comes first.
    pub kind: Arc<str>,
    /// Its API group; empty for the core group.
    pub group: Arc<str>,
}

impl GroupKind {
    /// The kind of this name in this group.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// One of our own kinds.
    pub fn own(kind: &str) -> Self {
        Self::new(bellwether_api::GROUP, kind)
    }

    /// Whether it is one of our own.
    pub fn is_own(&self) -> bool {
        *self.group == *bellwether_api::GROUP
    }

    /// Whether it is that of Rollups.
    pub fn is_rollup(&self) -> bool {
        self.is_own() && *self.kind == *"Rollup"
    }

    /// Pods.
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

/// An object among those of its kind in its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedName {
    /// Its namespace; empty for what has none.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl NamespacedName {
    /// The object of this name in this namespace.
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

/// An object, wherever it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its cluster.
    pub cluster: Cluster,
    /// Its kind.
    pub kind: GroupKind,
    /// Its name.
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

/// One kind in one cluster that is being followed. Each time that it begins it gets a new one, so that what comes late from
/// an earlier time is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(pub(crate) u32);

impl fmt::Display for FeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
