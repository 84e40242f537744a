//! Cycles among Rollups. Rollups that contain one another would keep each other unhealthy for ever, so a
//! component that contains this Rollup counts as Unknown.

use std::{collections::BTreeSet, mem};

use crate::{
    feeds::Feeds,
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, GroupKind, NamespacedName},
};

use super::Rollups;

impl Rollups {
    /// Updates the cycles of the Rollups whose child Rollups changed.
    pub(super) fn find_due_cycles(&mut self, feeds: &Feeds) {
        for id in mem::take(&mut self.cycles_due) {
            let Some(rollup) = self.all.get(id) else { continue };
            let children: Vec<_> = rollup.child_rollups.iter().cloned().collect();
            for name in self.graph.set(&rollup.name, &children).into_iter().flatten() {
                self.update_cycle(&name, feeds);
            }
        }
    }

    fn update_cycle(&mut self, name: &NamespacedName, feeds: &Feeds) {
        let Some(id) = self.all.id(&GroupRef::new(OwnKind::Rollup, name.clone())) else { return };
        let Some(rollup) = self.all.get_mut(id) else { return };
        let children = rollup.child_rollups.iter();
        let cycle: BTreeSet<NamespacedName> =
            children.filter(|child| self.graph.is_cycle_through(name, child)).cloned().collect();
        let before = mem::replace(&mut rollup.cycle, cycle);
        let differs: Vec<_> = before.symmetric_difference(&rollup.cycle).cloned().collect();
        for component in &differs {
            let kind = GroupKind::bellwether("Rollup");
            if let Some(object) = feeds.find(&Cluster::hub(), &kind, component)
                && let Some(stored) = feeds.object(object)
                && let Some(feed) = feeds.get(stored.feed)
                && self
                    .memberships
                    .get(&object)
                    .is_some_and(|entry_ids| entry_ids.iter().any(|entry_id| entry_id.0 == id))
            {
                rollup.upsert_component(object, stored, feed);
            }
        }
        if !differs.is_empty() {
            self.all.mark_dirty(id);
        }
    }
}
