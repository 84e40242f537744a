//! The rows of bound objects, uncombined: filtered, in order, and in pages. A query makes its page from the facts;
//! nothing is kept for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
    str::FromStr,
    sync::Arc,
};

use bellwether_model::{State, Value};
use bellwether_tables::Collector;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    clusters::Clusters,
    event::ClusterMetadata,
    facts::Labels,
    feeds::{Feed, Feeds, StoredObject},
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    registry::GroupId,
    requested_fields::RequestedFields,
    selector::Selector,
};

use super::{
    CombinedStatuses,
    binding::{Binding, BindingId},
    bound_object::{BoundObject, BoundState},
    inventory::InventoryEntry,
    policy::PolicyState,
    resolve::requested,
    row::Report,
    rows::keeps,
};

/// The engine does nothing else meanwhile: when it has examined this many objects and rows, the page ends, also if
/// the query filters out nearly everything. A row counts once for each policy.
const MAX_EXAMINED: usize = 10_000;

/// Which rows to return. The default of each filter is everything.
#[derive(Clone, Debug)]
pub struct BoundRowsQuery {
    pub kind: GroupKind,
    /// `None` for all namespaces. Empty for cluster-scoped objects.
    pub namespace: Option<Arc<str>>,
    /// Empty for all objects. With a namespace, only these are examined.
    pub names: BTreeSet<Arc<str>>,
    /// The labels of the object in the hub.
    pub objects: LabelSelector,
    pub filter: RowFilter,
    /// [`BoundRows::next`] of the page before.
    pub after: Option<BoundRowKey>,
    pub limit: usize,
    /// With the variables of rows, as far as their facts have every field that these collectors read.
    pub collectors: Option<Vec<Arc<Collector>>>,
}

impl BoundRowsQuery {
    pub fn new(kind: GroupKind, limit: usize) -> Self {
        Self {
            kind,
            namespace: None,
            names: BTreeSet::new(),
            objects: LabelSelector::default(),
            filter: RowFilter::default(),
            after: None,
            limit,
            collectors: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFilter {
    /// Names of clusters; empty for all.
    pub clusters: BTreeSet<String>,
    /// The labels of the cluster in the inventory.
    pub cluster_selector: LabelSelector,
    /// Empty for all.
    pub states: BTreeSet<State>,
    pub stale: Option<bool>,
    pub found: Option<bool>,
}

/// The place of a row in the order: by namespace, name and cluster. Without a cluster, the place before all rows of
/// the object. No name of Kubernetes contains a slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundRowKey {
    pub object: NamespacedName,
    pub cluster: Arc<str>,
}

impl fmt::Display for BoundRowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.object.namespace, self.object.name, self.cluster)
    }
}

/// Not the text of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRowKey;

impl FromStr for BoundRowKey {
    type Err = InvalidRowKey;

    fn from_str(text: &str) -> Result<Self, InvalidRowKey> {
        let parts: Vec<_> = text.split('/').collect();
        match *parts {
            [namespace, name, cluster] if !name.is_empty() => {
                Ok(Self { object: NamespacedName::new(namespace, name), cluster: cluster.into() })
            }
            _ => Err(InvalidRowKey),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundRows {
    /// In the order of their keys. Fewer than the limit does not mean that these are the last.
    pub rows: Vec<BoundRow>,
    /// The next page has the rows after this place. `None` after the last row.
    pub next: Option<BoundRowKey>,
    /// Whether a policy binds any of the objects from the beginning of the page on, whatever the filter.
    pub is_any_bound: bool,
}

/// An object in one of the clusters that it is bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundRow {
    pub key: BoundRowKey,
    /// Of the cluster.
    pub metadata: Arc<ClusterMetadata>,
    /// Whether the object exists there; `None` if the engine does not know.
    pub found: Option<bool>,
    /// By the strictest of the policies.
    pub stale: bool,
    pub last_heard: Option<Timestamp>,
    pub state: State,
    pub reason: Arc<str>,
    pub message: String,
    pub progress: Option<u8>,
    pub since: Option<Timestamp>,
    /// The BindingPolicies that bind the object to the cluster, by name.
    pub policies: Vec<Arc<str>>,
    pub variables: Option<Box<RowVariables>>,
}

/// As in `bellwether_tables::Row`.
#[derive(Clone, Debug, PartialEq)]
pub struct RowVariables {
    pub inventory: Value<'static>,
    /// One for all rows of an object. `None` if the facts lack a field that a collector reads.
    pub obj: Option<Arc<Value<'static>>>,
    /// `None` if the facts lack a field that a collector reads.
    pub returned: Option<Value<'static>>,
    pub propagation: Value<'static>,
}

impl CombinedStatuses {
    /// `None` before the lists of what policies can bind.
    pub(super) fn rows_of(
        &self,
        query: &BoundRowsQuery,
        (feeds, clusters): (&Feeds, &Clusters),
    ) -> Option<BoundRows> {
        let are_objects_known = |policy: &PolicyState| {
            let of_kind = policy.kind(&query.kind).map(|bound| bound.hub);
            let is_known = |feed| feeds.get(feed).is_some_and(Feed::is_known);
            policy.kinds.is_some() && of_kind.into_iter().chain(policy.namespaces).all(is_known)
        };
        let is_known = self.policies.is_synced()
            && self.is_inventory_listed
            && self.policies.iter().all(are_objects_known);
        is_known.then(|| Page::new(self, query, (feeds, clusters)).fill())
    }
}

struct Page<'a> {
    of: &'a CombinedStatuses,
    query: &'a BoundRowsQuery,
    feeds: &'a Feeds,
    clusters: &'a Clusters,
    objects: Selector,
    cluster_selector: Selector,
    /// What the collectors read of an object in the hub and in a cluster.
    requested: Option<(RequestedFields, RequestedFields)>,
    examined: usize,
    rows: BoundRows,
}

/// The bindings of an object, by policy.
type BindingIds = BTreeMap<GroupId, BindingId>;

/// A policy that binds the object to the cluster.
struct BoundBy<'a> {
    policy: GroupId,
    /// Where it reads the object, if it does.
    feed: Option<FeedId>,
    binding: &'a Binding,
}

