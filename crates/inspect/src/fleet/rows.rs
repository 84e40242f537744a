//! Rows of what was read, and collectors over them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bellwether_api::{ClusterCounts, MAX_NOT_REPORTING, NotReporting, NotReportingReason};
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_model::Value;
use bellwether_tables::{Collector, Row, Table, returned};

use super::{
    Fleet, ObjectKey, ObjectQuery, ReadCluster,
    found::{FoundObject, identity, key, missing, unread},
};

/// Which rows are in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A table for each object, as in a CombinedStatus, with a row for each cluster.
    TableForEachObject,
    /// One table for all objects.
    OneTable,
}

/// Collectors evaluated over one set of rows.
#[derive(Debug)]
pub struct Evaluated {
    /// None for all objects together.
    pub object: Option<ObjectKey>,
    pub clusters: ClusterCounts,
    /// In the order of the collectors.
    pub tables: Vec<Table>,
}

/// Evaluates collectors over what was read.
///
/// Objects that the user names and those of the hub have a row for each cluster, with the object or without.
/// In one table of all objects of a kind, a cluster has rows for the objects that it has; a cluster that could
/// not be read has one row.
pub fn tables(
    fleet: &Fleet,
    query: &ObjectQuery,
    collectors: &[Arc<Collector>],
    shape: Shape,
) -> Vec<Evaluated> {
    let known = known_objects(fleet, query);
    match shape {
        Shape::TableForEachObject => {
            let objects = known.unwrap_or_else(|| found_objects(fleet));
            let of_object = |object: ObjectKey| {
                let mut rows = Rows::new(collectors);
                fleet
                    .clusters
                    .iter()
                    .for_each(|cluster| rows.add(fleet, cluster, Some(&object), &cluster.name));
                rows.evaluated(Some(object))
            };
            objects.into_iter().map(of_object).collect()
        }
        Shape::OneTable => {
            let mut rows = Rows::new(collectors);
            for cluster in &fleet.clusters {
                match (&known, &cluster.objects) {
                    (Some(known), _) if known.len() == 1 => {
                        rows.add(fleet, cluster, known.first(), &cluster.name);
                    }
                    (Some(known), _) => {
                        for object in known {
                            rows.add(fleet, cluster, Some(object), &row_name(&cluster.name, &object.name));
                        }
                    }
                    (None, Some(objects)) => {
                        for object in objects.keys() {
                            rows.add(fleet, cluster, Some(object), &row_name(&cluster.name, &object.name));
                        }
                    }
                    (None, None) => rows.add(fleet, cluster, None, &cluster.name),
                }
            }
            vec![rows.evaluated(None)]
        }
    }
}

/// The objects that have a row for each cluster; None if those are not known.
fn known_objects(fleet: &Fleet, query: &ObjectQuery) -> Option<BTreeSet<ObjectKey>> {
    let of_hub = fleet.hub.as_ref().and_then(|hub| hub.objects.as_ref());
    if query.names.is_empty() {
        return of_hub.map(|objects| objects.keys().cloned().collect());
    }
    let found = found_objects(fleet);
    let kind = fleet.hub.iter().chain(&fleet.clusters).find_map(|cluster| cluster.kind.clone());
    let mut known = BTreeSet::new();
    for name in &query.names {
        let same: Vec<_> = found.iter().filter(|key| *key.name.name == **name).cloned().collect();
        if same.is_empty() {
            let kind = kind.clone().unwrap_or_else(|| GroupKind::new("", &query.kind));
            known.insert(key(&kind, fleet.namespace.as_deref().unwrap_or_default(), name));
        }
        known.extend(same);
    }
    Some(known)
}

fn found_objects(fleet: &Fleet) -> BTreeSet<ObjectKey> {
    let read = fleet.hub.iter().chain(&fleet.clusters);
    read.filter_map(|cluster| cluster.objects.as_ref()).flat_map(BTreeMap::keys).cloned().collect()
}

/// Where a table has several objects of a cluster, for the order of rows and in errors.
pub(super) fn row_name(cluster: &str, object: &NamespacedName) -> Arc<str> {
    format!("{cluster} {object}").into()
}

/// How a row counts. The worse ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    Reporting,
    Missing,
    Stale,
}

pub(super) struct Rows {
    tables: Vec<Table>,
    count: usize,
    /// By their worst rows.
    clusters: BTreeMap<Arc<str>, Presence>,
}

impl Rows {
    pub(super) fn new(collectors: &[Arc<Collector>]) -> Self {
        let tables = collectors.iter().map(|collector| Table::new(Arc::clone(collector))).collect();
        Self { tables, count: 0, clusters: BTreeMap::new() }
    }

    pub(super) fn evaluated(self, object: Option<ObjectKey>) -> Evaluated {
        let mut clusters = ClusterCounts::default();
        for (name, presence) in self.clusters {
            let (count, reason) = match presence {
                Presence::Reporting => (&mut clusters.reporting, None),
                Presence::Missing => (&mut clusters.missing, Some(NotReportingReason::Missing)),
                Presence::Stale => (&mut clusters.stale, Some(NotReportingReason::Stale)),
            };
            *count += 1;
            clusters.bound += 1;
            let silent = reason.map(|reason| NotReporting { name: name.to_string(), reason });
            clusters.not_reporting.extend(silent);
        }
        // The sort is stable: by name within each reason.
        clusters.not_reporting.sort_by_key(|cluster| cluster.reason);
        clusters.not_reporting.truncate(MAX_NOT_REPORTING);
        Evaluated { object, clusters, tables: self.tables }
    }

    fn add(&mut self, fleet: &Fleet, cluster: &ReadCluster, object: Option<&ObjectKey>, name: &Arc<str>) {
        let found = object.and_then(|object| cluster.objects.as_ref()?.get(object));
        let of_hub = object.and_then(|object| fleet.hub.as_ref()?.objects.as_ref()?.get(object));
        let (presence, propagation) = match (&cluster.objects, found) {
            (None, _) => (Presence::Stale, Cow::Owned(unread())),
            // It may be in what could not be read.
            (Some(_), None) if !cluster.errors.is_empty() => (Presence::Stale, Cow::Owned(unread())),
            (Some(_), None) => (Presence::Missing, Cow::Owned(missing())),
            (Some(_), Some(found)) => (Presence::Reporting, Cow::Borrowed(&found.propagation)),
        };
        let obj = match (of_hub, found, object) {
            (Some(of_hub), ..) => Cow::Borrowed(&of_hub.fields),
            (None, Some(found), _) => Cow::Owned(without_status(found)),
            (None, None, Some(object)) => Cow::Owned(identity(object)),
            (None, None, None) => Cow::Owned(Value::Null),
        };
        let returned = found.map_or(Value::Null, |found| returned(&found.fields));
        let row =
            Row { inventory: &cluster.inventory, obj: &obj, returned: &returned, propagation: &propagation };
        self.push((&cluster.name, presence), name, &row);
    }

    pub(super) fn push(
        &mut self,
        (cluster, presence): (&Arc<str>, Presence),
        name: &Arc<str>,
        row: &Row<'_>,
    ) {
        let worst = self.clusters.entry(Arc::clone(cluster)).or_insert(presence);
        *worst = presence.max(*worst);
        for table in &mut self.tables {
            table.upsert(self.count, name, row);
        }
        self.count += 1;
    }
}

fn without_status(found: &FoundObject) -> Value<'static> {
    match &found.fields {
        Value::Map(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "status");
            Value::Map(fields.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone())).collect())
        }
        other => other.clone(),
    }
}
