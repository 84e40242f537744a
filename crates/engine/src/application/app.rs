//! One Application: what its user wrote, and what is known of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use bellwether_api::{ApplicationSpec, Membership, Ownership};
use bellwether_model::{ConditionStatus, State};
use jiff::Timestamp;

use crate::{
    dialect::Dialect,
    event::Unreadable,
    facts::Facts,
    feeds::{Feed, Feeds},
    id::{FeedId, GroupKind, NamespacedName},
    members::Members,
    publication::Publication,
    registry::Published,
    selector::Selector,
};

use super::{
    check::{Check, is_health_check},
    index,
    owned_kinds::OwnedKinds,
};

/// One Application.
#[derive(Debug)]
pub(super) struct App {
    pub(super) name: NamespacedName,
    pub(super) publication: Publication,
    pub(super) deleting: bool,
    /// What it asks for, in our own words.
    pub(super) spec: ApplicationSpec,
    /// What else one of `app.k8s.io` asks for; none for our own.
    pub(super) legacy: Option<LegacySpec>,
    pub(super) selector: Selector,
    /// The kinds that it needs.
    pub(super) kind_uses: BTreeMap<GroupKind, KindUse>,
    /// Kinds that it needs no longer, until it has let go of all that it owned of them.
    pub(super) leaving: BTreeMap<GroupKind, FeedId>,
    /// Where it stands in the index, by namespace.
    pub(super) entries: Vec<(Arc<str>, index::IndexEntry)>,
    pub(super) components: Vec<NamedComponent>,
    pub(super) members: Members,
    pub(super) check: Check,
    pub(super) owned_kinds: OwnedKinds,
    /// Objects whose owners could not be changed, and why.
    pub(super) refused: BTreeMap<(GroupKind, Arc<str>), Arc<str>>,
    /// The way from here back to here, if its dependencies lead there.
    pub(super) cycle: Option<Vec<NamespacedName>>,
    /// Its readiness, when it was last looked at.
    pub(super) last_evaluated: Option<ConditionStatus>,
    /// Since when objects were in a state, as was written before.
    pub(super) stored_since: HashMap<(GroupKind, NamespacedName), (State, Timestamp)>,
}

/// What an Application of `app.k8s.io` asks for that no other does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LegacySpec {
    /// Whether it owns its members.
    pub(super) adds_owner: bool,
    /// Whether it selects anything.
    pub(super) selects: bool,
    /// What nobody can understand of it.
    pub(super) invalid_fields: Vec<String>,
}

/// A kind that an Application needs.
#[derive(Debug)]
pub(super) struct KindUse {
    pub(super) feed: FeedId,
    /// The versions that it asks for.
    pub(super) versions: BTreeSet<String>,
    /// Whether objects of the kind are members. Pods may be needed for the health check alone.
    pub(super) counts: bool,
}

/// An object that must be there.
#[derive(Clone, Debug)]
pub(super) struct NamedComponent {
    /// What the Application calls it.
    pub(super) key: String,
    pub(super) kind: GroupKind,
    /// The name of the object.
    pub(super) name: Arc<str>,
    pub(super) presence: Presence,
}

/// Whether a named component is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is, and is a member.
    Present,
    /// There is no such object.
    Absent,
    /// The object is there, and is no member.
    NotMember(NotMember),
    /// Nobody can tell.
    Unknown,
}

/// Why an object is no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotMember {
    /// Its labels do not match.
    NotSelected,
    /// Its annotation names another Application.
    OfAnother(Box<str>),
    /// It has no annotation, and must have one.
    NotAnnotated,
    /// It is the Application itself, or the Pod of a health check.
    Itself,
}

/// What an Application needs of a kind, before it is followed.
#[derive(Debug, Default)]
pub(super) struct KindRequest {
    pub(super) versions: BTreeSet<String>,
    pub(super) counts: bool,
}

impl Published for App {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl App {
    /// One of which nothing is counted yet.
    pub(super) fn new(
        publication: Publication,
        deleting: bool,
        spec: ApplicationSpec,
        legacy: Option<LegacySpec>,
    ) -> Self {
        Self {
            name: publication.group().name.clone(),
            publication,
            deleting,
            selector: selector(&spec, legacy.as_ref()),
            spec,
            legacy,
            kind_uses: BTreeMap::new(),
            leaving: BTreeMap::new(),
            entries: Vec::new(),
            components: Vec::new(),
            members: Members::default(),
            check: Check::default(),
            owned_kinds: OwnedKinds::default(),
            refused: BTreeMap::new(),
            cycle: None,
            last_evaluated: None,
            stored_since: HashMap::new(),
        }
    }

    /// Its identity.
    pub(super) fn uid(&self) -> &str {
        &self.publication.uid
    }

    pub(super) fn dialect(&self) -> Dialect {
        if self.legacy.is_some() { Dialect::AppK8sIo } else { Dialect::Bellwether }
    }

    /// What a member is called that is in its namespace.
    pub(super) fn member(&self, name: &str) -> NamespacedName {
        NamespacedName { namespace: Arc::clone(&self.name.namespace), name: name.into() }
    }

