//! One BindingPolicy: its spec, what it binds, and its status.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::{BindingPolicySpec, BindingPolicyStatus, ConditionStatus};
use bellwether_conditions::{Statement, message};
use jiff::{SignedDuration, Timestamp};

use crate::{
    clusters::ClusterStatus,
    condition_types::{COLLECTORS_AVAILABLE, RESOLVED, SINGLETONS_APPLY},
    effect::Write,
    event::Unreadable,
    feeds::Feeds,
    id::{Cluster, FeedId, GroupKind},
    publication::{ConditionSet, Publication, Recorded},
    reasons::binding_policy as reasons,
    registry::Published,
    requested_fields::RequestedFields,
    selector::Selector,
    stored_condition::{ConditionShape, MESSAGE_BUDGET},
};

use super::{binding::BindingId, clause::Clause, collector::CollectorVersion};

pub(super) const CONDITIONS: ConditionSet = ConditionSet {
    own: &[SINGLETONS_APPLY, COLLECTORS_AVAILABLE, RESOLVED],
    recorded: &[
        Recorded::Condition(SINGLETONS_APPLY, Some(ConditionStatus::True)),
        Recorded::Condition(COLLECTORS_AVAILABLE, Some(ConditionStatus::True)),
        Recorded::Condition(RESOLVED, Some(ConditionStatus::True)),
    ],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

#[derive(Debug)]
pub(super) struct PolicyState {
    pub(super) publication: Publication,
    pub(super) spec: BindingPolicySpec,
    pub(super) clauses: Vec<Clause>,
    pub(super) cluster_selectors: Vec<Selector>,
    pub(super) threshold: SignedDuration,
    pub(super) clusters: BTreeSet<Cluster>,
    /// `None` before discovery in the hub has answered.
    pub(super) kinds: Option<BTreeMap<GroupKind, BoundKind>>,
    /// Resources that the spec names and the hub does not serve.
    pub(super) unserved: Vec<UnservedResource>,
    /// The feed of Namespaces, if a clause selects them by label.
    pub(super) namespaces: Option<FeedId>,
    /// A deadline for rows that are not known yet has passed.
    pub(super) is_overdue: bool,
}

/// A resource that the spec names and the hub does not serve.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnservedResource {
    name: String,
    /// Whether the API server of its group did not respond to discovery.
    is_unavailable: bool,
}

impl UnservedResource {
    pub(super) fn new(group: Option<&str>, plural: &str, feeds: &Feeds) -> Self {
        let name = match group {
            None | Some("") => plural.to_owned(),
            Some(group) => format!("{plural}.{group}"),
        };
        Self { name, is_unavailable: group.is_some_and(|group| feeds.is_group_unavailable(group)) }
    }

    fn why(&self) -> &'static str {
        if self.is_unavailable {
            "is of an API group whose API server does not respond to discovery: check its APIService"
        } else {
            "is not served by the hub: check the name and the group, and that the CRD is installed"
        }
    }
}

/// A kind with objects that the policy may bind.
#[derive(Debug)]
pub(super) struct BoundKind {
    /// Those that match the kind.
    pub(super) clauses: Box<[usize]>,
    pub(super) hub: FeedId,
    /// What expressions read of the object in the hub.
    pub(super) obj: RequestedFields,
    /// What they read of the object in a cluster.
    pub(super) returned: RequestedFields,
    /// Whether a clause asks for the state of its objects.
    pub(super) is_read: bool,
    pub(super) bindings: BTreeSet<BindingId>,
    pub(super) feeds: BTreeMap<Cluster, ClusterFeed>,
}

#[derive(Debug)]
pub(super) struct ClusterFeed {
    pub(super) id: FeedId,
    /// When its objects were last asked for.
    pub(super) since: Timestamp,
}

impl ClusterFeed {
    /// How long to wait for a list before the cluster counts as stale, so that it cannot hold back the others.
    const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

