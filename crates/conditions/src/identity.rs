//! Who a source is, and what it is called in a message.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// Which object in which cluster. Sources stand in this order, whatever the order in which they arrive.
///
/// `T` is any text: `&str` for the moment, `Arc<str>` to keep. What does not apply is empty: the namespace of a
/// cluster-scoped object, the cluster where there is only one. Where two groups have a kind of the same name, the
/// kind carries its group: `Backup.velero.io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity<T> {
    /// The kind.
    pub kind: T,
    /// The cluster.
    pub cluster: T,
    /// The namespace.
    pub namespace: T,
    /// The name.
    pub name: T,
}

/// What each of a set of sources is called, kept up to date as they come and go.
///
/// A source is called by its name, or by its cluster where the same object is in several. Where two would be called
/// the same, both are called `cluster/namespace/name`, with the kind before it where even that is the same.
#[derive(Clone, Debug)]
pub struct Names<T> {
    /// The clusters of each object: kind, namespace and name.
    clusters: BTreeMap<[T; 3], BTreeSet<T>>,
    /// How many sources have each short name.
    short: BTreeMap<T, usize>,
    /// How many sources are at each place: cluster, namespace and name.
    places: BTreeMap<[T; 3], usize>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { clusters: BTreeMap::new(), short: BTreeMap::new(), places: BTreeMap::new() }
    }
}

impl<T: Ord + Clone + AsRef<str>> Names<T> {
    /// No sources yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A source came.
    pub fn add(&mut self, identity: &Identity<T>) {
        let clusters = self.clusters.entry(identity.object()).or_default();
        if !clusters.insert(identity.cluster.clone()) {
            return;
        }
        // The second cluster changes what the first source is called; more of them change nothing for the others.
        match clusters.len() {
            1 => more(&mut self.short, identity.name.clone()),
            2 => {
                fewer(&mut self.short, &identity.name);
                for cluster in clusters.iter() {
                    more(&mut self.short, cluster.clone());
                }
            }
            _ => more(&mut self.short, identity.cluster.clone()),
        }
        more(&mut self.places, identity.place());
    }

    /// A source went.
    pub fn remove(&mut self, identity: &Identity<T>) {
        let object = identity.object();
        let Some(clusters) = self.clusters.get_mut(&object) else { return };
        if !clusters.remove(&identity.cluster) {
            return;
        }
        match clusters.len() {
            0 => {
                fewer(&mut self.short, &identity.name);
                self.clusters.remove(&object);
            }
            1 => {
                fewer(&mut self.short, &identity.cluster);
                for cluster in clusters.iter() {
                    fewer(&mut self.short, cluster);
                }
                more(&mut self.short, identity.name.clone());
            }
            _ => fewer(&mut self.short, &identity.cluster),
        }
        fewer(&mut self.places, &identity.place());
    }

    /// What a source of the set is called.
    pub fn display<'a>(&self, identity: &'a Identity<T>) -> Cow<'a, str> {
        let spread = self.clusters.get(&identity.object()).is_some_and(|clusters| clusters.len() > 1);
        let short = if spread { &identity.cluster } else { &identity.name };
        if !clash(&self.short, short) {
            return Cow::Borrowed(short.as_ref());
        }
        let kind = clash(&self.places, &identity.place()).then_some(&identity.kind);
        let place = [&identity.cluster, &identity.namespace, &identity.name];
        let parts = kind.into_iter().chain(place).map(AsRef::as_ref).filter(|part| !part.is_empty());
        Cow::Owned(parts.collect::<Vec<_>>().join("/"))
    }
}

impl<T: Clone> Identity<T> {
    fn object(&self) -> [T; 3] {
        [self.kind.clone(), self.namespace.clone(), self.name.clone()]
    }

    fn place(&self) -> [T; 3] {
        [self.cluster.clone(), self.namespace.clone(), self.name.clone()]
    }
}

fn more<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    *counts.entry(key).or_default() += 1;
}

fn fewer<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => {
            counts.remove(key);
        }
    }
}

fn clash<K: Ord>(counts: &BTreeMap<K, usize>, key: &K) -> bool {
    counts.get(key).is_some_and(|count| *count > 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn identity([kind, cluster, namespace, name]: [&str; 4]) -> Identity<&str> {
        Identity { kind, cluster, namespace, name }
    }

    /// What each of these sources is called, in the same order.
    fn display_names<'a>(identities: &'a [Identity<&'a str>]) -> Vec<Cow<'a, str>> {
        let mut names = Names::new();
        for identity in identities {
            names.add(identity);
        }
        identities.iter().map(|identity| names.display(identity)).collect()
    }

    #[rstest]
    #[case::one(&[["Pod", "east", "shop", "web"]], &["web"])]
    #[case::several(&[["Pod", "", "shop", "web"], ["Pod", "", "shop", "db"]], &["web", "db"])]
    #[case::spread(&[["Gateway", "east", "shop", "api"], ["Gateway", "west", "shop", "api"]], &["east", "west"])]
    #[case::two_namespaces(
        &[["CDI", "", "a", "cdi"], ["CDI", "", "b", "cdi"], ["CDI", "", "b", "other"]],
        &["a/cdi", "b/cdi", "other"]
    )]
    #[case::two_objects_over_the_same_clusters(
        &[["Gateway", "east", "n", "a"], ["Gateway", "west", "n", "a"], ["Gateway", "east", "n", "b"], ["Gateway", "west", "n", "b"]],
        &["east/n/a", "west/n/a", "east/n/b", "west/n/b"]
    )]
    #[case::a_cluster_and_a_name(
        &[["Pod", "east", "n", "a"], ["Pod", "west", "n", "a"], ["Pod", "east", "n", "east"]],
        &["east/n/a", "west", "east/n/east"]
    )]
    #[case::cluster_scoped(&[["Node", "east", "", "n1"], ["Disk", "west", "", "n1"]], &["east/n1", "west/n1"])]
    #[case::two_kinds(
        &[["Deployment", "", "shop", "web"], ["Service", "", "shop", "web"]],
        &["Deployment/shop/web", "Service/shop/web"]
    )]
    #[case::twice_the_same(&[["Pod", "", "shop", "web"], ["Pod", "", "shop", "web"]], &["web", "web"])]
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
        let word = || prop::sample::select(vec!["a", "b", "c"]);
        (word(), word(), word(), word()).prop_map(|(kind, cluster, namespace, name)| Identity {
            kind,
            cluster,
            namespace,
            name,
        })
    }

    proptest! {
        #[test]
        fn names_tell_all_sources_apart(identities in prop::collection::btree_set(any_identity(), 0..20)) {
            let identities: Vec<_> = identities.into_iter().collect();
            let names: BTreeSet<_> = display_names(&identities).into_iter().collect();
            prop_assert_eq!(names.len(), identities.len());
        }

        #[test]
        fn coming_and_going_leaves_no_trace(steps in prop::collection::vec((any::<bool>(), any_identity()), 0..40)) {
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
            prop_assert!(names.clusters.is_empty() && names.short.is_empty() && names.places.is_empty());
        }
    }
}
