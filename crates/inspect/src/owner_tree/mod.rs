//! The members of a group and the objects that they own, by owner reference.

mod forest;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use anyhow::Result;
use bellwether_engine::{
    Group, GroupKind, Member, NamespacedName, OwnerReference, ReportedConditions, StandsFor, Unreadable,
    kinds_below,
};
use bellwether_health::Rule;
use bellwether_model::{State, text::with_reason};
use bellwether_terminal::rank;
use jiff::Timestamp;

use self::forest::{Candidate, OwnerForest};
use crate::observe::{ListedObject, Observation, not_shown};

/// An object with the objects that it owns.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: GroupKind,
    pub name: NamespacedName,
    /// The cluster that it is in. None for the hub.
    pub cluster: Option<Arc<str>>,
    pub stands_for: StandsFor,
    /// False for a member that is missing, or whose kind cannot be read.
    pub exists: bool,
    pub state: State,
    pub progress: u8,
    pub reason: String,
    pub message: String,
    pub since: Option<Timestamp>,
    pub rule: Option<Rule>,
    /// Only components of Rollups have them.
    pub component_conditions: Option<ReportedConditions>,
    /// None for an object that is not a member.
    pub member: Option<MemberCause>,
    /// The worst first, then by kind and name.
    pub children: Vec<Node>,
    /// Descendants below [`MAX_DEPTH`], which are not in `children`.
    pub omitted: usize,
}

/// Where to find what keeps a member from being ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberCause {
    /// The engine has looked below: at this Pod, or nowhere.
    Pod(Option<String>),
    /// The engine has not looked below: at the deepest objects that are not ready.
    Deepest,
}

impl MemberCause {
    /// The engine looks below members of Applications only, which are in the hub.
    fn of(member: &Member) -> Self {
        let is_component = member.component_conditions.is_some() || member.cluster.is_some();
        if is_component || kinds_below(&member.kind).is_empty() {
            return Self::Deepest;
        }
        Self::Pod(member.cause.as_ref().map(|cause| cause.name.clone()))
    }
}

impl Node {
    fn set_cluster(&mut self, cluster: &Arc<str>) {
        self.cluster = Some(Arc::clone(cluster));
        for child in &mut self.children {
            child.set_cluster(cluster);
        }
    }

    /// `Reason: message` of a failed object, the message alone of any other.
    pub fn why(&self) -> Cow<'_, str> {
        reason_and_message(self.state, &self.reason, &self.message)
    }
}

/// `Reason: message` of a failed object, the message alone of any other. The reason is left out if it is the
/// name of the state: a clause of a HealthRule without a reason.
pub fn reason_and_message<'m>(state: State, reason: &str, message: &'m str) -> Cow<'m, str> {
    let has_reason = state == State::Failed && reason != state.name();
    if has_reason { with_reason(reason, message) } else { Cow::Borrowed(message) }
}

/// An object that keeps a member from being ready, or a member that is not ready itself.
#[derive(Debug)]
pub struct Cause<'n> {
    pub node: &'n Node,
    /// The member that owns it; none if the object is a member.
    pub blocks: Option<&'n Node>,
    /// How many more objects of its kind below the same member have the same reason.
    pub more: usize,
}

/// Names objects for people: `Kind/name`, as in conditions.
///
/// The kind has its API group only where another kind on the page has the same name. The namespace follows as
/// ` -n NAMESPACE`, so that the whole is an argument of kubectl. The cluster follows as ` @CLUSTER`.
#[derive(Debug)]
pub struct ObjectNames<'g> {
    namespace: &'g str,
    ambiguous_kinds: BTreeSet<&'g str>,
    /// Those that are in more than one namespace.
    ambiguous_names: BTreeSet<(&'g GroupKind, &'g str)>,
}

impl<'g> ObjectNames<'g> {
    pub fn of_members(group: &'g Group) -> Self {
        Self::new(&group.name.namespace, group.members.iter().map(|member| (&member.kind, &member.name)))
    }

    pub fn of_nodes(group: &'g Group, nodes: &'g [Node]) -> Self {
        let mut all: Vec<_> = nodes.iter().collect();
        let mut index = 0;
        while let Some(node) = all.get(index) {
            all.extend(&node.children);
            index += 1;
        }
        Self::new(&group.name.namespace, all.into_iter().map(|node| (&node.kind, &node.name)))
    }

