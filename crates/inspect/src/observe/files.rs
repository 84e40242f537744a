//! Files that are read like a cluster: a dump, or a repository of manifests.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use bellwether_api::{GROUP, VERSION};
use bellwether_engine::{
    DiscoveredKinds, FeedEvent, GroupKind, NamespacedName, ObservedObject, ProjectionContext, ServedResource,
    Unreadable,
};
use bellwether_input::{ObjectLocation, Texts};
use bellwether_model::{Object, Plan, Value};
use jiff::Timestamp;

use super::{duplicates, is_group, kind_request::KindRequest, object_name};

/// Of objects without a namespace, unless the user gives one.
const DEFAULT_NAMESPACE: &str = "default";

pub(super) struct ManifestFiles {
    texts: Texts,
    /// The namespace that the user gives with `-n`.
    only_namespace: Option<String>,
    now: Timestamp,
    kinds: BTreeMap<GroupKind, KindInFiles>,
    /// Whether a kind is namespaced, as far as the files show it.
    namespaced: HashMap<GroupKind, bool>,
    problems: Vec<String>,
    notes: Vec<String>,
    /// The files have all that their cluster has.
    has_all_kinds: bool,
}

#[derive(Default)]
struct KindInFiles {
    versions: BTreeSet<String>,
    names: BTreeSet<NamespacedName>,
}

/// What the first pass keeps of an object.
struct PartialObject {
    kind: GroupKind,
    version: String,
    /// As in the file: the namespace may be missing, or superfluous.
    name: NamespacedName,
    /// It has a UID, so that an API server has stored it.
    is_stored: bool,
    /// The kind that a CRD defines, and whether it is namespaced.
    defines: Option<(GroupKind, bool)>,
    /// The kinds that a Rollup names objects of without a namespace.
    named_without_namespace: Vec<GroupKind>,
}

impl PartialObject {
    fn of(object: &Object<'_>) -> Self {
        Self {
            kind: GroupKind::new(object.group(), object.kind()),
            version: object.version().to_owned(),
            name: NamespacedName::new(object.namespace(), object.name()),
            is_stored: object.at("metadata.uid").is_some(),
            defines: kind_of_crd(object),
            named_without_namespace: named_without_namespace(object),
        }
    }
}

const CRD_FIELDS: [&str; 3] = ["spec.group", "spec.names.kind", "spec.scope"];

const OTHER_FIELDS: [&str; 2] = ["metadata.uid", "spec.components"];

