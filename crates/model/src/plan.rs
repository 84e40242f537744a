//! Plans: which fields of an object are kept.

/// Which fields of an object are kept when it is read.
///
/// A plan is a tree of field names. Lists are transparent: `status.containerStatuses.name` keeps the name in every entry.
/// Nothing keeps `metadata.managedFields` or the last applied configuration but a path that names them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) root: Node,
}

/// What is kept at one place of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    /// Everything that `fields` does not speak of.
    pub(crate) all: bool,
    /// The other fields too, but of maps and lists only that they are there.
    outline: bool,
    /// What is kept of the fields that were named.
    fields: Vec<(Box<str>, Node)>,
}

/// What identifies an object, and what every rule looks at first.
const IDENTITY: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "status.observedGeneration",
];

/// What no rule has any use for: who wrote what, and what was applied last.
const BOOKKEEPING: &[&[&str]] = &[
    &["metadata", "managedFields"],
    &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"],
];

/// What our own rules do not need and what nobody wants in memory: large, or secret, or both.
const CONTENTS: &[&[&str]] = &[
    &["data"],
    &["stringData"],
    &["binaryData"],
    &["spec", "containers", "env"],
    &["spec", "initContainers", "env"],
    &["spec", "ephemeralContainers", "env"],
    &["spec", "template", "spec", "containers", "env"],
    &["spec", "template", "spec", "initContainers", "env"],
    &["spec", "jobTemplate", "spec", "template", "spec", "containers", "env"],
    &["spec", "jobTemplate", "spec", "template", "spec", "initContainers", "env"],
];

impl Plan {
    /// Keeps nothing but what is asked for by path.
    pub fn nothing() -> Self {
        Self { root: Node::default() }
    }

    /// Keeps what identifies an object, and when it was created and deleted.
    pub fn identity() -> Self {
        Self::nothing().with_all(IDENTITY)
    }

    /// Keeps everything but what is large and useless, or secret: managed fields, the last applied configuration, `data`,
    /// and the environment of containers.
    ///
    /// This is for objects from files, whose kind is not known before they are read.
    pub fn everything() -> Self {
        Self::whole().without(CONTENTS)
    }

    /// Keeps everything but the bookkeeping: managed fields and the last applied configuration.
    ///
    /// This is for rules that may read anything.
    pub fn whole() -> Self {
        Self { root: Node::ALL }.without(BOOKKEEPING)
    }

    fn without(mut self, paths: &[&[&str]]) -> Self {
        for path in paths {
            self.leave_out(path);
        }
        self
    }

    /// Keeps the field at this path too, with everything under it. A field with a dot in its name stands in brackets:
    /// `metadata.labels[app.kubernetes.io/name]`.
    ///
    /// Of a path that ends in `.*`, only an outline is kept: which fields there are, with text and numbers, but nothing
    /// that is in maps or lists.
    #[must_use]
    pub fn with(mut self, path: &str) -> Self {
        match path.strip_suffix(".*") {
            Some(path) => self.root.reach(&fields(path)).outline = true,
            None => self.keep(&fields(path)),
        }
        self
    }

    /// Keeps the fields at these paths too.
    #[must_use]
    pub fn with_all(self, paths: &[&str]) -> Self {
        paths.iter().fold(self, |plan, path| plan.with(path))
    }

    /// Keeps the field at a path whose fields may have dots in their names: labels and annotations.
    pub fn keep(&mut self, path: &[&str]) {
        *self.root.reach(path) = Node::ALL;
    }

    /// Keeps nothing of the field at a path, whatever was asked for.
    pub fn leave_out(&mut self, path: &[&str]) {
        *self.root.reach(path) = Node::NOTHING;
    }
}

/// The fields of a path.
fn fields(path: &str) -> Vec<&str> {
    match path.split_once('[').and_then(|(path, rest)| Some((path, rest.strip_suffix(']')?))) {
        Some((path, last)) => path.split('.').chain([last]).collect(),
        None => path.split('.').collect(),
    }
}

impl Node {
    pub(crate) const ALL: Self = Self { all: true, outline: false, fields: Vec::new() };
    const NOTHING: Self = Self { all: false, outline: false, fields: Vec::new() };

    /// What is kept of the field, if anything.
    pub(crate) fn of(&self, field: &str) -> Option<&Self> {
        match self.fields.iter().find(|(own, _)| **own == *field) {
            Some((_, node)) => (!node.keeps_nothing()).then_some(node),
            None if self.all => Some(const { &Self::ALL }),
            None => self.outline.then_some(const { &Self::NOTHING }),
        }
    }

    /// Whether nothing is kept of what lists and maps here have in them.
    pub(crate) fn keeps_nothing(&self) -> bool {
        !self.all && !self.outline && self.fields.is_empty()
    }

    /// Makes room for `path`; what was kept on the way stays kept.
    fn reach(&mut self, path: &[&str]) -> &mut Self {
        let mut node = self;
        for field in path {
            let known = node.fields.iter().position(|(own, _)| **own == **field);
            let position = known.unwrap_or_else(|| {
                node.fields.push(((*field).into(), Self { all: node.all, ..Self::NOTHING }));
                node.fields.len() - 1
            });
            node = &mut node.fields[position].1;
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(plan: &Plan, path: &str) -> bool {
        path.split('.').try_fold(&plan.root, |node, field| node.of(field)).is_some()
    }

    #[test]
    fn a_path_keeps_what_is_on_the_way_and_below() {
        let plan = Plan::identity().with("status.conditions");
        assert!(kept(&plan, "status"));
        assert!(kept(&plan, "status.conditions.type"));
        assert!(!kept(&plan, "status.replicas"));
        assert!(!kept(&plan, "spec"));
    }

    #[test]
    fn a_shorter_path_takes_in_a_longer_one() {
        let plan = Plan::identity().with("status.conditions").with("status");
        assert_eq!(plan, Plan::identity().with("status"));
    }

    #[test]
    fn a_longer_path_takes_nothing_away() {
        assert!(kept(&Plan::identity().with("status").with("status.conditions"), "status.replicas"));
    }

    #[test]
    fn a_field_with_dots_stands_in_brackets() {
        let plan = Plan::identity().with("metadata.labels[app.kubernetes.io/name]");
        let labels = plan.root.of("metadata").and_then(|node| node.of("labels")).expect("labels are kept");
        assert!(labels.of("app.kubernetes.io/name").is_some());
        assert!(labels.of("app").is_none());
    }

    #[test]
    fn an_outline_has_the_fields_and_nothing_in_them() {
        let plan = Plan::identity().with("spec.*");
        assert!(kept(&plan, "spec.replicas"));
        assert!(!kept(&plan, "spec.template.spec"));
    }

    #[test]
    fn everything_has_its_limits() {
        let plan = Plan::everything();
        assert!(kept(&plan, "spec.template.spec.containers.image"));
        assert!(kept(&plan, "metadata.labels"));
        for secret in ["metadata.managedFields", "data", "spec.template.spec.containers.env"] {
            assert!(!kept(&plan, secret), "{secret}");
        }
    }

    #[test]
    fn what_is_asked_for_by_name_is_kept() {
        let mut plan = Plan::everything();
        plan.keep(&["data", "a.b"]);
        assert!(kept(&plan, "data"));
        assert!(!kept(&plan, "data.password"));
    }
}
