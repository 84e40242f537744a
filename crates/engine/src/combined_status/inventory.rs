//! Clusters as BindingPolicies see them: their labels, the variable `inventory`, and how fresh they are.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use bellwether_model::Value;
use jiff::{SignedDuration, Timestamp};

use crate::{
    clusters::ClusterStatus, facts::Labels, id::Cluster, planted::Bug, registry::GroupId, selector::Selector,
};

#[derive(Debug, Default)]
pub(super) struct Inventory(BTreeMap<Cluster, InventoryEntry>);

#[derive(Debug)]
pub(super) struct InventoryEntry {
    pub(super) name: Arc<str>,
    pub(super) labels: Labels,
    /// The variable `inventory` of its rows.
    pub(super) variable: Value<'static>,
    since: Timestamp,
    /// When it was heard from last, by the last [check](Inventory::check).
    pub(super) last_heard: Option<Timestamp>,
    /// The policies that select it.
    policies: BTreeMap<GroupId, Freshness>,
    /// The pending timer.
    timer: Option<Timestamp>,
}

/// Whether the cluster is stale by the threshold of one policy.
#[derive(Debug)]
struct Freshness {
    threshold: SignedDuration,
    is_stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InventoryChange {
    None,
    /// Policies may select other clusters now.
    Selection,
    /// Only the variable `inventory`.
    Variable,
}

/// What [`Inventory::check`] found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Policies by which the cluster became stale or fresh.
    pub(super) changed: Vec<GroupId>,
    /// When to check again, if no pending timer is early enough.
    pub(super) timer: Option<Timestamp>,
}

impl Inventory {
    pub(super) fn get(&self, cluster: &Cluster) -> Option<&InventoryEntry> {
        self.0.get(cluster)
    }

    /// `status` is `None` for a cluster that is gone.
    pub(super) fn update(
        &mut self,
        cluster: &Cluster,
        status: Option<&ClusterStatus>,
        now: Timestamp,
    ) -> InventoryChange {
        let Some(status) = status else {
            let was_there = self.0.remove(cluster).is_some();
            return if was_there { InventoryChange::Selection } else { InventoryChange::None };
        };
        let variable = variable(cluster, status);
        if let Some(entry) = self.0.get_mut(cluster) {
            if entry.variable == variable {
                return InventoryChange::None;
            }
            entry.variable = variable;
            let labels = labels(status);
            if labels == entry.labels || Bug::IgnoreRelabelling.is_planted() {
                return InventoryChange::Variable;
            }
            entry.labels = labels;
        } else {
            let entry = InventoryEntry {
                name: cluster.shared_name(),
                labels: labels(status),
                variable,
                since: now,
                last_heard: None,
                policies: BTreeMap::new(),
                timer: None,
            };
            self.0.insert(cluster.clone(), entry);
        }
        InventoryChange::Selection
    }

    /// The clusters that at least one selector matches.
    pub(super) fn matching<'a>(&'a self, selectors: &'a [Selector]) -> impl Iterator<Item = &'a Cluster> {
        let matches =
            |entry: &InventoryEntry| selectors.iter().any(|selector| selector.matches(&entry.labels));
        self.0.iter().filter(move |(_, entry)| matches(entry)).map(|(cluster, _)| cluster)
    }

    /// A policy selects the cluster. Returns whether that is new, or its threshold is: the caller checks the
    /// cluster then.
    pub(super) fn select(&mut self, cluster: &Cluster, policy: GroupId, threshold: SignedDuration) -> bool {
        let Some(entry) = self.0.get_mut(cluster) else { return false };
        match entry.policies.entry(policy) {
            Entry::Vacant(vacant) => {
                vacant.insert(Freshness { threshold, is_stale: false });
                true
            }
            Entry::Occupied(mut known) => {
                std::mem::replace(&mut known.get_mut().threshold, threshold) != threshold
            }
        }
    }

    pub(super) fn unselect(&mut self, cluster: &Cluster, policy: GroupId) {
        if let Some(entry) = self.0.get_mut(cluster) {
            entry.policies.remove(&policy);
        }
    }

    pub(super) fn is_stale(&self, cluster: &Cluster, policy: GroupId) -> bool {
        let freshness = self.get(cluster).and_then(|entry| entry.policies.get(&policy));
        freshness.is_some_and(|freshness| freshness.is_stale)
    }

    /// Whether any policy counts the cluster as stale.
    pub(super) fn has_stale(&self, cluster: &Cluster) -> bool {
        self.get(cluster).is_some_and(|entry| entry.policies.values().any(|freshness| freshness.is_stale))
    }

    /// A timer fired. Returns whether it was the pending one, and not one that an earlier one replaced.
    pub(super) fn timer_fired(&mut self, cluster: &Cluster, now: Timestamp) -> bool {
        let timer = self.0.get_mut(cluster).map(|entry| &mut entry.timer);
        timer.is_some_and(|timer| timer.take_if(|timer| *timer <= now).is_some())
    }

