//! The store of a simulated cluster.

use std::rc::Rc;

use bellwether_engine::GroupKind;
use bellwether_memory_cluster::MemoryCluster;

use crate::{known::Known, object::Object, objects};

pub(crate) type Store = MemoryCluster<Object>;

/// A store without objects. Like etcd's, its first revision is 1.
pub(crate) fn empty() -> Store {
    let mut store = Store::new(objects::kinds(), |number| format!("u{number}"));
    store.revision = 1;
    store
}

/// A kind as a reader with complete and current knowledge sees it.
pub(crate) fn known(store: &Store, kind: &GroupKind) -> Known {
    let served = store.kinds.get(kind).cloned();
    let objects = store.of_kind(kind).map(|object| (object.name.clone(), Rc::clone(object)));
    Known { served, listed: true, objects: objects.collect(), ..Known::default() }
}
