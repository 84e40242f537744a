//! A directed graph of dependencies between groups, and the cycles in it.
//!
//! A change costs what it concerns: the cycles through the changed group, and otherwise the shorter of the
//! ways to the groups that it depends on and to those that depend on it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque, hash_map::Entry};

use slab::Slab;

use crate::id::NamespacedName;

type NodeId = usize;

#[derive(Debug, Default)]
pub(crate) struct DependencyGraph {
    ids: HashMap<NamespacedName, NodeId>,
    /// Only nodes with edges.
    nodes: Slab<Node>,
    /// The number of nodes in each component with cycles.
    sizes: HashMap<u64, usize>,
    last_component: u64,
}

/// Nodes to visit in search of the shortest cycle of one node.
const MAX_SEARCHED: usize = 256;
/// Of a cycle that is longer.
const MAX_BEGINNING: usize = 8;

/// A path from a node back to itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    /// Begins and ends with the node.
    Whole(Vec<NamespacedName>),
    /// The first nodes, and how many lead to one another.
    Beginning(Vec<NamespacedName>, usize),
}

/// Edges in both directions.
#[derive(Debug)]
struct Node {
    name: NamespacedName,
    dependencies: Vec<NodeId>,
    dependents: BTreeSet<NodeId>,
    /// Set if the node is in a cycle: the number of its strongly connected component.
    component: Option<u64>,
}

#[derive(Clone, Copy)]
enum Direction {
    Dependencies,
    Dependents,
}

impl DependencyGraph {
    /// Replaces the edges of a node. Returns the nodes whose cycles may have changed; `None` if the edges are
    /// the same.
    pub(crate) fn set(
        &mut self,
        name: &NamespacedName,
        dependencies: &[NamespacedName],
    ) -> Option<Vec<NamespacedName>> {
        let before = self.node(name).map(|node| node.dependencies.as_slice()).unwrap_or_default();
        if before.iter().filter_map(|id| self.nodes.get(*id)).map(|node| &node.name).eq(dependencies) {
            return None;
        }
        let id = self.insert(name);
        let former = self.component_of(id);
        let dependencies: Vec<_> = dependencies.iter().map(|name| self.insert(name)).collect();
        for dependency in &dependencies {
            if let Some(node) = self.nodes.get_mut(*dependency) {
                node.dependents.insert(id);
            }
        }
        let gone = match self.nodes.get_mut(id) {
            Some(node) => std::mem::replace(&mut node.dependencies, dependencies.clone()),
            None => Vec::new(),
        };
        for dependency in gone.iter().filter(|dependency| !dependencies.contains(dependency)) {
            if let Some(node) = self.nodes.get_mut(*dependency) {
                node.dependents.remove(&id);
            }
        }
        if let Some(component) = self.nodes.get(id).and_then(|node| node.component) {
            self.sizes.remove(&component);
        }
        let cycles = self.cycles_through(id);
        let rest: HashSet<_> = former.iter().copied().filter(|node| !cycles.contains(node)).collect();
        for node in &rest {
            self.set_component(*node, None);
        }
        for component in self.components_in(&rest) {
            self.connect(component);
        }
        let concerned: BTreeSet<_> = former.into_iter().chain(cycles.iter().copied()).chain([id]).collect();
        self.connect(cycles);
        let names = concerned.iter().filter_map(|id| Some(self.nodes.get(*id)?.name.clone())).collect();
        for id in gone.into_iter().chain([id]) {
            self.remove_if_unused(id);
        }
        Some(names)
    }

    pub(crate) fn dependents_of(&self, name: &NamespacedName) -> Vec<NamespacedName> {
        let dependents = self.node(name).into_iter().flat_map(|node| &node.dependents);
        dependents.filter_map(|id| Some(self.nodes.get(*id)?.name.clone())).collect()
    }

    pub(crate) fn is_in_cycle(&self, name: &NamespacedName) -> bool {
        self.node(name).is_some_and(|node| node.component.is_some())
    }

    /// Whether each of two nodes leads to the other.
    pub(crate) fn is_cycle_through(&self, name: &NamespacedName, other: &NamespacedName) -> bool {
        let component = |name| self.node(name)?.component;
        component(name).is_some_and(|component_of| component(other) == Some(component_of))
    }

