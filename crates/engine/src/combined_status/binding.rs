//! One object under one BindingPolicy: a row for each cluster, and a table for each StatusCollector.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use bellwether_api::{
    ClusterCounts, CombinedResult, CombinedStatusFields, MAX_NOT_REPORTING, NotReporting, NotReportingReason,
};
use bellwether_model::Value;
use bellwether_tables::{Collector, Table, Variable};
use slab::Slab;

use crate::{
    feeds::ObjectId,
    id::{Cluster, GroupKind, NamespacedName},
    planted::Bug,
    registry::GroupId,
    requested_fields::RequestedFields,
};

use super::{
    collector::CollectorVersion,
    row::{Presence, Report},
};

/// Of all results together. API servers accept objects of 1.5 MiB.
const MAX_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BindingId(usize);

#[derive(Debug)]
pub(super) struct Binding {
    pub(super) policy: GroupId,
    pub(super) kind: GroupKind,
    pub(super) name: NamespacedName,
    /// The policy asks for the status from its only cluster.
    pub(super) wants_singleton: bool,
    /// In the hub.
    pub(super) object: ObjectId,
    /// Its CombinedStatus.
    pub(super) output: NamespacedName,
    /// What its collectors read of the object in the hub.
    pub(super) obj: RequestedFields,
    /// What they read of the object in a cluster.
    pub(super) returned: RequestedFields,
    results: Vec<CollectedTable>,
    /// A collector reads `inventory.uid`.
    pub(super) reads_uid: bool,
    rows: BTreeMap<Cluster, NumberedRow>,
    numbers: Slab<()>,
    /// Clusters of which it is not known yet whether they have the object, and how it is there.
    pending: BTreeSet<Cluster>,
    /// Without names.
    counts: ClusterCounts,
    /// Clusters that do not report the object, in the order in which they are named.
    not_reporting: BTreeSet<(NotReportingReason, Cluster)>,
    /// All rows were known at some time since the expressions changed.
    is_complete: bool,
}

/// A row for one cluster.
#[derive(Clone, Copy, Debug)]
struct NumberedRow {
    /// In all tables.
    number: usize,
    presence: Presence,
}

/// The table of one StatusCollector that the policy names.
#[derive(Debug)]
pub(super) struct CollectedTable {
    name: Arc<str>,
    version: CollectorVersion,
    /// Set if the collector is valid.
    table: Option<Table>,
}

impl Binding {
    pub(super) fn new(
        policy: GroupId,
        (kind, name): (GroupKind, NamespacedName),
        object: ObjectId,
        output: NamespacedName,
    ) -> Self {
        Self {
            policy,
            kind,
            name,
            wants_singleton: false,
            object,
            output,
            obj: RequestedFields::default(),
            returned: RequestedFields::default(),
            results: Vec::new(),
            reads_uid: false,
            rows: BTreeMap::new(),
            numbers: Slab::new(),
            pending: BTreeSet::new(),
            counts: ClusterCounts::default(),
            not_reporting: BTreeSet::new(),
            is_complete: false,
        }
    }

    /// Replaces the collectors, keeping the tables of those that are the same. Returns whether any differs: then
    /// all rows have to be set again.
    pub(super) fn set_collectors(&mut self, collectors: &[(Arc<str>, CollectorVersion)]) -> bool {
        let is_same = |known: &CollectedTable, (name, version): &(Arc<str>, CollectorVersion)| {
            known.name == *name && known.version == *version
        };
        if self.results.len() == collectors.len()
            && self.results.iter().zip(collectors).all(|(known, collector)| is_same(known, collector))
        {
            return false;
        }
        let mut before = std::mem::take(&mut self.results);
        let results = collectors.iter().map(|collector| {
            if let Some(known) = before.iter().position(|known| is_same(known, collector)) {
                return before.swap_remove(known);
            }
            let (name, version) = collector.clone();
            let table = version.valid().map(|collector| Table::new(Arc::clone(collector)));
            CollectedTable { name, version, table }
        });
        self.results = results.collect();
        self.reads_uid = collectors.iter().filter_map(|(_, version)| version.valid()).any(|it| reads_uid(it));
        self.is_complete = false;
        true
    }

    /// Nothing is known of the object in this cluster yet. Returns whether the result changed.
    pub(super) fn set_pending(&mut self, cluster: &Cluster) -> bool {
        let has_changed = self.remove_row(cluster);
        self.pending.insert(cluster.clone());
        has_changed
    }

    pub(super) fn set_row(
        &mut self,
        cluster: (&Cluster, &Arc<str>),
        report: &Report<'_>,
        inventory: &Value<'_>,
        obj: &Value<'_>,
    ) -> bool {
        let (cluster, name) = cluster;
        let was_pending = self.pending.remove(cluster) && self.pending.is_empty();
        let presence = report.presence();
        let before = self.rows.get(cluster).copied();
        let number = before.map_or_else(|| self.numbers.insert(()), |row| row.number);
        let before = before.map(|row| row.presence);
        if before != Some(presence) {
            self.rows.insert(cluster.clone(), NumberedRow { number, presence });
            if let Some(before) = before {
                self.count(cluster, before, false);
            }
            self.count(cluster, presence, true);
        }
        let tables = self.results.iter_mut().filter_map(|result| result.table.as_mut());
        let mut has_changed = before != Some(presence) || was_pending;
        report.with_row(inventory, obj, |row| {
            for table in tables {
                has_changed |= table.upsert(number, name, row);
            }
        });
        has_changed
    }

