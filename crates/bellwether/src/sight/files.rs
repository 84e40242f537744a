//! Files that stand for a cluster: a dump, or a repository of manifests.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::PathBuf,
};

use anyhow::{Result, bail};
use bellwether_engine::{Kind, Light, Name, News, Seen, Served, Unreadable};
use bellwether_model::{Object, Plan};
use jiff::Timestamp;

use super::{Asked, word};
use crate::input;

/// Where objects are that name no namespace, if nobody says otherwise.
const DEFAULT_NAMESPACE: &str = "default";

/// Files that stand for a cluster.
pub(super) struct Files {
    paths: Vec<PathBuf>,
    /// Where objects are that name no namespace.
    namespace: String,
    now: Timestamp,
    kinds: BTreeMap<Kind, Given>,
    problems: Vec<String>,
}

/// What the files have of a kind.
#[derive(Default)]
struct Given {
    versions: BTreeSet<String>,
    namespaced: bool,
}

/// What is read of an object at first.
struct Met {
    kind: Kind,
    version: String,
    namespaced: bool,
}

impl Files {
    pub(super) fn open(paths: &[PathBuf], namespace: Option<&str>, now: Timestamp) -> Self {
        let mut kinds: BTreeMap<Kind, Given> = BTreeMap::new();
        let mut problems = Vec::new();
        let met = |object: &Object<'_>| Met {
            kind: Kind::new(object.group(), object.kind()),
            version: object.version().to_owned(),
            namespaced: is_namespaced(object),
        };
        for entry in input::read(paths, &Plan::identity(), &met) {
            match entry {
                Ok(Met { kind, version, namespaced }) => {
                    let given = kinds.entry(kind).or_default();
                    given.versions.insert(version);
                    given.namespaced |= namespaced;
                }
                Err(problem) => problems.push(problem.to_string()),
            }
        }
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned();
        Self { paths: paths.to_vec(), namespace, now, kinds, problems }
    }

    /// Where objects are that name no namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What could not be read, a sentence each.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    pub(super) fn answer(&self, asked: Vec<Asked>) -> Vec<(Kind, Vec<News>)> {
        let lenses: HashMap<_, _> = asked
            .iter()
            .enumerate()
            .map(|(index, asked)| (asked.kind.clone(), (index, &*asked.lens)))
            .collect();
        let look = |object: &Object<'_>| {
            let (index, lens) = lenses.get(&Kind::new(object.group(), object.kind()))?;
            let (_, mut seen) = lens.look(object, Light { now: self.now, has_status: None });
            let name = self.name_of(object);
            // Manifests have no identity yet: their names are theirs.
            if seen.facts.uid.is_empty() {
                seen.facts.uid = format!("{}/{}/{name}", object.group(), object.kind()).into();
            }
            Some((*index, name, seen))
        };
        let mut found: Vec<Vec<(Name, Seen)>> = asked.iter().map(|_| Vec::new()).collect();
        for (index, name, seen) in
            input::read(&self.paths, &Plan::whole(), &look).into_iter().flatten().flatten()
        {
            if let Some(found) = found.get_mut(index) {
                found.push((name, seen));
            }
        }
        asked
            .into_iter()
            .zip(found)
            .map(|(asked, found)| {
                let news = self.news(&asked.kind, found);
                (asked.kind, news)
            })
            .collect()
    }

    fn news(&self, kind: &Kind, found: Vec<(Name, Seen)>) -> Vec<News> {
        let Some(given) = self.kinds.get(kind) else {
            return vec![News::Unreadable(Unreadable::NotGiven)];
        };
        let served = Served {
            version: given.versions.first().map_or("", String::as_str).into(),
            versions: given.versions.iter().map(|version| version.as_str().into()).collect(),
            plural: kind.kind.to_lowercase().into(),
            namespaced: given.namespaced,
            has_status: true,
        };
        let seen = found.into_iter().map(|(name, seen)| News::Seen(name, Box::new(seen)));
        [News::Served(served), News::Listing].into_iter().chain(seen).chain([News::Listed]).collect()
    }

    pub(super) fn object_named(&self, word: &str, name: &str) -> Result<(Kind, Name)> {
        let meant: Vec<_> =
            self.kinds.iter().filter(|(kind, _)| word::means(word, &kind.kind, &kind.group)).collect();
        match &*meant {
            [(kind, given)] => {
                let namespace = if given.namespaced { &*self.namespace } else { "" };
                Ok(((*kind).clone(), Name::new(namespace, name)))
            }
            [] => bail!("no object of kind {word:?} is in {self}"),
            several => {
                let names: Vec<_> = several.iter().map(|(kind, _)| kind.to_string()).collect();
                bail!("{word:?} may be {}: say which", names.join(" or "))
            }
        }
    }

    pub(super) fn with<R: Send>(
        &self,
        kind: &Kind,
        name: &Name,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Option<R> {
        let is_it = |object: &Object<'_>| {
            object.kind() == &*kind.kind && object.group() == &*kind.group && self.name_of(object) == *name
        };
        let make = |object: &Object<'_>| is_it(object).then(|| make(object));
        input::read(&self.paths, &Plan::whole(), &make).into_iter().flatten().flatten().last()
    }

    fn name_of(&self, object: &Object<'_>) -> Name {
        let namespace = match object.namespace() {
            "" if is_namespaced(object) => &self.namespace,
            namespace => namespace,
        };
        Name::new(namespace, object.name())
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
        f.write_str(&paths.join(", "))
    }
}

/// The kinds of Kubernetes whose objects are in no namespace. Of all others, those that name none are in the default one.
const OF_THE_CLUSTER: &[(&str, &str)] = &[
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", ""),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("bellwether.dev", "BindingPolicy"),
    ("bellwether.dev", "HealthRule"),
    ("bellwether.dev", "Rollup"),
    ("bellwether.dev", "StatusCollector"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io", ""),
    ("gateway.networking.k8s.io", "GatewayClass"),
    ("networking.k8s.io", "IngressClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
];

fn is_namespaced(object: &Object<'_>) -> bool {
    !object.namespace().is_empty() || !is_of_the_cluster(object.group(), object.kind())
}

/// Whether objects of a kind are certainly in no namespace.
pub(crate) fn is_of_the_cluster(group: &str, kind: &str) -> bool {
    OF_THE_CLUSTER.iter().any(|(of, name)| *of == group && (name.is_empty() || *name == kind))
}
