//! The names of sources in messages.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// An object in a cluster. Messages name sources in the order of this type.
///
/// `T` is `&str` for the moment, or `Arc<str>` to keep. A part that does not apply is empty: the namespace of
/// a cluster-scoped object, the cluster if there is only one, the kind of a source that is not an object. If
/// two API groups have a kind of the same name, `kind` includes the group: `Backup.velero.io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity<T> {
    /// The kind, with its group if it is ambiguous.
    pub kind: T,
    /// Empty if there is only one cluster.
    pub cluster: T,
    /// Empty for cluster-scoped objects.
    pub namespace: T,
    /// The name of the object, or of a source that is not an object.
    pub name: T,
}

/// The shortest unambiguous names of a set of sources, updated as sources come and go.
///
/// A source is named `Kind/name`, or by its cluster if the same object is in several clusters. If two sources
/// would share a name, both are named `cluster/Kind/namespace/name`, without empty parts.
#[derive(Clone, Debug)]
pub struct Names<T> {
    /// By kind, namespace and name.
    clusters: BTreeMap<[T; 3], BTreeSet<T>>,
    /// How many sources have each short name.
    short: BTreeMap<Short<T>, usize>,
}

/// `Kind/name`; without a kind, the name of a cluster or of a source that is not an object.
type Short<T> = (Option<T>, T);

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { clusters: BTreeMap::new(), short: BTreeMap::new() }
    }
}

impl<T: Ord + Clone + AsRef<str>> Names<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source. Adding it twice has no effect.
    pub fn add(&mut self, identity: &Identity<T>) {
        let clusters = self.clusters.entry(identity.object()).or_default();
        if !clusters.insert(identity.cluster.clone()) {
            return;
        }
        // A second cluster renames the first source as well; a third one does not rename the others.
        match clusters.len() {
            1 => increment(&mut self.short, identity.kind_and_name()),
            2 => {
                decrement(&mut self.short, &identity.kind_and_name());
                for cluster in clusters.iter() {
                    increment(&mut self.short, (None, cluster.clone()));
                }
            }
            _ => increment(&mut self.short, (None, identity.cluster.clone())),
        }
    }

    /// Removes a source, if the set has it.
    pub fn remove(&mut self, identity: &Identity<T>) {
        let object = identity.object();
        let Some(clusters) = self.clusters.get_mut(&object) else { return };
        if !clusters.remove(&identity.cluster) {
            return;
        }
        match clusters.len() {
            0 => {
                decrement(&mut self.short, &identity.kind_and_name());
                self.clusters.remove(&object);
            }
            1 => {
                decrement(&mut self.short, &(None, identity.cluster.clone()));
                for cluster in clusters.iter() {
                    decrement(&mut self.short, &(None, cluster.clone()));
                }
                increment(&mut self.short, identity.kind_and_name());
            }
            _ => decrement(&mut self.short, &(None, identity.cluster.clone())),
        }
    }

    /// The name of a source of the set.
    pub fn display<'a>(&self, identity: &'a Identity<T>) -> Cow<'a, str> {
        let spread = self.clusters.get(&identity.object()).is_some_and(|clusters| clusters.len() > 1);
        let short = if spread { (None, identity.cluster.clone()) } else { identity.kind_and_name() };
        let is_unique = self.short.get(&short).is_none_or(|count| *count <= 1);
        let Identity { kind, cluster, namespace, name } = identity;
        let parts: &[&T] = match short {
            (None, _) if is_unique && spread => return Cow::Borrowed(cluster.as_ref()),
            (None, _) if is_unique => return Cow::Borrowed(name.as_ref()),
            (Some(_), _) if is_unique => &[kind, name],
            _ => &[cluster, kind, namespace, name],
        };
        let parts = parts.iter().map(AsRef::<str>::as_ref).filter(|part| !part.is_empty());
        Cow::Owned(parts.collect::<Vec<_>>().join("/"))
    }
}

impl<T: Clone + AsRef<str>> Identity<T> {
    fn object(&self) -> [T; 3] {
        [self.kind.clone(), self.namespace.clone(), self.name.clone()]
    }

    fn kind_and_name(&self) -> Short<T> {
        (Some(self.kind.clone()).filter(|kind| !kind.as_ref().is_empty()), self.name.clone())
    }
}

fn increment<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    *counts.entry(key).or_default() += 1;
}

