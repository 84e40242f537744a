//! The store of a simulated cluster.

use std::rc::Rc;

use bellwether_engine::GroupKind;
use bellwether_memory_cluster::MemoryCluster;

use crate::{known::Known, object::Object, objects};

pub(crate) type Store = MemoryCluster<Object>;

/// A store without objects.
pub(crate) fn empty() -> Store {
    begun(|number| format!("u{number}"))
}

/// The store of a cluster that was rebuilt: its objects have other UIDs than those of the cluster before.
pub(crate) fn rebuilt(times: u64) -> Store {
    match times % 3 {
        0 => empty(),
        1 => begun(|number| format!("v{number}")),
        _ => begun(|number| format!("w{number}")),
    }
}

/// Like etcd's, its first revision is 1.
fn begun(uid: fn(u64) -> String) -> Store {
    let mut store = Store::new(objects::kinds(), uid);
    store.revision = 1;
    store
}

/// A kind as a reader with complete and current knowledge sees it.
pub(crate) fn known(store: &Store, kind: &GroupKind) -> Known {
    let served = store.kinds.get(kind).cloned();
    let objects = store.of_kind(kind).map(|object| (object.name.clone(), Rc::clone(object)));
    Known { served, listed: true, objects: objects.collect(), ..Known::default() }
}
