//! The result of a query without aggregate functions: one row for each cluster.

use std::{collections::BTreeMap, sync::Arc};

use crate::{cell::Cell, collector::Select, order::Order};

/// The rows that the filter selects, in the order of the result.
#[derive(Debug)]
pub(crate) struct Selection {
    query: Arc<Select>,
    rows: BTreeMap<(Order, Arc<str>), Selected>,
}

/// The values of the columns in one row.
#[derive(Clone, Debug)]
pub(crate) struct Selected(Arc<[Cell]>);

impl Selection {
    pub(crate) fn new(query: &Arc<Select>) -> Self {
        Self { query: Arc::clone(query), rows: BTreeMap::new() }
    }

    /// Whether the row with these values of the programs is the same as before.
    pub(crate) fn is_same(&self, old: &Selected, values: &[Cell]) -> bool {
        old.0.iter().eq(self.query.columns.iter().map(|program| &values[*program]))
    }

    pub(crate) fn add(&mut self, cluster: &Arc<str>, values: &[Cell]) -> Selected {
        let columns = self.query.columns.iter().map(|program| values[*program].clone());
        let selected = Selected(columns.collect());
        self.rows.insert((self.order(&selected), Arc::clone(cluster)), selected.clone());
        selected
    }

    pub(crate) fn retract(&mut self, cluster: &Arc<str>, selected: &Selected) {
        self.rows.remove(&(self.order(selected), Arc::clone(cluster)));
    }

    fn order(&self, selected: &Selected) -> Order {
        Order::new(&self.query.order_by, |column| selected.0[column].clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.rows.values().map(|selected| &*selected.0)
    }
}
