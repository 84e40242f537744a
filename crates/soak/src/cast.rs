//! The objects that take part: their kinds and names, and how they are written.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_api::APPLICATION_ANNOTATION as HANDED_OVER;
use bellwether_engine::{GroupKind, NamespacedName, Served};
use bellwether_simulation::{known::Known, object::Object};
use rand::{Rng, seq::IndexedRandom as _};
use serde_json::{Value as Json, json};

/// The group of the kind that is defined for the occasion.
pub(crate) const GROUP: &str = "soak.example.com";

/// The namespaces in which it happens.
pub(crate) const NAMESPACES: [&str; 4] = ["team-0", "team-1", "team-2", "team-3"];

/// So many Applications can be in a namespace.
pub(crate) const APPLICATIONS: usize = 8;

/// Where Applications are.
pub(crate) const APPLICATION: Place =
    Place { group: "bellwether.dev", version: "v1alpha1", kind: "Application", plural: "applications" };

/// Where HealthRules are.
pub(crate) const HEALTH_RULE: Place =
    Place { group: "bellwether.dev", version: "v1alpha1", kind: "HealthRule", plural: "healthrules" };

/// Where Rollups are, of which there are none.
pub(crate) const ROLLUP: Place =
    Place { group: "bellwether.dev", version: "v1alpha1", kind: "Rollup", plural: "rollups" };

/// The annotation in which the load says what it has written, so that a change by anybody else shows.
pub(crate) const SAYS: &str = "soak.example.com/says";

/// The annotation that means nothing.
const NOISE: &str = "soak.example.com/noise";

/// What keeps some objects from going at once when they are deleted.
const FINALIZER: &str = "soak.example.com/slow";

/// An object of another owner, in each namespace.
pub(crate) const ANCHOR: &str = "anchor";

/// Objects by name.
pub(crate) type Objects = BTreeMap<NamespacedName, Rc<Object>>;

/// The kinds of which members are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// It is ready as soon as it is there.
    ConfigMap,
    /// The load plays its controller.
    Deployment,
    /// A kind with conditions, for which there are rules now and then.
    Widget,
}

/// Where the objects of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

impl Place {
    /// The path of all of them.
    pub(crate) fn path(&self) -> String {
        let Self { group, version, plural, .. } = self;
        if group.is_empty() {
            format!("/api/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// The path of those in a namespace.
    pub(crate) fn within(&self, namespace: &str) -> String {
        self.path().replace(&format!("/{}", self.plural), &format!("/namespaces/{namespace}/{}", self.plural))
    }

    /// As RBAC has it, such as `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// As objects have it, such as `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") }
    }

    /// The kind, as the oracle names it.
    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group, self.kind)
    }
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::ConfigMap, Self::Deployment, Self::Widget];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        self.place().kind
    }

    /// The one with this group and name.
    pub(crate) fn find(group: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name && kind.place().group == group)
    }

    /// What the oracle knows of it: it is served, and has been listed with these objects.
    pub(crate) fn known(self, objects: Objects) -> Known {
        let Place { version, plural, .. } = self.place();
        let served = Served {
            version: version.into(),
            versions: [version.into()].into(),
            plural: plural.into(),
            namespaced: true,
            has_status: self.has_status(),
        };
        Known { served: Some(served), listed: true, objects, ..Known::default() }
    }

    /// Where its objects are.
    pub(crate) const fn place(self) -> Place {
        let (group, kind, plural) = match self {
            Self::ConfigMap => ("", "ConfigMap", "configmaps"),
            Self::Deployment => ("apps", "Deployment", "deployments"),
            Self::Widget => (GROUP, "Widget", "widgets"),
        };
        Place { group, version: "v1", kind, plural }
    }

    /// How many of them can be in a namespace.
    const fn slots(self) -> usize {
        match self {
            Self::ConfigMap => 40,
            Self::Deployment | Self::Widget => 25,
        }
    }

    /// What one of them is called.
    fn called(self, number: usize) -> String {
        match self {
            Self::ConfigMap => format!("settings-{number}"),
            Self::Deployment => format!("server-{number}"),
            Self::Widget => format!("widget-{number}"),
        }
    }

    /// A name that one of them can have.
    pub(crate) fn any_name(self, random: &mut impl Rng) -> String {
        self.called(random.random_range(0..self.slots()))
    }

    /// Whether it has a status that somebody writes.
    pub(crate) const fn has_status(self) -> bool {
        !matches!(self, Self::ConfigMap)
    }

    /// A kind, each as often as it has names.
    pub(crate) fn any(random: &mut impl Rng) -> Self {
        let kinds = [Self::ConfigMap, Self::ConfigMap, Self::Deployment, Self::Widget];
        *kinds.choose(random).unwrap_or(&Self::ConfigMap)
    }
}

/// An Application that can be in a namespace.
pub(crate) fn application_name(number: usize) -> String {
    format!("shop-{number}")
}

/// Whether an object of this name belongs to somebody else as well. It always does, or never.
pub(crate) fn has_anchor(name: &str) -> bool {
    name.ends_with(['3', '7'])
}

