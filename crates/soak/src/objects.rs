//! The objects under test: kinds, names and content.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_api::APPLICATION_ANNOTATION as HANDED_OVER;
use bellwether_engine::{GroupKind, NamespacedName, ServedResource};
use bellwether_simulation::{known::Known, object::Object};
use rand::{Rng, seq::IndexedRandom as _};
use serde_json::{Value as Json, json};

/// The API group of Widgets.
pub(crate) const GROUP: &str = "soak.example.com";

pub(crate) const NAMESPACES: [&str; 4] = ["team-0", "team-1", "team-2", "team-3"];

/// The maximum number of Applications in a namespace.
pub(crate) const APPLICATIONS: usize = 8;

pub(crate) const APPLICATION: ApiResource =
    ApiResource { group: "bellwether.dev", version: "v1alpha1", kind: "Application", plural: "applications" };

pub(crate) const HEALTH_RULE: ApiResource =
    ApiResource { group: "bellwether.dev", version: "v1alpha1", kind: "HealthRule", plural: "healthrules" };

/// The oracle needs the list of Rollups, which stays empty.
pub(crate) const ROLLUP: ApiResource =
    ApiResource { group: "bellwether.dev", version: "v1alpha1", kind: "Rollup", plural: "rollups" };

/// The annotation with a summary of what the load has written. It reveals changes by other writers.
pub(crate) const LAST_WRITTEN: &str = "soak.example.com/last-written";

/// An annotation without meaning.
const NOISE: &str = "soak.example.com/noise";

/// Delays the deletion of some objects.
const FINALIZER: &str = "soak.example.com/slow";

/// The ConfigMap, one in each namespace, that also owns some of the objects.
pub(crate) const ANCHOR: &str = "anchor";

pub(crate) type Objects = BTreeMap<NamespacedName, Rc<Object>>;

/// The kinds of members, and the kinds below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Ready as soon as it exists.
    ConfigMap,
    /// The load acts as the Deployment controller.
    Deployment,
    /// A custom resource with conditions, sometimes with a HealthRule.
    Widget,
    /// Below Deployments.
    ReplicaSet,
    /// Below ReplicaSets. The load acts as the kubelet.
    Pod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApiResource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

impl ApiResource {
    /// The path of the collection in all namespaces.
    pub(crate) fn path(&self) -> String {
        let Self { group, version, plural, .. } = self;
        if group.is_empty() {
            format!("/api/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// The path of the collection in one namespace.
    pub(crate) fn within(&self, namespace: &str) -> String {
        self.path().replace(&format!("/{}", self.plural), &format!("/namespaces/{namespace}/{}", self.plural))
    }

    /// `plural.group`, such as `deployments.apps`.
    pub(crate) fn qualified_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") }
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group, self.kind)
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::ConfigMap, Self::Deployment, Self::Widget, Self::ReplicaSet, Self::Pod];

    /// The kinds of members.
    pub(crate) const MEMBERS: [Self; 3] = [Self::ConfigMap, Self::Deployment, Self::Widget];

    pub(crate) const fn is_member(self) -> bool {
        matches!(self, Self::ConfigMap | Self::Deployment | Self::Widget)
    }

    /// The kinds below this one.
    pub(crate) const fn below(self) -> &'static [Self] {
        match self {
            Self::Deployment => &[Self::ReplicaSet, Self::Pod],
            _ => &[],
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.api_resource().kind
    }

    pub(crate) fn find(group: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name && kind.api_resource().group == group)
    }

    /// The input of the oracle for this kind: it is served and has been listed with these objects.
    pub(crate) fn known(self, objects: Objects) -> Known {
        let ApiResource { version, plural, .. } = self.api_resource();
        let served = ServedResource {
            version: version.into(),
            versions: [version.into()].into(),
            plural: plural.into(),
            namespaced: true,
            has_status: self.has_status(),
        };
        Known { served: Some(served), listed: true, objects, ..Known::default() }
    }

