//! Parses and validates `spec.components`.

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

/// A valid entry of `spec.components`.
#[derive(Debug)]
pub(super) struct ComponentEntry {
    /// In `spec.components`.
    pub(super) index: usize,
    pub(super) kind: GroupKind,
    pub(super) feed: FeedId,
    pub(super) target: Target,
    /// For removal from the index.
    pub(super) selector_label: SelectorLabel,
    pub(super) matched: usize,
    /// Why no object matches, or why more objects may match.
    pub(super) absence: Option<Absence>,
    /// Since when `absence` has its value.
    pub(super) since: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) enum Target {
    Named(NamespacedName),
    Selected { namespace: Option<Arc<str>>, selector: Selector, text: Arc<str> },
}

/// Equal selectors in another notation compare equal.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidEntry {
    pub(super) reason: &'static str,
    /// Such as `spec.components[1]`.
    pub(super) spec_path: String,
    /// What is wrong, and what to do.
    pub(super) text: String,
    /// The kind under which it counts as one Unknown component; `None` for a duplicate, which counts already.
    pub(super) counted_kind: Option<GroupKind>,
}

impl InvalidEntry {
    pub(super) fn absence(&self) -> Absence {
        Absence::Invalid { reason: self.reason, text: self.text.clone() }
    }
}

/// Index in the spec, kind and target.
pub(super) type ParsedEntry = (usize, GroupKind, Target);

impl Target {
    pub(super) fn matches(&self, name: &NamespacedName, labels: &Labels) -> bool {
        match self {
            Self::Named(own) => own == name,
            Self::Selected { namespace, selector, .. } => {
                namespace.as_ref().is_none_or(|own| *own == name.namespace) && selector.matches(labels)
            }
        }
    }
}

pub(super) fn spec_path(index: usize) -> String {
    format!("spec.components[{index}]")
}

/// Valid and invalid entries. Duplicates are invalid. `own` is the name of the Rollup.
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
        // Go programs write an empty string for an unset field.
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
            invalid(
                reasons::COMPONENT_CYCLE,
                "a Rollup cannot be a component of itself: remove this entry".to_owned(),
                Some(&kind),
            );
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
    #[case::in_another_notation(json!([{"kind": "A", "selector": {}}, {"kind": "A", "selector": {"matchLabels": {}}}]), &["DuplicateComponent"])]
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