    fn new(namespace: &'g str, objects: impl Iterator<Item = (&'g GroupKind, &'g NamespacedName)>) -> Self {
        let mut groups: HashMap<&str, &str> = HashMap::new();
        let mut namespaces: HashMap<(&GroupKind, &str), &str> = HashMap::new();
        let (mut ambiguous_kinds, mut ambiguous_names) = (BTreeSet::new(), BTreeSet::new());
        for (kind, NamespacedName { namespace, name }) in objects {
            if *groups.entry(&kind.kind).or_insert(&kind.group) != &*kind.group {
                ambiguous_kinds.insert(&*kind.kind);
            }
            if *namespaces.entry((kind, name)).or_insert(namespace) != &**namespace {
                ambiguous_names.insert((kind, &**name));
            }
        }
        Self { namespace, ambiguous_kinds, ambiguous_names }
    }

    /// `Kind`, or `Kind.group` where that is needed.
    pub fn kind(&self, kind: &GroupKind) -> String {
        if self.ambiguous_kinds.contains(&*kind.kind) { kind.to_string() } else { kind.kind.to_string() }
    }

    /// For sentences: without the namespace, unless another object on the page has the same kind and name.
    pub fn of(&self, kind: &GroupKind, name: &NamespacedName, stands_for: StandsFor) -> String {
        let is_ambiguous = self.ambiguous_names.contains(&(kind, &*name.name));
        self.seen_from(if is_ambiguous { self.namespace } else { &name.namespace }, kind, name, stands_for)
    }

    pub fn of_member(&self, member: &Member) -> String {
        self.of(&member.kind, &member.name, member.stands_for) + &at(member.cluster.as_deref())
    }

    pub fn of_node(&self, node: &Node) -> String {
        self.of(&node.kind, &node.name, node.stands_for) + &at(node.cluster.as_deref())
    }

    /// For lists of members: with the namespace, unless it is that of the group.
    pub fn of_listed_member(&self, member: &Member) -> String {
        self.seen_from(self.namespace, &member.kind, &member.name, member.stands_for)
            + &at(member.cluster.as_deref())
    }

    /// For lists of objects.
    pub fn of_listed_node(&self, node: &Node) -> String {
        self.seen_from(self.namespace, &node.kind, &node.name, node.stands_for) + &at(node.cluster.as_deref())
    }

    /// For a table that has columns of namespaces and clusters.
    pub fn without_namespace(&self, member: &Member) -> String {
        let Member { kind, name, stands_for, .. } = member;
        self.seen_from(&name.namespace, kind, name, *stands_for)
    }

    fn seen_from(
        &self,
        namespace: &str,
        kind: &GroupKind,
        name: &NamespacedName,
        stands_for: StandsFor,
    ) -> String {
        let local = local_name(name, stands_for, namespace);
        format!("{}{}{local}", self.kind(kind), separator(stands_for))
    }
}

/// ` @west`, or nothing for the hub.
pub fn at(cluster: Option<&str>) -> String {
    cluster.map(|cluster| format!(" @{cluster}")).unwrap_or_default()
}

/// What stands between a kind and the name of an object, or what describes it instead of a name.
pub fn separator(stands_for: StandsFor) -> char {
    if stands_for == StandsFor::Object { '/' } else { ' ' }
}

/// The name of an object as seen from a namespace: followed by ` -n NAMESPACE` if it is in another one. A
/// selector that matches nothing, and an invalid entry of a spec, have no name: their description is in
/// parentheses.
pub fn local_name<'n>(name: &'n NamespacedName, stands_for: StandsFor, seen_from: &str) -> Cow<'n, str> {
    let NamespacedName { namespace, name: own } = name;
    let flag = match &**namespace {
        namespace if namespace == seen_from || namespace.is_empty() => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    match stands_for {
        StandsFor::Object if flag.is_empty() => Cow::Borrowed(own),
        StandsFor::Object => Cow::Owned(format!("{own}{flag}")),
        StandsFor::Selector => Cow::Owned(format!("(selector {own}){flag}")),
        StandsFor::Entry => Cow::Owned(format!("({own})")),
    }
}

