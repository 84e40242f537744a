//! The kinds that a cluster serves, from API discovery.

use std::{collections::HashMap, sync::Arc};

use bellwether_engine::{DiscoveredKinds, GroupKind, ServedResource};
use tokio::sync::watch;

use super::discovery::{ApiGroup, ApiGroupVersion, Freshness, Resource, Scope};

pub(crate) type Kinds = HashMap<GroupKind, ServedResource>;

/// `None` until discovery has completed.
pub(crate) type KindsReceiver = watch::Receiver<Option<Arc<DiscoveredKinds>>>;

/// Maps kinds to served resources. The discovery loop keeps it up to date.
#[derive(Clone, Debug)]
pub struct RestMapper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    kinds: watch::Sender<Option<Arc<DiscoveredKinds>>>,
    /// The number of requests for another discovery.
    requested: watch::Sender<u64>,
    /// The number of these requests that are fulfilled.
    fulfilled: watch::Sender<u64>,
}

impl RestMapper {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            kinds: watch::Sender::new(None),
            requested: watch::Sender::new(0),
            fulfilled: watch::Sender::new(0),
        }))
    }

    /// `None` if the kind is not served, or discovery has not completed yet.
    pub fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.0.kinds.borrow().as_ref()?.served.get(kind).cloned()
    }

    pub(super) fn kinds(&self) -> KindsReceiver {
        self.0.kinds.subscribe()
    }

    /// Requests another discovery, and waits for it.
    pub(super) async fn rediscover(&self) {
        let mut ticket = 0;
        self.0.requested.send_modify(|requested| {
            *requested += 1;
            ticket = *requested;
        });
        // `self` keeps the sender.
        let _ = self.0.fulfilled.subscribe().wait_for(|fulfilled| *fulfilled >= ticket).await;
    }

    /// The number of requests for another discovery.
    pub(super) fn requested(&self) -> watch::Receiver<u64> {
        self.0.requested.subscribe()
    }

    /// Takes in the result of a discovery, which fulfils the first `requested` requests.
    pub(super) fn update(&self, groups: &[ApiGroup], requested: u64) {
        let unavailable = groups.iter().filter(|group| is_unavailable(group));
        let unavailable = unavailable.map(|group| group.metadata.name.as_str().into()).collect();
        self.0.kinds.send_if_modified(|known| {
            let before = known.clone().unwrap_or_default();
            let served = merge_groups(&before.served, groups);
            let now = DiscoveredKinds { served, unavailable_groups: unavailable };
            if known.is_some() && now == *before {
                return false;
            }
            *known = Some(Arc::new(now));
            true
        });
        self.0.fulfilled.send_replace(requested);
    }

    pub(super) fn has_resource(&self, group: &str, plural: &str) -> bool {
        let kinds = self.0.kinds.borrow();
        let is_match = |(kind, served): (&GroupKind, &ServedResource)| {
            *kind.group == *group && *served.plural == *plural
        };
        kinds.iter().flat_map(|kinds| &kinds.served).any(is_match)
    }
}

pub(super) fn is_unavailable(group: &ApiGroup) -> bool {
    group.versions.iter().any(|version| version.freshness == Freshness::Stale)
}

/// The kinds of a discovery. Kinds of an unavailable group are kept from before.
pub(super) fn merge_groups(before: &Kinds, groups: &[ApiGroup]) -> Kinds {
    let mut kinds = Kinds::new();
    for group in groups {
        let name = &group.metadata.name;
        if is_unavailable(group) {
            let known = before.iter().filter(|(kind, _)| *kind.group == **name);
            kinds.extend(known.map(|(kind, served)| (kind.clone(), served.clone())));
        }
        for version in &group.versions {
            for (kind, resource) in preferred_resources(version) {
                // The preferred version comes first.
                kinds
                    .entry(GroupKind::new(name, kind))
                    .or_insert_with(|| served(version, resource, group, kind));
            }
        }
    }
    kinds
}

/// One resource for each kind: the one that can be watched, if several resources have the same kind.
fn preferred_resources(version: &ApiGroupVersion) -> HashMap<&str, &Resource> {
    let mut preferred: HashMap<&str, &Resource> = HashMap::new();
    let rank =
        |resource: &Resource| ["watch", "list"].map(|verb| resource.verbs.iter().any(|own| own == verb));
    for resource in &version.resources {
        let Some(kind) = kind_of(resource) else { continue };
        let best = preferred.entry(kind).or_insert(resource);
        if rank(resource) > rank(best) {
            *best = resource;
        }
    }
    preferred
}

pub(super) fn kind_of(resource: &Resource) -> Option<&str> {
    resource.response_kind.as_ref().map(|kind| &*kind.kind).filter(|kind| !kind.is_empty())
}

