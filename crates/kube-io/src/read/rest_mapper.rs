//! The kinds that a cluster serves.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use bellwether_engine::{GroupKind, Served};
use tokio::sync::watch;

use super::discovery::{Freshness, Group, GroupVersion, Resource, Scope};

/// The kinds that a cluster serves, and how.
pub(crate) type Kinds = HashMap<GroupKind, Served>;

/// The kinds from now on; none until they are known.
pub(crate) type KindsReceiver = watch::Receiver<Option<Arc<Kinds>>>;

/// What a cluster serves, for everybody who wants to know. It keeps itself up to date.
#[derive(Clone, Debug)]
pub struct RestMapper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// None until the cluster has been asked.
    kinds: watch::Sender<Option<Arc<Kinds>>>,
    /// The groups of which a part did not answer.
    silent: Mutex<BTreeSet<String>>,
    /// How many have asked for another look,
    asked: watch::Sender<u64>,
    /// and how many of them have got it.
    answered: watch::Sender<u64>,
}

impl RestMapper {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            kinds: watch::Sender::new(None),
            silent: Mutex::default(),
            asked: watch::Sender::new(0),
            answered: watch::Sender::new(0),
        }))
    }

    /// How the cluster serves a kind; none if it does not, or if it has not said so yet.
    pub fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.0.kinds.borrow().as_ref()?.get(kind).cloned()
    }

    /// The kinds from now on; none until they are known.
    pub(super) fn kinds(&self) -> KindsReceiver {
        self.0.kinds.subscribe()
    }

    /// Whether a part of a group did not answer, so that nobody can tell which kinds it has.
    pub(super) fn is_silent(&self, group: &str) -> bool {
        self.0.silent.lock().unwrap_or_else(PoisonError::into_inner).contains(group)
    }

    /// Lets the cluster be asked once more, and waits until it was.
    pub(super) async fn rediscover(&self) {
        let mut ticket = 0;
        self.0.asked.send_modify(|asked| {
            *asked += 1;
            ticket = *asked;
        });
        // The sender lives as long as this does.
        let _ = self.0.answered.subscribe().wait_for(|answered| *answered >= ticket).await;
    }

    /// How many have asked for another look.
    pub(super) fn asked(&self) -> watch::Receiver<u64> {
        self.0.asked.subscribe()
    }

    /// Takes in what the cluster has told after so many had asked.
    pub(super) fn found(&self, groups: &[Group], asked: u64) {
        let silent = groups.iter().filter(|group| is_silent(group));
        let silent: BTreeSet<_> = silent.map(|group| group.metadata.name.clone()).collect();
        self.0.kinds.send_if_modified(|known| {
            let mut silent_before = self.0.silent.lock().unwrap_or_else(PoisonError::into_inner);
            let is_as_silent = std::mem::replace(&mut *silent_before, silent.clone()) == silent;
            let before = known.clone().unwrap_or_default();
            let now = merge_groups(&before, groups);
            if known.is_some() && now == *before && is_as_silent {
                return false;
            }
            *known = Some(Arc::new(now));
            true
        });
        self.0.answered.send_replace(asked);
    }

    /// Whether the cluster serves something under this name in paths.
    pub(super) fn has_resource(&self, group: &str, plural: &str) -> bool {
        let kinds = self.0.kinds.borrow();
        let is_it =
            |(kind, served): (&GroupKind, &Served)| *kind.group == *group && *served.plural == *plural;
        kinds.iter().flat_map(|kinds| kinds.iter()).any(is_it)
    }
}

/// Whether a part of a group did not answer.
pub(super) fn is_silent(group: &Group) -> bool {
    group.versions.iter().any(|version| version.freshness == Freshness::Stale)
}

/// The kinds in what a cluster has told. Where a part of a group did not answer, what was known of the group before stays.
pub(super) fn merge_groups(before: &Kinds, groups: &[Group]) -> Kinds {
    let mut kinds = Kinds::new();
    for group in groups {
        let name = &group.metadata.name;
        if is_silent(group) {
            let known = before.iter().filter(|(kind, _)| *kind.group == **name);
            kinds.extend(known.map(|(kind, served)| (kind.clone(), served.clone())));
        }
        for version in &group.versions {
            for (kind, resource) in best(version) {
                // Versions come best first.
                kinds
                    .entry(GroupKind::new(name, kind))
                    .or_insert_with(|| served(version, resource, group, kind));
            }
        }
    }
    kinds
}

/// The kinds of a version. Where two resources give objects of the same kind, the one that can be watched is meant.
fn best(version: &GroupVersion) -> HashMap<&str, &Resource> {
    let mut best: HashMap<&str, &Resource> = HashMap::new();
    let worth =
        |resource: &Resource| ["watch", "list"].map(|verb| resource.verbs.iter().any(|own| own == verb));
    for resource in &version.resources {
        let Some(kind) = kind_of(resource) else { continue };
        let connection = best.entry(kind).or_insert(resource);
        if worth(resource) > worth(connection) {
            *connection = resource;
        }
    }
    best
}

pub(super) fn kind_of(resource: &Resource) -> Option<&str> {
    resource.response_kind.as_ref().map(|kind| &*kind.kind).filter(|kind| !kind.is_empty())
}

