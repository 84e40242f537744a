//! The members of a group and all that they own, by the references to owners.

mod forest;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use anyhow::Result;
use bellwether_engine::{
    Group, GroupKind, Member, NamespacedName, Owner, ReportedConditions, StandsFor, Unreadable,
};
use bellwether_health::Rule;
use bellwether_model::State;
use bellwether_terminal::rank;
use jiff::Timestamp;

use self::forest::{Candidate, OwnerForest};
use crate::observe::{ListedObject, Observation};

/// An object with all that it owns.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: GroupKind,
    pub name: NamespacedName,
    /// What there should be.
    pub stands_for: StandsFor,
    pub state: State,
    pub progress: u8,
    pub reason: String,
    pub message: String,
    pub since: Option<Timestamp>,
    pub rule: Option<Rule>,
    /// What its operator says of it, if it is a component of a Rollup.
    pub operator: Option<ReportedConditions>,
    /// What it owns, the worst first, then by kind and name.
    pub children: Vec<Node>,
    /// How many more are below it, too deep to be told one by one.
    pub more: usize,
}

/// Something that is wrong, and what it holds up.
#[derive(Debug)]
pub struct Cause<'n> {
    pub node: &'n Node,
    /// The member that is not ready because of it, if it is not a member itself.
    pub blocks: Option<&'n Node>,
    /// How many more say the same of the same member.
    pub more: usize,
}

/// What an object is called among those of a namespace: by its name alone if it is there, too. What stands for a selector,
/// or for what nobody understands, has no name.
pub fn called<'n>(name: &'n NamespacedName, stands_for: StandsFor, home: &str) -> Cow<'n, str> {
    let NamespacedName { namespace, name: own } = name;
    match (stands_for, **namespace == *home || namespace.is_empty()) {
        (StandsFor::Object, true) => Cow::Borrowed(own),
        (StandsFor::Object, false) => Cow::Owned(name.to_string()),
        (StandsFor::Selector, true) => Cow::Owned(format!("with {own}")),
        (StandsFor::Selector, false) => Cow::Owned(format!("with {own} in {namespace}")),
        (StandsFor::Entry, _) => Cow::Owned(format!("at {own}")),
    }
}

/// The same after its kind.
pub fn in_full(kind: &GroupKind, name: &NamespacedName, stands_for: StandsFor, home: &str) -> String {
    format!("{} {}", kind.kind, called(name, stands_for, home))
}

