//! Files that stand for a cluster: a dump, or a repository of manifests.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::PathBuf,
};

use anyhow::{Result, bail};
use bellwether_api::{GROUP, VERSION};
use bellwether_engine::{
    FeedEvent, GroupKind, LookContext, NamespacedName, ObservedObject, Served, Unreadable,
};
use bellwether_input::{Spot, Texts};
use bellwether_model::{Object, Plan, Value};
use jiff::Timestamp;

use super::{duplicates, is_group, kind_request::KindRequest, object_name};

/// Where objects are that name no namespace, if nobody says otherwise.
const DEFAULT_NAMESPACE: &str = "default";

/// Files that stand for a cluster.
pub(super) struct ManifestFiles {
    texts: Texts,
    /// The one namespace that is meant, if somebody said so.
    chosen: Option<String>,
    now: Timestamp,
    kinds: BTreeMap<GroupKind, KindInFiles>,
    /// Whether the objects of a kind are in namespaces, where the files say so.
    scopes: HashMap<GroupKind, bool>,
    problems: Vec<String>,
    notes: Vec<String>,
}

/// What the files have of a kind.
#[derive(Default)]
struct KindInFiles {
    versions: BTreeSet<String>,
    names: BTreeSet<NamespacedName>,
}

/// What is read of an object at first.
struct PartialObject {
    kind: GroupKind,
    version: String,
    /// As it is written, which need not be where it is.
    name: NamespacedName,
    /// Whether an API server has kept it.
    kept: bool,
    /// The kind that it defines, and whether its objects are in namespaces.
    defines: Option<(GroupKind, bool)>,
    /// The kinds of which it names an object in no namespace.
    names: Vec<GroupKind>,
}

impl PartialObject {
    fn of(object: &Object<'_>) -> Self {
        Self {
            kind: GroupKind::new(object.group(), object.kind()),
            version: object.version().to_owned(),
            name: NamespacedName::new(object.namespace(), object.name()),
            kept: object.at("metadata.uid").is_some(),
            defines: defined_by(object),
            names: named_by(object),
        }
    }
}

/// What is needed of a definition,
const OF_DEFINITIONS: [&str; 3] = ["spec.group", "spec.names.kind", "spec.scope"];

/// and of all others.
const OF_OTHERS: [&str; 2] = ["metadata.uid", "spec.components"];

