//! Plans: the fields of an object to keep.

/// The fields of an object to keep when it is decoded.
///
/// A plan is a tree of field names. Lists are transparent: `status.containerStatuses.name` keeps the name in
/// every entry. Only a path that names the last applied configuration keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) root: Node,
}

/// The fields to keep below one field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    /// Keep every field that is not in `fields`.
    pub(crate) all: bool,
    /// Keep every other field, but leave maps and lists empty.
    outline: bool,
    fields: Vec<(Box<str>, Node)>,
}

/// Identity, generation and deletion: every rule reads these first.
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

/// The annotation in which `kubectl apply` keeps a copy of the object, the content of a Secret included.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Large fields that no rule reads.
const BOOKKEEPING: &[&[&str]] = &[&["metadata", "managedFields"], &["metadata", "annotations", LAST_APPLIED]];

/// When the status and the other fields were written last.
const WRITE_TIMES: &[&str] = &["metadata.managedFields.subresource", "metadata.managedFields.time"];

/// Large or secret fields that no built-in rule reads.
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
    /// Keeps no field.
    pub fn nothing() -> Self {
        Self { root: Node::default() }
    }

    /// Keeps the identity, generations and times of creation and deletion.
    pub fn identity() -> Self {
        Self::nothing().with_all(IDENTITY)
    }

    /// Keeps every field except managed fields, the last applied configuration, `data` and the environment of
    /// containers, which are large or secret.
    ///
    /// For objects from files: their kind is not known before they are decoded.
    pub fn everything() -> Self {
        Self::whole().without(CONTENTS)
    }

    /// Keeps every field except the last applied configuration and managed fields. Of these, it keeps the times
    /// of the writes.
    ///
    /// For rules that may read any field.
    pub fn whole() -> Self {
        Self { root: Node::ALL }.without(BOOKKEEPING).with_all(WRITE_TIMES)
    }

    /// Keeps the field at this path and everything below it, except managed fields and the last applied
    /// configuration. Of a whole object, whose path is empty, it also drops the fields that
    /// [`everything`](Self::everything) drops.
    pub fn all_of(path: &[&str]) -> Self {
        let mut plan = Self::nothing();
        plan.keep(path);
        let contents = if path.is_empty() { CONTENTS } else { &[] };
        for dropped in BOOKKEEPING.iter().chain(contents) {
            if dropped.len() > path.len() && dropped.starts_with(path) {
                plan.leave_out(dropped);
            }
        }
        plan
    }

    /// Also keeps what another plan keeps.
    pub fn add(&mut self, other: &Self) {
        self.root = Node::union(&self.root, &other.root);
    }

    /// Whether nothing outside `apiVersion`, `kind` and `metadata` is kept.
    pub fn keeps_only_metadata(&self) -> bool {
        let is_metadata = |field: &str| matches!(field, "apiVersion" | "kind" | "metadata");
        let mut fields = self.root.fields.iter();
        !self.root.all
            && !self.root.outline
            && fields.all(|(field, node)| is_metadata(field) || node.keeps_nothing_below())
    }

    fn without(mut self, paths: &[&[&str]]) -> Self {
        for path in paths {
            self.leave_out(path);
        }
        self
    }

    /// Also keeps the field at this path and everything below it. A field name with dots is in brackets:
    /// `metadata.labels[app.kubernetes.io/name]`.
    ///
    /// A path that ends in `.*` keeps an outline: every field below it, with maps and lists empty.
    #[must_use]
    pub fn with(mut self, path: &str) -> Self {
        match path.strip_suffix(".*") {
            Some(path) => self.root.reach(&fields(path)).outline = true,
            None => self.keep(&fields(path)),
        }
        self
    }

    /// Also keeps the fields at these paths.
    #[must_use]
    pub fn with_all(self, paths: &[&str]) -> Self {
        paths.iter().fold(self, |plan, path| plan.with(path))
    }

    /// Also keeps the field at this path. Field names may have dots, as in labels and annotations.
    pub fn keep(&mut self, path: &[&str]) {
        *self.root.reach(path) = Node::ALL;
    }

    /// Drops the field at this path, even if a shorter path keeps it.
    pub fn leave_out(&mut self, path: &[&str]) {
        *self.root.reach(path) = Node::NOTHING;
    }
}

/// Splits a path into field names.
fn fields(path: &str) -> Vec<&str> {
    match path.split_once('[').and_then(|(path, rest)| Some((path, rest.strip_suffix(']')?))) {
        Some((path, last)) => path.split('.').chain([last]).collect(),
        None => path.split('.').collect(),
    }
}

impl Node {
    pub(crate) const ALL: Self = Self { all: true, outline: false, fields: Vec::new() };
    const NOTHING: Self = Self { all: false, outline: false, fields: Vec::new() };

    /// The node of a field; `None` if the field is dropped.
    pub(crate) fn of(&self, field: &str) -> Option<&Self> {
        match self.fields.iter().find(|(own, _)| **own == *field) {
            Some((_, node)) => (!node.keeps_nothing()).then_some(node),
            None if self.all => Some(const { &Self::ALL }),
            None => self.outline.then_some(const { &Self::NOTHING }),
        }
    }

    /// Whether lists and maps here are left empty.
    pub(crate) fn keeps_nothing(&self) -> bool {
        !self.all && !self.outline && self.fields.is_empty()
    }

