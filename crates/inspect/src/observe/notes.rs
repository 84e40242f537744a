//! What could not be seen, in sentences.

use bellwether_engine::{FeedEvent, GroupKind, GroupRef, Unreadable};

use super::{cluster::ObservedCluster, is_application, is_group, origin::Origin};

/// What a person should know of what was seen and of what was not, a sentence each.
#[derive(Debug, Default)]
pub struct Notes {
    /// What could not be read.
    pub problems: Vec<String>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// Why there are no Rollups to be seen. Only a person who asked for one is told.
    pub(super) no_rollups: Option<String>,
}

impl Notes {
    /// What is known before anything has been asked for.
    pub(super) fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Cluster(_) => Self::default(),
            Origin::Files(files) => {
                Self { problems: files.problems(), notes: files.notes(), no_rollups: None }
            }
        }
    }

    /// Takes note of what was read of a kind, where groups or verdicts depend on it.
    pub(super) fn note(
        &mut self,
        kind: &GroupKind,
        news: &[FeedEvent],
        origin: &Origin,
        scope: Option<&str>,
    ) {
        let is_rule = *kind == GroupKind::own("HealthRule");
        if is_rule || is_group(kind) {
            self.note_invalid(kind, news);
        }
        let Some(FeedEvent::Unreadable(why)) = news.last() else { return };
        if is_rule {
            self.note_rules(why);
        } else if is_application(kind) {
            self.note_applications(kind, why, origin, scope);
        } else if kind.is_rollup()
            && let Some(cluster) = origin.cluster()
        {
            self.note_rollups(kind, why, cluster);
        }
    }

    /// Objects of our own that the engine could not make sense of.
    fn note_invalid(&mut self, kind: &GroupKind, news: &[FeedEvent]) {
        for news in news {
            if let FeedEvent::Applied(name, seen) = news
                && seen.own.is_none()
            {
                let problem = format!("{} {name} makes no sense: bellwether lint says why", kind.kind);
                // A kind may be asked for more than once.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
    }

    fn note_rules(&mut self, why: &Unreadable) {
        if matches!(why, Unreadable::Forbidden { .. } | Unreadable::Failing { .. }) {
            self.notes.push(format!("HealthRules cannot be read, so objects are judged without them: {why}"));
        }
    }

    fn note_applications(
        &mut self,
        kind: &GroupKind,
        why: &Unreadable,
        origin: &Origin,
        scope: Option<&str>,
    ) {
        match (why, origin) {
            (Unreadable::NotServed | Unreadable::NotInInput, _) => {}
            (Unreadable::Forbidden { .. }, Origin::Cluster(cluster)) => {
                self.problems.push(cluster.forbidden(kind, scope));
            }
            (why, _) => self.problems.push(format!("{kind} cannot be read: {why}")),
        }
    }

    fn note_rollups(&mut self, kind: &GroupKind, why: &Unreadable, cluster: &ObservedCluster) {
        match why {
            Unreadable::NotServed | Unreadable::NotInInput => {
                self.no_rollups = Some(cluster.lacks("Rollups"))
            }
            // Rollups are of the whole cluster. Whoever may look at a namespace only lacks nothing that is theirs.
            Unreadable::Forbidden { .. } => self.no_rollups = Some(cluster.forbidden_everywhere(kind)),
            Unreadable::Failing { .. } | Unreadable::NotConnected => {
                self.problems.push(format!("{kind} cannot be read: {why}"));
            }
        }
    }

    /// Takes note of groups that have no verdict because they count one another.
    pub(super) fn note_cycles<'g>(&mut self, groups: impl Iterator<Item = &'g GroupRef>) {
        self.problems.extend(groups.map(|group| {
            let (kind, name) = (group.kind.kind(), &group.name);
            format!(
                "nobody can tell how {} {name} is, because it counts groups that count one another: leave one of them \
                 out",
                kind.kind
            )
        }));
    }
}
