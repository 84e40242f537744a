//! Kinds of the spec that cannot be used, and why.

use std::fmt;

use crate::{
    event::Unreadable,
    feeds::{Feed, Feeds},
    id::GroupKind,
    reasons::application as reasons,
};

use super::application_state::{ApplicationState, KindUse};

/// Why a kind of the spec cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    Unreadable(Unreadable),
    ClusterScoped,
    Version {
        version: String,
        served: String,
    },
    /// HealthRules cannot be read, so that the rules for the kinds of the members are not known.
    Rules(Unreadable),
}

impl Unresolved {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(unreadable) => unreadable.reason(),
            Self::ClusterScoped => reasons::CLUSTER_SCOPED,
            Self::Version { .. } => reasons::VERSION_NOT_SERVED,
            Self::Rules(_) => reasons::RULES_UNREADABLE,
        }
    }

    /// What to do about it; may be empty.
    pub(super) fn remedy(&self, kind: &GroupKind) -> String {
        match self {
            Self::Unreadable(unreadable) => unreadable.remedy(kind),
            Self::Rules(unreadable) => {
                format!("{}, or start Bellwether with --without-health-rules", unreadable.remedy(kind))
            }
            Self::ClusterScoped | Self::Version { .. } => String::new(),
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(unreadable) | Self::Rules(unreadable) => unreadable.fmt(f),
            Self::ClusterScoped => {
                f.write_str("cluster-scoped; members must be in the namespace of the Application")
            }
            Self::Version { version, served } => {
                write!(f, "version {version} not served, only {served}")
            }
        }
    }
}

/// The kinds of the spec that cannot be used.
pub(super) fn unresolved(app: &ApplicationState, feeds: &Feeds) -> Vec<(GroupKind, Unresolved)> {
    let of_kind = |(kind, kind_use): (&GroupKind, &KindUse)| {
        Some((kind.clone(), why(app, kind_use, feeds.get(kind_use.feed)?)?))
    };
    let rules = feeds.rules_unreadable().filter(|_| app.kind_uses.values().any(|it| it.allows_members));
    let rules = rules.map(|why| (GroupKind::bellwether("HealthRule"), Unresolved::Rules(why.clone())));
    app.kind_uses.iter().filter_map(of_kind).chain(rules).collect()
}

/// `None` if the kind can be used.
fn why(app: &ApplicationState, kind_use: &KindUse, feed: &Feed) -> Option<Unresolved> {
    if let Some(unreadable) = &feed.unreadable {
        return Some(Unresolved::Unreadable(unreadable.clone()));
    }
    let served = feed.served.as_ref()?;
    if !served.namespaced && app.app_k8s_io.is_none() {
        return Some(Unresolved::ClusterScoped);
    }
    let missing = |version: &&String| !served.versions.iter().any(|other| **other == ***version);
    let version = kind_use.versions.iter().find(missing)?.clone();
    Some(Unresolved::Version { version, served: served.versions.join(", ") })
}