/// The kind that a CustomResourceDefinition defines, and whether it is namespaced.
fn kind_of_crd(object: &Object<'_>) -> Option<(GroupKind, bool)> {
    if (object.group(), object.kind()) != ("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let [group, kind, scope] = CRD_FIELDS.map(|path| object.at(path).and_then(Value::as_text));
    let is_namespaced = match scope? {
        "Namespaced" => true,
        "Cluster" => false,
        _ => return None,
    };
    Some((GroupKind::new(group?, kind?), is_namespaced))
}

/// The kinds of components that a Rollup names without a namespace, which is valid only for cluster-scoped
/// kinds.
fn named_without_namespace(object: &Object<'_>) -> Vec<GroupKind> {
    let is_rollup = GroupKind::new(object.group(), object.kind()).is_rollup();
    let components = object.at("spec.components").and_then(Value::as_list).filter(|_| is_rollup);
    let kinds = components.into_iter().flatten().filter_map(|component| {
        let text = |field: &str| component.get(field).and_then(Value::as_text);
        let is_cluster_scoped = text("name").is_some() && text("namespace").is_none();
        is_cluster_scoped.then(|| Some(GroupKind::new(text("group").unwrap_or_default(), text("kind")?)))?
    });
    kinds.collect()
}

/// The error of an object that is skipped: another version of Bellwether's API, or one of its kinds without a
/// name.
fn error_of(object: &Object<'_>) -> Option<String> {
    let kind = object.kind();
    if object.group() == GROUP && object.version() != VERSION {
        let found = object.api_version();
        return Some(format!("{kind}: apiVersion: must be {GROUP}/{VERSION}, not {found}"));
    }
    let is_bellwether = is_group(&GroupKind::new(object.group(), kind)) || object.group() == GROUP;
    (is_bellwether && object.name().is_empty()).then(|| format!("{kind}: metadata.name: required"))
}

impl ManifestFiles {
    pub(super) fn open(paths: &[PathBuf], namespace: Option<&str>, now: Timestamp) -> Self {
        let mut files = Self {
            texts: Texts::of(paths),
            only_namespace: namespace.map(str::to_owned),
            now,
            kinds: BTreeMap::new(),
            namespaced: HashMap::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            has_all_kinds: false,
        };
        let mut objects = Vec::new();
        let plan = Plan::identity().with_all(&CRD_FIELDS).with_all(&OTHER_FIELDS);
        let read = |object: &Object<'_>, location: &ObjectLocation<'_>| match error_of(object) {
            Some(error) => Err(location.problem(error)),
            None => Ok(PartialObject::of(object)),
        };
        for entry in files.texts.read_with_locations(&plan, &read) {
            match entry.flatten() {
                Ok(object) => {
                    files.namespaced.extend(object.defines.clone());
                    objects.push(object);
                }
                Err(problem) => files.problems.push(problem.to_string()),
            }
        }
        files.infer_cluster_scoped(&objects);
        let mut duplicates = BTreeSet::new();
        for PartialObject { kind, version, name, .. } in objects {
            let name = files.name(&kind, &name.namespace, &name.name);
            let in_files = files.kinds.entry(kind.clone()).or_default();
            in_files.versions.insert(version);
            // Objects without a name, such as a Kustomization, are never in a cluster.
            if !in_files.names.insert(name.clone()) && !name.name.is_empty() {
                duplicates.insert((kind, name));
            }
        }
        files.notes = duplicates::notes(&files.texts, &duplicates, &|object| files.identity(object));
        files
    }

    /// None if the object is skipped.
    fn identity(&self, object: &Object<'_>) -> Option<(GroupKind, NamespacedName)> {
        if error_of(object).is_some() {
            return None;
        }
        let kind = GroupKind::new(object.group(), object.kind());
        let name = self.name(&kind, object.namespace(), object.name());
        Some((kind, name))
    }

    /// A custom kind without a CRD in the files is cluster-scoped if none of its objects has a namespace, and
    /// each was stored by an API server or its kind is named by a Rollup without a namespace.
    fn infer_cluster_scoped(&mut self, objects: &[PartialObject]) {
        let named: BTreeSet<_> = objects.iter().flat_map(|object| &object.named_without_namespace).collect();
        let mut cluster_scoped: HashMap<&GroupKind, bool> = HashMap::new();
        for object in objects.iter().filter(|object| is_custom(&object.kind.group)) {
            let is_cluster_scoped =
                object.name.namespace.is_empty() && (object.is_stored || named.contains(&object.kind));
            let all = cluster_scoped.entry(&object.kind).or_insert(true);
            *all = *all && is_cluster_scoped;
        }
        for kind in cluster_scoped.into_iter().filter(|(_, all)| *all).map(|(kind, _)| kind) {
            self.namespaced.entry(kind.clone()).or_insert(false);
        }
    }

    /// The namespace of objects without one.
    pub(super) fn namespace(&self) -> &str {
        self.only_namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    pub(super) fn only_namespace(&self) -> Option<&str> {
        self.only_namespace.as_deref()
    }

    /// What could not be read.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    pub(super) fn list(&self, requests: Vec<KindRequest>) -> Vec<(GroupKind, Vec<FeedEvent>)> {
        let lenses: HashMap<_, _> = requests
            .iter()
            .enumerate()
            .map(|(index, request)| (request.kind.clone(), (index, &*request.lens)))
            .collect();
        let read = |object: &Object<'_>| {
            let (kind, name) = self.identity(object)?;
            let (index, lens) = lenses.get(&kind)?;
            let (_, mut observed) =
                lens.project(object, ProjectionContext { now: self.now, has_status: None });
            // Manifests have no UID. Kind and name are unique as well.
            if observed.facts.uid.is_empty() {
                observed.facts.uid = format!("{}/{}/{name}", kind.group, kind.kind).into();
            }
            Some((*index, name, observed))
        };
        let mut found: Vec<BTreeMap<NamespacedName, ObservedObject>> =
            requests.iter().map(|_| BTreeMap::new()).collect();
        for (index, name, observed) in self.texts.read(&Plan::whole(), &read).into_iter().flatten().flatten()
        {
            let Some(found) = found.get_mut(index) else { continue };
            let is_replaced = |known: &ObservedObject| {
                duplicates::replaces(&observed.facts.resource_version, &known.facts.resource_version)
            };
            if found.get(&name).is_none_or(is_replaced) {
                found.insert(name, observed);
            }
        }
        requests
            .into_iter()
            .zip(found)
            .map(|(request, found)| {
                let events = self.events(&request.kind, found);
                (request.kind, events)
            })
            .collect()
    }

    /// A kind without objects is empty, not unknown.
    pub(super) fn of_whole_cluster(self) -> Self {
        Self { has_all_kinds: true, ..self }
    }

    /// Whether no object was found.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kinds of the objects, and those that every cluster serves.
    pub(super) fn discovered(&self) -> DiscoveredKinds {
        let always = ALWAYS_SERVED.iter().map(|(group, kind)| GroupKind::new(group, kind));
        let always = always.map(|kind| {
            let served = self.as_served(&kind, &KindInFiles::default());
            (kind, served)
        });
        let found = self.kinds.iter().map(|(kind, found)| (kind.clone(), self.as_served(kind, found)));
        DiscoveredKinds { served: always.chain(found).collect(), ..DiscoveredKinds::default() }
    }

    /// How a cluster would serve a kind, as far as its objects show it.
    pub(super) fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        Some(self.as_served(kind, self.kinds.get(kind)?))
    }

    fn as_served(&self, kind: &GroupKind, in_files: &KindInFiles) -> ServedResource {
        ServedResource {
            version: in_files.versions.first().map_or("", String::as_str).into(),
            versions: in_files.versions.iter().map(|version| version.as_str().into()).collect(),
            plural: object_name::plural(&kind.kind).into(),
            namespaced: self.is_namespaced(kind),
            has_status: true,
        }
    }

    fn events(&self, kind: &GroupKind, found: BTreeMap<NamespacedName, ObservedObject>) -> Vec<FeedEvent> {
        let Some(served) = self.served(kind) else {
            return match (self.has_all_kinds, self.is_empty()) {
                (true, true) => vec![FeedEvent::Unreadable(Unreadable::InvalidInput)],
                (true, false) => vec![FeedEvent::ListStarted, FeedEvent::ListCompleted],
                (false, _) => vec![FeedEvent::Unreadable(Unreadable::NotInInput)],
            };
        };
        let applied = found.into_iter().map(|(name, observed)| FeedEvent::Applied(name, Box::new(observed)));
        [FeedEvent::Served(served), FeedEvent::ListStarted]
            .into_iter()
            .chain(applied)
            .chain([FeedEvent::ListCompleted])
            .collect()
    }

    pub(super) fn object_named(&self, word: &str, name: &str) -> Result<(GroupKind, NamespacedName)> {
        let candidates: Vec<_> =
            self.kinds.iter().filter(|(kind, _)| object_name::means(word, &kind.kind, &kind.group)).collect();
        match &*candidates {
            [(kind, in_files)] => Ok(((*kind).clone(), self.find_name(kind, in_files, name)?)),
            [] => {
                // The object may be in a document that could not be read.
                let nothing = format!("no objects of kind {word:?} in {self}");
                let problems = self.problems.iter().map(ToString::to_string);
                bail!("{}", [nothing].into_iter().chain(problems).collect::<Vec<_>>().join("; "))
            }
            several => {
                let names: Vec<_> = several.iter().map(|(kind, _)| kind.to_string()).collect();
                bail!("ambiguous kind {word:?}: {}. Give the API group", names.join(", "))
            }
        }
    }

    /// Searches all namespaces, unless the user gives one.
    fn find_name(&self, kind: &GroupKind, in_files: &KindInFiles, name: &str) -> Result<NamespacedName> {
        let default = self.name(kind, "", name);
        if self.only_namespace.is_some() || default.namespace.is_empty() {
            return Ok(default);
        }
        let found: Vec<_> = in_files.names.iter().filter(|found| *found.name == *name).collect();
        match &*found {
            [] => Ok(default),
            [one] => Ok((*one).clone()),
            several => {
                let namespaces: Vec<_> = several.iter().map(|name| &*name.namespace).collect();
                bail!(
                    "ambiguous name {name:?}: {} in namespaces {}. Choose one with -n",
                    kind.kind,
                    namespaces.join(", ")
                )
            }
        }
    }

    /// Applies `make` to an object. Of duplicates, the newest is taken, as the engine does.
    pub(super) fn with<R: Send>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Option<R> {
        let make = |object: &Object<'_>| {
            let identity = self.identity(object)?;
            ((&identity.0, &identity.1) == (kind, name)).then(|| (duplicates::version(object), make(object)))
        };
        let found = self.texts.read(&Plan::whole(), &make).into_iter().flatten().flatten();
        let newest =
            found.reduce(|known, one| if duplicates::replaces(&one.0, &known.0) { one } else { known });
        newest.map(|(_, made)| made)
    }

    /// The name of an object in a cluster, by the name in its manifest.
    fn name(&self, kind: &GroupKind, namespace: &str, name: &str) -> NamespacedName {
        match namespace {
            _ if !self.is_namespaced(kind) => NamespacedName::new("", name),
            "" => NamespacedName::new(self.namespace(), name),
            namespace => NamespacedName::new(namespace, name),
        }
    }

    pub(super) fn is_namespaced(&self, kind: &GroupKind) -> bool {
        let known = self.namespaced.get(kind).copied();
        known.unwrap_or_else(|| !is_of_the_cluster(&kind.group, &kind.kind))
    }
}

impl fmt::Display for ManifestFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |path: &Path| match path.to_string_lossy() {
            stdin if stdin == "-" => "stdin".to_owned(),
            path => path.into_owned(),
        };
        let paths: Vec<_> = self.texts.inputs().map(name).collect();
        f.write_str(&paths.join(", "))
    }
}

/// The cluster-scoped kinds of Kubernetes and Bellwether. An empty kind stands for all of its group.
const CLUSTER_SCOPED: &[(&str, &str)] = &[
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

/// Kinds that BindingPolicies often name, and that every cluster serves, whether the files have such objects or not.
const ALWAYS_SERVED: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "Namespace"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
];

/// Whether a group is neither of Kubernetes nor of Bellwether.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && group != GROUP
}

/// Whether a kind of Kubernetes or Bellwether is cluster-scoped.
pub fn is_of_the_cluster(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(of, name)| *of == group && (name.is_empty() || *name == kind))
}