fn served(version: &ApiGroupVersion, resource: &Resource, group: &ApiGroup, kind: &str) -> ServedResource {
    let has_kind =
        |version: &&ApiGroupVersion| version.resources.iter().any(|own| kind_of(own) == Some(kind));
    ServedResource {
        version: version.version.as_str().into(),
        versions: group
            .versions
            .iter()
            .filter(has_kind)
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

    fn groups(groups: serde_json::Value) -> Vec<ApiGroup> {
        serde_json::from_value(groups).expect("groups as in a discovery response")
    }

    fn resource(plural: &str, kind: &str, verbs: &[&str]) -> serde_json::Value {
        json!({ "resource": plural, "responseKind": { "kind": kind }, "scope": "Namespaced", "verbs": verbs })
    }

    fn acme(versions: &serde_json::Value) -> Vec<ApiGroup> {
        groups(json!([{ "metadata": { "name": "acme.io" }, "versions": versions }]))
    }

    fn summary(kinds: &Kinds) -> Vec<String> {
        let mut lines: Vec<_> = kinds
            .iter()
            .map(|(kind, served)| {
                format!("{kind} {} {} {:?}", served.version, served.plural, served.versions)
            })
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn the_first_version_with_a_kind_is_preferred() {
        let groups = acme(&json!([
            { "version": "v2", "resources": [resource("widgets", "Widget", &[])] },
            { "version": "v1", "resources": [resource("widgets", "Widget", &[]), resource("gadgets", "Gadget", &[])] },
        ]));
        let expected = [r#"Gadget.acme.io v1 gadgets ["v1"]"#, r#"Widget.acme.io v2 widgets ["v2", "v1"]"#];
        assert_eq!(summary(&merge_groups(&Kinds::new(), &groups)), expected);
    }

    #[test]
    fn of_two_resources_of_a_kind_the_watchable_one_is_preferred() {
        let groups = acme(&json!([{ "version": "v1", "resources": [
            resource("views", "Widget", &["list"]),
            resource("widgets", "Widget", &["list", "watch"]),
            resource("drafts", "Widget", &["create"]),
            json!({ "resource": "nothing", "verbs": null, "subresources": null }),
        ] }]));
        assert_eq!(summary(&merge_groups(&Kinds::new(), &groups)), [r#"Widget.acme.io v1 widgets ["v1"]"#]);
    }

    #[rstest]
    #[case::namespaced(json!({ "scope": "Namespaced", "subresources": [{ "subresource": "scale" }] }), true, false)]
    #[case::cluster_scoped(json!({ "scope": "Cluster", "subresources": [{ "subresource": "status" }] }), false, true)]
    #[case::unspecified(json!({}), false, false)]
    fn scope_and_status_come_from_discovery(
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
        assert_eq!(summary(&merge_groups(&before, &down)), expected);
        let gone = acme(&json!([{ "version": "v1", "resources": [], "freshness": "Current" }]));
        assert_eq!(merge_groups(&before, &gone), Kinds::new());
        assert_eq!(merge_groups(&before, &[]), Kinds::new());
    }

    #[test]
    fn a_group_that_never_responded_is_unavailable() {
        let rest_mapper = RestMapper::new();
        let mut kinds = rest_mapper.kinds();
        let mut unavailable = || {
            assert!(kinds.has_changed().unwrap());
            let kinds = kinds.borrow_and_update();
            kinds.iter().flat_map(|kinds| &kinds.unavailable_groups).cloned().collect::<Vec<_>>()
        };
        rest_mapper.update(&acme(&json!([{ "version": "v1", "resources": [], "freshness": "Stale" }])), 0);
        assert_eq!(unavailable(), ["acme.io".into()]);
        rest_mapper.update(&acme(&json!([{ "version": "v1", "resources": [], "freshness": "Current" }])), 0);
        assert_eq!(unavailable(), [], "feeds that wait for the group see a change");
    }

    #[test]
    fn receivers_see_changes_only() {
        let rest_mapper = RestMapper::new();
        let mut kinds = rest_mapper.kinds();
        let widgets =
            || acme(&json!([{ "version": "v1", "resources": [resource("widgets", "Widget", &[])] }]));
        rest_mapper.update(&[], 0);
        assert!(kinds.borrow_and_update().is_some(), "an empty discovery is a change, too");
        rest_mapper.update(&[], 0);
        assert!(!kinds.has_changed().unwrap());
        rest_mapper.update(&widgets(), 0);
        assert!(kinds.has_changed().unwrap());
        assert!(rest_mapper.served(&GroupKind::new("acme.io", "Widget")).is_some());
        assert!(rest_mapper.has_resource("acme.io", "widgets"));
        assert!(!rest_mapper.has_resource("acme.io", "gadgets"));
    }
}