impl<'a> Page<'a> {
    fn new(
        of: &'a CombinedStatuses,
        query: &'a BoundRowsQuery,
        (feeds, clusters): (&'a Feeds, &'a Clusters),
    ) -> Self {
        let collectors = query.collectors.as_ref();
        Self {
            of,
            query,
            feeds,
            clusters,
            objects: Selector::new(&query.objects),
            cluster_selector: Selector::new(&query.filter.cluster_selector),
            requested: collectors
                .map(|collectors| requested(collectors.iter().map(|collector| &**collector))),
            examined: 0,
            rows: BoundRows::default(),
        }
    }

    fn fill(mut self) -> BoundRows {
        for (name, bindings) in self.candidates() {
            let after = self.query.after.as_ref().filter(|after| after.object == *name);
            let place = after.map_or_else(Arc::default, |after| Arc::clone(&after.cluster));
            let place = BoundRowKey { object: name.clone(), cluster: place };
            if self.examined >= MAX_EXAMINED {
                self.rows.next = Some(place);
                break;
            }
            self.examined += 1;
            let is_named = self.query.names.is_empty() || self.query.names.contains(&name.name);
            if !(is_named && self.is_selected(bindings)) {
                continue;
            }
            self.rows.is_any_bound = true;
            self.rows.next = self.add_object(place, bindings);
            if self.rows.next.is_some() {
                break;
            }
        }
        self.rows
    }

