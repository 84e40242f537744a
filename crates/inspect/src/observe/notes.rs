//! What could not be read, in sentences.

use bellwether_engine::{FeedEvent, GroupKind, GroupRef, Unreadable};

use super::{
    cluster::{ObservedCluster, crds_not_installed},
    is_application, is_group,
    origin::Origin,
};
use crate::{shell::program, status::heading};

#[derive(Debug, Default)]
pub struct Notes {
    /// Errors: groups or objects that could not be read.
    pub problems: Vec<String>,
    pub notes: Vec<String>,
    /// The kinds of members that the user may not list.
    pub forbidden: Vec<String>,
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
        if is_rule || is_group(kind) {
            self.note_invalid(kind, events);
        }
        let Some(FeedEvent::Unreadable(why)) = events.last() else { return };
        if is_rule {
            self.note_rules(why);
        } else if is_application(kind) {
            self.note_applications(kind, why, origin, namespace);
        } else if kind.is_rollup() {
            if let Some(cluster) = origin.cluster() {
                self.note_rollups(kind, why, cluster);
            }
        } else if matches!(why, Unreadable::Forbidden { .. }) {
            self.forbidden.push(origin.cannot_list(kind, why, namespace));
        }
    }

    /// Objects of Bellwether's kinds that could not be decoded.
    fn note_invalid(&mut self, kind: &GroupKind, events: &[FeedEvent]) {
        for event in events {
            if let FeedEvent::Applied(name, object) = event
                && object.own.is_none()
            {
                let problem = format!("invalid {}. Check it with: {} lint", heading(kind, name), program());
                // A kind may be listed more than once.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
    }

    fn note_rules(&mut self, why: &Unreadable) {
        match why {
            Unreadable::Forbidden { .. } => {
                self.notes.push("no permission to list HealthRules; using built-in rules only".to_owned());
            }
            Unreadable::Failing { why } => {
                self.notes.push(format!("cannot list HealthRules: {why}; using built-in rules only"));
            }
            Unreadable::NotServed | Unreadable::NotInInput | Unreadable::NotConnected => {}
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
        let way_out = match (why, namespace) {
            (Unreadable::Forbidden { .. }, Some(_)) => {
                ". Ask for that permission, or choose another namespace with -n"
            }
            (Unreadable::Forbidden { .. }, None) => ". Choose a namespace with -n",
            _ => "",
        };
        self.problems.push(problem + way_out);
    }

    fn note_rollups(&mut self, kind: &GroupKind, why: &Unreadable, cluster: &ObservedCluster) {
        match why {
            Unreadable::NotServed | Unreadable::NotInInput => {
                self.no_rollups = Some(crds_not_installed());
            }
            // Not a problem: Rollups are cluster-scoped, and users with rights in one namespace have none of
            // their own.
            Unreadable::Forbidden { .. } => {
                self.no_rollups = Some(format!("{}. Ask for that permission", cluster.forbidden(kind, None)));
            }
            Unreadable::Failing { why } => {
                self.problems.push(format!("cannot list {}: {why}", cluster.resource(kind)));
            }
            Unreadable::NotConnected => {
                self.problems.push(format!("cannot list {}: {why}", cluster.resource(kind)));
            }
        }
    }

    /// Groups that are members of each other have no state.
    pub(super) fn note_cycles<'g>(&mut self, groups: impl Iterator<Item = &'g GroupRef>) {
        self.problems.extend(groups.map(|group| {
            format!(
                "cannot assess {}: membership cycle. Remove one of the groups from the cycle",
                heading(&group.kind.kind(), &group.name)
            )
        }));
    }
}