fn decrement<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn identity([kind, cluster, namespace, name]: [&str; 4]) -> Identity<&str> {
        Identity { kind, cluster, namespace, name }
    }

    /// The names in the order of the sources.
    fn display_names<'a>(identities: &'a [Identity<&'a str>]) -> Vec<Cow<'a, str>> {
        let mut names = Names::new();
        for identity in identities {
            names.add(identity);
        }
        identities.iter().map(|identity| names.display(identity)).collect()
    }

    #[rstest]
    #[case::one(&[["Pod", "east", "shop", "web"]], &["Pod/web"])]
    #[case::several(&[["Pod", "", "shop", "web"], ["Pod", "", "shop", "db"]], &["Pod/web", "Pod/db"])]
    #[case::spread(&[["Gateway", "east", "shop", "api"], ["Gateway", "west", "shop", "api"]], &["east", "west"])]
    #[case::two_namespaces(
        &[["CDI", "", "a", "cdi"], ["CDI", "", "b", "cdi"], ["CDI", "", "b", "other"]],
        &["CDI/a/cdi", "CDI/b/cdi", "CDI/other"]
    )]
    #[case::two_objects_over_the_same_clusters(
        &[["Gateway", "east", "n", "a"], ["Gateway", "west", "n", "a"], ["Gateway", "east", "n", "b"], ["Gateway", "west", "n", "b"]],
        &["east/Gateway/n/a", "west/Gateway/n/a", "east/Gateway/n/b", "west/Gateway/n/b"]
    )]
    #[case::a_cluster_and_a_name(
        &[["Pod", "east", "n", "a"], ["Pod", "west", "n", "a"], ["Pod", "east", "n", "east"]],
        &["east", "west", "Pod/east"]
    )]
    #[case::not_objects(&[["", "", "", "spec.components[0]"], ["Pod", "", "n", "a"]], &["spec.components[0]", "Pod/a"])]
    #[case::cluster_scoped(&[["Node", "east", "", "n1"], ["Disk", "west", "", "n1"]], &["Node/n1", "Disk/n1"])]
    #[case::two_kinds(
        &[["Deployment", "", "shop", "web"], ["Service", "", "shop", "web"]],
        &["Deployment/web", "Service/web"]
    )]
    #[case::twice_the_same(&[["Pod", "", "shop", "web"], ["Pod", "", "shop", "web"]], &["Pod/web", "Pod/web"])]
    fn names(#[case] identities: &[[&str; 4]], #[case] expected: &[&str]) {
        let identities: Vec<_> = identities.iter().copied().map(identity).collect();
        assert_eq!(display_names(&identities), expected);
    }

    #[test]
    fn the_order_is_kind_cluster_namespace_name() {
        let sorted = [
            ["A", "z", "z", "z"],
            ["B", "a", "z", "z"],
            ["B", "b", "a", "z"],
            ["B", "b", "b", "a"],
            ["B", "b", "b", "b"],
        ];
        assert!(sorted.map(identity).is_sorted());
    }

    fn any_identity() -> impl Strategy<Value = Identity<&'static str>> {
        let part = || prop::sample::select(vec!["a", "b", "c"]);
        (part(), part(), part(), part()).prop_map(|(kind, cluster, namespace, name)| Identity {
            kind,
            cluster,
            namespace,
            name,
        })
    }

    proptest! {
        #[test]
        fn names_are_unique(identities in prop::collection::btree_set(any_identity(), 0..20)) {
            let identities: Vec<_> = identities.into_iter().collect();
            let names: BTreeSet<_> = display_names(&identities).into_iter().collect();
            prop_assert_eq!(names.len(), identities.len());
        }

        #[test]
        fn removing_a_source_undoes_adding_it(steps in prop::collection::vec((any::<bool>(), any_identity()), 0..40)) {
            let (mut names, mut present) = (Names::new(), BTreeSet::new());
            for (come, identity) in steps {
                if come {
                    names.add(&identity);
                    present.insert(identity);
                } else {
                    names.remove(&identity);
                    present.remove(&identity);
                }
            }
            let present: Vec<_> = present.into_iter().collect();
            let kept: Vec<_> = present.iter().map(|identity| names.display(identity)).collect();
            prop_assert_eq!(kept, display_names(&present));
            for identity in &present {
                names.remove(identity);
            }
            prop_assert!(names.clusters.is_empty() && names.short.is_empty());
        }
    }
}
