//! What other users do to CombinedStatuses.

use std::rc::Rc;

use bellwether_engine::GroupKind;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{object::merge, store::Store};

/// What another user does to a CombinedStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Tampering {
    Delete,
    DropResults,
    DropCounts,
    DropLabels,
    DropOwner,
    /// Creates another one without reason, with a similar name.
    Copy,
}

impl Tampering {
    /// Applies it to one of the CombinedStatuses, counted by `number`.
    pub(crate) fn apply(self, number: usize, store: &mut Store) {
        let kind = GroupKind::bellwether("CombinedStatus");
        let all: Vec<_> = store.of_kind(&kind).map(Rc::clone).collect();
        let Some(object) = number.checked_rem(all.len()).and_then(|number| all.get(number)) else { return };
        let mut value = object.value.clone();
        match self {
            Self::Delete => {
                store.remove(&kind, &object.name);
                return;
            }
            Self::DropResults => value["results"] = json!([]),
            Self::DropCounts => merge(&mut value, &json!({"clusters": null})),
            Self::DropLabels => value["metadata"]["labels"] = json!({"example.com/mine": "yes"}),
            Self::DropOwner => merge(&mut value, &json!({"metadata": {"ownerReferences": null}})),
            Self::Copy => {
                let name = format!("copy-of-{}", object.name.name);
                merge(&mut value, &json!({"metadata": {"name": name, "uid": null, "ownerReferences": null}}));
            }
        }
        store.put(value);
    }
}
