//! The input of a query: one object in one cluster.

use bellwether_expr::{Absent, Input, Path, Val};
use bellwether_model::Value;

/// The variables of a row. `Value::Null` where there is nothing.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The cluster: name, labels, annotations, uid.
    pub inventory: &'a Value<'a>,
    /// The object in the hub.
    pub obj: &'a Value<'a>,
    /// The object in the cluster, with its status.
    pub returned: &'a Value<'a>,
    /// What is known of the object in the cluster, and how current that is.
    pub propagation: &'a Value<'a>,
}

/// In the order of [`Scope::row`](bellwether_expr::Scope::row).
impl Input for Row<'_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        let variable = match path.root() {
            0 => self.inventory,
            1 => self.obj,
            2 => self.returned,
            _ => self.propagation,
        };
        path.find(variable, passed).map(Val::from)
    }
}
