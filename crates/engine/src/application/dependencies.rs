//! Applications that need others.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use bellwether_api::{ConditionStatus, DependencyStatus};

use crate::{id::Name, said};

use super::{Applications, app::App, status::READY};

impl Applications {
    /// What is to be said of the Applications that one needs.
    pub(super) fn needed(&self, app: &App) -> Vec<DependencyStatus> {
        let dependency = |name: &String| {
            let key = Name { namespace: Arc::clone(&app.name.namespace), name: name.as_str().into() };
            let other = self.ours(&key).and_then(|id| self.apps.get(id.0));
            let ready = other
                .and_then(|other| other.shown.or_else(|| said::status(other.publication.stored(), READY)));
            DependencyStatus {
                name: name.clone(),
                installed: other.is_some(),
                ready: ready.unwrap_or(ConditionStatus::Unknown),
            }
        };
        app.spec.dependencies.iter().map(dependency).collect()
    }

    /// What an Application needs has changed, or whether it is there: its circle may have opened or closed.
    pub(super) fn touch_circle(&mut self, name: &Name) {
        self.touch_all(&self.dependencies.needing(name));
        for name in self.dependencies.upstream(name).into_iter().chain([name.clone()]) {
            let Some(id) = self.ours(&name) else { continue };
            if let Some(app) = self.apps.get_mut(id.0) {
                let cycle = self.dependencies.cycle(&name);
                if app.cycle != cycle {
                    app.cycle = cycle;
                    self.dirty.insert(id);
                }
            }
        }
    }
}

/// Who needs whom, in both directions.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    needs: HashMap<Name, Vec<Name>>,
    needed_by: HashMap<Name, BTreeSet<Name>>,
}

impl Dependencies {
    /// From now on an Application needs these. Gives back whether that is news.
    pub(super) fn set(&mut self, app: &Name, names: &[String]) -> bool {
        let needs: Vec<_> = names
            .iter()
            .map(|name| Name { namespace: Arc::clone(&app.namespace), name: name.as_str().into() })
            .collect();
        if self.needs.get(app).map(Vec::as_slice).unwrap_or_default() == needs {
            return false;
        }
        for before in self.needs.remove(app).into_iter().flatten() {
            if let Some(others) = self.needed_by.get_mut(&before) {
                others.remove(app);
                if others.is_empty() {
                    self.needed_by.remove(&before);
                }
            }
        }
        for name in &needs {
            self.needed_by.entry(name.clone()).or_default().insert(app.clone());
        }
        if !needs.is_empty() {
            self.needs.insert(app.clone(), needs);
        }
        true
    }

    /// Those that need an Application.
    pub(super) fn needing(&self, app: &Name) -> Vec<Name> {
        self.needed_by.get(app).into_iter().flatten().cloned().collect()
    }

    /// All from which a way of needs leads to an Application, without itself.
    pub(super) fn upstream(&self, app: &Name) -> BTreeSet<Name> {
        let mut found = BTreeSet::new();
        let mut next = vec![app.clone()];
        while let Some(name) = next.pop() {
            for other in self.needing(&name) {
                if found.insert(other.clone()) {
                    next.push(other);
                }
            }
        }
        found.remove(app);
        found
    }

    /// The shortest way from an Application back to itself; of several, the first by name.
    pub(super) fn cycle(&self, app: &Name) -> Option<Vec<Name>> {
        let mut came_from: HashMap<&Name, &Name> = HashMap::new();
        let mut queue = VecDeque::from([app]);
        while let Some(name) = queue.pop_front() {
            let mut next: Vec<&Name> = self.needs.get(name).into_iter().flatten().collect();
            next.sort_unstable();
            for other in next {
                if other == app {
                    let mut way = vec![app.clone()];
                    let mut step = name;
                    while step != app {
                        way.push(step.clone());
                        step = came_from.get(step)?;
                    }
                    way.push(app.clone());
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

    fn name(name: &str) -> Name {
        Name::new("shop", name)
    }

    #[rstest]
    #[case::none("a: b; b: c", None)]
    #[case::itself("a: a", Some("a a"))]
    #[case::two("a: b; b: a", Some("a b a"))]
    #[case::shortest("a: b d; b: c; c: a; d: a", Some("a d a"))]
    #[case::first_by_name("a: c b; b: a; c: a", Some("a b a"))]
    #[case::leads_into_one("a: b; b: c; c: b", None)]
    fn the_way_back(#[case] all: &str, #[case] way: Option<&str>) {
        let mut dependencies = Dependencies::default();
        for one in all.split("; ") {
            let (app, needs) = one.split_once(": ").expect("needs");
            let needs: Vec<_> = needs.split(' ').map(str::to_owned).collect();
            dependencies.set(&name(app), &needs);
        }
        let found = dependencies.cycle(&name("a"));
        let found = found.map(|way| way.iter().map(|name| &*name.name).collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref(), way);
    }

    #[test]
    fn what_is_needed_no_longer_is_forgotten() {
        let mut dependencies = Dependencies::default();
        dependencies.set(&name("a"), &["b".to_owned()]);
        assert_eq!(dependencies.needing(&name("b")), [name("a")]);
        dependencies.set(&name("a"), &[]);
        assert!(dependencies.needing(&name("b")).is_empty());
        assert!(dependencies.needs.is_empty() && dependencies.needed_by.is_empty());
    }
}
