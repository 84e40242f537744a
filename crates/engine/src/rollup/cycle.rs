//! Cycles among Rollups. Rollups that contain one another would keep each other unhealthy for ever, so a
//! component that contains this Rollup counts as Unknown.

use std::collections::BTreeSet;

use crate::{
    feeds::Feeds,
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, GroupKind, NamespacedName},
    registry::GroupId,
};

use super::Rollups;

impl Rollups {
    /// Updates the cycles after the child Rollups of a Rollup changed.
    pub(super) fn find_cycles(&mut self, id: GroupId, feeds: &Feeds) {
        let Some(rollup) = self.all.get(id) else { return };
        let (name, child_rollups) = (rollup.name.clone(), rollup.child_rollups.iter().cloned().collect());
        let mut concerned = self.graph.transitive_dependents(&name);
        if !self.graph.set(&name, child_rollups) {
            return;
        }
        concerned.extend(self.graph.transitive_dependents(&name));
        concerned.insert(name);
        for name in concerned {
            let Some(id) = self.all.id(&GroupRef::new(OwnKind::Rollup, name.clone())) else { continue };
            let dependents = self.graph.transitive_dependents(&name);
            let Some(rollup) = self.all.get_mut(id) else { continue };
            let cycle: BTreeSet<NamespacedName> =
                rollup.child_rollups.intersection(&dependents).cloned().collect();
            let before = std::mem::replace(&mut rollup.cycle, cycle);
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
}
