//! Which objects are read, and in which clusters.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_inspect::fleet::{ClusterToRead, NamespaceChoice, ObjectQuery, ReadFrom, Selector, Shape};
use bellwether_kube_io::client::ClientOptions;

use super::input::Input;
use crate::cli::Query;

/// The name of the cluster of the kubeconfig, where no clusters are named.
const ONLY_CLUSTER: &str = "local";

pub(super) struct Request {
    pub(super) hub: Option<ClusterToRead>,
    pub(super) clusters: Vec<ClusterToRead>,
    pub(super) objects: ObjectQuery,
}

/// One request for each kind.
pub(super) fn requests(command: &Query, input: &Input) -> Result<Vec<Request>, String> {
    let kinds = kinds(command, input)?;
    let namespace = match &command.namespace {
        Some(namespace) => NamespaceChoice::One(namespace.clone()),
        None if command.all_namespaces => NamespaceChoice::All,
        None => NamespaceChoice::Default,
    };
    let selector = selector(command)?;
    let (hub, clusters) = clusters(command)?;
    let request = |(kind, names)| Request {
        hub: hub.clone(),
        clusters: clusters.clone(),
        objects: ObjectQuery { kind, names, namespace: namespace.clone(), selector: selector.clone() },
    };
    Ok(kinds.into_iter().map(request).collect())
}

pub(super) fn selector(command: &Query) -> Result<Selector, String> {
    Ok(command.selector.as_deref().map(Selector::parse).transpose()?.unwrap_or_default())
}

/// The kinds to read, each with the names of objects; without names, all of its objects.
pub(super) fn kinds(command: &Query, input: &Input) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    match (&input.from, &*command.objects) {
        (Some(from), []) => kinds.push((from.kind.clone(), from.name.iter().cloned().collect())),
        (Some(_), [object, ..]) => {
            return Err(format!("objects given twice: after FROM, and as {object}. Remove one"));
        }
        (None, []) => {
            return Err(
                "no objects. Give a kind, or objects as KIND/NAME, e.g. deployments or deployments/web"
                    .to_owned(),
            );
        }
        (None, objects) => {
            for object in objects {
                add(&mut kinds, object)?;
            }
        }
    }
    if input.from.is_none() && matches!(input.shape, Shape::OneTable) && kinds.len() > 1 {
        return Err("a statement reads objects of one kind".to_owned());
    }
    Ok(kinds)
}

/// Names of one kind are read together. A kind without a name means all of its objects.
fn add(kinds: &mut Vec<(String, Vec<String>)>, object: &str) -> Result<(), String> {
    let (kind, name) = match object.split_once('/') {
        None => (object, None),
        Some((kind, name)) => (kind, Some(name)),
    };
    if kind.is_empty() || name.is_some_and(|name| name.is_empty() || name.contains('/')) {
        return Err(format!("invalid object {object:?}: use KIND or KIND/NAME, e.g. deployments/web"));
    }
    match (kinds.iter_mut().find(|(own, _)| own == kind), name) {
        (None, name) => kinds.push((kind.to_owned(), name.into_iter().map(str::to_owned).collect())),
        (Some((_, names)), Some(name)) if !names.is_empty() => names.push(name.to_owned()),
        (Some((_, names)), None) => names.clear(),
        (Some(_), Some(_)) => {}
    }
    Ok(())
}

/// The hub and the clusters. Without `--cluster`, the flags of the hub mean the only cluster.
fn clusters(command: &Query) -> Result<(Option<ClusterToRead>, Vec<ClusterToRead>), String> {
    let Query { clusters, kubeconfig, context, from, .. } = command;
    let named = clusters.to_read()?;
    let has_hub = kubeconfig.is_some() || context.is_some() || !from.is_empty();
    let hub = ClusterToRead {
        name: Arc::from(ONLY_CLUSTER),
        labels: BTreeMap::new(),
        from: if from.is_empty() {
            ReadFrom::ApiServer(ClientOptions { kubeconfig: kubeconfig.clone(), context: context.clone() })
        } else {
            ReadFrom::Files(from.clone())
        },
    };
    Ok(if named.is_empty() { (None, vec![hub]) } else { (has_hub.then_some(hub), named) })
}