/// What the load decides about an object: all of it that is not a status.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    labels: BTreeMap<&'static str, String>,
    application: Option<String>,
    value: u32,
    paused: bool,
}

impl Written {
    /// Something, mostly in good order.
    pub(crate) fn any(random: &mut impl Rng) -> Self {
        let number = random.random_range(0..APPLICATIONS);
        let mut labels = BTreeMap::from([("app", application_name(number))]);
        if random.random_bool(0.6) {
            labels.insert("tier", (*["web", "data"].choose(random).unwrap_or(&"web")).to_owned());
        }
        // Mostly to the one that selects it.
        let owner = if random.random_bool(0.85) { number } else { random.random_range(0..APPLICATIONS) };
        let application = random.random_bool(0.4).then(|| application_name(owner));
        let (value, paused) = (random.random_range(1..4), random.random_bool(0.06));
        Self { labels, application, value, paused }
    }

    /// What it says of itself.
    fn says(&self, kind: Kind) -> String {
        let content = match kind {
            Kind::Deployment => format!("{} {}", self.value, self.paused),
            _ => self.value.to_string(),
        };
        says(&self.labels, self.application.as_deref(), &content)
    }

    fn content(&self, kind: Kind, name: &str) -> (&'static str, Json) {
        match kind {
            Kind::ConfigMap => ("data", json!({ "value": self.value.to_string() })),
            Kind::Widget => ("spec", json!({ "value": self.value })),
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

    /// The whole object. Some go slowly when they are deleted; `anchor` is the identity of the other owner.
    pub(crate) fn whole(&self, kind: Kind, name: &str, anchor: &str, slow: bool) -> Json {
        let mut annotations = BTreeMap::from([(SAYS, self.says(kind))]);
        annotations.extend(self.application.clone().map(|application| (HANDED_OVER, application)));
        let mut metadata = json!({ "name": name, "labels": self.labels, "annotations": annotations });
        if has_anchor(name) {
            metadata["ownerReferences"] =
                json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": ANCHOR, "uid": anchor }]);
        }
        // A kind that is not served any more would wait for them for ever.
        if slow && kind != Kind::Widget {
            metadata["finalizers"] = json!([FINALIZER]);
        }
        let (field, content) = self.content(kind, name);
        json!({ "apiVersion": kind.place().api_version(), "kind": kind.name(), "metadata": metadata, field: content })
    }

    /// A merge patch that makes an object like this, whatever it was.
    pub(crate) fn patch(&self, kind: Kind, name: &str) -> Json {
        let mut labels = json!({ "app": null, "tier": null });
        for (key, value) in &self.labels {
            labels[key] = json!(value);
        }
        let annotations = json!({ (SAYS): self.says(kind), (HANDED_OVER): self.application });
        let (field, content) = self.content(kind, name);
        json!({ "metadata": { "labels": labels, "annotations": annotations }, field: content })
    }
}

fn says(
    labels: &BTreeMap<impl std::fmt::Display, String>,
    application: Option<&str>,
    content: &str,
) -> String {
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{} for {} with {content}", labels.join(","), application.unwrap_or("nobody"))
}

/// What an object would say of itself, had the load written it as it is.
pub(crate) fn as_written(kind: Kind, object: &Json) -> String {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned())).collect();
    let content = match kind {
        Kind::ConfigMap => object["data"]["value"].as_str().unwrap_or_default().to_owned(),
        Kind::Widget => object["spec"]["value"].to_string(),
        Kind::Deployment => {
            let paused = object["spec"]["paused"].as_bool().unwrap_or(false);
            format!("{} {paused}", object["spec"]["replicas"])
        }
    };
    says(&labels, object["metadata"]["annotations"][HANDED_OVER].as_str(), &content)
}

/// A patch that means nothing.
pub(crate) fn noise(random: &mut impl Rng) -> Json {
    json!({ "metadata": { "annotations": { (NOISE): random.random::<u32>().to_string() } } })
}

/// A patch that lets an object go that is being deleted.
pub(crate) fn let_go() -> Json {
    json!({ "metadata": { "finalizers": null } })
}

/// A status of an object, mostly a good one.
pub(crate) fn status(kind: Kind, object: &Json, random: &mut impl Rng) -> Json {
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    let is_good = random.random_bool(0.88);
    let observed = if random.random_bool(0.95) { generation } else { generation - 1 };
    match kind {
        Kind::ConfigMap => Json::Null,
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

/// The spec of an Application, but for its selector, which stays.
pub(crate) fn spec(random: &mut impl Rng) -> Json {
    let mut kinds: Vec<_> = Kind::ALL.into_iter().filter(|_| random.random_bool(0.7)).collect();
    if kinds.is_empty() {
        kinds.push(Kind::any(random));
    }
    let kind = |kind: Kind| json!({ "group": kind.place().group, "kind": kind.name() });
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

/// A whole Application.
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

/// The definition of Widgets.
pub(crate) fn widget_definition() -> Json {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": Kind::Widget.place().resource() },
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
