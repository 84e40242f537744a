//! Who needs whom, and whether that leads in a circle.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::id::NamespacedName;

/// Who needs whom, in both directions.
#[derive(Debug, Default)]
pub(crate) struct DependencyGraph {
    needs: HashMap<NamespacedName, Vec<NamespacedName>>,
    needed_by: HashMap<NamespacedName, BTreeSet<NamespacedName>>,
}

impl DependencyGraph {
    /// From now on one needs these. Gives back whether that is news.
    pub(crate) fn set(&mut self, of: &NamespacedName, needs: Vec<NamespacedName>) -> bool {
        if self.needs.get(of).map(Vec::as_slice).unwrap_or_default() == needs {
            return false;
        }
        for before in self.needs.remove(of).into_iter().flatten() {
            if let Some(others) = self.needed_by.get_mut(&before) {
                others.remove(of);
                if others.is_empty() {
                    self.needed_by.remove(&before);
                }
            }
        }
        for name in &needs {
            self.needed_by.entry(name.clone()).or_default().insert(of.clone());
        }
        if !needs.is_empty() {
            self.needs.insert(of.clone(), needs);
        }
        true
    }

    /// Those that need one.
    pub(crate) fn needing(&self, of: &NamespacedName) -> Vec<NamespacedName> {
        self.needed_by.get(of).into_iter().flatten().cloned().collect()
    }

    /// All from which a way of needs leads to one, without itself.
    pub(crate) fn upstream(&self, of: &NamespacedName) -> BTreeSet<NamespacedName> {
        let mut found = BTreeSet::new();
        let mut next = vec![of.clone()];
        while let Some(name) = next.pop() {
            for other in self.needing(&name) {
                if found.insert(other.clone()) {
                    next.push(other);
                }
            }
        }
        found.remove(of);
        found
    }

    /// The shortest way from one back to itself; of several, the first by name.
    pub(crate) fn cycle(&self, of: &NamespacedName) -> Option<Vec<NamespacedName>> {
        let mut came_from: HashMap<&NamespacedName, &NamespacedName> = HashMap::new();
        let mut queue = VecDeque::from([of]);
        while let Some(name) = queue.pop_front() {
            let mut next: Vec<&NamespacedName> = self.needs.get(name).into_iter().flatten().collect();
            next.sort_unstable();
            for other in next {
                if other == of {
                    let mut way = vec![of.clone()];
                    let mut step = name;
                    while step != of {
                        way.push(step.clone());
                        step = came_from.get(step)?;
                    }
                    way.push(of.clone());
                    way.reverse();
                    return Some(way);
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
    fn the_way_back(#[case] all: &str, #[case] way: Option<&str>) {
        let mut needs = DependencyGraph::default();
        for one in all.split("; ") {
            let (above, below) = one.split_once(": ").expect("needs");
            let below = below.split(' ').map(name).collect();
            needs.set(&name(above), below);
        }
        let found = needs.cycle(&name("a"));
        let found = found.map(|way| way.iter().map(|name| &*name.name).collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref(), way);
    }

    #[test]
    fn what_is_needed_no_longer_is_forgotten() {
        let mut needs = DependencyGraph::default();
        needs.set(&name("a"), vec![name("b")]);
        assert_eq!(needs.needing(&name("b")), [name("a")]);
        needs.set(&name("a"), Vec::new());
        assert!(needs.needing(&name("b")).is_empty());
        assert!(needs.needs.is_empty() && needs.needed_by.is_empty());
    }
}