    /// `None` while the cluster waits to be connected to.
    pub(super) fn known_by(&self, cluster: Option<&ClusterStatus>) -> Option<Timestamp> {
        self.since.max(cluster?.connecting_since?).checked_add(Self::PATIENCE).ok()
    }
}

impl Published for PolicyState {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl PolicyState {
    pub(super) fn new(publication: Publication, spec: BindingPolicySpec) -> Self {
        let mut policy = Self {
            publication,
            spec: BindingPolicySpec::default(),
            clauses: Vec::new(),
            cluster_selectors: Vec::new(),
            threshold: SignedDuration::ZERO,
            clusters: BTreeSet::new(),
            kinds: None,
            unserved: Vec::new(),
            namespaces: None,
            is_overdue: false,
        };
        policy.set_spec(spec);
        policy
    }

    pub(super) fn set_spec(&mut self, spec: BindingPolicySpec) {
        self.clauses = spec.downsync.iter().map(Clause::new).collect();
        self.cluster_selectors = spec.cluster_selectors.iter().map(Selector::new).collect();
        let threshold = spec.staleness_threshold.value();
        self.threshold = SignedDuration::try_from(threshold).unwrap_or(SignedDuration::MAX);
        self.spec = spec;
    }

    pub(super) fn kind(&self, kind: &GroupKind) -> Option<&BoundKind> {
        self.kinds.as_ref()?.get(kind)
    }

