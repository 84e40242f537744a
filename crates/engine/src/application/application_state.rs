//! The state of one Application: its spec, its members, and the kinds it uses.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_api::{ApplicationSpec, Membership, Ownership};
use bellwether_model::{ConditionStatus, State};
use jiff::Timestamp;

use crate::{
    dialect::Dialect,
    facts::Facts,
    feeds::{Feed, Feeds},
    id::{FeedId, GroupKind, NamespacedName},
    members::Members,
    publication::Publication,
    registry::Published,
    selector::Selector,
};

use super::{
    health_check_state::{HealthCheckState, is_health_check},
    index,
    owned_kinds::OwnedKinds,
    stored_below::StoredBelow,
};

#[derive(Debug)]
pub(super) struct ApplicationState {
    pub(super) name: NamespacedName,
    pub(super) publication: Publication,
    pub(super) deleting: bool,
    /// A spec of `app.k8s.io` is converted to this form.
    pub(super) spec: ApplicationSpec,
    /// Set for Applications of `app.k8s.io`.
    pub(super) app_k8s_io: Option<AppK8sIoExtras>,
    pub(super) selector: Selector,
    pub(super) kind_uses: BTreeMap<GroupKind, KindUse>,
    /// Kinds that the spec no longer names, watched until their owner references are removed.
    pub(super) kinds_to_release: BTreeMap<GroupKind, FeedId>,
    /// Kinds of objects below its members.
    pub(super) feeds_below: BTreeMap<GroupKind, FeedId>,
    /// Whether all workloads were scaled to zero at the last flush. All its Services are counted by this.
    pub(super) is_scaled_to_zero: bool,
    /// Its entries in the index, by namespace.
    pub(super) index_entries: Vec<(Arc<str>, index::IndexEntry)>,
    pub(super) components: Vec<NamedComponent>,
    pub(super) members: Members,
    pub(super) check: HealthCheckState,
    pub(super) owned_kinds: OwnedKinds,
    /// Objects whose owner references could not be written, with the error.
    pub(super) failed_owner_writes: BTreeMap<(GroupKind, Arc<str>), Arc<str>>,
    /// The status of Ready.
    pub(super) last_ready: Option<ConditionStatus>,
    /// Whether members are counted for the first time: not all of its kinds are listed.
    pub(super) is_counting: bool,
    /// Since when members were in a state, by the stored status. Used until they are counted.
    pub(super) stored_since: HashMap<(GroupKind, NamespacedName), (State, Timestamp)>,
    /// Used until the kinds below are listed.
    pub(super) stored_below: StoredBelow,
}

/// What only Applications of `app.k8s.io` have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AppK8sIoExtras {
    pub(super) adds_owner: bool,
    /// Whether it has a selector; without one, it has no members.
    pub(super) has_selector: bool,
    pub(super) invalid_fields: Vec<String>,
}

/// A kind that an Application uses, with its feed.
#[derive(Debug)]
pub(super) struct KindUse {
    pub(super) feed: FeedId,
    pub(super) versions: BTreeSet<String>,
    /// Whether objects of the kind can be members. Pods may be used for the health check only.
    pub(super) allows_members: bool,
}

/// An entry of `spec.components`: an object that must exist.
#[derive(Clone, Debug)]
pub(super) struct NamedComponent {
    /// The key in `spec.components`.
    pub(super) key: String,
    pub(super) kind: GroupKind,
    pub(super) name: Arc<str>,
    pub(super) presence: Presence,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It exists and is a member.
    Present,
    Absent,
    /// It exists, but is not a member.
    NotMember(NotMember),
    /// Its kind cannot be read.
    Unknown,
}

/// Why an object is not a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotMember {
    NotSelected,
    OfAnother(Box<str>),
    /// `membership: Annotated` requires an annotation, which it lacks.
    NotAnnotated,
    /// It is the Application itself, or a health-check Pod.
    Itself,
}

/// What the spec asks of a kind.
#[derive(Debug, Default)]
pub(super) struct KindRequest {
    pub(super) versions: BTreeSet<String>,
    pub(super) allows_members: bool,
}

impl Published for ApplicationState {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl ApplicationState {
    pub(super) fn new(
        publication: Publication,
        deleting: bool,
        spec: ApplicationSpec,
        app_k8s_io: Option<AppK8sIoExtras>,
    ) -> Self {
        Self {
            name: publication.group().name.clone(),
            publication,
            deleting,
            selector: selector(&spec, app_k8s_io.as_ref()),
            spec,
            app_k8s_io,
            kind_uses: BTreeMap::new(),
            kinds_to_release: BTreeMap::new(),
            feeds_below: BTreeMap::new(),
            is_scaled_to_zero: false,
            index_entries: Vec::new(),
            components: Vec::new(),
            members: Members::default(),
            check: HealthCheckState::default(),
            owned_kinds: OwnedKinds::default(),
            failed_owner_writes: BTreeMap::new(),
            last_ready: None,
            is_counting: true,
            stored_since: HashMap::new(),
            stored_below: StoredBelow::default(),
        }
    }

    pub(super) fn uid(&self) -> &str {
        &self.publication.uid
    }

    pub(super) fn dialect(&self) -> Dialect {
        if self.app_k8s_io.is_some() { Dialect::AppK8sIo } else { Dialect::Bellwether }
    }

