//! The members of a group and all that they own, by the references to owners.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bellwether_engine::{Group, Kind, Member};
use bellwether_health::Rule;
use bellwether_model::State;
use jiff::Timestamp;

use crate::{said::rank, sight::Beside};

/// An object with all that it owns.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
    pub(crate) state: State,
    pub(crate) progress: u8,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) rule: Option<Rule>,
    /// What it owns, the worst first, then by kind and name.
    pub(crate) children: Vec<Node>,
}

/// Something that is wrong, and what it holds up.
#[derive(Debug)]
pub(crate) struct Cause<'n> {
    pub(crate) node: &'n Node,
    /// The member that is not ready because of it, if it is not a member itself.
    pub(crate) blocks: Option<&'n Node>,
    /// How many more say the same of the same member.
    pub(crate) more: usize,
}

/// The kinds of objects that the members of a group may own, as far as anybody knows.
pub(crate) fn kinds_below<'g>(members: impl IntoIterator<Item = &'g Member>) -> Vec<Kind> {
    let mut kinds = BTreeSet::new();
    for member in members {
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
        kinds.extend(below.iter().map(|(group, kind)| Kind::new(group, kind)));
    }
    kinds.into_iter().collect()
}

/// The members of a group with what they own, the worst first. A member that another one owns is below that one.
pub(crate) fn family(group: &Group, beside: &[Beside]) -> Vec<Node> {
    let mut by_owner: HashMap<&str, Vec<&Beside>> = HashMap::new();
    for object in beside.iter().filter(|object| object.name.namespace == group.name.namespace) {
        for owner in &object.facts.owners {
            by_owner.entry(&owner.uid).or_default().push(object);
        }
    }
    let mut below = HashSet::new();
    let mut nodes = Vec::new();
    for member in &group.members {
        let mut seen: HashSet<&str> = member.uid.iter().map(|uid| &**uid).collect();
        let children = member.uid.as_ref().map(|uid| children(uid, &by_owner, &mut seen)).unwrap_or_default();
        below.extend(seen.into_iter().filter(|uid| member.uid.as_deref() != Some(uid)));
        nodes.push((member.uid.as_deref(), node(member, children)));
    }
    let is_top = |uid: Option<&str>| uid.is_none_or(|uid| !below.contains(uid));
    nodes.into_iter().filter(|(uid, _)| is_top(*uid)).map(|(_, node)| node).collect()
}

fn node(member: &Member, children: Vec<Node>) -> Node {
    Node {
        kind: member.kind.clone(),
        name: Arc::clone(&member.name),
        state: member.state,
        progress: member.progress,
        reason: member.reason.clone(),
        message: member.message.clone(),
        since: member.since,
        rule: member.rule.clone(),
        children,
    }
}

/// What an object owns. Owners in a circle, which nobody forbids, are told once.
fn children<'b>(
    uid: &str,
    by_owner: &HashMap<&str, Vec<&'b Beside>>,
    seen: &mut HashSet<&'b str>,
) -> Vec<Node> {
    let mut nodes = Vec::new();
    for object in by_owner.get(uid).into_iter().flatten() {
        if seen.insert(&object.facts.uid) {
            let verdict = &object.facts.verdict;
            nodes.push(Node {
                kind: object.kind.clone(),
                name: Arc::clone(&object.name.name),
                state: verdict.state,
                progress: verdict.progress,
                reason: verdict.reason.to_string(),
                message: verdict.message.to_string(),
                since: verdict.since,
                rule: Some(verdict.rule.clone()),
                children: children(&object.facts.uid, by_owner, seen),
            });
        }
    }
    nodes.sort_by(|a, b| {
        (rank(Some(a.state)), &a.kind, &a.name).cmp(&(rank(Some(b.state)), &b.kind, &b.name))
    });
    nodes
}

/// Whether somebody has to look at it, or to wait for it.
pub(crate) fn is_bad(state: State) -> bool {
    !matches!(state, State::Ready | State::Suspended)
}

/// What is wrong with a family: below each member that is not ready, the objects that are not and own nothing that is not.
/// Those of the worst members come first.
pub(crate) fn causes(family: &[Node]) -> Vec<Cause<'_>> {
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
            kind: Kind::new("", kind),
            name: name.into(),
            state,
            progress: 0,
            reason: reason.to_owned(),
            message: String::new(),
            since: None,
            rule: None,
            children,
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
