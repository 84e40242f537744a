//! Objects for the garbage collector.

use std::{collections::BTreeSet, rc::Rc};

use serde_json::Value;

use crate::{cluster::MemoryCluster, object::Stored};

/// An object with an owner that does not exist.
#[derive(Debug)]
pub struct Garbage<O> {
    pub object: Rc<O>,
    /// The owner references whose owners exist. If empty, the garbage collector deletes the object.
    pub solid: Vec<Value>,
}

impl<O: Stored> MemoryCluster<O> {
    /// All objects with an owner that does not exist. `exists` is true for UIDs of owners outside this
    /// cluster.
    pub fn garbage(&self, exists: impl Fn(&str) -> bool) -> Vec<Garbage<O>> {
        let uids: BTreeSet<&str> = self.objects.values().map(|object| object.object().uid()).collect();
        let is_solid = |owner: &&Value| {
            let uid = owner["uid"].as_str().unwrap_or_default();
            exists(uid) || uids.contains(uid)
        };
        let garbage = |object: &Rc<O>| {
            let owners = object.object().metadata()["ownerReferences"].as_array()?;
            let solid: Vec<_> = owners.iter().filter(is_solid).cloned().collect();
            (solid.len() < owners.len()).then(|| Garbage { object: Rc::clone(object), solid })
        };
        self.objects.values().filter_map(garbage).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::cluster::tests::{cluster, manifest};

    #[test]
    fn an_object_without_an_existing_owner_is_garbage() {
        let found = |owners: &[&str]| {
            let mut cluster = cluster();
            let mut service = manifest("v1", "Service");
            let owners: Vec<_> = owners.iter().map(|uid| json!({ "uid": uid })).collect();
            service["metadata"]["ownerReferences"] = json!(owners);
            cluster.put(service);
            let garbage = cluster.garbage(|uid| uid == "elsewhere");
            garbage.into_iter().map(|garbage| garbage.solid).next()
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&["u1", "elsewhere"]), None);
        assert_eq!(found(&["gone"]), Some(vec![]));
        assert_eq!(found(&["gone", "u1"]), Some(vec![json!({ "uid": "u1" })]));
    }
}
