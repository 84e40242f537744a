//! Which groups somebody means, and where they are looked for.

use anyhow::{Result, bail};
use bellwether_engine::Group;
use jiff::Timestamp;

use super::{EvaluationScope, Evaluator, Observation, Origin, object_name, undated};

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub enum GroupQuery<'w> {
    /// All groups of one namespace or of all, and those that are in none.
    All {
        /// Whether of all.
        all_namespaces: bool,
    },
    /// The group that a person calls so.
    One(&'w str),
}

/// What of a cluster is looked at, if its Applications are looked for in one namespace: they, and the Rollups with all that
/// they speak of, wherever it is. Of what nobody means, nothing is read.
pub(super) fn views(meant: GroupQuery<'_>, namespace: String) -> (EvaluationScope, Option<EvaluationScope>) {
    let applications = || EvaluationScope::of_applications(Some(namespace));
    match meant {
        GroupQuery::All { .. } => (applications(), Some(EvaluationScope::of_rollups(None))),
        GroupQuery::One(word) => {
            let (_, _, name) = object_name::group(word);
            match object_name::may_be(word) {
                (true, true) => (applications(), Some(EvaluationScope::of_rollups(Some(name)))),
                (false, true) => (EvaluationScope::of_rollups(Some(name)).alone(), None),
                (_, false) => (applications(), None),
            }
        }
    }
}

impl Observation {
    fn evaluators(&self) -> impl Iterator<Item = &Evaluator> {
        [&self.evaluator].into_iter().chain(&self.of_rollups)
    }

    /// The groups that are meant, by their names. Those that are in no namespace are meant in each.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<_> = self.evaluators().flat_map(|evaluator| evaluator.groups(self.now)).collect();
        groups.retain(|Group { name, .. }| {
            name.namespace.is_empty() || self.scope.as_ref().is_none_or(|scope| *name.namespace == **scope)
        });
        groups.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        undated(&mut groups, self.now, Timestamp::MAX);
        groups
    }

    /// The views in which the groups were seen.
    pub fn views(&self) -> Vec<EvaluationScope> {
        self.evaluators().map(|evaluator| evaluator.view.clone()).collect()
    }

    /// That in which a group was seen, for who looks at it alone.
    pub fn view_of(&self, group: &Group) -> EvaluationScope {
        let mut views = self.views();
        let index = views.iter().position(|view| view.shows(&group.kind)).unwrap_or_default();
        views.swap_remove(index).alone()
    }

    /// The group that a person means by `wordpress`, `application/wordpress`, `blog/wordpress` or `rollup/platform`. It
    /// must be there.
    pub fn group(&self, word: &str) -> Result<Group> {
        let (namespace, kind, name) = object_name::group(word);
        if let (Some(namespace), Some(scope)) = (namespace, &self.scope)
            && namespace != scope
        {
            bail!("{word:?} is not in namespace {scope}: choose the namespace with -n {namespace}");
        }
        let is_meant = |group: &Group| {
            *group.name.name == *name
                && namespace.is_none_or(|namespace| *group.name.namespace == *namespace)
                && kind.is_none_or(|kind| object_name::means(kind, &group.kind.kind, &group.kind.group))
        };
        let mut found: Vec<_> = self.groups().into_iter().filter(is_meant).collect();
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => bail!("{}", self.absent(word)),
            _ => {
                let names = found.iter().map(|group| {
                    let place = match &*group.name.namespace {
                        "" => String::new(),
                        namespace => format!(" in {namespace}"),
                    };
                    format!("{}/{name}{place}", group.kind.to_string().to_lowercase())
                });
                bail!(
                    "{name:?} may be {}: say which, with -n if need be",
                    names.collect::<Vec<_>>().join(" or ")
                )
            }
        }
    }

    /// What there is to say where nothing is called so.
    fn absent(&self, word: &str) -> String {
        if !self.remarks.problems.is_empty() {
            return self.remarks.problems.join("; ");
        }
        let place = self.whereabouts();
        let (applications, rollups) = object_name::may_be(word);
        match (&self.remarks.no_rollups, applications, rollups) {
            (Some(why), false, _) => why.clone(),
            (None, false, _) => match &self.origin {
                Origin::Cluster(_) => format!("there is no Rollup {word:?} in the cluster"),
                Origin::Files(files) => format!("there is no Rollup {word:?} in {files}"),
            },
            (_, true, false) => format!("there is no Application {word:?} {place}"),
            (None, true, true) => format!("there is no Application {word:?} {place}, and no Rollup"),
            (Some(why), true, true) => {
                format!("there is no Application {word:?} {place}; if you mean a Rollup, {why}")
            }
        }
    }
}
