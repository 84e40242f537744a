//! Which objects a spec means, and what is wrong with what it says of them.

use std::sync::Arc;

use bellwether_api::RollupSpec;
use jiff::Timestamp;

use crate::{
    facts::Labels,
    id::{FeedId, GroupKind, NamespacedName},
    reasons::rollup as reasons,
    selector::{self, Selector},
    selector_index::SelectorLabel,
};

use super::component_report::Absence;

/// One entry of `spec.components` that can be understood.
#[derive(Debug)]
pub(super) struct ComponentEntry {
    /// Where it stands in the spec.
    pub(super) index: usize,
    pub(super) kind: GroupKind,
    pub(super) feed: FeedId,
    pub(super) target: Target,
    /// Where it is found in the index.
    pub(super) selector_label: SelectorLabel,
    /// How many objects it means.
    pub(super) matched: usize,
    /// Why there is none, or why there may be more,
    pub(super) absence: Option<Absence>,
    /// and since when.
    pub(super) since: Option<Timestamp>,
}

/// Which objects of a kind.
#[derive(Debug)]
pub(super) enum Target {
    Named(NamespacedName),
    Selected { namespace: Option<Arc<str>>, selector: Selector, text: Arc<str> },
}

/// Whether both mean the same, in whatever words.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(own), Self::Named(other)) => own == other,
            (
                Self::Selected { namespace, selector, .. },
                Self::Selected { namespace: other, selector: others, .. },
            ) => namespace == other && selector == others,
            (Self::Named(_), Self::Selected { .. }) | (Self::Selected { .. }, Self::Named(_)) => false,
        }
    }
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidEntry {
    /// What it is, in a word.
    pub(super) reason: &'static str,
    /// The entry,
    pub(super) spec_path: String,
    /// and what is wrong with it, and the way out.
    pub(super) text: String,
    /// What it asks for, if nobody can tell what that means. What is asked for twice is looked after once.
    pub(super) counted_kind: Option<GroupKind>,
}

impl InvalidEntry {
    /// What it comes to where nobody can tell what is asked for.
    pub(super) fn absence(&self) -> Absence {
        Absence::Invalid { reason: self.reason, text: self.text.clone() }
    }
}

/// An entry as it was written: its kind, and which objects.
pub(super) type ParsedEntry = (usize, GroupKind, Target);

impl Target {
    /// Whether it means an object.
    pub(super) fn matches(&self, name: &NamespacedName, labels: &Labels) -> bool {
        match self {
            Self::Named(own) => own == name,
            Self::Selected { namespace, selector, .. } => {
                namespace.as_ref().is_none_or(|own| *own == name.namespace) && selector.matches(labels)
            }
        }
    }
}

/// The entry as messages call it.
pub(super) fn spec_path(index: usize) -> String {
    format!("spec.components[{index}]")
}

/// What a spec asks for, and its mistakes. What is asked for twice counts once.
/// `own` is the name of the Rollup.
pub(super) fn parse(own: &str, spec: &RollupSpec) -> (Vec<ParsedEntry>, Vec<InvalidEntry>) {
    let (mut parsed, mut invalid_entries) = (Vec::<ParsedEntry>::new(), Vec::new());
    for (index, component) in spec.components.iter().enumerate() {
        let kind = GroupKind::new(&component.group, &component.kind);
        let mut invalid = |reason, text: String, counted_kind: Option<&GroupKind>| {
            invalid_entries.push(InvalidEntry {
                reason,
                spec_path: spec_path(index),
                text,
                counted_kind: counted_kind.cloned(),
            });
        };
        // Empty is how programs in Go leave it out.
        let namespace = component.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let target = match (&component.name, &component.selector) {
            (Some(name), None) => Target::Named(NamespacedName::new(namespace.unwrap_or_default(), name)),
            (None, Some(selector)) => Target::Selected {
                namespace: namespace.map(Into::into),
                selector: Selector::new(selector),
                text: selector::text_of(selector).into(),
            },
            (Some(_), Some(_)) => {
                invalid(
                    reasons::NAME_AND_SELECTOR,
                    "set only one of name and selector".to_owned(),
                    Some(&kind),
                );
                continue;
            }
            (None, None) => {
                let text = "set name or selector".to_owned();
                invalid(reasons::NAME_OR_SELECTOR_REQUIRED, text, Some(&kind));
                continue;
            }
        };
        let is_same = |(_, other, others): &&ParsedEntry| *other == kind && *others == target;
        if let Some((first, ..)) = parsed.iter().find(is_same) {
            let text = format!("duplicate of {}: remove one", spec_path(*first));
            invalid(reasons::DUPLICATE_COMPONENT, text, None);
            continue;
        }
        if kind.is_rollup() && matches!(&target, Target::Named(name) if *name == NamespacedName::new("", own))
        {
            invalid(reasons::COMPONENT_CYCLE, "is this Rollup itself: remove it".to_owned(), Some(&kind));
            continue;
        }
        parsed.push((index, kind, target));
    }
    (parsed, invalid_entries)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::fine(json!([{"kind": "A", "name": "a"}, {"kind": "A", "selector": {}}]), &[])]
    #[case::both(json!([{"kind": "A", "name": "a", "selector": {}}]), &["NameAndSelector"])]
    #[case::neither(json!([{"kind": "A"}]), &["NameOrSelectorRequired"])]
    #[case::twice(json!([{"kind": "A", "name": "a"}, {"kind": "B", "name": "a"}, {"kind": "A", "name": "a"}]), &["DuplicateComponent"])]
    #[case::two_selectors(
        json!([{"kind": "A", "selector": {"matchLabels": {"a": "b"}}}, {"kind": "A", "selector": {"matchLabels": {"a": "b"}}}]),
        &["DuplicateComponent"]
    )]
    #[case::in_other_words(json!([{"kind": "A", "selector": {}}, {"kind": "A", "selector": {"matchLabels": {}}}]), &["DuplicateComponent"])]
    #[case::in_another_order(
        json!([
            {"kind": "A", "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}},
            {"kind": "A", "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y", "x"]}]}},
        ]),
        &["DuplicateComponent"]
    )]
    #[case::an_empty_namespace(json!([{"kind": "A", "name": "a"}, {"kind": "A", "name": "a", "namespace": ""}]), &["DuplicateComponent"])]
    #[case::other_values(
        json!([
            {"kind": "A", "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x,y"]}]}},
            {"kind": "A", "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}},
        ]),
        &[]
    )]
    #[case::itself(json!([{"group": "bellwether.dev", "kind": "Rollup", "name": "umbrella"}]), &["ComponentCycle"])]
    #[case::other_group(json!([{"kind": "A", "name": "a"}, {"group": "x.io", "kind": "A", "name": "a"}]), &[])]
    #[case::other_namespace(json!([{"kind": "A", "name": "a", "namespace": "n"}, {"kind": "A", "name": "a", "namespace": "m"}]), &[])]
    fn invalid_entries(#[case] components: Value, #[case] reasons: &[&str]) {
        let spec: RollupSpec = serde_json::from_value(json!({"components": components})).expect("a spec");
        let (parsed, invalid_entries) = parse("umbrella", &spec);
        assert_eq!(invalid_entries.iter().map(|invalid| invalid.reason).collect::<Vec<_>>(), reasons);
        assert_eq!(parsed.len() + invalid_entries.len(), spec.components.len());
    }
}
