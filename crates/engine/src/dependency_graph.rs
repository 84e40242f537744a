//! A directed graph of dependencies between groups, with cycle detection.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::id::NamespacedName;

/// Edges in both directions.
#[derive(Debug, Default)]
pub(crate) struct DependencyGraph {
    dependencies: HashMap<NamespacedName, Vec<NamespacedName>>,
    dependents: HashMap<NamespacedName, BTreeSet<NamespacedName>>,
}

impl DependencyGraph {
    /// Replaces the edges of a node. Returns whether they changed.
    pub(crate) fn set(&mut self, node: &NamespacedName, dependencies: Vec<NamespacedName>) -> bool {
        if self.dependencies.get(node).map(Vec::as_slice).unwrap_or_default() == dependencies {
            return false;
        }
        for before in self.dependencies.remove(node).into_iter().flatten() {
            if let Some(others) = self.dependents.get_mut(&before) {
                others.remove(node);
                if others.is_empty() {
                    self.dependents.remove(&before);
                }
            }
        }
        for name in &dependencies {
            self.dependents.entry(name.clone()).or_default().insert(node.clone());
        }
        if !dependencies.is_empty() {
            self.dependencies.insert(node.clone(), dependencies);
        }
        true
    }

    pub(crate) fn dependents_of(&self, node: &NamespacedName) -> Vec<NamespacedName> {
        self.dependents.get(node).into_iter().flatten().cloned().collect()
    }

    /// All nodes from which a path leads to `node`, without the node itself.
    pub(crate) fn transitive_dependents(&self, node: &NamespacedName) -> BTreeSet<NamespacedName> {
        let mut found = BTreeSet::new();
        let mut next = vec![node.clone()];
        while let Some(name) = next.pop() {
            for other in self.dependents_of(&name) {
                if found.insert(other.clone()) {
                    next.push(other);
                }
            }
        }
        found.remove(node);
        found
    }

    /// The shortest path from a node back to itself; the first by name if several tie.
    pub(crate) fn cycle(&self, node: &NamespacedName) -> Option<Vec<NamespacedName>> {
        let mut came_from: HashMap<&NamespacedName, &NamespacedName> = HashMap::new();
        let mut queue = VecDeque::from([node]);
        while let Some(name) = queue.pop_front() {
            let mut next: Vec<&NamespacedName> = self.dependencies.get(name).into_iter().flatten().collect();
            next.sort_unstable();
            for other in next {
                if other == node {
                    let mut path = vec![node.clone()];
                    let mut step = name;
                    while step != node {
                        path.push(step.clone());
                        step = came_from.get(step)?;
                    }
                    path.push(node.clone());
                    path.reverse();
                    return Some(path);
                }
                if !came_from.contains_key(other) {
                    came_from.insert(other, name);
                    queue.push_back(other);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn name(name: &str) -> NamespacedName {
        NamespacedName::new("shop", name)
    }

    #[rstest]
    #[case::none("a: b; b: c", None)]
    #[case::itself("a: a", Some("a a"))]
    #[case::two("a: b; b: a", Some("a b a"))]
    #[case::shortest("a: b d; b: c; c: a; d: a", Some("a d a"))]
    #[case::first_by_name("a: c b; b: a; c: a", Some("a b a"))]
    #[case::leads_into_one("a: b; b: c; c: b", None)]
    fn the_shortest_cycle(#[case] graph_text: &str, #[case] path: Option<&str>) {
        let mut graph = DependencyGraph::default();
        for edge in graph_text.split("; ") {
            let (node, dependencies) = edge.split_once(": ").expect("an edge");
            let dependencies = dependencies.split(' ').map(name).collect();
            graph.set(&name(node), dependencies);
        }
        let found = graph.cycle(&name("a"));
        let found = found.map(|path| path.iter().map(|name| &*name.name).collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref(), path);
    }

    #[test]
    fn removed_edges_leave_nothing_behind() {
        let mut graph = DependencyGraph::default();
        graph.set(&name("a"), vec![name("b")]);
        assert_eq!(graph.dependents_of(&name("b")), [name("a")]);
        graph.set(&name("a"), Vec::new());
        assert!(graph.dependents_of(&name("b")).is_empty());
        assert!(graph.dependencies.is_empty() && graph.dependents.is_empty());
    }
}