    pub(crate) const fn api_resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::ConfigMap => ("", "ConfigMap", "configmaps"),
            Self::Deployment => ("apps", "Deployment", "deployments"),
            Self::Widget => (GROUP, "Widget", "widgets"),
            Self::ReplicaSet => ("apps", "ReplicaSet", "replicasets"),
            Self::Pod => ("", "Pod", "pods"),
        };
        ApiResource { group, version: "v1", kind, plural }
    }

    /// The number of possible names in a namespace.
    const fn slots(self) -> usize {
        match self {
            Self::ConfigMap => 40,
            _ => 25,
        }
    }

    fn object_name(self, number: usize) -> String {
        match self {
            Self::ConfigMap => format!("settings-{number}"),
            Self::Deployment => format!("server-{number}"),
            _ => format!("widget-{number}"),
        }
    }

    pub(crate) fn any_name(self, random: &mut impl Rng) -> String {
        self.object_name(random.random_range(0..self.slots()))
    }

    pub(crate) const fn has_status(self) -> bool {
        !matches!(self, Self::ConfigMap)
    }

    /// A random kind of members, weighted by its number of names.
    pub(crate) fn any(random: &mut impl Rng) -> Self {
        let kinds = [Self::ConfigMap, Self::ConfigMap, Self::Deployment, Self::Widget];
        *kinds.choose(random).unwrap_or(&Self::ConfigMap)
    }
}

pub(crate) fn application_name(number: usize) -> String {
    format!("shop-{number}")
}

/// Whether the anchor owns the object with this name. It depends only on the name.
pub(crate) fn has_anchor(name: &str) -> bool {
    name.ends_with(['3', '7'])
}

/// The content of an object, except for its status.
#[derive(Clone, Debug)]
pub(crate) struct DesiredObject {
    labels: BTreeMap<&'static str, String>,
    application: Option<String>,
    value: u32,
    paused: bool,
}

impl DesiredObject {
    /// Random content, mostly consistent.
    pub(crate) fn any(random: &mut impl Rng) -> Self {
        let number = random.random_range(0..APPLICATIONS);
        let mut labels = BTreeMap::from([("app", application_name(number))]);
        if random.random_bool(0.6) {
            labels.insert("tier", (*["web", "data"].choose(random).unwrap_or(&"web")).to_owned());
        }
        // Mostly the Application that also selects the object.
        let owner = if random.random_bool(0.85) { number } else { random.random_range(0..APPLICATIONS) };
        let application = random.random_bool(0.4).then(|| application_name(owner));
        let (value, paused) = (random.random_range(1..4), random.random_bool(0.06));
        Self { labels, application, value, paused }
    }

    fn summary(&self, kind: Kind) -> String {
        let content = match kind {
            Kind::Deployment => format!("{} {}", self.value, self.paused),
            _ => self.value.to_string(),
        };
        summary(&self.labels, self.application.as_deref(), &content)
    }

    fn content(&self, kind: Kind, name: &str) -> (&'static str, Json) {
        match kind {
            Kind::ConfigMap => ("data", json!({ "value": self.value.to_string() })),
            Kind::Widget | Kind::ReplicaSet | Kind::Pod => ("spec", json!({ "value": self.value })),
            Kind::Deployment => (
                "spec",
                json!({
                    "replicas": self.value,
                    "paused": self.paused,
                    "selector": { "matchLabels": { "object": name } },
                    "template": {
                        "metadata": { "labels": { "object": name } },
                        "spec": { "containers": [{ "name": "main", "image": "example.com/server" }] },
                    },
                }),
            ),
        }
    }

    /// The whole object. `anchor` is the uid of the other owner, `slow` adds a finalizer.
    pub(crate) fn whole(&self, kind: Kind, name: &str, anchor: &str, slow: bool) -> Json {
        let mut annotations = BTreeMap::from([(LAST_WRITTEN, self.summary(kind))]);
        annotations.extend(self.application.clone().map(|application| (HANDED_OVER, application)));
        let mut metadata = json!({ "name": name, "labels": self.labels, "annotations": annotations });
        if has_anchor(name) {
            metadata["ownerReferences"] =
                json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": ANCHOR, "uid": anchor }]);
        }
        // Not for Widgets: a finalizer would block the deletion of their CRD.
        if slow && kind != Kind::Widget {
            metadata["finalizers"] = json!([FINALIZER]);
        }
        let (field, content) = self.content(kind, name);
        json!({ "apiVersion": kind.api_resource().api_version(), "kind": kind.name(), "metadata": metadata, field: content })
    }

    /// A merge patch to this content from any other.
    pub(crate) fn patch(&self, kind: Kind, name: &str) -> Json {
        let mut labels = json!({ "app": null, "tier": null });
        for (key, value) in &self.labels {
            labels[key] = json!(value);
        }
        let annotations = json!({ (LAST_WRITTEN): self.summary(kind), (HANDED_OVER): self.application });
        let (field, content) = self.content(kind, name);
        json!({ "metadata": { "labels": labels, "annotations": annotations }, field: content })
    }
}