/// The kinds of objects that the members of a group may own, as far as anybody knows.
pub fn kinds_below<'g>(members: impl IntoIterator<Item = &'g Member>) -> Vec<GroupKind> {
    let mut kinds = BTreeSet::new();
    // Below what is not there, there is nothing.
    for member in members.into_iter().filter(|member| member.uid.is_some()) {
        let below: &[(&str, &str)] = match (&*member.kind.group, &*member.kind.kind) {
            ("apps", "Deployment") => &[("apps", "ReplicaSet"), ("", "Pod")],
            ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job")
            | ("", "ReplicationController") => &[("", "Pod")],
            ("batch", "CronJob") => &[("batch", "Job"), ("", "Pod")],
            (group, _) if !group.contains('.') || group.ends_with(".k8s.io") => &[],
            // What operators make of their objects.
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

/// The members of a group with what they own, and what could not be seen of that, a sentence each. What is ready needs no
/// look below it, unless somebody wants to see all.
pub fn family_of(group: &Group, sight: &Observation, all: bool) -> Result<(Vec<Node>, Vec<String>)> {
    let looked_below = group.members.iter().filter(|member| all || member.state != State::Ready);
    let listed = sight.listed(&kinds_below(looked_below), group.is_rollup())?;
    let is_told = |why: &Unreadable| !matches!(why, Unreadable::NotServed | Unreadable::NotInInput);
    let unseen = listed.unreadable.iter().filter(|(_, why)| is_told(why));
    let unseen = unseen.map(|(kind, why)| format!("of what the members own, no {kind} can be seen: {why}"));
    Ok((family(group, &listed.objects), unseen.collect()))
}

/// So deep is told what objects own.
const DEEPEST: usize = 16;

/// A member, or something that was seen beside the members.
#[derive(Clone, Copy)]
enum TreeObject<'g> {
    Member(&'g Member),
    Listed(&'g ListedObject),
}

/// The members of a group with what they own, the worst first. A member that another one owns is below that one, unless it
/// would not be looked for there: each that is not ready is a top, or below others that are not.
pub fn family(group: &Group, beside: &[ListedObject]) -> Vec<Node> {
    let mut owners: HashMap<&str, &[Owner]> = HashMap::new();
    let members = group.members.iter().map(TreeObject::Member);
    let of_members: HashSet<&str> = group.members.iter().filter_map(|member| member.uid.as_deref()).collect();
    let mut others = Vec::new();
    for object in beside {
        let is_new = owners.insert(&object.facts.uid, &object.facts.owners).is_none();
        if is_new && !of_members.contains(&*object.facts.uid) {
            others.push(TreeObject::Listed(object));
        }
    }
    let kin: Vec<_> = members.chain(others).collect();
    let mut by_uid = HashMap::new();
    for (index, one) in kin.iter().enumerate() {
        if let Some(uid) = one.uid() {
            by_uid.entry(uid).or_insert((index, *one));
        }
    }
    let plants = kin.iter().map(|one| Candidate {
        parent: one.uid().and_then(|uid| owners.get(uid)).and_then(|owners| parent(*one, owners, &by_uid)),
        must: matches!(one, TreeObject::Member(_)),
        bad: is_bad(one.state()),
    });
    let forest = OwnerForest::of(plants.collect());
    nodes(&forest, &forest.tops, &kin, 1)
}

/// Below which of its owners an object is told: below the one that manages it, or one that is not ready, or any. An owner
/// is in the same namespace, or in none.
fn parent(
    one: TreeObject<'_>,
    owners: &[Owner],
    known: &HashMap<&str, (usize, TreeObject<'_>)>,
) -> Option<usize> {
    let may_own = |owner: TreeObject<'_>| {
        let namespace = &owner.name().namespace;
        namespace.is_empty() || *namespace == one.name().namespace
    };
    let found = owners.iter().filter_map(|owner| Some((owner, known.get(&*owner.uid)?)));
    let found = found.filter(|(_, (_, kin))| may_own(*kin));
    let best = found.min_by_key(|(owner, (_, kin))| (owner.controller != Some(true), !is_bad(kin.state())));
    best.map(|(_, (index, _))| *index)
}

/// Some of a forest with all below them, as deep as is told.
fn nodes(forest: &OwnerForest, which: &[usize], kin: &[TreeObject<'_>], depth: usize) -> Vec<Node> {
    let node = |index: usize| {
        let (children, more) = if depth < DEEPEST {
            let mut children = nodes(forest, forest.children(index), kin, depth + 1);
            children.sort_by(|a, b| {
                (rank(Some(a.state)), &a.kind, &a.name).cmp(&(rank(Some(b.state)), &b.kind, &b.name))
            });
            (children, 0)
        } else {
            (Vec::new(), forest.count_below(index))
        };
        kin.get(index).map(|one| Node { children, more, ..one.node() })
    };
    which.iter().copied().filter_map(node).collect()
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

    /// It alone, without what it owns.
    fn node(self) -> Node {
        match self {
            Self::Member(member) => Node {
                kind: member.kind.clone(),
                name: member.name.clone(),
                stands_for: member.stands_for,
                state: member.state,
                progress: member.progress,
                reason: member.reason.clone(),
                message: member.message.clone(),
                since: member.since,
                rule: member.rule.clone(),
                operator: member.operator,
                children: Vec::new(),
                more: 0,
            },
            Self::Listed(ListedObject { kind, name, facts }) => Node {
                kind: kind.clone(),
                name: name.clone(),
                stands_for: StandsFor::Object,
                state: facts.verdict.state,
                progress: facts.verdict.progress,
                reason: facts.verdict.reason.to_string(),
                message: facts.verdict.message.to_string(),
                since: facts.verdict.since,
                rule: Some(facts.verdict.rule.clone()),
                operator: None,
                children: Vec::new(),
                more: 0,
            },
        }
    }
}

/// Whether somebody has to look at it, or to wait for it.
pub fn is_bad(state: State) -> bool {
    !matches!(state, State::Ready | State::Suspended)
}

/// What is wrong with a family: below each member that is not ready, the objects that are not and own nothing that is not.
/// Those of the worst members come first.
pub fn causes(family: &[Node]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for member in family.iter().filter(|node| is_bad(node.state)) {
        let mut roots = Vec::new();
        deepest(member, &mut roots);
        roots.sort_by_key(|node| rank(Some(node.state)));
        for node in roots {
            let blocks = (!std::ptr::eq(node, member)).then_some(member);
            let says_the_same = |cause: &&mut Cause<'_>| {
                let same_member = match (cause.blocks, blocks) {
                    (Some(a), Some(b)) => std::ptr::eq(a, b),
                    _ => false,
                };
                same_member && (&cause.node.kind, &cause.node.reason) == (&node.kind, &node.reason)
            };
            match causes.iter_mut().find(says_the_same) {
                Some(cause) => cause.more += 1,
                None => causes.push(Cause { node, blocks, more: 0 }),
            }
        }
    }
    causes
}

fn deepest<'n>(node: &'n Node, roots: &mut Vec<&'n Node>) {
    let before = roots.len();
    for child in node.children.iter().filter(|child| is_bad(child.state)) {
        deepest(child, roots);
    }
    if roots.len() == before {
        roots.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, name: &str, state: State, reason: &str, children: Vec<Node>) -> Node {
        Node {
            kind: GroupKind::new("", kind),
            name: NamespacedName::new("", name),
            stands_for: StandsFor::Object,
            state,
            progress: 0,
            reason: reason.to_owned(),
            message: String::new(),
            since: None,
            rule: None,
            operator: None,
            children,
            more: 0,
        }
    }

    #[test]
    fn what_is_wrong_is_looked_for_as_deep_as_it_goes() {
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
        let family = [
            node("Deployment", "web", State::Failed, "DeadlineExceeded", vec![replicas]),
            node("Service", "web", State::Missing, "NotFound", Vec::new()),
            node("Deployment", "fine", State::Ready, "Ready", vec![pod("e", State::Failed, "Evicted")]),
        ];
        let told: Vec<_> = causes(&family)
            .iter()
            .map(|cause| {
                let blocks = cause.blocks.map(|node| format!(" blocks {}", node.name)).unwrap_or_default();
                format!("{} {}{blocks} +{}", cause.node.kind, cause.node.name, cause.more)
            })
            .collect();
        assert_eq!(told, ["Pod a blocks web +1", "Pod c blocks web +0", "Service web +0"]);
    }
}