    /// A path from a node back to itself; `None` if it is in no cycle. Its cost is bounded.
    pub(crate) fn cycle(&self, name: &NamespacedName) -> Option<Cycle> {
        let start = *self.ids.get(name)?;
        let component = self.nodes.get(start)?.component?;
        if let Some(path) = self.shortest_cycle(start, component) {
            return Some(Cycle::Whole(self.names(path)));
        }
        let mut path = vec![start];
        while path.len() < MAX_BEGINNING
            && let Some(next) = path.last().and_then(|last| self.inside(*last, component).into_iter().next())
        {
            path.push(next);
        }
        let size = self.sizes.get(&component).copied().unwrap_or_default();
        Some(Cycle::Beginning(self.names(path), size))
    }

    /// The first by name if several tie; `None` if the search is too long.
    fn shortest_cycle(&self, start: NodeId, component: u64) -> Option<Vec<NodeId>> {
        let mut came_from: HashMap<NodeId, NodeId> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front().filter(|_| came_from.len() < MAX_SEARCHED) {
            for other in self.inside(id, component) {
                if other == start {
                    let mut path = vec![start];
                    let mut step = id;
                    while step != start {
                        path.push(step);
                        step = *came_from.get(&step)?;
                    }
                    path.push(start);
                    path.reverse();
                    return Some(path);
                }
                if let Entry::Vacant(entry) = came_from.entry(other) {
                    entry.insert(id);
                    queue.push_back(other);
                }
            }
        }
        None
    }

    /// The dependencies of a node in a component, by name.
    fn inside(&self, id: NodeId, component: u64) -> Vec<NodeId> {
        let is_inside = |id: &NodeId| self.nodes.get(*id).is_some_and(|it| it.component == Some(component));
        let mut inside: Vec<_> = self.next(id, Direction::Dependencies).filter(is_inside).collect();
        inside.sort_by_key(|id| self.nodes.get(*id).map(|node| &node.name));
        inside
    }

    fn names(&self, path: Vec<NodeId>) -> Vec<NamespacedName> {
        path.into_iter().filter_map(|id| Some(self.nodes.get(id)?.name.clone())).collect()
    }

    fn node(&self, name: &NamespacedName) -> Option<&Node> {
        self.nodes.get(*self.ids.get(name)?)
    }

