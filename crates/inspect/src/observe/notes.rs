//! What could not be read, in sentences.

use bellwether_engine::{Engine, FeedEvent, GroupKind, GroupRef, Unreadable};

use super::{
    cluster::{ObservedCluster, crds_not_installed},
    evaluator::{MembershipCycles, binding_policy, status_collector},
    is_application, is_group,
    named_clusters::ClusterProblem,
    origin::Origin,
};
use crate::{shell::program, status::heading};

#[derive(Debug, Default)]
pub struct Notes {
    /// Errors: groups or objects that could not be read.
    pub problems: Vec<String>,
    /// Errors: named clusters that could not be read. What is known of the others is right.
    pub unread_clusters: Vec<ClusterProblem>,
    pub notes: Vec<String>,
    /// The kinds of members that the user may not list.
    pub forbidden: Vec<String>,
    /// The kinds that are only below members, and that the user may not list. See [`Self::of_below`].
    pub(crate) below: Vec<(GroupKind, String)>,
    /// The kinds of members or below them that the user may not list, until their use is known.
    refused: Vec<(GroupKind, String)>,
    /// Why Rollups could not be read. Only a user who asks for one needs to know.
    pub(crate) no_rollups: Option<String>,
}

impl Notes {
    /// Files have notes before anything is listed.
    pub(super) fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Cluster(_) => Self::default(),
            Origin::Files(files) => {
                Self { problems: files.problems(), notes: files.notes(), ..Self::default() }
            }
        }
    }

    /// Notes of a kind that was listed, in one namespace or in all.
    pub(super) fn note(
        &mut self,
        kind: &GroupKind,
        events: &[FeedEvent],
        origin: &Origin,
        namespace: Option<&str>,
    ) {
        let is_rule = *kind == GroupKind::bellwether("HealthRule");
        if is_rule || is_group(kind) || is_of_policies(kind) {
            self.note_invalid(kind, events);
        }
        let Some(FeedEvent::Unreadable(why)) = events.last() else { return };
        if is_rule {
            self.note_rules(kind, why, origin);
        } else if is_application(kind) {
            self.note_applications(kind, why, origin, namespace);
        } else if kind.is_rollup() {
            if let Some(cluster) = origin.cluster() {
                self.note_rollups(kind, why, cluster);
            }
        } else if is_of_policies(kind) {
            self.note_policies(kind, why, origin);
        } else if matches!(why, Unreadable::Forbidden { .. }) {
            self.refused.push((kind.clone(), origin.cannot_list(kind, why, namespace)));
        }
    }

    /// Sorts the kinds that the user may not list by how the engine uses them.
    pub(super) fn note_uses(&mut self, engine: &Engine) {
        for (kind, problem) in self.refused.drain(..) {
            if engine.is_only_below(&kind) {
                let note = format!("{problem}; {}", undetected(&kind));
                self.below.push((kind, note));
            } else {
                self.forbidden.push(problem);
            }
        }
    }

    /// The notes of kinds below members. Pods matter only where something is not ready, but a Service is Ready
    /// if its endpoints cannot be read.
    pub fn of_below(&self, is_ready: bool) -> impl Iterator<Item = (&GroupKind, &String)> {
        let below = self.below.iter().map(|(kind, note)| (kind, note));
        below.filter(move |(kind, _)| !is_ready || is_endpoint_slice(kind))
    }

    /// Objects of Bellwether's kinds that could not be decoded.
    fn note_invalid(&mut self, kind: &GroupKind, events: &[FeedEvent]) {
        for event in events {
            if let FeedEvent::Applied(name, object) = event
                && object.own.is_none()
            {
                let problem = format!(
                    "invalid {}. Check the manifest with: {} lint FILE",
                    heading(kind, name),
                    program()
                );
                // A kind may be listed more than once.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
    }

    fn note_rules(&mut self, kind: &GroupKind, why: &Unreadable, origin: &Origin) {
        match why {
            Unreadable::Forbidden { .. } | Unreadable::Failing { .. } => {
                let problem = origin.cannot_list(kind, why, None);
                let grant = origin.cluster().filter(|_| matches!(why, Unreadable::Forbidden { .. }));
                let grant = grant.map(|cluster| format!("{}, or u", cluster.remedy(kind)));
                let use_flag = format!("{}se --without-health-rules", grant.as_deref().unwrap_or("U"));
                let note = format!("{problem}; verdicts are Unknown. {use_flag}");
                // Rules are listed again when it is known that they cannot be read.
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            Unreadable::NotServed
            | Unreadable::NotInInput
            | Unreadable::InvalidInput
            | Unreadable::NotConnected => {}
        }
    }

    fn note_policies(&mut self, kind: &GroupKind, why: &Unreadable, origin: &Origin) {
        if matches!(why, Unreadable::NotServed | Unreadable::NotInInput) {
            return;
        }
        let grant = origin.cluster().filter(|_| matches!(why, Unreadable::Forbidden { .. }));
        let grant = grant.map(|cluster| format!(". {}", cluster.remedy(kind))).unwrap_or_default();
        let problem = origin.cannot_list(kind, why, None) + &grant;
        // Each evaluator lists them.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn note_applications(
        &mut self,
        kind: &GroupKind,
        why: &Unreadable,
        origin: &Origin,
        namespace: Option<&str>,
    ) {
        if matches!(why, Unreadable::NotServed | Unreadable::NotInInput) {
            return;
        }
        let problem = origin.cannot_list(kind, why, namespace);
        let way_out = match (why, origin.cluster()) {
            (Unreadable::Forbidden { .. }, Some(cluster)) => {
                let another = if namespace.is_some() { "another" } else { "a" };
                format!(". {}, or choose {another} namespace with -n", cluster.remedy(kind))
            }
            _ => String::new(),
        };
        self.problems.push(problem + &way_out);
    }

    fn note_rollups(&mut self, kind: &GroupKind, why: &Unreadable, cluster: &ObservedCluster) {
        match why {
            Unreadable::NotServed | Unreadable::NotInInput => {
                self.no_rollups = Some(crds_not_installed());
            }
            // Not a problem: Rollups are cluster-scoped, and users with rights in one namespace have none of
            // their own.
            Unreadable::Forbidden { .. } => {
                self.no_rollups =
                    Some(format!("{}. {}", cluster.forbidden(kind, None), cluster.remedy(kind)));
            }
            Unreadable::Failing { why } => {
                self.problems.push(format!("cannot list {}: {why}", cluster.resource(kind)));
            }
            Unreadable::NotConnected | Unreadable::InvalidInput => {
                self.problems.push(format!("cannot list {}: {why}", cluster.resource(kind)));
            }
        }
    }

    /// Groups that are members of each other have no state, and neither have groups that contain them.
    pub(super) fn note_cycles(&mut self, MembershipCycles { cycles, containing }: &MembershipCycles) {
        let heading = |group: &GroupRef| heading(&group.kind.kind(), &group.name);
        self.problems.extend(cycles.iter().map(|cycle| {
            let path: Vec<_> = cycle.iter().chain(cycle.first()).map(heading).collect();
            format!("membership cycle: {}. Remove one of these members", path.join(" -> "))
        }));
        self.problems.extend(
            containing
                .iter()
                .map(|group| format!("cannot assess {}: a member is in a membership cycle", heading(group))),
        );
    }
}

/// Whether a kind is read for BindingPolicies only.
fn is_of_policies(kind: &GroupKind) -> bool {
    *kind == binding_policy() || *kind == status_collector()
}

/// What a user without the right to list a kind below members does not learn.
fn undetected(kind: &GroupKind) -> &'static str {
    if is_endpoint_slice(kind) {
        "Services without ready endpoints are not detected"
    } else {
        "failed Pods are not detected"
    }
}

fn is_endpoint_slice(kind: &GroupKind) -> bool {
    (&*kind.group, &*kind.kind) == ("discovery.k8s.io", "EndpointSlice")
}

/// The note about a kind that members own and that could not be listed.
pub(crate) fn not_shown(problem: &str) -> String {
    format!("{problem}; objects owned by members are not shown")
}
