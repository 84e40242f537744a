//! Which Applications an object may concern, found by its labels and its name rather than by asking all of them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    facts::Labels,
    id::{Kind, Name},
    selector::Selector,
};

use super::AppId;

/// The way from objects to Applications.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<Arc<str>, Namespace>);

/// The Applications of a namespace.
#[derive(Debug, Default)]
struct Namespace {
    /// By one of the labels that their selectors demand.
    anchored: HashMap<(Arc<str>, Arc<str>), BTreeSet<AppId>>,
    /// Those whose selectors demand no label in one value.
    others: BTreeSet<AppId>,
    /// By the objects that they name.
    naming: HashMap<(Kind, Arc<str>), BTreeSet<AppId>>,
}

/// Where an Application stands in the index.
#[derive(Debug, Default)]
pub(super) struct Entry {
    anchor: Option<(Arc<str>, Arc<str>)>,
    named: Vec<(Kind, Arc<str>)>,
}

impl Index {
    pub(super) fn insert(
        &mut self,
        namespace: &Arc<str>,
        app: AppId,
        selector: &Selector,
        named: Vec<(Kind, Arc<str>)>,
    ) -> Entry {
        let own = self.0.entry(Arc::clone(namespace)).or_default();
        // The label that the fewest others are found by says most.
        let anchor = selector
            .anchors()
            .map(|(key, value)| (Arc::clone(key), Arc::clone(value)))
            .min_by_key(|anchor| own.anchored.get(anchor).map_or(0, BTreeSet::len));
        match &anchor {
            Some(anchor) => own.anchored.entry(anchor.clone()).or_default().insert(app),
            None => own.others.insert(app),
        };
        for object in &named {
            own.naming.entry(object.clone()).or_default().insert(app);
        }
        Entry { anchor, named }
    }

    pub(super) fn remove(&mut self, namespace: &Arc<str>, app: AppId, entry: Entry) {
        let Some(own) = self.0.get_mut(namespace) else { return };
        match entry.anchor {
            Some(anchor) => take(&mut own.anchored, &anchor, app),
            None => {
                own.others.remove(&app);
            }
        }
        for object in entry.named {
            take(&mut own.naming, &object, app);
        }
        if own.anchored.is_empty() && own.others.is_empty() && own.naming.is_empty() {
            self.0.remove(namespace);
        }
    }

    /// The Applications whose selectors may match, in their order.
    pub(super) fn candidates(&self, namespace: &str, labels: &Labels) -> BTreeSet<AppId> {
        let Some(own) = self.0.get(namespace) else { return BTreeSet::new() };
        let anchored = labels.iter().filter_map(|label| own.anchored.get(label)).flatten();
        anchored.chain(&own.others).copied().collect()
    }

    /// The Applications that name an object.
    pub(super) fn naming(&self, kind: &Kind, name: &Name) -> Vec<AppId> {
        let named = (kind.clone(), Arc::clone(&name.name));
        let own = self.0.get(&name.namespace).and_then(|own| own.naming.get(&named));
        own.into_iter().flatten().copied().collect()
    }
}

fn take<K: std::hash::Hash + Eq>(sets: &mut HashMap<K, BTreeSet<AppId>>, key: &K, app: AppId) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(&app);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