    fn insert(&mut self, name: &NamespacedName) -> NodeId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let (dependencies, dependents) = (Vec::new(), BTreeSet::new());
        let id = self.nodes.insert(Node { name: name.clone(), dependencies, dependents, component: None });
        self.ids.insert(name.clone(), id);
        id
    }

    fn remove_if_unused(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get(id)
            && node.dependencies.is_empty()
            && node.dependents.is_empty()
        {
            self.ids.remove(&node.name);
            self.nodes.try_remove(id);
        }
    }

    fn next(&self, id: NodeId, direction: Direction) -> impl Iterator<Item = NodeId> {
        let node = self.nodes.get(id);
        let (dependencies, dependents) = match direction {
            Direction::Dependencies => (node.map(|node| &node.dependencies), None),
            Direction::Dependents => (None, node.map(|node| &node.dependents)),
        };
        dependencies.into_iter().flatten().chain(dependents.into_iter().flatten()).copied()
    }

    fn set_component(&mut self, id: NodeId, component: Option<u64>) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.component = component;
        }
    }

    fn connect(&mut self, component: impl IntoIterator<Item = NodeId>) {
        self.last_component += 1;
        let mut size = 0;
        for id in component {
            // Two components may have become one.
            if let Some(before) = self.nodes.get(id).and_then(|node| node.component) {
                self.sizes.remove(&before);
            }
            self.set_component(id, Some(self.last_component));
            size += 1;
        }
        if size > 0 {
            self.sizes.insert(self.last_component, size);
        }
    }

    /// The nodes of the component of a node; empty if it is in no cycle.
    fn component_of(&self, id: NodeId) -> Vec<NodeId> {
        let component = self.nodes.get(id).and_then(|node| node.component);
        if component.is_none() {
            return Vec::new();
        }
        let is_inside = |id: NodeId| self.nodes.get(id).is_some_and(|node| node.component == component);
        self.reachable(id, Direction::Dependencies, is_inside).into_iter().collect()
    }

    /// Those reached by at least one edge.
    fn reachable(
        &self,
        start: NodeId,
        direction: Direction,
        is_allowed: impl Fn(NodeId) -> bool,
    ) -> HashSet<NodeId> {
        let (mut found, mut queue) = (HashSet::new(), vec![start]);
        while let Some(id) = queue.pop() {
            queue.extend(self.next(id, direction).filter(|next| is_allowed(*next) && found.insert(*next)));
        }
        found
    }

    /// The nodes that a node leads to and that lead back to it; empty if it is in no cycle. Searches in both
    /// directions at once, until one search ends.
    fn cycles_through(&self, start: NodeId) -> HashSet<NodeId> {
        let mut searches =
            [Direction::Dependencies, Direction::Dependents].map(|it| (it, HashSet::new(), vec![start]));
        loop {
            for (direction, found, queue) in &mut searches {
                let Some(id) = queue.pop() else {
                    if !found.contains(&start) {
                        return HashSet::new();
                    }
                    let back = match direction {
                        Direction::Dependencies => Direction::Dependents,
                        Direction::Dependents => Direction::Dependencies,
                    };
                    return self.reachable(start, back, |id| found.contains(&id));
                };
                queue.extend(self.next(id, *direction).filter(|next| found.insert(*next)));
            }
        }
    }

    /// The strongly connected components with cycles among some nodes, by Tarjan's algorithm.
    fn components_in(&self, nodes: &HashSet<NodeId>) -> Vec<Vec<NodeId>> {
        let mut search = Tarjan::default();
        for start in nodes {
            if search.indices.contains_key(start) {
                continue;
            }
            search.enter(*start, self.inner_dependencies(*start, nodes));
            while let Some((id, rest)) = search.path.last_mut() {
                let id = *id;
                match rest.pop() {
                    Some(next) if !search.indices.contains_key(&next) => {
                        search.enter(next, self.inner_dependencies(next, nodes));
                    }
                    Some(next) => search.meet(id, next),
                    None => search.leave(id),
                }
            }
        }
        let has_cycle = |component: &Vec<NodeId>| {
            component.len() > 1
                || component.iter().any(|id| self.next(*id, Direction::Dependencies).any(|it| it == *id))
        };
        search.components.retain(has_cycle);
        search.components
    }

    fn inner_dependencies(&self, id: NodeId, nodes: &HashSet<NodeId>) -> Vec<NodeId> {
        self.next(id, Direction::Dependencies).filter(|id| nodes.contains(id)).collect()
    }
}

/// Without recursion: a chain may be long.
#[derive(Default)]
struct Tarjan {
    indices: HashMap<NodeId, usize>,
    /// The lowest index that each node leads back to.
    lowest: HashMap<NodeId, usize>,
    stack: Vec<NodeId>,
    on_stack: HashSet<NodeId>,
    /// The nodes from the start to the current one, each with the dependencies that are still to be visited.
    path: Vec<(NodeId, Vec<NodeId>)>,
    components: Vec<Vec<NodeId>>,
}

impl Tarjan {
    fn enter(&mut self, id: NodeId, dependencies: Vec<NodeId>) {
        let index = self.indices.len();
        self.indices.insert(id, index);
        self.lowest.insert(id, index);
        self.stack.push(id);
        self.on_stack.insert(id);
        self.path.push((id, dependencies));
    }

    fn meet(&mut self, id: NodeId, next: NodeId) {
        if let Some(index) = self.indices.get(&next).copied().filter(|_| self.on_stack.contains(&next)) {
            self.lower(id, index);
        }
    }

    fn lower(&mut self, id: NodeId, index: usize) {
        self.lowest.entry(id).and_modify(|lowest| *lowest = index.min(*lowest));
    }