/// The kinds of objects that members usually own.
pub fn owned_kinds<'g>(members: impl IntoIterator<Item = &'g Member>) -> Vec<GroupKind> {
    let mut kinds = BTreeSet::new();
    for member in members.into_iter().filter(|member| member.uid.is_some()) {
        let below: &[(&str, &str)] = match (&*member.kind.group, &*member.kind.kind) {
            ("apps", "Deployment") => &[("apps", "ReplicaSet"), ("", "Pod")],
            ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job")
            | ("", "ReplicationController") => &[("", "Pod")],
            ("batch", "CronJob") => &[("batch", "Job"), ("", "Pod")],
            (group, _) if !group.contains('.') || group.ends_with(".k8s.io") => &[],
            // What operators usually create for their custom resources.
            _ => &[
                ("apps", "DaemonSet"),
                ("apps", "Deployment"),
                ("apps", "ReplicaSet"),
                ("apps", "StatefulSet"),
                ("batch", "Job"),
                ("", "PersistentVolumeClaim"),
                ("", "Pod"),
                ("", "Service"),
            ],
        };
        kinds.extend(below.iter().map(|(group, kind)| GroupKind::new(group, kind)));
    }
    kinds.into_iter().collect()
}

/// The tree of a group, and a sentence for each kind that could not be listed for it. Without `all`, nothing
/// is listed for members that are Ready.
pub fn read_tree(group: &Group, observation: &Observation, all: bool) -> Result<(Vec<Node>, Vec<String>)> {
    if group.is_policy() {
        return Ok(read_in_clusters(group, observation, all));
    }
    let expanded = group.members.iter().filter(|member| all || member.state != State::Ready);
    let listed = observation.listed(&owned_kinds(expanded), group.is_rollup())?;
    let is_reported = |why: &Unreadable| !matches!(why, Unreadable::NotServed | Unreadable::NotInInput);
    let is_noted = |kind: &GroupKind| observation.notes.below.iter().any(|(noted, _)| noted == kind);
    let unreadable = listed.unreadable.iter().filter(|(kind, why)| is_reported(why) && !is_noted(kind));
    let problems = unreadable.map(|(kind, why)| observation.cannot_list(kind, why, group.is_rollup()));
    let notes = problems.map(|problem| not_shown(&problem));
    Ok((tree(group, &listed.objects), notes.collect()))
}

/// The tree of a BindingPolicy: the objects below each member are in its cluster.
fn read_in_clusters(group: &Group, observation: &Observation, all: bool) -> (Vec<Node>, Vec<String>) {
    let clusters: BTreeSet<_> = group.members.iter().filter_map(|member| member.cluster.clone()).collect();
    let (mut roots, mut notes) = (Vec::new(), Vec::new());
    for cluster in clusters {
        let is_here = |member: &&Member| member.cluster.as_ref() == Some(&cluster);
        let members: Vec<_> = group.members.iter().filter(is_here).cloned().collect();
        let here = Group { members, ..group.clone() };
        let expanded = here.members.iter().filter(|member| all || member.state != State::Ready);
        let (objects, problems) = observation.listed_in(&cluster, &owned_kinds(expanded));
        notes.extend(problems.iter().map(|problem| not_shown(problem)));
        let mut members = tree(&here, &objects);
        for member in &mut members {
            member.set_cluster(&cluster);
        }
        roots.extend(members);
    }
    roots.sort_by(|a, b| {
        let key = |node: &Node| {
            (rank(Some(node.state)), node.kind.clone(), node.name.clone(), node.cluster.clone())
        };
        key(a).cmp(&key(b))
    });
    (roots, notes)
}

/// Deeper descendants are only counted: an attacker may write a chain of owner references of any length.
const MAX_DEPTH: usize = 16;