fn summary(
    labels: &BTreeMap<impl std::fmt::Display, String>,
    application: Option<&str>,
    content: &str,
) -> String {
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{} for {} with {content}", labels.join(","), application.unwrap_or("none"))
}

/// The summary of the current content of an object.
pub(crate) fn summary_of(kind: Kind, object: &Json) -> String {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned())).collect();
    let content = match kind {
        Kind::ConfigMap => object["data"]["value"].as_str().unwrap_or_default().to_owned(),
        Kind::Widget | Kind::ReplicaSet | Kind::Pod => object["spec"]["value"].to_string(),
        Kind::Deployment => {
            let paused = object["spec"]["paused"].as_bool().unwrap_or(false);
            format!("{} {paused}", object["spec"]["replicas"])
        }
    };
    summary(&labels, object["metadata"]["annotations"][HANDED_OVER].as_str(), &content)
}

pub(crate) fn noise(random: &mut impl Rng) -> Json {
    json!({ "metadata": { "annotations": { (NOISE): random.random::<u32>().to_string() } } })
}

pub(crate) fn remove_finalizers() -> Json {
    json!({ "metadata": { "finalizers": null } })
}

/// A random status, mostly a healthy one.
pub(crate) fn status(kind: Kind, object: &Json, random: &mut impl Rng) -> Json {
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    let is_good = random.random_bool(if kind == Kind::Deployment { 0.75 } else { 0.88 });
    let observed = if random.random_bool(0.95) { generation } else { generation - 1 };
    match kind {
        Kind::ConfigMap | Kind::ReplicaSet | Kind::Pod => Json::Null,
        Kind::Deployment => {
            let ready = if is_good { replicas } else { random.random_range(0..=replicas) };
            let is_stuck = !is_good && random.random_bool(0.4);
            let (progressing, reason) = if is_stuck {
                ("False", "ProgressDeadlineExceeded")
            } else {
                ("True", "NewReplicaSetAvailable")
            };
            json!({
                "observedGeneration": observed.max(0), "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": ready, "availableReplicas": ready,
                "conditions": [{ "type": "Progressing", "status": progressing, "reason": reason, "message": reason }],
            })
        }
        Kind::Widget => {
            let status =
                if is_good { "True" } else { ["False", "Unknown"].choose(random).unwrap_or(&"False") };
            json!({
                "observedGeneration": observed, "level": random.random_range(0..10),
                "conditions": [{ "type": "Ready", "status": status, "reason": "Turned", "message": "" }],
            })
        }
    }
}

/// A random spec without a selector, which never changes.
pub(crate) fn spec(random: &mut impl Rng) -> Json {
    let mut kinds: Vec<_> = Kind::MEMBERS.into_iter().filter(|_| random.random_bool(0.7)).collect();
    if kinds.is_empty() {
        kinds.push(Kind::any(random));
    }
    let kind = |kind: Kind| json!({ "group": kind.api_resource().group, "kind": kind.name() });
    let mut components = BTreeMap::new();
    for _ in 0..*[0, 0, 0, 1, 2].choose(random).unwrap_or(&0) {
        let member = Kind::any(random);
        components.insert(member.any_name(random), kind(member));
    }
    let needs = random.random_bool(0.25).then(|| application_name(random.random_range(0..APPLICATIONS)));
    json!({
        "componentKinds": kinds.into_iter().map(kind).collect::<Vec<_>>(),
        "components": components,
        "dependencies": needs.into_iter().collect::<Vec<_>>(),
        "membership": if random.random_bool(0.85) { "Selected" } else { "Annotated" },
        "ownership": if random.random_bool(0.7) { "Adopt" } else { "Observe" },
    })
}

pub(crate) fn application(number: usize, random: &mut impl Rng) -> Json {
    let (name, mut spec) = (application_name(number), spec(random));
    let other = application_name(random.random_range(0..APPLICATIONS));
    spec["selector"] = match random.random_range(0..6) {
        0 => json!({ "matchLabels": { "app": name, "tier": "web" } }),
        1 => json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": [name, other] }] }),
        2 => json!({
            "matchLabels": { "app": name },
            "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["data"] }],
        }),
        _ => json!({ "matchLabels": { "app": name } }),
    };
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application",
        "metadata": { "name": name }, "spec": spec,
    })
}

pub(crate) fn widget_crd() -> Json {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": Kind::Widget.api_resource().qualified_name() },
        "spec": {
            "group": GROUP,
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}