    fn leave(&mut self, id: NodeId) {
        self.path.pop();
        let lowest = self.lowest.get(&id).copied().unwrap_or_default();
        if let Some((parent, _)) = self.path.last() {
            self.lower(*parent, lowest);
        }
        if self.indices.get(&id) == Some(&lowest) {
            let first = self.stack.iter().rposition(|other| *other == id).unwrap_or_default();
            let component = self.stack.split_off(first);
            for id in &component {
                self.on_stack.remove(id);
            }
            self.components.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn name(name: &str) -> NamespacedName {
        NamespacedName::new("shop", name)
    }

    fn set(graph: &mut DependencyGraph, node: &str, dependencies: &[&str]) -> Option<Vec<NamespacedName>> {
        let dependencies: Vec<_> = dependencies.iter().map(|it| name(it)).collect();
        graph.set(&name(node), &dependencies)
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
            set(&mut graph, node, &dependencies.split(' ').collect::<Vec<_>>());
        }
        let found = graph.cycle(&name("a")).map(|cycle| match cycle {
            Cycle::Whole(path) => path.iter().map(|name| &*name.name).collect::<Vec<_>>().join(" "),
            Cycle::Beginning(..) => panic!("{cycle:?}"),
        });
        assert_eq!(found.as_deref(), path);
    }

    #[test]
    fn removed_edges_leave_nothing_behind() {
        let mut graph = DependencyGraph::default();
        set(&mut graph, "a", &["b"]);
        assert_eq!(graph.dependents_of(&name("b")), [name("a")]);
        set(&mut graph, "a", &[]);
        assert!(graph.dependents_of(&name("b")).is_empty());
        assert!(graph.ids.is_empty() && graph.nodes.is_empty());
    }

    /// In a chain, one node is concerned by a change; in a circle, all are.
    #[test]
    fn a_change_concerns_the_nodes_in_its_cycles() {
        let mut graph = DependencyGraph::default();
        for number in 0..5_000 {
            let concerned = set(&mut graph, &number.to_string(), &[&(number + 1).to_string()]);
            assert_eq!(concerned, Some(vec![name(&number.to_string())]));
        }
        assert_eq!(set(&mut graph, "0", &["1"]), None);
        assert_eq!(set(&mut graph, "5000", &["1"]).map(|concerned| concerned.len()), Some(5_000));
        assert!(graph.is_cycle_through(&name("1"), &name("5000")) && !graph.is_in_cycle(&name("0")));
        let beginning = ["1", "2", "3", "4", "5", "6", "7", "8"].map(name);
        assert_eq!(graph.cycle(&name("1")), Some(Cycle::Beginning(beginning.into(), 5_000)));
        assert_eq!(set(&mut graph, "2500", &[]).map(|concerned| concerned.len()), Some(5_000));
        assert!(graph.nodes.iter().all(|(_, node)| node.component.is_none()) && graph.sizes.is_empty());
    }

    proptest! {
        /// After every change, the cycles are those of a search from every node.
        #[test]
        fn changes_keep_the_cycles_right(
            changes in prop::collection::vec((0..8usize, prop::collection::btree_set(0..8usize, 0..4)), 1..40)
        ) {
            let mut graph = DependencyGraph::default();
            let mut edges: HashMap<usize, BTreeSet<usize>> = HashMap::new();
            for (node, dependencies) in changes {
                let names: Vec<_> = dependencies.iter().map(ToString::to_string).collect();
                set(&mut graph, &node.to_string(), &names.iter().map(String::as_str).collect::<Vec<_>>());
                edges.insert(node, dependencies);
                let reached = |start: usize| {
                    let (mut found, mut queue) = (BTreeSet::new(), vec![start]);
                    while let Some(node) = queue.pop() {
                        queue.extend(edges.get(&node).into_iter().flatten().filter(|next| found.insert(**next)));
                    }
                    found
                };
                for (one, other) in (0..8).flat_map(|one| (0..8).map(move |other| (one, other))) {
                    let expected = reached(one).contains(&other) && reached(other).contains(&one);
                    let (one, other) = (name(&one.to_string()), name(&other.to_string()));
                    prop_assert_eq!(graph.is_cycle_through(&one, &other), expected);
                    prop_assert_eq!(graph.cycle(&one).is_some(), graph.is_in_cycle(&one));
                }
                let in_cycles = graph.nodes.iter().filter(|(_, node)| node.component.is_some()).count();
                prop_assert_eq!(graph.sizes.values().sum::<usize>(), in_cycles);
            }
        }
    }
}
