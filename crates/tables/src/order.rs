//! The order of the rows in a result.

use std::cmp::Ordering;

use crate::{cell::Cell, collector::OrderColumn};

/// The place of a row in the order that a collector asks for; always empty without `orderBy`.
///
/// Compares only with places of the same collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order(Box<[Directed]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Directed {
    cell: Cell,
    descending: bool,
}

impl Order {
    /// `value` is the value of a column.
    pub(crate) fn new(order_by: &[OrderColumn], value: impl Fn(usize) -> Cell) -> Self {
        let columns = order_by.iter();
        Self(columns.map(|by| Directed { cell: value(by.column), descending: by.descending }).collect())
    }
}

impl Ord for Directed {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.cell.cmp(&other.cell);
        if self.descending { order.reverse() } else { order }
    }
}

impl PartialOrd for Directed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
