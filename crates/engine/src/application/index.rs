//! Finds the Applications that an object may belong to, by its labels and name, without testing all of them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    facts::Labels,
    id::{GroupKind, NamespacedName},
    registry::GroupId,
    selector::Selector,
    selector_index::{SelectorIndex, SelectorLabel, remove_from_set},
};

#[derive(Debug, Default)]
pub(super) struct MemberIndex(HashMap<Arc<str>, Namespace>);

#[derive(Debug, Default)]
struct Namespace {
    selecting: SelectorIndex<GroupId>,
    /// By the objects in `spec.components`.
    naming: HashMap<(GroupKind, Arc<str>), BTreeSet<GroupId>>,
}

/// What to remove from the index for an Application.
#[derive(Debug, Default)]
pub(super) struct IndexEntry {
    selector_label: SelectorLabel,
    named: Vec<(GroupKind, Arc<str>)>,
}

impl MemberIndex {
    pub(super) fn insert(
        &mut self,
        namespace: &Arc<str>,
        app: GroupId,
        selector: &Selector,
        named: Vec<(GroupKind, Arc<str>)>,
    ) -> IndexEntry {
        let own = self.0.entry(Arc::clone(namespace)).or_default();
        for object in &named {
            own.naming.entry(object.clone()).or_default().insert(app);
        }
        IndexEntry { selector_label: own.selecting.insert(selector, app), named }
    }

    pub(super) fn remove(&mut self, namespace: &Arc<str>, app: GroupId, entry: &IndexEntry) {
        let Some(own) = self.0.get_mut(namespace) else { return };
        own.selecting.remove(&entry.selector_label, app);
        for object in &entry.named {
            remove_from_set(&mut own.naming, object, &app);
        }
        if own.selecting.is_empty() && own.naming.is_empty() {
            self.0.remove(namespace);
        }
    }

    pub(super) fn candidates(&self, namespace: &str, labels: &Labels) -> BTreeSet<GroupId> {
        self.0.get(namespace).into_iter().flat_map(|own| own.selecting.candidates(labels)).collect()
    }

    pub(super) fn naming(&self, kind: &GroupKind, name: &NamespacedName) -> Vec<GroupId> {
        let named = (kind.clone(), Arc::clone(&name.name));
        let own = self.0.get(&name.namespace).and_then(|own| own.naming.get(&named));
        own.into_iter().flatten().copied().collect()
    }
}
