//! The rows of bound objects, uncombined: filtered, in order, and in pages. Nothing is kept for it: a page is made
//! from the facts when it is asked for.

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
    facts::{Facts, Labels},
    feeds::{Feed, Feeds, StoredObject},
    id::{Cluster, GroupKind, NamespacedName},
    registry::GroupId,
    requested_fields::RequestedFields,
    selector::Selector,
};

use super::{
    CombinedStatuses,
    binding::BindingId,
    inventory::labels,
    policy::{ClusterFeed, PolicyState},
    resolve::requested,
    row::Report,
    rows::{keeps, report},
};

/// A query that filters out nearly everything must not hold up the engine: after this many rows, the page ends.
const MAX_EXAMINED: usize = 10_000;

/// Which rows to return. The default of each filter is everything.
#[derive(Clone, Debug)]
pub struct BoundRowsQuery {
    pub kind: GroupKind,
    pub namespace: Option<Arc<str>>,
    /// Empty for all objects.
    pub names: BTreeSet<Arc<str>>,
    /// The labels of the object in the hub.
    pub objects: LabelSelector,
    pub filter: RowFilter,
    /// The last row of the page before.
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

/// The place of a row in the order: by namespace, name and cluster. No name of Kubernetes contains a slash.
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
            [namespace, name, cluster] if !name.is_empty() && !cluster.is_empty() => {
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
    /// Where the next page begins; `None` after the last row.
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
    /// Whether the object exists there; `None` if that is not known.
    pub found: Option<bool>,
    /// By the strictest of the policies.
    pub stale: bool,
    pub last_heard: Option<Timestamp>,
    pub state: State,
    /// Empty where no object reports it.
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
    /// `None` if the facts lack a field that a collector reads.
    pub obj: Option<Value<'static>>,
    /// `None` if the facts lack a field that a collector reads.
    pub returned: Option<Value<'static>>,
    pub propagation: Value<'static>,
}

impl CombinedStatuses {
    /// `None` while it is not known what is bound.
    pub(super) fn rows_of(
        &self,
        query: &BoundRowsQuery,
        (feeds, clusters): (&Feeds, &Clusters),
        now: Timestamp,
    ) -> Option<BoundRows> {
        let are_objects_known = |policy: &PolicyState| {
            let of_kind = policy.kind(&query.kind).map(|bound| bound.hub);
            let is_known = |feed| feeds.get(feed).is_some_and(Feed::is_known);
            policy.kinds.is_some() && of_kind.into_iter().chain(policy.namespaces).all(is_known)
        };
        let is_known = self.policies.is_synced()
            && self.is_inventory_listed
            && self.policies.iter().all(are_objects_known);
        is_known.then(|| Page::new(self, query, (feeds, clusters), now).fill())
    }
}

struct Page<'a> {
    of: &'a CombinedStatuses,
    query: &'a BoundRowsQuery,
    feeds: &'a Feeds,
    clusters: &'a Clusters,
    now: Timestamp,
    objects: Selector,
    cluster_selector: Selector,
    /// What the collectors read of an object in the hub and in a cluster.
    requested: Option<(RequestedFields, RequestedFields)>,
    examined: usize,
    /// The last row that was examined.
    last: Option<BoundRowKey>,
    rows: BoundRows,
}

/// A policy that binds the object to the cluster, and where it reads the object there, if it does.
type BoundBy<'a> = (GroupId, Option<&'a ClusterFeed>);

impl<'a> Page<'a> {
    fn new(
        of: &'a CombinedStatuses,
        query: &'a BoundRowsQuery,
        (feeds, clusters): (&'a Feeds, &'a Clusters),
        now: Timestamp,
    ) -> Self {
        let collectors = query.collectors.as_ref();
        Self {
            of,
            query,
            feeds,
            clusters,
            now,
            objects: Selector::new(&query.objects),
            cluster_selector: Selector::new(&query.filter.cluster_selector),
            requested: collectors
                .map(|collectors| requested(collectors.iter().map(|collector| &**collector))),
            examined: 0,
            last: query.after.clone(),
            rows: BoundRows::default(),
        }
    }

    fn fill(mut self) -> BoundRows {
        let (of, query) = (self.of, self.query);
        // The first object of a namespace has a name after the empty one.
        let first = query.namespace.as_ref().map(|namespace| NamespacedName::new(namespace, ""));
        let from = query.after.as_ref().map(|after| &after.object).max(first.as_ref());
        for (name, bindings) in
            of.bindings.of_kind(&query.kind, from.map_or(Bound::Unbounded, Bound::Included))
        {
            if query.namespace.as_ref().is_some_and(|namespace| *namespace != name.namespace) {
                break;
            }
            let is_named = query.names.is_empty() || query.names.contains(&name.name);
            if !(is_named && self.is_selected(bindings)) {
                continue;
            }
            self.rows.is_any_bound = true;
            if !self.add_object(name, bindings) {
                break;
            }
        }
        self.rows
    }

    fn is_selected(&self, bindings: &BTreeMap<GroupId, BindingId>) -> bool {
        self.query.objects == LabelSelector::default()
            || self.in_hub(bindings).is_some_and(|object| self.objects.matches(&object.facts.labels))
    }

