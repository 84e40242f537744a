//! The fields of objects that collectors read.

use std::collections::BTreeSet;

use bellwether_model::Plan;
use bellwether_tables::{Collector, Variable};

/// The fields of objects and clusters that some collector reads.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    paths: BTreeSet<Vec<String>>,
    /// Whether all fields of objects are read.
    whole: bool,
    /// Whether the UID of the cluster is read.
    pub(super) uid: bool,
}

impl Fields {
    pub fn of<'c>(collectors: impl IntoIterator<Item = &'c Collector>) -> Self {
        let mut fields = Self::default();
        for collector in collectors {
            for variable in [Variable::Obj, Variable::Returned] {
                for path in collector.paths(variable) {
                    fields.whole |= path.is_empty();
                    fields.paths.insert(path.iter().map(ToString::to_string).collect());
                }
            }
            let of_inventory = collector.paths(Variable::Inventory);
            fields.uid |= of_inventory.iter().any(|path| path.first().is_none_or(|first| **first == *"uid"));
        }
        fields
    }

    /// What is decoded, including what rules of health read.
    pub(super) fn to_decode(&self) -> Plan {
        if self.whole { Plan::whole() } else { self.with_paths(Plan::everything()) }
    }

    /// What is kept after an object was assessed.
    pub(super) fn to_keep(&self) -> Plan {
        if self.whole { Plan::whole() } else { self.with_paths(Plan::identity()) }
    }

    fn with_paths(&self, mut plan: Plan) -> Plan {
        for path in &self.paths {
            plan.add(&Plan::all_of(&path.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        plan
    }
}