#[derive(Clone, Copy)]
enum TreeObject<'g> {
    Member(&'g Member),
    Listed(&'g ListedObject),
}

/// The members of a group with the objects that they own, the worst first. A member that another member owns
/// is below its owner, unless it is not ready and its owner is.
pub fn tree(group: &Group, listed: &[ListedObject]) -> Vec<Node> {
    let mut owners: HashMap<&str, &[OwnerReference]> = HashMap::new();
    let members = group.members.iter().map(TreeObject::Member);
    let of_members: HashSet<&str> = group.members.iter().filter_map(|member| member.uid.as_deref()).collect();
    let mut others = Vec::new();
    for object in listed {
        let is_new = owners.insert(&object.facts.uid, &object.facts.owners).is_none();
        if is_new && !of_members.contains(&*object.facts.uid) {
            others.push(TreeObject::Listed(object));
        }
    }
    let objects: Vec<_> = members.chain(others).collect();
    let mut by_uid = HashMap::new();
    for (index, object) in objects.iter().enumerate() {
        if let Some(uid) = object.uid() {
            by_uid.entry(uid).or_insert((index, *object));
        }
    }
    let candidates = objects.iter().map(|object| Candidate {
        parent: object
            .uid()
            .and_then(|uid| owners.get(uid))
            .and_then(|owners| parent(*object, owners, &by_uid)),
        required: matches!(object, TreeObject::Member(_)),
        bad: is_bad(object.state()),
    });
    let forest = OwnerForest::of(candidates.collect());
    nodes(&forest, &forest.roots, &objects, 1)
}

/// The owner below which an object is shown: the managing controller, else an owner that is not ready, else
/// any. An owner is cluster-scoped or in the same namespace.
fn parent(
    object: TreeObject<'_>,
    owners: &[OwnerReference],
    by_uid: &HashMap<&str, (usize, TreeObject<'_>)>,
) -> Option<usize> {
    let may_own = |owner: TreeObject<'_>| {
        let namespace = &owner.name().namespace;
        namespace.is_empty() || *namespace == object.name().namespace
    };
    let found = owners.iter().filter_map(|owner| Some((owner, by_uid.get(&*owner.uid)?)));
    let found = found.filter(|(_, (_, owner))| may_own(*owner));
    let best = found
        .min_by_key(|(reference, (_, owner))| (reference.controller != Some(true), !is_bad(owner.state())));
    best.map(|(_, (index, _))| *index)
}

fn nodes(forest: &OwnerForest, indexes: &[usize], objects: &[TreeObject<'_>], depth: usize) -> Vec<Node> {
    let node = |index: usize| {
        let (children, omitted) = if depth < MAX_DEPTH {
            let mut children = nodes(forest, forest.children(index), objects, depth + 1);
            children.sort_by(|a, b| {
                (rank(Some(a.state)), &a.kind, &a.name).cmp(&(rank(Some(b.state)), &b.kind, &b.name))
            });
            (children, 0)
        } else {
            (Vec::new(), forest.count_descendants(index))
        };
        objects.get(index).map(|object| Node { children, omitted, ..object.node() })
    };
    indexes.iter().copied().filter_map(node).collect()
}

impl<'g> TreeObject<'g> {
    fn uid(self) -> Option<&'g str> {
        match self {
            Self::Member(member) => member.uid.as_deref(),
            Self::Listed(object) => Some(&object.facts.uid),
        }
    }

    fn name(self) -> &'g NamespacedName {
        match self {
            Self::Member(member) => &member.name,
            Self::Listed(object) => &object.name,
        }
    }

    fn state(self) -> State {
        match self {
            Self::Member(member) => member.state,
            Self::Listed(object) => object.facts.verdict.state,
        }
    }

    /// Without children.
    fn node(self) -> Node {
        match self {
            Self::Member(member) => Node {
                kind: member.kind.clone(),
                name: member.name.clone(),
                cluster: member.cluster.clone(),
                stands_for: member.stands_for,
                exists: member.uid.is_some(),
                state: member.state,
                progress: member.progress,
                reason: member.reason.clone(),
                message: member.message.clone(),
                since: member.since,
                rule: member.rule.clone(),
                component_conditions: member.component_conditions,
                member: Some(MemberCause::of(member)),
                children: Vec::new(),
                omitted: 0,
            },
            Self::Listed(ListedObject { kind, name, facts }) => Node {
                kind: kind.clone(),
                name: name.clone(),
                cluster: None,
                stands_for: StandsFor::Object,
                exists: true,
                state: facts.verdict.state,
                progress: facts.verdict.progress,
                reason: facts.verdict.reason.to_string(),
                message: facts.verdict.message.to_string(),
                since: facts.verdict.since,
                rule: Some(facts.verdict.rule.clone()),
                component_conditions: None,
                member: None,
                children: Vec::new(),
                omitted: 0,
            },
        }
    }
}