    fn keeps_nothing_below(&self) -> bool {
        !self.all && !self.outline && self.fields.iter().all(|(_, node)| node.keeps_nothing_below())
    }

    fn union(left: &Self, right: &Self) -> Self {
        let of = |node: &Self, field: &str| node.of(field).cloned().unwrap_or(Self::NOTHING);
        let mut names: Vec<&str> = left.fields.iter().chain(&right.fields).map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.dedup();
        let field = |name: &str| (name.into(), Self::union(&of(left, name), &of(right, name)));
        Self {
            all: left.all || right.all,
            outline: left.outline || right.outline,
            fields: names.into_iter().map(field).collect(),
        }
    }

    /// The node at `path`, created if needed. Nodes on the path keep what they kept.
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
    fn a_path_keeps_its_parents_and_everything_below() {
        let plan = Plan::identity().with("status.conditions");
        assert!(kept(&plan, "status"));
        assert!(kept(&plan, "status.conditions.type"));
        assert!(!kept(&plan, "status.replicas"));
        assert!(!kept(&plan, "spec"));
    }

    #[test]
    fn a_shorter_path_includes_a_longer_one() {
        let plan = Plan::identity().with("status.conditions").with("status");
        assert_eq!(plan, Plan::identity().with("status"));
    }

    #[test]
    fn a_longer_path_does_not_narrow_a_shorter_one() {
        assert!(kept(&Plan::identity().with("status").with("status.conditions"), "status.replicas"));
    }

    #[test]
    fn a_field_name_with_dots_is_in_brackets() {
        let plan = Plan::identity().with("metadata.labels[app.kubernetes.io/name]");
        let labels = plan.root.of("metadata").and_then(|node| node.of("labels")).expect("labels are kept");
        assert!(labels.of("app.kubernetes.io/name").is_some());
        assert!(labels.of("app").is_none());
    }

    #[test]
    fn a_plan_may_keep_only_metadata() {
        let metadata = Plan::nothing().with_all(&["apiVersion", "kind", "metadata.labels"]);
        assert!(metadata.keeps_only_metadata());
        for more in ["status.phase", "data", "spec.*"] {
            assert!(!metadata.clone().with(more).keeps_only_metadata(), "{more}");
        }
        for plan in [Plan::whole(), Plan::everything(), Plan::nothing().with(".*")] {
            assert!(!plan.keeps_only_metadata());
        }
        let mut without = Plan::identity();
        without.leave_out(&["status", "observedGeneration"]);
        assert!(without.keeps_only_metadata());
    }

    #[test]
    fn an_outline_has_empty_maps() {
        let plan = Plan::identity().with("spec.*");
        assert!(kept(&plan, "spec.replicas"));
        assert!(!kept(&plan, "spec.template.spec"));
    }

    #[test]
    fn everything_drops_large_and_secret_fields() {
        let plan = Plan::everything();
        assert!(kept(&plan, "spec.template.spec.containers.image"));
        assert!(kept(&plan, "metadata.labels"));
        assert!(kept(&plan, "metadata.managedFields.time"));
        for secret in ["metadata.managedFields.fieldsV1", "data", "spec.template.spec.containers.env"] {
            assert!(!kept(&plan, secret), "{secret}");
        }
    }

    #[test]
    fn a_whole_object_has_no_large_and_secret_fields() {
        let (whole, metadata) = (Plan::all_of(&[]), Plan::all_of(&["metadata"]));
        assert!(kept(&whole, "spec.template.spec.containers.image") && kept(&whole, "anything"));
        assert!(kept(&metadata, "metadata.annotations.note") && !kept(&metadata, "spec"));
        for plan in [&whole, &metadata] {
            assert!(!kept(plan, "metadata.managedFields"));
            let annotations = plan.root.of("metadata").and_then(|node| node.of("annotations"));
            assert!(annotations.and_then(|node| node.of(LAST_APPLIED)).is_none());
        }
        for secret in ["data", "spec.template.spec.containers.env"] {
            assert!(!kept(&whole, secret), "{secret}");
        }
        assert!(kept(&Plan::all_of(&["data", "note"]), "data.note"));
    }

    #[test]
    fn a_sum_keeps_what_either_plan_keeps() {
        let mut sum = Plan::all_of(&[]);
        sum.add(&Plan::nothing().with("metadata.managedFields.time").with("data.note"));
        for path in ["spec.replicas", "metadata.labels", "metadata.managedFields.time", "data.note"] {
            assert!(kept(&sum, path), "{path}");
        }
        for path in ["metadata.managedFields.fieldsV1", "data.password"] {
            assert!(!kept(&sum, path), "{path}");
        }
        let mut narrow = Plan::nothing().with("status.phase");
        narrow.add(&Plan::nothing().with("spec.*"));
        assert!(kept(&narrow, "status.phase") && kept(&narrow, "spec.replicas"));
        assert!(!kept(&narrow, "status.conditions") && !kept(&narrow, "spec.template.spec"));
    }

    #[test]
    fn a_dropped_field_is_kept_by_name() {
        let mut plan = Plan::everything();
        plan.keep(&["data", "a.b"]);
        assert!(kept(&plan, "data"));
        assert!(!kept(&plan, "data.password"));
    }
}