    /// Compares the age of what was heard last with the thresholds.
    pub(super) fn check(
        &mut self,
        cluster: &Cluster,
        last_heard: Option<Timestamp>,
        now: Timestamp,
    ) -> Checked {
        let mut checked = Checked::default();
        let Some(entry) = self.0.get_mut(cluster) else { return checked };
        entry.last_heard = last_heard;
        let last = last_heard.unwrap_or(entry.since);
        let mut next: Option<Timestamp> = None;
        for (policy, freshness) in &mut entry.policies {
            let stale_at = last.checked_add(freshness.threshold).unwrap_or(Timestamp::MAX);
            let is_stale = stale_at <= now;
            if std::mem::replace(&mut freshness.is_stale, is_stale) != is_stale {
                checked.changed.push(*policy);
            }
            if !is_stale {
                next = Some(next.map_or(stale_at, |next| next.min(stale_at)));
            }
        }
        if let Some(next) = next
            && entry.timer.is_none_or(|timer| next < timer)
        {
            entry.timer = Some(next);
            checked.timer = Some(next);
        }
        checked
    }

    pub(super) fn clock_set(&mut self, by: SignedDuration) {
        let times = self
            .0
            .values_mut()
            .flat_map(|entry| [Some(&mut entry.since), entry.last_heard.as_mut(), entry.timer.as_mut()]);
        for time in times.flatten() {
            *time = time.checked_add(by).unwrap_or(*time);
        }
    }
}

fn labels(status: &ClusterStatus) -> Labels {
    let labels = status.metadata.labels.iter();
    labels.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

fn variable(cluster: &Cluster, status: &ClusterStatus) -> Value<'static> {
    let text = |text: &str| Value::Text(text.to_owned().into());
    let map = |map: &BTreeMap<String, String>| {
        Value::Map(map.iter().map(|(key, value)| (key.clone().into(), text(value))).collect())
    };
    let fields = [
        ("name", text(cluster.name())),
        ("labels", map(&status.metadata.labels)),
        ("annotations", map(&status.metadata.annotations)),
        ("uid", status.uid.as_deref().map_or(Value::Null, text)),
    ];
    Value::Map(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        event::ClusterMetadata,
        group_ref::{GroupRef, OwnKind},
        id::NamespacedName,
        registry::Registry,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn status(label: &str) -> ClusterStatus {
        let labels = [("location".to_owned(), label.to_owned())].into();
        ClusterStatus {
            metadata: Arc::new(ClusterMetadata { labels, ..ClusterMetadata::default() }),
            ..ClusterStatus::default()
        }
    }

    fn policies<const N: usize>() -> [GroupId; N] {
        let mut registry = Registry::default();
        std::array::from_fn(|number| {
            let name = NamespacedName::new("", &format!("p{number}"));
            registry.insert(GroupRef::new(OwnKind::BindingPolicy, name), ())
        })
    }

    #[test]
    fn labels_decide_which_clusters_are_selected() {
        let (mut inventory, east) = (Inventory::default(), Cluster::named("east"));
        let edge =
            [Selector::new(&serde_json::from_value(json!({"matchLabels": {"location": "edge"}})).unwrap())];
        let mut update = |status: Option<&ClusterStatus>| {
            let change = inventory.update(&east, status, at(0));
            (change, inventory.matching(&edge).count())
        };
        assert_eq!(update(Some(&status("edge"))), (InventoryChange::Selection, 1));
        assert_eq!(update(Some(&status("edge"))), (InventoryChange::None, 1));
        let identified = ClusterStatus { uid: Some("u".into()), ..status("edge") };
        assert_eq!(update(Some(&identified)), (InventoryChange::Variable, 1));
        assert_eq!(update(Some(&status("core"))), (InventoryChange::Selection, 0));
        assert_eq!(update(None), (InventoryChange::Selection, 0));
        assert_eq!(update(None), (InventoryChange::None, 0));
    }

    #[test]
    fn each_policy_has_its_own_threshold() {
        let (mut inventory, east) = (Inventory::default(), Cluster::named("east"));
        let [patient, strict] = policies();
        inventory.update(&east, Some(&status("edge")), at(0));
        inventory.select(&east, patient, SignedDuration::from_secs(120));
        inventory.select(&east, strict, SignedDuration::from_secs(10));
        let mut check = |heard: i64, now: i64| {
            let Checked { changed, timer } = inventory.check(&east, Some(at(heard)), at(now));
            assert!(timer.is_none_or(|timer| timer > at(now)), "a timer in the past");
            let stale = [strict, patient].map(|policy| inventory.is_stale(&east, policy));
            inventory.timer_fired(&east, Timestamp::MAX);
            (changed.len(), timer.map(Timestamp::as_second), stale)
        };
        assert_eq!(check(100, 100), (0, Some(110), [false, false]));
        assert_eq!(check(105, 110), (0, Some(115), [false, false]), "heard from in the meantime");
        assert_eq!(check(105, 115), (1, Some(225), [true, false]));
        assert_eq!(check(105, 225), (1, None, [true, true]));
        assert_eq!(check(226, 226), (2, Some(236), [false, false]), "it is back");
    }

    #[test]
    fn a_cluster_that_never_answers_is_stale_after_the_threshold() {
        let (mut inventory, east) = (Inventory::default(), Cluster::named("east"));
        let [policy] = policies();
        inventory.update(&east, Some(&status("edge")), at(50));
        inventory.select(&east, policy, SignedDuration::from_secs(10));
        assert_eq!(inventory.check(&east, None, at(50)).timer, Some(at(60)));
        assert!(inventory.timer_fired(&east, at(60)));
        assert_eq!(inventory.check(&east, None, at(60)).changed, [policy]);
        assert!(inventory.has_stale(&east));
    }
}