    /// The name of a member in the Application's namespace.
    pub(super) fn in_namespace(&self, name: &str) -> NamespacedName {
        NamespacedName { namespace: Arc::clone(&self.name.namespace), name: name.into() }
    }

    /// The namespaces of its members. Applications of `app.k8s.io` also count cluster-scoped objects.
    pub(super) fn namespaces(&self) -> Vec<Arc<str>> {
        let own = Arc::clone(&self.name.namespace);
        match &self.app_k8s_io {
            None => vec![own],
            Some(app_k8s_io) if app_k8s_io.has_selector => vec![own, "".into()],
            Some(_) => Vec::new(),
        }
    }

    /// `spec.addOwnerRef` of `app.k8s.io`: it owns all its members.
    pub(super) fn adds_owner(&self) -> bool {
        self.app_k8s_io.as_ref().is_some_and(|app_k8s_io| app_k8s_io.adds_owner)
    }

    pub(super) fn requested_kinds(&self) -> BTreeMap<GroupKind, KindRequest> {
        let mut requests: BTreeMap<GroupKind, KindRequest> = BTreeMap::new();
        for component in self.spec.components.values() {
            let request = requests.entry(GroupKind::new(&component.group, &component.kind)).or_default();
            request.allows_members = true;
            request.versions.extend(component.version.clone());
        }
        for kind in &self.spec.component_kinds {
            requests.entry(GroupKind::new(&kind.group, &kind.kind)).or_default().allows_members = true;
        }
        if self.spec.health_check.is_some() {
            requests.entry(GroupKind::pod()).or_default();
        }
        requests
    }

    pub(super) fn feed_of(&self, kind: &GroupKind) -> Option<FeedId> {
        self.kind_uses
            .get(kind)
            .map(|kind_use| kind_use.feed)
            .or_else(|| self.kinds_to_release.get(kind).copied())
    }

    /// The components of a spec, not looked up yet.
    pub(super) fn named_components(spec: &ApplicationSpec) -> Vec<NamedComponent> {
        let component = |(key, component): (&String, &bellwether_api::Component)| NamedComponent {
            key: key.clone(),
            kind: GroupKind::new(&component.group, &component.kind),
            name: component.name.as_deref().unwrap_or(key).into(),
            presence: Presence::Unknown,
        };
        spec.components.iter().map(component).collect()
    }

    /// Tests an object in one of [`namespaces`](Self::namespaces).
    pub(super) fn membership(&self, facts: &Facts) -> Result<(), NotMember> {
        if *facts.uid == *self.uid() || is_health_check(facts) {
            return Err(NotMember::Itself);
        }
        if !self.selector.matches(&facts.labels) {
            return Err(NotMember::NotSelected);
        }
        if self.app_k8s_io.is_some() {
            return Ok(());
        }
        match (&facts.application, self.spec.membership) {
            (Some(named), _) if **named == *self.name.name => Ok(()),
            (Some(other), _) => Err(NotMember::OfAnother(other.clone())),
            (None, Membership::Annotated) => Err(NotMember::NotAnnotated),
            (None, Membership::Selected) => Ok(()),
        }
    }

    /// Whether objects of the kind can be members.
    pub(super) fn allows_members_of(&self, kind: &GroupKind) -> bool {
        self.kind_uses.get(kind).is_some_and(|kind_use| kind_use.allows_members)
    }

    /// Whether the spec allows it to own objects of a kind.
    pub(super) fn may_own(&self, kind: &GroupKind) -> bool {
        self.spec.ownership == Ownership::Adopt && self.allows_members_of(kind)
            || self.spec.health_check.is_some() && *kind == GroupKind::pod()
    }

    /// Whether it should own a member: the annotation names this Application.
    pub(super) fn adopts(&self, facts: &Facts) -> bool {
        self.spec.ownership == Ownership::Adopt && facts.application.as_deref() == Some(&self.name.name)
    }

    /// Whether the group can be evaluated: all its kinds are listed, and no relist is in progress. A relist of
    /// a kind below does not matter: how a member counts depends only on the objects below itself.
    pub(super) fn is_known(&self, feeds: &Feeds) -> bool {
        let is_known = |feed: &Feed| feed.is_known() && !feed.is_torn();
        self.kind_uses.values().all(|kind_use| feeds.get(kind_use.feed).is_some_and(is_known))
            && self.feeds_below.values().all(|feed| feeds.get(*feed).is_some_and(Feed::is_known))
    }

    /// The kinds because of which the group cannot be evaluated.
    pub(super) fn waiting_for(&self, feeds: &Feeds) -> Vec<GroupKind> {
        let used = self.kind_uses.iter().map(|(kind, kind_use)| (kind, kind_use.feed));
        let mut kinds = feeds.inconsistent_kinds(used);
        let below = self.feeds_below.iter().filter(|(kind, _)| !kinds.contains(kind));
        let is_unlisted = |feed: FeedId| !feeds.get(feed).is_some_and(Feed::is_known);
        let below: Vec<_> =
            below.filter(|(_, feed)| is_unlisted(**feed)).map(|(kind, _)| kind.clone()).collect();
        kinds.extend(below);
        kinds
    }
}

pub(super) fn selector(spec: &ApplicationSpec, app_k8s_io: Option<&AppK8sIoExtras>) -> Selector {
    if app_k8s_io.is_none_or(|app_k8s_io| app_k8s_io.has_selector) {
        Selector::new(&spec.selector)
    } else {
        Selector::nothing()
    }
}