    pub(super) fn remove_row(&mut self, cluster: &Cluster) -> bool {
        let was_pending = self.pending.remove(cluster) && self.pending.is_empty();
        let Some(NumberedRow { number, presence }) = self.rows.remove(cluster) else { return was_pending };
        self.numbers.remove(number);
        self.count(cluster, presence, false);
        let name = cluster.shared_name();
        for table in self.results.iter_mut().filter_map(|result| result.table.as_mut()) {
            table.remove(number, &name);
        }
        true
    }

    /// Counts a row, or no longer counts it.
    fn count(&mut self, cluster: &Cluster, presence: Presence, counts: bool) {
        let by = if counts { 1 } else { -1 };
        let (count, reason) = match presence {
            Presence::Reporting => (&mut self.counts.reporting, None),
            Presence::Stale => (&mut self.counts.stale, Some(NotReportingReason::Stale)),
            Presence::Missing => (&mut self.counts.missing, Some(NotReportingReason::Missing)),
        };
        *count += by;
        self.counts.bound += by;
        let Some(reason) = reason else { return };
        let named = (reason, cluster.clone());
        if counts {
            self.not_reporting.insert(named);
        } else {
            self.not_reporting.remove(&named);
        }
    }

    /// `None` while it is not known.
    pub(super) fn presence(&self, cluster: &Cluster) -> Option<Presence> {
        self.rows.get(cluster).map(|row| row.presence)
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &Cluster> {
        self.pending.iter()
    }

    /// Whether there is a reason for a CombinedStatus.
    pub(super) fn has_collectors(&self) -> bool {
        self.results.iter().any(|result| result.version != CollectorVersion::Missing)
    }

    /// Whether the results may be published. A cluster that joins later does not hold them back.
    pub(super) fn is_complete(&mut self) -> bool {
        self.is_complete |= self.pending.is_empty() || Bug::PublishBeforeAnswers.is_planted();
        self.is_complete
    }

    pub(super) fn was_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn counts(&self) -> ClusterCounts {
        let first = self.not_reporting.iter().take(MAX_NOT_REPORTING);
        let first =
            first.map(|(reason, cluster)| NotReporting { name: cluster.name().to_owned(), reason: *reason });
        ClusterCounts { not_reporting: first.collect(), ..self.counts.clone() }
    }

    pub(super) fn fields(&self) -> CombinedStatusFields {
        let tables: Vec<_> =
            self.results.iter().filter_map(|result| Some((&result.name, result.table.as_ref()?))).collect();
        let (count, mut left) = (tables.len(), MAX_BYTES);
        let results = tables.into_iter().enumerate().map(|(number, (name, table))| {
            let result = table.result_within(name, left / (count - number));
            // What one result does not need is there for the next ones.
            left = left.saturating_sub(if number + 1 < count { json_length(&result) } else { 0 });
            result
        });
        CombinedStatusFields { results: results.collect(), clusters: Some(self.counts()) }
    }
}

fn reads_uid(collector: &Collector) -> bool {
    let paths = collector.paths(Variable::Inventory);
    paths.iter().any(|path| path.first().is_none_or(|field| **field == *"uid"))
}

fn json_length(result: &CombinedResult) -> usize {
    serde_json::to_vec(result).map_or(0, |json| json.len())
}

/// All bindings, and those of each object.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    all: Slab<Binding>,
    /// Ordered within a kind, for pages.
    by_object: HashMap<GroupKind, BTreeMap<NamespacedName, BTreeMap<GroupId, BindingId>>>,
}

impl Bindings {
    pub(super) fn get(&self, id: BindingId) -> Option<&Binding> {
        self.all.get(id.0)
    }

    pub(super) fn get_mut(&mut self, id: BindingId) -> Option<&mut Binding> {
        self.all.get_mut(id.0)
    }

    pub(super) fn of_object(&self, kind: &GroupKind, name: &NamespacedName) -> Vec<(GroupId, BindingId)> {
        let of_object = self.by_object.get(kind).and_then(|of_kind| of_kind.get(name));
        of_object.into_iter().flatten().map(|(policy, id)| (*policy, *id)).collect()
    }

    /// The objects of a kind from a name on, ordered by namespace and name, with their bindings.
    pub(super) fn of_kind<'a>(
        &'a self,
        kind: &GroupKind,
        from: Bound<&NamespacedName>,
    ) -> impl Iterator<Item = (&'a NamespacedName, &'a BTreeMap<GroupId, BindingId>)> + use<'a> {
        let of_kind = self.by_object.get(kind);
        let objects = of_kind.map(|of_kind| of_kind.range::<NamespacedName, _>((from, Bound::Unbounded)));
        objects.into_iter().flatten()
    }

    /// One object of a kind, with its bindings.
    pub(super) fn of_name(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
    ) -> Option<(&NamespacedName, &BTreeMap<GroupId, BindingId>)> {
        self.by_object.get(kind)?.get_key_value(name)
    }

    pub(super) fn find(&self, policy: GroupId, kind: &GroupKind, name: &NamespacedName) -> Option<BindingId> {
        self.by_object.get(kind)?.get(name)?.get(&policy).copied()
    }

    pub(super) fn insert(&mut self, binding: Binding) -> BindingId {
        let (policy, kind, name) = (binding.policy, binding.kind.clone(), binding.name.clone());
        let id = BindingId(self.all.insert(binding));
        self.by_object.entry(kind).or_default().entry(name).or_default().insert(policy, id);
        id
    }

    pub(super) fn remove(&mut self, id: BindingId) -> Option<Binding> {
        let binding = self.all.try_remove(id.0)?;
        if let Some(of_kind) = self.by_object.get_mut(&binding.kind)
            && let Some(of_object) = of_kind.get_mut(&binding.name)
        {
            of_object.remove(&binding.policy);
            if of_object.is_empty() {
                of_kind.remove(&binding.name);
            }
        }
        Some(binding)
    }
}