    /// The namespaces in which its members are. Those of `app.k8s.io` count what is in no namespace, too.
    pub(super) fn namespaces(&self) -> Vec<Arc<str>> {
        let own = Arc::clone(&self.name.namespace);
        match &self.legacy {
            None => vec![own],
            Some(legacy) if legacy.selects => vec![own, "".into()],
            Some(_) => Vec::new(),
        }
    }

    /// Whether it owns all its members, as only one of `app.k8s.io` does.
    pub(super) fn adds_owner(&self) -> bool {
        self.legacy.as_ref().is_some_and(|legacy| legacy.adds_owner)
    }

    /// The kinds that the spec speaks of.
    pub(super) fn requests(&self) -> BTreeMap<GroupKind, KindRequest> {
        let mut requests: BTreeMap<GroupKind, KindRequest> = BTreeMap::new();
        for component in self.spec.components.values() {
            let request = requests.entry(GroupKind::new(&component.group, &component.kind)).or_default();
            request.counts = true;
            request.versions.extend(component.version.clone());
        }
        for kind in &self.spec.component_kinds {
            requests.entry(GroupKind::new(&kind.group, &kind.kind)).or_default().counts = true;
        }
        if self.spec.health_check.is_some() {
            requests.entry(GroupKind::pod()).or_default();
        }
        requests
    }

    /// Where objects of a kind are seen.
    pub(super) fn feed_of(&self, kind: &GroupKind) -> Option<FeedId> {
        self.kind_uses.get(kind).map(|kind_use| kind_use.feed).or_else(|| self.leaving.get(kind).copied())
    }

    /// The components that the spec names. Nobody has looked for them yet.
    pub(super) fn named(spec: &ApplicationSpec) -> Vec<NamedComponent> {
        let component = |(key, component): (&String, &bellwether_api::Component)| NamedComponent {
            key: key.clone(),
            kind: GroupKind::new(&component.group, &component.kind),
            name: component.name.as_deref().unwrap_or(key).into(),
            presence: Presence::Unknown,
        };
        spec.components.iter().map(component).collect()
    }

    /// Whether an object where its members are is one, and if not, why.
    pub(super) fn membership(&self, facts: &Facts) -> Result<(), NotMember> {
        if *facts.uid == *self.uid() || is_health_check(facts) {
            return Err(NotMember::Itself);
        }
        if !self.selector.matches(&facts.labels) {
            return Err(NotMember::NotSelected);
        }
        if self.legacy.is_some() {
            return Ok(());
        }
        match (&facts.application, self.spec.membership) {
            (Some(named), _) if **named == *self.name.name => Ok(()),
            (Some(other), _) => Err(NotMember::OfAnother(other.clone())),
            (None, Membership::Annotated) => Err(NotMember::NotAnnotated),
            (None, Membership::Selected) => Ok(()),
        }
    }

    /// Whether objects of the kind are members at all.
    pub(super) fn counts(&self, kind: &GroupKind) -> bool {
        self.kind_uses.get(kind).is_some_and(|kind_use| kind_use.counts)
    }

    /// Whether it may own objects of a kind, by its spec.
    pub(super) fn may_own(&self, kind: &GroupKind) -> bool {
        self.spec.ownership == Ownership::Adopt && self.counts(kind)
            || self.spec.health_check.is_some() && *kind == GroupKind::pod()
    }

    /// Whether a member is to be owned: it has been handed over by its annotation.
    pub(super) fn adopts(&self, facts: &Facts) -> bool {
        self.spec.ownership == Ownership::Adopt && facts.application.as_deref() == Some(&self.name.name)
    }

    /// Why a kind that it needs cannot be had, if so.
    pub(super) fn unresolved(&self, kind_use: &KindUse, feed: &Feed) -> Option<Unresolved> {
        if let Some(unreadable) = &feed.unreadable {
            return Some(Unresolved::Unreadable(unreadable.clone()));
        }
        let served = feed.served.as_ref()?;
        if !served.namespaced && self.legacy.is_none() {
            return Some(Unresolved::ClusterScoped);
        }
        let missing = |version: &&String| !served.versions.iter().any(|other| **other == ***version);
        let version = kind_use.versions.iter().find(missing)?.clone();
        Some(Unresolved::Version { version, served: served.versions.join(", ") })
    }

    /// Whether all that it needs is known, and of one time, so that something can be said of it.
    pub(super) fn is_known(&self, feeds: &Feeds) -> bool {
        let is_known = |feed: &Feed| feed.is_known() && !feed.is_torn();
        self.kind_uses.values().all(|kind_use| feeds.get(kind_use.feed).is_some_and(is_known))
    }
}

/// Why a kind cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    Unreadable(Unreadable),
    ClusterScoped,
    Version { version: String, served: String },
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(unreadable) => unreadable.fmt(f),
            Self::ClusterScoped => {
                f.write_str("cluster-scoped; members must be in the namespace of the Application")
            }
            Self::Version { version, served } => {
                write!(f, "version {version} not served, only {served}")
            }
        }
    }
}

/// The selector that a spec has.
pub(super) fn selector(spec: &ApplicationSpec, legacy: Option<&LegacySpec>) -> Selector {
    if legacy.is_none_or(|legacy| legacy.selects) {
        Selector::new(&spec.selector)
    } else {
        Selector::nothing()
    }
}