    /// In order, from the beginning of the page on.
    fn candidates(&self) -> Box<dyn Iterator<Item = (&'a NamespacedName, &'a BindingIds)> + 'a> {
        let (bindings, query) = (&self.of.bindings, self.query);
        let after = query.after.as_ref().map(|after| &after.object);
        match &query.namespace {
            Some(namespace) if !query.names.is_empty() => {
                let names = query.names.iter().map(|name| NamespacedName::new(namespace, name));
                let names = names.filter(move |name| after.is_none_or(|after| name >= after));
                Box::new(names.filter_map(|name| bindings.of_name(&query.kind, &name)))
            }
            Some(namespace) => {
                // The first object of a namespace has a name after the empty one.
                let first = NamespacedName::new(namespace, "");
                let from = after.map_or(&first, |after| after.max(&first));
                let objects = bindings.of_kind(&query.kind, Bound::Included(from));
                Box::new(objects.take_while(move |(name, _)| name.namespace == *namespace))
            }
            None => Box::new(bindings.of_kind(&query.kind, after.map_or(Bound::Unbounded, Bound::Included))),
        }
    }

    fn is_selected(&self, bindings: &BindingIds) -> bool {
        self.query.objects == LabelSelector::default()
            || self.in_hub(bindings).is_some_and(|object| self.objects.matches(&object.facts.labels))
    }

    fn in_hub(&self, bindings: &BindingIds) -> Option<&'a StoredObject> {
        let binding = self.of.bindings.get(*bindings.values().next()?)?;
        self.feeds.object(binding.object)
    }

    /// Adds the rows of the object after this place. Returns the last place if the page ends before the last row.
    fn add_object(&mut self, mut place: BoundRowKey, bindings: &BindingIds) -> Option<BoundRowKey> {
        let of = self.of;
        let after = Cluster::named(&place.cluster);
        let mut bound_by: BTreeMap<&Cluster, Vec<BoundBy<'a>>> = BTreeMap::new();
        for (policy_id, binding) in bindings {
            let Some(policy) = of.policies.get(*policy_id) else { continue };
            let Some((kind, binding)) = policy.kind(&self.query.kind).zip(of.bindings.get(*binding)) else {
                continue;
            };
            for cluster in policy.clusters.range((Bound::Excluded(&after), Bound::Unbounded)) {
                let feed = kind.feeds.get(cluster).map(|feed| feed.id);
                bound_by.entry(cluster).or_default().push(BoundBy { policy: *policy_id, feed, binding });
            }
        }
        let obj = self.obj(bindings);
        for (cluster, policies) in bound_by {
            if self.rows.rows.len() >= self.query.limit || self.examined >= MAX_EXAMINED {
                return Some(place);
            }
            self.examined += policies.len();
            place.cluster = cluster.shared_name();
            self.rows.rows.extend(self.row(&place, cluster, &policies, obj.as_ref()));
        }
        None
    }

    fn row(
        &self,
        key: &BoundRowKey,
        cluster: &Cluster,
        policies: &[BoundBy<'_>],
        obj: Option<&Arc<Value<'static>>>,
    ) -> Option<BoundRow> {
        let filter = &self.query.filter;
        let (status, entry) = self.clusters.get(cluster).zip(self.of.inventory.get(cluster))?;
        if !(filter.clusters.is_empty() || filter.clusters.contains(cluster.name()))
            || !(filter.cluster_selector == LabelSelector::default()
                || self.cluster_selector.matches(&entry.labels))
        {
            return None;
        }
        let presence = policies.iter().filter_map(|by| by.binding.presence(cluster)).max();
        let feed = policies.iter().find_map(|by| by.feed);
        let object = (&self.query.kind, &key.object);
        let object = self.of.bound_object(object, cluster, (feed, presence), self.feeds);
        // A cluster may be silent, and not be read.
        let is_stale = policies.iter().any(|by| self.of.inventory.is_stale(cluster, by.policy));
        let report = object.report.unwrap_or(Report { facts: None, found: None, is_stale });
        let BoundState { state, progress, reason, message, since } = object.state();
        let is_wanted = filter.stale.is_none_or(|stale| stale == report.is_stale)
            && filter.found.is_none_or(|found| Some(found) == report.found)
            && (filter.states.is_empty() || filter.states.contains(&state));
        if !is_wanted {
            return None;
        }
        let mut names: Vec<_> = policies.iter().filter_map(|by| self.policy_name(by.policy)).collect();
        names.sort();
        Some(BoundRow {
            key: key.clone(),
            metadata: Arc::clone(&status.metadata),
            found: report.found,
            stale: report.is_stale,
            last_heard: status.last_heard,
            state,
            reason: reason.into(),
            message: message.into_owned(),
            progress,
            since,
            policies: names,
            variables: self.variables(entry, &object, &report, obj.cloned()).map(Box::new),
        })
    }

    fn policy_name(&self, policy: GroupId) -> Option<Arc<str>> {
        Some(Arc::clone(&self.of.policies.get(policy)?.publication.group().name.name))
    }

    /// The variable `obj`. `None` without collectors, or if the facts lack a field that they read.
    fn obj(&self, bindings: &BindingIds) -> Option<Arc<Value<'static>>> {
        let (requested, _) = self.requested.as_ref()?;
        let in_hub = self.in_hub(bindings)?;
        let obj = if keeps(in_hub, requested) {
            Some(fields_of_hub(in_hub))
        } else {
            identity(&self.query.kind, in_hub, requested)
        };
        obj.map(Arc::new)
    }

    fn variables(
        &self,
        cluster: &InventoryEntry,
        object: &BoundObject<'_>,
        report: &Report<'_>,
        obj: Option<Arc<Value<'static>>>,
    ) -> Option<RowVariables> {
        let (_, returned) = self.requested.as_ref()?;
        let is_kept = object.stored.is_none_or(|stored| object.report.is_some() && keeps(stored, returned));
        Some(RowVariables {
            inventory: cluster.variable.clone(),
            obj,
            propagation: report.propagation(),
            returned: is_kept.then(|| report.returned().into_owned()),
        })
    }
}

fn fields_of_hub(object: &StoredObject) -> Value<'static> {
    object.facts.values.as_deref().map_or(Value::Null, |values| values.fields.clone())
}

/// The variable `obj` from the facts that every object has, if that is all that collectors read.
fn identity(kind: &GroupKind, object: &StoredObject, requested: &RequestedFields) -> Option<Value<'static>> {
    let paths = [
        &["kind"][..],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "uid"],
        &["metadata", "labels"],
    ];
    if !RequestedFields::paths(paths).covers(requested) {
        return None;
    }
    let text = |text: &str| Value::Text(text.to_owned().into());
    let map = |fields: Vec<(&'static str, Value<'static>)>| {
        Value::Map(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
    };
    let mut metadata = vec![("name", text(&object.name.name)), ("uid", text(&object.facts.uid))];
    if !object.name.namespace.is_empty() {
        metadata.push(("namespace", text(&object.name.namespace)));
    }
    let labels: &Labels = &object.facts.labels;
    if labels.iter().next().is_some() {
        let labels = labels.iter().map(|(key, value)| (key.to_string().into(), text(value)));
        metadata.push(("labels", Value::Map(labels.collect())));
    }
    Some(map(vec![("kind", text(&kind.kind)), ("metadata", map(metadata))]))
}
