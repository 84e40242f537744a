//! One clause of a BindingPolicy: which objects it matches, and what it asks for.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_api::DownsyncClause;

use crate::{
    facts::Labels,
    group_ref::OwnKind,
    id::{GroupKind, NamespacedName},
    selector::Selector,
};

const ANY: &str = "*";

/// Kinds that no wildcard matches: our own, and those whose objects are records of others.
const NOT_BY_WILDCARD: &[(&str, &str)] = &[
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
];

#[derive(Debug)]
pub(super) struct Clause {
    group: Option<Box<str>>,
    resources: Names,
    namespaces: Names,
    names: Names,
    namespace_selectors: Box<[Selector]>,
    object_selectors: Box<[Selector]>,
    pub(super) collectors: Box<[Arc<str>]>,
    pub(super) wants_singleton: bool,
}

/// `None` for any.
#[derive(Debug)]
struct Names(Option<BTreeSet<Box<str>>>);

impl Names {
    fn new(names: &[String]) -> Self {
        let is_any = names.is_empty() || names.iter().any(|name| name == ANY);
        Self((!is_any).then(|| names.iter().map(|name| name.as_str().into()).collect()))
    }

    fn matches(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(name))
    }
}

impl Clause {
    pub(super) fn new(clause: &DownsyncClause) -> Self {
        Self {
            group: clause.api_group.as_deref().filter(|group| *group != ANY).map(Into::into),
            resources: Names::new(&clause.resources),
            namespaces: Names::new(&clause.namespaces),
            names: Names::new(&clause.object_names),
            namespace_selectors: clause.namespace_selectors.iter().map(Selector::new).collect(),
            object_selectors: clause.object_selectors.iter().map(Selector::new).collect(),
            collectors: clause.status_collectors.iter().map(|name| name.as_str().into()).collect(),
            wants_singleton: clause.want_singleton_reported_state,
        }
    }

    /// Whether it asks for nothing: its objects are bound, but their state is not read.
    pub(super) fn asks_nothing(&self) -> bool {
        self.collectors.is_empty() && !self.wants_singleton
    }

    pub(super) fn reads_namespaces(&self) -> bool {
        !self.namespace_selectors.is_empty()
    }

    pub(super) fn matches_kind(&self, kind: &GroupKind, plural: &str) -> bool {
        let is_named = self.resources.0.is_some();
        // The results of a policy must not be its objects.
        if *kind == OwnKind::CombinedStatus.kind() {
            return false;
        }
        let is_left_out = || kind.is_bellwether() || NOT_BY_WILDCARD.contains(&(&kind.group, &kind.kind));
        self.group.as_deref().is_none_or(|group| *group == *kind.group)
            && self.resources.matches(plural)
            && (is_named || !is_left_out())
    }

    /// The named resources, with the group if the clause has one.
    pub(super) fn named_resources(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let names = self.resources.0.iter().flatten();
        names.map(|name| (self.group.as_deref(), &**name))
    }

    /// `namespace`: the labels of the object's namespace; `None` if they are not known, or if the object is
    /// cluster-scoped.
    pub(super) fn matches(&self, name: &NamespacedName, labels: &Labels, namespace: Option<&Labels>) -> bool {
        let any = |selectors: &[Selector], labels: &Labels| {
            selectors.is_empty() || selectors.iter().any(|selector| selector.matches(labels))
        };
        let in_namespace = !name.namespace.is_empty() || self.namespaces.0.is_none();
        in_namespace
            && (name.namespace.is_empty() || self.namespaces.matches(&name.namespace))
            && self.names.matches(&name.name)
            && any(&self.object_selectors, labels)
            && (!self.reads_namespaces()
                || namespace.is_some_and(|labels| any(&self.namespace_selectors, labels)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn clause(clause: Value) -> Clause {
        Clause::new(&serde_json::from_value(clause).expect("a clause"))
    }

    fn labels(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[rstest]
    #[case::group_and_resource(json!({"apiGroup": "apps", "resources": ["deployments"]}), true)]
    #[case::other_group(json!({"apiGroup": "", "resources": ["deployments"]}), false)]
    #[case::any_group(json!({"apiGroup": "*", "resources": ["deployments"]}), true)]
    #[case::no_group(json!({"resources": ["deployments"]}), true)]
    #[case::other_resource(json!({"apiGroup": "apps", "resources": ["statefulsets"]}), false)]
    #[case::any_resource(json!({"apiGroup": "apps"}), true)]
    #[case::wildcard(json!({"apiGroup": "apps", "resources": ["*"]}), true)]
    fn kinds(#[case] given: Value, #[case] matches: bool) {
        let kind = GroupKind::new("apps", "Deployment");
        assert_eq!(clause(given).matches_kind(&kind, "deployments"), matches);
    }

    #[rstest]
    #[case::by_wildcard(json!({"namespaces": ["shop"]}), false)]
    #[case::by_group(json!({"apiGroup": ""}), false)]
    #[case::by_name(json!({"resources": ["events"]}), true)]
    fn events_must_be_named(#[case] given: Value, #[case] matches: bool) {
        assert_eq!(clause(given).matches_kind(&GroupKind::new("", "Event"), "events"), matches);
    }

    #[rstest]
    #[case::nothing(json!({}), true)]
    #[case::namespace(json!({"namespaces": ["shop", "other"]}), true)]
    #[case::other_namespace(json!({"namespaces": ["other"]}), false)]
    #[case::any_namespace(json!({"namespaces": ["*"]}), true)]
    #[case::name(json!({"objectNames": ["web"]}), true)]
    #[case::other_name(json!({"objectNames": ["db"]}), false)]
    #[case::labels(json!({"objectSelectors": [{"matchLabels": {"app": "db"}}, {"matchLabels": {"app": "web"}}]}), true)]
    #[case::other_labels(json!({"objectSelectors": [{"matchLabels": {"app": "db"}}]}), false)]
    #[case::namespace_labels(json!({"namespaceSelectors": [{"matchLabels": {"team": "a"}}]}), true)]
    #[case::other_namespace_labels(json!({"namespaceSelectors": [{"matchLabels": {"team": "b"}}]}), false)]
    #[case::every_field_must_match(json!({"namespaces": ["shop"], "objectNames": ["db"]}), false)]
    fn objects(#[case] given: Value, #[case] matches: bool) {
        let (clause, web) = (clause(given), NamespacedName::new("shop", "web"));
        let namespace = labels(&[("team", "a")]);
        assert_eq!(clause.matches(&web, &labels(&[("app", "web")]), Some(&namespace)), matches);
    }

    #[rstest]
    #[case::anywhere(json!({"objectNames": ["web"]}), true)]
    #[case::any_namespace(json!({"namespaces": ["*"], "objectNames": ["web"]}), true)]
    #[case::in_a_namespace(json!({"namespaces": ["shop"]}), false)]
    #[case::in_a_selected_namespace(json!({"namespaceSelectors": [{"matchLabels": {"team": "a"}}]}), false)]
    fn cluster_scoped_objects(#[case] given: Value, #[case] matches: bool) {
        let web = NamespacedName::new("", "web");
        assert_eq!(clause(given).matches(&web, &Labels::default(), None), matches);
    }
}