/// The kind that a CustomResourceDefinition defines, and whether its objects are in namespaces.
fn defined_by(object: &Object<'_>) -> Option<(GroupKind, bool)> {
    if (object.group(), object.kind()) != ("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let [group, kind, scope] = OF_DEFINITIONS.map(|path| object.at(path).and_then(Value::as_text));
    let is_namespaced = match scope? {
        "Namespaced" => true,
        "Cluster" => false,
        _ => return None,
    };
    Some((GroupKind::new(group?, kind?), is_namespaced))
}

/// The kinds of components that a Rollup names in no namespace: it may do so only of those that are in none.
fn named_by(object: &Object<'_>) -> Vec<GroupKind> {
    let is_rollup = GroupKind::new(object.group(), object.kind()).is_rollup();
    let components = object.at("spec.components").and_then(Value::as_list).filter(|_| is_rollup);
    let named = components.into_iter().flatten().filter_map(|component| {
        let text = |field: &str| component.get(field).and_then(Value::as_text);
        let in_none = text("name").is_some() && text("namespace").is_none();
        in_none.then(|| Some(GroupKind::new(text("group").unwrap_or_default(), text("kind")?)))?
    });
    named.collect()
}

/// Why an object is passed over, if it is: what we would read from it is not what was meant.
fn unfit(object: &Object<'_>) -> Option<String> {
    let kind = object.kind();
    if object.group() == GROUP && object.version() != VERSION {
        let unknown = object.api_version();
        return Some(format!("no {kind} of {unknown} is known here: write it as {GROUP}/{VERSION}"));
    }
    let is_ours = is_group(&GroupKind::new(object.group(), kind)) || object.group() == GROUP;
    (is_ours && object.name().is_empty()).then(|| format!("the {kind} has no name: give it a metadata.name"))
}

impl ManifestFiles {
    pub(super) fn open(paths: &[PathBuf], namespace: Option<&str>, now: Timestamp) -> Self {
        let mut files = Self {
            texts: Texts::of(paths),
            chosen: namespace.map(str::to_owned),
            now,
            kinds: BTreeMap::new(),
            scopes: HashMap::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        let mut met = Vec::new();
        let plan = Plan::identity().with_all(&OF_DEFINITIONS).with_all(&OF_OTHERS);
        let look = |object: &Object<'_>, spot: &Spot<'_>| match unfit(object) {
            Some(why) => Err(spot.problem(why)),
            None => Ok(PartialObject::of(object)),
        };
        for entry in files.texts.read_with_spots(&plan, &look) {
            match entry.flatten() {
                Ok(one) => {
                    files.scopes.extend(one.defines.clone());
                    met.push(one);
                }
                Err(problem) => files.problems.push(problem.to_string()),
            }
        }
        files.guess_scopes(&met);
        let mut twice = BTreeSet::new();
        for PartialObject { kind, version, name, .. } in met {
            let name = files.name(&kind, &name.namespace, &name.name);
            let given = files.kinds.entry(kind.clone()).or_default();
            given.versions.insert(version);
            // What has no name, such as a Kustomization, is nothing that a cluster could have.
            if !given.names.insert(name.clone()) && !name.name.is_empty() {
                twice.insert((kind, name));
            }
        }
        files.notes = duplicates::notes(&files.texts, &twice, &|object| files.identity(object));
        files
    }

    /// Who an object is; nobody if it is passed over.
    fn identity(&self, object: &Object<'_>) -> Option<(GroupKind, NamespacedName)> {
        if unfit(object).is_some() {
            return None;
        }
        let kind = GroupKind::new(object.group(), object.kind());
        let name = self.name(&kind, object.namespace(), object.name());
        Some((kind, name))
    }

    /// Whether the objects of operators' kinds are in namespaces, where no definition says so. They are in none if none names
    /// one, and an API server has kept them so, or a Rollup names them so.
    fn guess_scopes(&mut self, met: &[PartialObject]) {
        let named: BTreeSet<_> = met.iter().flat_map(|one| &one.names).collect();
        let mut in_none: HashMap<&GroupKind, bool> = HashMap::new();
        for one in met.iter().filter(|one| is_of_operators(&one.kind.group)) {
            let is_in_none = one.name.namespace.is_empty() && (one.kept || named.contains(&one.kind));
            let all = in_none.entry(&one.kind).or_insert(true);
            *all = *all && is_in_none;
        }
        for kind in in_none.into_iter().filter(|(_, all)| *all).map(|(kind, _)| kind) {
            self.scopes.entry(kind.clone()).or_insert(false);
        }
    }

    /// Where objects are that name no namespace.
    pub(super) fn namespace(&self) -> &str {
        self.chosen.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The one namespace that is meant, if a person said so.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// What could not be read, a sentence each.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    /// What else should be known of them, a sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    pub(super) fn answer(&self, asked: Vec<KindRequest>) -> Vec<(GroupKind, Vec<FeedEvent>)> {
        let lenses: HashMap<_, _> = asked
            .iter()
            .enumerate()
            .map(|(index, asked)| (asked.kind.clone(), (index, &*asked.lens)))
            .collect();
        let look = |object: &Object<'_>| {
            let (kind, name) = self.identity(object)?;
            let (index, lens) = lenses.get(&kind)?;
            let (_, mut seen) = lens.look(object, LookContext { now: self.now, has_status: None });
            // Manifests have no identity yet: their names are theirs.
            if seen.facts.uid.is_empty() {
                seen.facts.uid = format!("{}/{}/{name}", kind.group, kind.kind).into();
            }
            Some((*index, name, seen))
        };
        let mut found: Vec<BTreeMap<NamespacedName, ObservedObject>> =
            asked.iter().map(|_| BTreeMap::new()).collect();
        for (index, name, seen) in self.texts.read(&Plan::whole(), &look).into_iter().flatten().flatten() {
            let Some(found) = found.get_mut(index) else { continue };
            let counts =
                |known: &ObservedObject| duplicates::replaces(&seen.facts.version, &known.facts.version);
            if found.get(&name).is_none_or(counts) {
                found.insert(name, seen);
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

    /// How a cluster would serve a kind, as far as its objects tell.
    pub(super) fn served(&self, kind: &GroupKind) -> Option<Served> {
        let given = self.kinds.get(kind)?;
        Some(Served {
            version: given.versions.first().map_or("", String::as_str).into(),
            versions: given.versions.iter().map(|version| version.as_str().into()).collect(),
            plural: kind.kind.to_lowercase().into(),
            namespaced: self.is_namespaced(kind),
            has_status: true,
        })
    }

    fn news(&self, kind: &GroupKind, found: BTreeMap<NamespacedName, ObservedObject>) -> Vec<FeedEvent> {
        let Some(served) = self.served(kind) else {
            return vec![FeedEvent::Unreadable(Unreadable::NotInInput)];
        };
        let seen = found.into_iter().map(|(name, seen)| FeedEvent::Applied(name, Box::new(seen)));
        [FeedEvent::Served(served), FeedEvent::ListStarted]
            .into_iter()
            .chain(seen)
            .chain([FeedEvent::ListCompleted])
            .collect()
    }

    pub(super) fn object_named(&self, word: &str, name: &str) -> Result<(GroupKind, NamespacedName)> {
        let meant: Vec<_> =
            self.kinds.iter().filter(|(kind, _)| object_name::means(word, &kind.kind, &kind.group)).collect();
        match &*meant {
            [(kind, given)] => Ok(((*kind).clone(), self.meant(kind, given, name)?)),
            [] => {
                // It may be what could not be read.
                let unread = self.problems.iter().map(|problem| format!("; {problem}")).collect::<Vec<_>>();
                bail!("no object of kind {word:?} is in {self}{}", unread.concat())
            }
            several => {
                let names: Vec<_> = several.iter().map(|(kind, _)| kind.to_string()).collect();
                bail!("{word:?} may be {}: say which", names.join(" or "))
            }
        }
    }

    /// The object that a person means by its name. Without a namespace, all of them are meant.
    fn meant(&self, kind: &GroupKind, given: &KindInFiles, name: &str) -> Result<NamespacedName> {
        let in_its_place = self.name(kind, "", name);
        if self.chosen.is_some() || in_its_place.namespace.is_empty() {
            return Ok(in_its_place);
        }
        let found: Vec<_> = given.names.iter().filter(|found| *found.name == *name).collect();
        match &*found {
            [] => Ok(in_its_place),
            [one] => Ok((*one).clone()),
            several => {
                let names: Vec<_> = several.iter().map(ToString::to_string).collect();
                bail!("{kind} {name:?} may be {}: say which with -n", names.join(" or "))
            }
        }
    }

    /// What somebody makes of an object. Where there are several of the name, the newest counts, as it does for the engine.
    pub(super) fn with<R: Send>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Option<R> {
        let make = |object: &Object<'_>| {
            let (of, called) = self.identity(object)?;
            ((&of, &called) == (kind, name)).then(|| (duplicates::version(object), make(object)))
        };
        let found = self.texts.read(&Plan::whole(), &make).into_iter().flatten().flatten();
        let newest =
            found.reduce(|known, one| if duplicates::replaces(&one.0, &known.0) { one } else { known });
        newest.map(|(_, made)| made)
    }

    /// The name of an object of which this is written.
    fn name(&self, kind: &GroupKind, namespace: &str, name: &str) -> NamespacedName {
        match namespace {
            _ if !self.is_namespaced(kind) => NamespacedName::new("", name),
            "" => NamespacedName::new(self.namespace(), name),
            namespace => NamespacedName::new(namespace, name),
        }
    }

    /// Whether the objects of a kind are in namespaces: as its definition says, or as everybody knows.
    pub(super) fn is_namespaced(&self, kind: &GroupKind) -> bool {
        let known = self.scopes.get(kind).copied();
        known.unwrap_or_else(|| !is_of_the_cluster(&kind.group, &kind.kind))
    }
}

impl fmt::Display for ManifestFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.texts.inputs().map(|path| path.display().to_string()).collect();
        f.write_str(&paths.join(", "))
    }
}

/// The kinds of Kubernetes whose objects are in no namespace. Of all others, those that name none are in the default one.
const OF_THE_CLUSTER: &[(&str, &str)] = &[
    ("", "ComponentStatus"),
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
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("flowcontrol.apiserver.k8s.io", ""),
    ("gateway.networking.k8s.io", "GatewayClass"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("metrics.k8s.io", "NodeMetrics"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

/// Whether a group is neither one of Kubernetes nor our own.
fn is_of_operators(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && group != GROUP
}

/// Whether objects of a kind are certainly in no namespace.
pub fn is_of_the_cluster(group: &str, kind: &str) -> bool {
    OF_THE_CLUSTER.iter().any(|(of, name)| *of == group && (name.is_empty() || *name == kind))
}