/// Neither Ready nor Suspended.
pub fn is_bad(state: State) -> bool {
    !matches!(state, State::Ready | State::Suspended)
}

/// The causes below each member that is not ready, those of the worst members first.
pub fn causes(tree: &[Node]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for member in tree.iter().filter(|node| is_bad(node.state)) {
        let mut roots = Vec::new();
        find_causes(member, false, &mut roots);
        roots.sort_by_key(|node| rank(Some(node.state)));
        for node in roots {
            let blocks = (!std::ptr::eq(node, member)).then_some(member);
            let is_alike = |cause: &&mut Cause<'_>| {
                let same_member = match (cause.blocks, blocks) {
                    (Some(a), Some(b)) => std::ptr::eq(a, b),
                    _ => false,
                };
                same_member && (&cause.node.kind, &cause.node.reason) == (&node.kind, &node.reason)
            };
            match causes.iter_mut().find(is_alike) {
                Some(cause) => cause.more += 1,
                None => causes.push(Cause { node, blocks, more: 0 }),
            }
        }
    }
    causes
}

/// Adds the objects because of which a node is not ready. Returns whether there is one. `is_decided`: the engine
/// has looked below an owner, so that only what it found and members count.
fn find_causes<'n>(node: &'n Node, is_decided: bool, roots: &mut Vec<&'n Node>) -> bool {
    let pods = match &node.member {
        Some(MemberCause::Pod(Some(name))) => pods_below(node, name),
        _ => Vec::new(),
    };
    let is_decided = match node.member {
        Some(MemberCause::Pod(_)) => true,
        Some(MemberCause::Deepest) => false,
        None => is_decided,
    };
    let mut is_found = !pods.is_empty();
    for pod in pods {
        add(roots, pod);
    }
    for child in node.children.iter().filter(|child| is_bad(child.state)) {
        is_found |= find_causes(child, is_decided, roots);
    }
    let is_itself = !is_found && (node.member.is_some() || !is_decided);
    if is_itself {
        add(roots, node);
    }
    is_found || is_itself
}

fn add<'n>(roots: &mut Vec<&'n Node>, node: &'n Node) {
    if !roots.iter().any(|root| std::ptr::eq(*root, node)) {
        roots.push(node);
    }
}