    pub(super) fn kind_mut(&mut self, kind: &GroupKind) -> Option<&mut BoundKind> {
        self.kinds.as_mut()?.get_mut(kind)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = (&GroupKind, &BoundKind)> {
        self.kinds.iter().flatten()
    }

    /// The names of all collectors, in order.
    pub(super) fn collectors(&self) -> BTreeSet<&str> {
        self.clauses.iter().flat_map(|clause| &clause.collectors).map(|name| &**name).collect()
    }

    pub(super) fn names_collector(&self, name: &str) -> bool {
        self.clauses.iter().any(|clause| clause.collectors.iter().any(|own| **own == *name))
    }

    /// All objects that the policy can bind are known.
    pub(super) fn is_known(&self, feeds: &Feeds) -> bool {
        let is_known = |id: FeedId| feeds.get(id).is_some_and(|feed| feed.is_known() && !feed.is_torn());
        self.kinds.is_some()
            && self.kinds().all(|(_, kind)| is_known(kind.hub))
            && self.namespaces.is_none_or(is_known)
    }

    /// Whether an object that the policy does not bind exists no more, or was never bound. A kind that cannot be
    /// read says nothing about its objects.
    pub(super) fn is_authoritative(&self, feeds: &Feeds) -> bool {
        let can_tell = |id: FeedId| {
            let unreadable = feeds.get(id).and_then(|feed| feed.unreadable.as_ref());
            matches!(unreadable, None | Some(Unreadable::NotServed))
        };
        self.is_known(feeds)
            && self.kinds().all(|(_, kind)| can_tell(kind.hub))
            && self.namespaces.is_none_or(can_tell)
    }

    /// `None` if it names no collector.
    pub(super) fn collectors_available(
        &self,
        version: impl Fn(&str) -> CollectorVersion,
    ) -> Option<Statement> {
        let names = self.collectors();
        if names.is_empty() {
            return None;
        }
        let versions: Vec<_> = names.iter().map(|name| (*name, version(name))).collect();
        let problems: Vec<_> = versions
            .iter()
            .filter_map(|(name, version)| match version {
                CollectorVersion::Missing => Some((name, "does not exist")),
                CollectorVersion::Invalid => Some((name, "is invalid: see its status")),
                CollectorVersion::Valid(_) => None,
            })
            .collect();
        if problems.is_empty() {
            let text = match names.len() {
                1 => "The StatusCollector is valid".to_owned(),
                count => format!("All {count} StatusCollectors are valid"),
            };
            return Some(Statement::new(ConditionStatus::True, reasons::COLLECTORS_VALID, text));
        }
        let has_missing = versions.iter().any(|(_, version)| *version == CollectorVersion::Missing);
        let reason = if has_missing { reasons::COLLECTOR_MISSING } else { reasons::COLLECTOR_INVALID };
        let items = problems.iter().map(|(name, text)| (format!("StatusCollector/{name}"), *text));
        Some(Statement::new(ConditionStatus::False, reason, message(items, problems.len(), MESSAGE_BUDGET)))
    }

    /// `inapplicable`: the objects whose status the policy asks for without getting it, and why. `None` if it asks
    /// for none.
    pub(super) fn singletons_apply(&self, inapplicable: &[(String, String)]) -> Option<Statement> {
        if !self.clauses.iter().any(|clause| clause.wants_singleton) {
            return None;
        }
        if inapplicable.is_empty() {
            let text = "Every object whose status is wanted is bound to exactly one cluster";
            return Some(Statement::new(ConditionStatus::True, reasons::ALL_SINGLETONS, text));
        }
        let items = inapplicable.iter().map(|(object, why)| (object, why));
        let text = message(items, inapplicable.len(), MESSAGE_BUDGET);
        Some(Statement::new(ConditionStatus::False, reasons::NOT_ONE_CLUSTER, text))
    }

    /// Whether every kind can be read, in the hub and in the clusters.
    pub(super) fn resolved(&self, feeds: &Feeds) -> Statement {
        let unserved =
            self.unserved.iter().map(|resource| (resource.name.clone(), resource.why().to_owned()));
        let unreadable = |cluster: &Cluster, kind: &GroupKind, id: FeedId| {
            let why = feeds.get(id)?.unreadable.clone()?;
            // A cluster need not have every kind, and one that is gone is stale.
            let is_problem = match why {
                Unreadable::Forbidden { .. } | Unreadable::Failing { .. } | Unreadable::NotInInput => true,
                Unreadable::NotServed | Unreadable::NotConnected | Unreadable::InvalidInput => false,
            };
            let place = if cluster.is_hub() { String::new() } else { format!("{}: ", cluster.name()) };
            is_problem.then(|| (format!("{place}{kind}"), format!("{why}{}", why.remedy(kind))))
        };
        let hub = Cluster::hub();
        let unreadable = self.kinds().flat_map(|(kind, bound)| {
            let clusters = bound.feeds.iter().map(|(cluster, feed)| (cluster, feed.id));
            std::iter::once((&hub, bound.hub))
                .chain(clusters)
                .filter_map(|(cluster, feed)| unreadable(cluster, kind, feed))
                .collect::<Vec<_>>()
        });
        let problems: Vec<_> = unserved.chain(unreadable).collect();
        if problems.is_empty() {
            return Statement::new(
                ConditionStatus::True,
                reasons::ALL_KINDS_RESOLVED,
                "Every kind can be read",
            );
        }
        let reason = if self.unserved.is_empty() { reasons::NOT_READABLE } else { reasons::NOT_SERVED };
        let items = problems.iter().map(|(kind, text)| (kind, text));
        Statement::new(ConditionStatus::False, reason, message(items, problems.len(), MESSAGE_BUDGET))
    }

    pub(super) fn clock_set(&mut self, by: SignedDuration) {
        let kinds = self.kinds.iter_mut().flat_map(BTreeMap::values_mut);
        for feed in kinds.flat_map(|kind| kind.feeds.values_mut()) {
            feed.since = feed.since.checked_add(by).unwrap_or(feed.since);
        }
    }

    pub(super) fn status(
        &self,
        statements: Vec<(&'static str, Option<Statement>)>,
        now: Timestamp,
    ) -> Option<Write> {
        let count = |count: usize| Some(i32::try_from(count).unwrap_or(i32::MAX));
        let conditions = self.publication.conditions(statements, now);
        let status = BindingPolicyStatus {
            observed_generation: Some(self.publication.generation),
            objects: count(self.kinds().map(|(_, kind)| kind.bindings.len()).sum()),
            clusters: count(self.clusters.len()),
            conditions: conditions.into_iter().map(Into::into).collect(),
        };
        self.publication.render_write(&status)
    }
}