    fn in_hub(&self, bindings: &BTreeMap<GroupId, BindingId>) -> Option<&'a StoredObject> {
        let binding = self.of.bindings.get(*bindings.values().next()?)?;
        self.feeds.object(binding.object)
    }

    /// Returns whether the page has room for more.
    fn add_object(&mut self, name: &NamespacedName, bindings: &BTreeMap<GroupId, BindingId>) -> bool {
        let after = self.query.after.as_ref().filter(|after| after.object == *name);
        let after = after.map(|after| Cluster::named(&after.cluster));
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut bound_by: BTreeMap<&Cluster, Vec<BoundBy<'a>>> = BTreeMap::new();
        for policy_id in bindings.keys() {
            let Some(policy) = self.of.policies.get(*policy_id) else { continue };
            let Some(kind) = policy.kind(&self.query.kind) else { continue };
            for cluster in policy.clusters.range::<Cluster, _>((from, Bound::Unbounded)) {
                bound_by.entry(cluster).or_default().push((*policy_id, kind.feeds.get(cluster)));
            }
        }
        for (cluster, policies) in bound_by {
            if self.rows.rows.len() >= self.query.limit || self.examined == MAX_EXAMINED {
                self.rows.next = self.last.take();
                return false;
            }
            self.examined += 1;
            let key = BoundRowKey { object: name.clone(), cluster: cluster.shared_name() };
            self.rows.rows.extend(self.row(key.clone(), cluster, &policies, bindings));
            self.last = Some(key);
        }
        true
    }

    fn row(
        &self,
        key: BoundRowKey,
        cluster: &Cluster,
        policies: &[BoundBy<'a>],
        bindings: &BTreeMap<GroupId, BindingId>,
    ) -> Option<BoundRow> {
        let filter = &self.query.filter;
        let status = self.clusters.get(cluster)?;
        if !(filter.clusters.is_empty() || filter.clusters.contains(cluster.name()))
            || !(filter.cluster_selector == LabelSelector::default()
                || self.cluster_selector.matches(&labels(status)))
        {
            return None;
        }
        let is_stale = policies.iter().any(|(policy, _)| self.of.inventory.is_stale(cluster, *policy));
        let read_by = policies.iter().find_map(|(_, feed)| *feed);
        let feed = read_by.and_then(|read_by| self.feeds.get(read_by.id));
        let object =
            read_by.and_then(|read_by| self.feeds.object(self.feeds.find_in(read_by.id, &key.object)?));
        let is_overdue = is_stale
            || read_by
                .and_then(|read_by| read_by.known_by(Some(status)))
                .is_some_and(|known_by| known_by <= self.now);
        let report = feed
            .and_then(|feed| report(feed, object, &RequestedFields::default(), is_stale, is_overdue))
            .unwrap_or(Report { facts: None, found: None, is_stale });
        let (state, progress) = report.health();
        let is_wanted = filter.stale.is_none_or(|stale| stale == report.is_stale)
            && filter.found.is_none_or(|found| Some(found) == report.found)
            && (filter.states.is_empty() || filter.states.contains(&state));
        if !is_wanted {
            return None;
        }
        let verdict = report.facts.map(|facts| &facts.verdict);
        let current = verdict.filter(|_| !report.is_stale);
        let mut names: Vec<_> = policies.iter().filter_map(|(policy, _)| self.policy_name(*policy)).collect();
        names.sort();
        Some(BoundRow {
            key,
            metadata: Arc::clone(&status.metadata),
            found: report.found,
            stale: report.is_stale,
            last_heard: status.last_heard,
            state,
            reason: current.map(|verdict| (*verdict.reason).into()).unwrap_or_default(),
            message: current.map_or_else(
                || message(feed, &report, &self.query.kind),
                |verdict| verdict.message.to_string(),
            ),
            progress,
            since: current.and_then(|verdict| verdict.since),
            policies: names,
            variables: self.variables(cluster, &report, object, bindings).map(Box::new),
        })
    }

    fn policy_name(&self, policy: GroupId) -> Option<Arc<str>> {
        Some(Arc::clone(&self.of.policies.get(policy)?.publication.group().name.name))
    }

    fn variables(
        &self,
        cluster: &Cluster,
        report: &Report<'_>,
        object: Option<&StoredObject>,
        bindings: &BTreeMap<GroupId, BindingId>,
    ) -> Option<RowVariables> {
        let (obj, returned) = self.requested.as_ref()?;
        let in_hub = self.in_hub(bindings)?;
        let is_kept = report.facts.is_none() || object.is_none_or(|object| keeps(object, returned));
        let fields = report.facts.filter(|_| is_kept).map_or(Value::Null, fields);
        Some(RowVariables {
            inventory: self.of.inventory.get(cluster)?.variable.clone(),
            obj: if keeps(in_hub, obj) {
                Some(fields_of_hub(in_hub))
            } else {
                identity(&self.query.kind, in_hub, obj)
            },
            propagation: report.propagation(&fields),
            returned: is_kept.then_some(fields),
        })
    }
}

fn fields(facts: &Facts) -> Value<'static> {
    facts.values.as_deref().map_or(Value::Null, |values| values.fields.clone())
}

fn fields_of_hub(object: &StoredObject) -> Value<'static> {
    fields(&object.facts)
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

/// Why the state is what it is, where no current object says so.
fn message(feed: Option<&Feed>, report: &Report<'_>, kind: &GroupKind) -> String {
    let Some(feed) = feed else {
        return "not read: no clause of a BindingPolicy asks for the state of the object".to_owned();
    };
    let last = report
        .facts
        .map(|facts| format!("last reported {}: {}", facts.verdict.state.name(), facts.verdict.message));
    match (&feed.unreadable, last) {
        (Some(why), None) if report.found.is_none() => format!("cannot be read: {why}{}", why.remedy(kind)),
        (_, Some(last)) => last,
        (_, None) if report.found == Some(false) && report.is_stale => {
            "last reported as not found".to_owned()
        }
        (_, None) if report.found == Some(false) => "not found in the cluster".to_owned(),
        _ => "not listed yet".to_owned(),
    }
}
