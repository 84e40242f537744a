//! Which groups the user asks for, and which part of the cluster is read for them.

use anyhow::{Result, bail};
use bellwether_engine::{Group, NamespacedName};
use jiff::Timestamp;

use super::{
    EvaluationScope, Evaluator, Observation, Origin, drop_invented_times, evaluator::binding_policy,
    object_name,
};
use crate::shell::program;

#[derive(Clone, Copy, Debug)]
pub enum GroupQuery<'w> {
    /// All groups in one namespace or in all, and the cluster-scoped ones.
    All { all_namespaces: bool },
    /// The group of this name, as the user writes it.
    One(&'w str),
}

/// The scopes of the evaluators: Applications in one namespace, and Rollups with components in any. What the
/// query cannot match is not read.
pub(super) fn scopes_of(
    query: GroupQuery<'_>,
    namespace: String,
) -> (EvaluationScope, Option<EvaluationScope>) {
    let applications = || EvaluationScope::of_applications(Some(namespace));
    match query {
        GroupQuery::All { .. } => (applications(), Some(EvaluationScope::of_rollups(None))),
        GroupQuery::One(word) => {
            let (_, _, name) = object_name::group(word);
            match object_name::may_be(word) {
                (true, true) => (applications(), Some(EvaluationScope::of_rollups(Some(name)))),
                (false, true) => (EvaluationScope::of_rollups(Some(name)).with_rules(), None),
                (_, false) => (applications(), None),
            }
        }
    }
}

impl Observation {
    fn evaluators(&self) -> impl Iterator<Item = &Evaluator> {
        [&self.evaluator].into_iter().chain(&self.of_rollups)
    }

    /// The groups of the query by name. Cluster-scoped groups match any namespace.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<_> = self.evaluators().flat_map(|evaluator| evaluator.groups(self.now)).collect();
        groups.retain(|Group { name, .. }| {
            let is_selected = |only: &String| *name.namespace == **only;
            name.namespace.is_empty() || self.only_namespace.as_ref().is_none_or(is_selected)
        });
        groups.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        for group in &mut groups {
            match &self.of_rollups {
                _ if self.clusters.is_empty() => self.stored.add_to(group),
                Some(evaluator) => evaluator.engine.add_clusters(group),
                None => {}
            }
        }
        drop_invented_times(&mut groups, self.now, Timestamp::MAX);
        groups
    }

    pub fn scopes(&self) -> Vec<EvaluationScope> {
        self.evaluators().map(|evaluator| evaluator.scope.clone()).collect()
    }

    /// The scope to watch one group in.
    pub fn scope_of(&self, group: &Group) -> EvaluationScope {
        let mut scopes = self.scopes();
        let index = scopes.iter().position(|scope| scope.has_groups_of(&group.kind)).unwrap_or_default();
        let scope = scopes.swap_remove(index).with_rules();
        if self.clusters.is_empty() { scope } else { scope.with_policies() }
    }

    /// The group that the user names: `wordpress`, `application/wordpress`, `blog/wordpress`,
    /// `rollup/platform` or `policy/edge`.
    pub fn group(&self, word: &str) -> Result<Group> {
        let (namespace, kind, name) = object_name::group(word);
        if let (Some(namespace), Some(only)) = (namespace, &self.only_namespace)
            && namespace != only
            && !self.is_other_object(word)
        {
            bail!("{word:?} is not in namespace {only}. Use -n {namespace}");
        }
        let is_match = |group: &Group| {
            *group.name.name == *name
                && namespace.is_none_or(|namespace| *group.name.namespace == *namespace)
                && kind.is_none_or(|kind| object_name::means_group(kind, &group.kind))
        };
        let mut found: Vec<_> = self.groups().into_iter().filter(is_match).collect();
        match found.len() {
            1 => Ok(found.remove(0)),
            0 if self.clusters.is_empty() && (object_name::is_of_policy(word) || self.is_policy(word)) => {
                bail!(
                    "cannot assess BindingPolicy {name}: the hub does not store the state of the objects in its clusters. \
                     Name the clusters with --cluster NAME=KUBECONFIG or --cluster NAME=DIR"
                )
            }
            0 => bail!("{}", self.group_not_found(word)),
            _ => {
                let names = found.iter().map(|group| {
                    let place = match &*group.name.namespace {
                        "" => String::new(),
                        namespace => format!(" in namespace {namespace}"),
                    };
                    format!("{}/{name}{place}", group.kind.to_string().to_lowercase())
                });
                bail!(
                    "ambiguous name {name:?}: {}. Give the kind, and the namespace with -n",
                    names.collect::<Vec<_>>().join(", ")
                )
            }
        }
    }

    /// Whether a BindingPolicy has this name, which does not say a kind.
    fn is_policy(&self, word: &str) -> bool {
        let (namespace, kind, name) = object_name::group(word);
        let name = NamespacedName::new("", name);
        let is_there = || self.origin.with(&binding_policy(), &name, &|_| ()).is_ok_and(|it| it.is_some());
        namespace.is_none() && kind.is_none() && is_there()
    }

    /// Whether `deploy/web` names an object that is not a group.
    fn is_other_object(&self, word: &str) -> bool {
        let Ok((kind, name)) = object_name::split(word) else { return false };
        let (_, group_kind, _) = object_name::group(word);
        group_kind.is_none()
            && (object_name::is_builtin_kind(kind) || self.origin.object_named(kind, name).is_ok())
    }

    fn group_not_found(&self, word: &str) -> String {
        if !self.notes.problems.is_empty() {
            return self.notes.problems.join("; ");
        }
        if self.is_other_object(word) {
            return format!("{word} is not an Application or Rollup; try: {} explain {word}", program());
        }
        let place = self.whereabouts();
        let name = match object_name::group(word) {
            (None, _, name) => name,
            _ => word,
        };
        if object_name::is_of_policy(word) {
            return match &self.origin {
                Origin::Cluster(_) => format!("no BindingPolicy named {name:?}"),
                Origin::Files(files) => format!("no BindingPolicy named {name:?} in {files}"),
            };
        }
        let (applications, rollups) = object_name::may_be(word);
        match (&self.notes.no_rollups, applications, rollups) {
            (Some(error), false, _) => error.clone(),
            (None, false, _) => match &self.origin {
                Origin::Cluster(_) => format!("no Rollup named {name:?}"),
                Origin::Files(files) => format!("no Rollup named {name:?} in {files}"),
            },
            (_, true, false) => format!("no Application named {name:?} {place}"),
            (None, true, true) if !self.clusters.is_empty() => {
                format!("no Application, Rollup or BindingPolicy named {name:?} {place}")
            }
            (None, true, true) => format!("no Application or Rollup named {name:?} {place}"),
            (Some(error), true, true) => format!("no Application named {name:?} {place}; {error}"),
        }
    }
}