/// The Pod of this name, then the Pods beside it that are not ready for the same reason.
fn pods_below<'n>(node: &'n Node, name: &str) -> Vec<&'n Node> {
    let pods = || node.children.iter().filter(|child| child.kind == GroupKind::pod());
    let Some(pod) = pods().find(|pod| *pod.name.name == *name) else {
        let found = node.children.iter().map(|child| pods_below(child, name));
        return found.into_iter().find(|pods| !pods.is_empty()).unwrap_or_default();
    };
    let is_alike = |other: &&Node| (other.state, &other.reason) == (pod.state, &pod.reason);
    let others = pods().filter(|other| !std::ptr::eq(*other, pod)).filter(is_alike);
    [pod].into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, name: &str, state: State, reason: &str, children: Vec<Node>) -> Node {
        Node {
            kind: GroupKind::new("", kind),
            name: NamespacedName::new("", name),
            cluster: None,
            stands_for: StandsFor::Object,
            exists: true,
            state,
            progress: 0,
            reason: reason.to_owned(),
            message: String::new(),
            since: None,
            rule: None,
            component_conditions: None,
            member: None,
            children,
            omitted: 0,
        }
    }

    fn member(cause: MemberCause, node: Node) -> Node {
        Node { member: Some(cause), ..node }
    }

    /// Each cause with the member that it blocks.
    fn found(tree: &[Node]) -> Vec<String> {
        let found = causes(tree);
        let line = |cause: &Cause<'_>| {
            let blocks = cause.blocks.map(|node| format!(" blocks {}", node.name)).unwrap_or_default();
            format!("{} {}{blocks} +{}", cause.node.kind, cause.node.name, cause.more)
        };
        found.iter().map(line).collect()
    }

    #[test]
    fn causes_are_the_deepest_objects_that_are_not_ready() {
        let pod = |name, state, reason| node("Pod", name, state, reason, Vec::new());
        let replicas = node(
            "ReplicaSet",
            "web-1",
            State::InProgress,
            "LessReady",
            vec![
                pod("a", State::Failed, "ImagePullBackOff"),
                pod("b", State::Failed, "ImagePullBackOff"),
                pod("c", State::InProgress, "ContainerCreating"),
                pod("d", State::Ready, "Ready"),
            ],
        );
        let tree = [
            node("Widget", "web", State::Failed, "DeadlineExceeded", vec![replicas]),
            node("Service", "web", State::Missing, "NotFound", Vec::new()),
            node("Deployment", "fine", State::Ready, "Ready", vec![pod("e", State::Failed, "Evicted")]),
        ];
        let tree = tree.map(|node| member(MemberCause::Deepest, node));
        assert_eq!(found(&tree), ["Pod a blocks web +1", "Pod c blocks web +0", "Service web +0"]);
    }

    /// The engine knows which Pods count: those of the current revision, and none that its owner has replaced.
    #[test]
    fn causes_below_a_workload_are_those_of_the_engine() {
        let pod = |name, state, reason| node("Pod", name, state, reason, Vec::new());
        let pods = || {
            vec![
                pod("old", State::Failed, "Evicted"),
                pod("new", State::InProgress, "NotReady"),
                pod("newer", State::InProgress, "NotReady"),
            ]
        };
        let job = |cause: Option<&str>| {
            let cause = MemberCause::Pod(cause.map(str::to_owned));
            member(cause, node("Job", "mig", State::InProgress, "Running", pods()))
        };
        assert_eq!(found(&[job(None)]), ["Job mig +0"]);
        assert_eq!(found(&[job(Some("new"))]), ["Pod new blocks mig +1"]);
        assert_eq!(found(&[job(Some("old"))]), ["Pod old blocks mig +0"]);
        assert_eq!(found(&[job(Some("gone"))]), ["Job mig +0"]);
        let operated = node("Backup", "all", State::InProgress, "Running", vec![job(None)]);
        assert_eq!(found(&[member(MemberCause::Deepest, operated)]), ["Job mig blocks all +0"]);
    }

    /// Members that are not ready are never hidden.
    #[test]
    fn members_below_a_workload_are_causes() {
        let pod =
            |name| member(MemberCause::Deepest, node("Pod", name, State::Failed, "Evicted", Vec::new()));
        let replica_set =
            node("ReplicaSet", "web-1", State::InProgress, "LessReady", vec![pod("a"), pod("b")]);
        let web = |cause: Option<&str>| {
            let cause = MemberCause::Pod(cause.map(str::to_owned));
            member(
                cause,
                node("Deployment", "web", State::InProgress, "LessReady", vec![replica_set.clone()]),
            )
        };
        for cause in [None, Some("a"), Some("b")] {
            assert_eq!(found(&[web(cause)]).len(), 1, "both have one reason");
            assert_eq!(causes(&[web(cause)])[0].more, 1);
        }
    }

    #[test]
    fn names_have_what_tells_objects_apart() {
        let kind = |group: &str, kind: &str| GroupKind::new(group, kind);
        let kinds = [kind("", "Service"), kind("serving.knative.dev", "Service"), kind("apps", "Deployment")];
        let [shop, blog, worker] = [("shop", "web"), ("blog", "web"), ("blog", "worker")]
            .map(|(namespace, name)| NamespacedName::new(namespace, name));
        let objects = [
            (&kinds[0], &shop),
            (&kinds[1], &shop),
            (&kinds[2], &shop),
            (&kinds[2], &blog),
            (&kinds[2], &worker),
        ];
        let names = ObjectNames::new("shop", objects.into_iter());
        let of = |kind: &GroupKind, name: &NamespacedName| names.of(kind, name, StandsFor::Object);
        assert_eq!(of(&kinds[2], &shop), "Deployment/web");
        assert_eq!(of(&kinds[2], &blog), "Deployment/web -n blog");
        assert_eq!(of(&kinds[2], &worker), "Deployment/worker");
        assert_eq!(of(&kinds[1], &shop), "Service.serving.knative.dev/web");
        let listed = |name, stands_for| names.seen_from(names.namespace, &kinds[2], name, stands_for);
        assert_eq!(listed(&worker, StandsFor::Object), "Deployment/worker -n blog");
        assert_eq!(listed(&shop, StandsFor::Selector), "Deployment (selector web)");
    }
}
