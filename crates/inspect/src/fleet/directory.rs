//! One cluster as a directory of manifests.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use bellwether_engine::GroupKind;
use bellwether_model::{Object, Value};

use super::{
    ClusterToRead, ObjectKey, ObjectQuery, ReadCluster, ReadSettings,
    found::{FoundObject, inventory, key},
};
use crate::observe::{is_of_the_cluster, means};

/// Of objects without a namespace.
const DEFAULT_NAMESPACE: &str = "default";

enum Entry {
    /// The UID of the cluster.
    Uid(String),
    /// An object of the kind, wanted or not.
    Kind(GroupKind),
    Object(ObjectKey, FoundObject),
}

pub(super) fn read(
    cluster: &ClusterToRead,
    paths: &[PathBuf],
    query: &ObjectQuery,
    namespace: Option<&str>,
    settings: &ReadSettings,
) -> ReadCluster {
    let (context, keep) = (settings.context(), settings.fields.to_keep());
    let mut decode = settings.fields.to_decode();
    settings.rules.add_all_fields(&mut decode);
    let visit = |object: &Object<'_>| {
        let is_cluster = (object.group(), object.kind(), object.name()) == ("", "Namespace", "kube-system");
        let uid = object.at("metadata.uid").and_then(Value::as_text).filter(|_| is_cluster);
        let mut entries: Vec<_> = uid.map(|uid| Entry::Uid(uid.to_owned())).into_iter().collect();
        if !means(&query.kind, object.kind(), object.group()) {
            return entries;
        }
        entries.push(Entry::Kind(GroupKind::new(object.group(), object.kind())));
        let is_wanted = (query.names.is_empty() || query.names.iter().any(|name| name == object.name()))
            && query.selector.matches(object);
        if is_wanted {
            let key = key_of(object);
            if namespace.is_none_or(|namespace| [namespace, ""].contains(&&*key.name.namespace)) {
                entries.push(Entry::Object(key, FoundObject::of(object, &context, &keep)));
            }
        }
        entries
    };
    let (mut objects, mut kinds) = (BTreeMap::new(), BTreeSet::new());
    let (mut uid, mut errors) = (None, Vec::new());
    for entry in bellwether_input::read(paths, &decode, &visit) {
        match entry {
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        Entry::Uid(own) => uid = Some(own),
                        Entry::Kind(kind) => {
                            kinds.insert(kind);
                        }
                        Entry::Object(key, object) => {
                            objects.insert(key, object);
                        }
                    }
                }
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    if kinds.len() > 1 {
        let names: Vec<_> = kinds.iter().map(ToString::to_string).collect();
        let error = format!("ambiguous kind {:?}: {}. Give the API group", query.kind, names.join(", "));
        return ReadCluster::unread(cluster, error);
    }
    ReadCluster {
        name: Arc::clone(&cluster.name),
        inventory: inventory(cluster, uid.as_deref()),
        kind: kinds.pop_first(),
        objects: Some(objects),
        errors,
        notes: Vec::new(),
    }
}

fn key_of(object: &Object<'_>) -> ObjectKey {
    let kind = GroupKind::new(object.group(), object.kind());
    let namespace = match object.namespace() {
        _ if is_of_the_cluster(&kind.group, &kind.kind) => "",
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    };
    key(&kind, namespace, object.name())
}