fn served(version: &GroupVersion, resource: &Resource, group: &Group, kind: &str) -> Served {
    let has_it = |version: &&GroupVersion| version.resources.iter().any(|own| kind_of(own) == Some(kind));
    Served {
        version: version.version.as_str().into(),
        versions: group
            .versions
            .iter()
            .filter(has_it)
            .map(|version| version.version.as_str().into())
            .collect(),
        plural: resource.plural.as_str().into(),
        namespaced: resource.scope == Scope::Namespaced,
        has_status: resource.subresources.iter().any(|part| part.subresource == "status"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn groups(groups: serde_json::Value) -> Vec<Group> {
        serde_json::from_value(groups).expect("groups as a server tells them")
    }

    fn resource(plural: &str, kind: &str, verbs: &[&str]) -> serde_json::Value {
        json!({ "resource": plural, "responseKind": { "kind": kind }, "scope": "Namespaced", "verbs": verbs })
    }

    fn acme(versions: &serde_json::Value) -> Vec<Group> {
        groups(json!([{ "metadata": { "name": "acme.io" }, "versions": versions }]))
    }

    /// The kinds in a few words.
    fn told(kinds: &Kinds) -> Vec<String> {
        let mut told: Vec<_> = kinds
            .iter()
            .map(|(kind, served)| {
                format!("{kind} {} {} {:?}", served.version, served.plural, served.versions)
            })
            .collect();
        told.sort();
        told
    }

    #[test]
    fn the_first_version_that_has_a_kind_is_the_best() {
        let groups = acme(&json!([
            { "version": "v2", "resources": [resource("widgets", "Widget", &[])] },
            { "version": "v1", "resources": [resource("widgets", "Widget", &[]), resource("gadgets", "Gadget", &[])] },
        ]));
        let expected = [r#"Gadget.acme.io v1 gadgets ["v1"]"#, r#"Widget.acme.io v2 widgets ["v2", "v1"]"#];
        assert_eq!(told(&merge_groups(&Kinds::new(), &groups)), expected);
    }

    #[test]
    fn of_two_resources_the_one_that_can_be_watched_is_meant() {
        let groups = acme(&json!([{ "version": "v1", "resources": [
            resource("views", "Widget", &["list"]),
            resource("widgets", "Widget", &["list", "watch"]),
            resource("drafts", "Widget", &["create"]),
            json!({ "resource": "nothing", "verbs": null, "subresources": null }),
        ] }]));
        assert_eq!(told(&merge_groups(&Kinds::new(), &groups)), [r#"Widget.acme.io v1 widgets ["v1"]"#]);
    }

    #[rstest]
    #[case::namespaced(json!({ "scope": "Namespaced", "subresources": [{ "subresource": "scale" }] }), true, false)]
    #[case::of_the_cluster(json!({ "scope": "Cluster", "subresources": [{ "subresource": "status" }] }), false, true)]
    #[case::unsaid(json!({}), false, false)]
    fn scope_and_status_are_as_told(
        #[case] mut resource: serde_json::Value,
        #[case] namespaced: bool,
        #[case] has_status: bool,
    ) {
        resource["responseKind"] = json!({ "kind": "Widget" });
        let kinds =
            merge_groups(&Kinds::new(), &acme(&json!([{ "version": "v1", "resources": [resource] }])));
        let widget = &kinds[&GroupKind::new("acme.io", "Widget")];
        assert_eq!((widget.namespaced, widget.has_status), (namespaced, has_status));
    }

    #[test]
    fn a_group_whose_server_is_down_keeps_its_kinds() {
        let up = json!([{ "version": "v1", "resources": [resource("widgets", "Widget", &[])] }]);
        let before = merge_groups(&Kinds::new(), &acme(&up));
        let down = acme(&json!([
            { "version": "v1", "resources": [], "freshness": "Stale" },
            { "version": "v0", "resources": [resource("widgets", "Widget", &[]), resource("gadgets", "Gadget", &[])] },
        ]));
        let expected = [r#"Gadget.acme.io v0 gadgets ["v0"]"#, r#"Widget.acme.io v1 widgets ["v1"]"#];
        assert_eq!(told(&merge_groups(&before, &down)), expected);
        let gone = acme(&json!([{ "version": "v1", "resources": [], "freshness": "Current" }]));
        assert_eq!(merge_groups(&before, &gone), Kinds::new());
        assert_eq!(merge_groups(&before, &[]), Kinds::new());
    }

    #[test]
    fn a_group_that_never_answered_is_not_said_to_be_empty() {
        let rest_mapper = RestMapper::new();
        let mut kinds = rest_mapper.kinds();
        rest_mapper.found(&acme(&json!([{ "version": "v1", "resources": [], "freshness": "Stale" }])), 0);
        assert!(rest_mapper.is_silent("acme.io") && !rest_mapper.is_silent("apps"));
        kinds.mark_unchanged();
        rest_mapper.found(&acme(&json!([{ "version": "v1", "resources": [], "freshness": "Current" }])), 0);
        assert!(!rest_mapper.is_silent("acme.io"));
        assert!(kinds.has_changed().unwrap(), "whoever waits for it has to look again");
    }

    #[test]
    fn only_news_is_told() {
        let rest_mapper = RestMapper::new();
        let mut kinds = rest_mapper.kinds();
        let widgets =
            || acme(&json!([{ "version": "v1", "resources": [resource("widgets", "Widget", &[])] }]));
        rest_mapper.found(&[], 0);
        assert!(kinds.borrow_and_update().is_some(), "that there is nothing is news too");
        rest_mapper.found(&[], 0);
        assert!(!kinds.has_changed().unwrap());
        rest_mapper.found(&widgets(), 0);
        assert!(kinds.has_changed().unwrap());
        assert!(rest_mapper.served(&GroupKind::new("acme.io", "Widget")).is_some());
        assert!(rest_mapper.has_resource("acme.io", "widgets"));
        assert!(!rest_mapper.has_resource("acme.io", "gadgets"));
    }
}
