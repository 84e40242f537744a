//! What could not be seen, in sentences.

use bellwether_engine::{GroupRef, Kind, News, Unreadable};

use super::{cluster::ClusterSight, is_application, is_group, origin::Origin};

/// What a person should know of what was seen and of what was not, a sentence each.
#[derive(Debug, Default)]
pub struct Remarks {
    /// What could not be read.
    pub problems: Vec<String>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// Why there are no Rollups to be seen. Only a person who asked for one is told.
    pub(super) no_rollups: Option<String>,
}

impl Remarks {
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
    pub(super) fn note(&mut self, kind: &Kind, news: &[News], origin: &Origin, scope: Option<&str>) {
        let is_rule = *kind == Kind::own("HealthRule");
        if is_rule || is_group(kind) {
            self.note_invalid(kind, news);
        }
        let Some(News::Unreadable(why)) = news.last() else { return };
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
    fn note_invalid(&mut self, kind: &Kind, news: &[News]) {
        for news in news {
            if let News::Seen(name, seen) = news
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

    fn note_applications(&mut self, kind: &Kind, why: &Unreadable, origin: &Origin, scope: Option<&str>) {
        match (why, origin) {
            (Unreadable::NotServed | Unreadable::NotGiven, _) => {}
            (Unreadable::Forbidden { .. }, Origin::Cluster(cluster)) => {
                self.problems.push(cluster.forbidden(kind, scope));
            }
            (why, _) => self.problems.push(format!("{kind} cannot be read: {why}")),
        }
    }

    fn note_rollups(&mut self, kind: &Kind, why: &Unreadable, cluster: &ClusterSight) {
        match why {
            Unreadable::NotServed | Unreadable::NotGiven => self.no_rollups = Some(cluster.lacks("Rollups")),
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
