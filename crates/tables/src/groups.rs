//! The groups of a query with aggregate functions.

use std::{collections::BTreeMap, sync::Arc};

use slab::Slab;

use crate::{
    cell::{Cell, Ordered},
    collector::{Aggregate, Collector, Field},
    number::Number,
    tally::{Overflow, Tally},
};

/// The groups that have rows, in the order of the result.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Slab<Group>,
    by_key: BTreeMap<Arc<[Cell]>, usize>,
    /// Empty without `orderBy`: then `by_key` has the order of the result.
    by_order: BTreeMap<(Box<[Ordered]>, Arc<[Cell]>), usize>,
}

#[derive(Debug)]
struct Group {
    key: Arc<[Cell]>,
    order: Box<[Ordered]>,
    rows: u64,
    /// One for each subject.
    tallies: Box<[Tally]>,
}

/// What a row contributes to its group.
#[derive(Debug)]
pub(crate) struct Contribution {
    group: usize,
    /// One value for each subject.
    values: Box<[Cell]>,
}

impl Groups {
    pub(crate) fn new(collector: &Collector, aggregate: &Aggregate) -> Self {
        let mut groups = Self::default();
        if aggregate.group_by.is_empty() {
            // Without groupBy, there is one group, even without rows.
            let only = groups.find(&[], aggregate);
            groups.reorder(only, collector, aggregate);
        }
        groups
    }

    /// The group of a key; a new one is empty.
    fn find(&mut self, key: &[Cell], aggregate: &Aggregate) -> usize {
        if let Some(group) = self.by_key.get(key) {
            return *group;
        }
        let key: Arc<[Cell]> = key.into();
        let tallies = aggregate.subjects.iter().map(|_| Tally::default()).collect();
        let group = Group { key: Arc::clone(&key), order: Box::default(), rows: 0, tallies };
        let group = self.groups.insert(group);
        self.by_key.insert(key, group);
        group
    }

    /// Adds a row.
    pub(crate) fn add(
        &mut self,
        key: &[Cell],
        values: Box<[Cell]>,
        collector: &Collector,
        aggregate: &Aggregate,
    ) -> Contribution {
        let id = self.find(key, aggregate);
        let group = &mut self.groups[id];
        group.rows += 1;
        for ((tally, value), subject) in group.tallies.iter_mut().zip(&values).zip(&aggregate.subjects) {
            tally.add(value, subject.needs);
        }
        self.reorder(id, collector, aggregate);
        Contribution { group: id, values }
    }

    pub(crate) fn retract(
        &mut self,
        contribution: &Contribution,
        collector: &Collector,
        aggregate: &Aggregate,
    ) {
        let group = &mut self.groups[contribution.group];
        group.rows -= 1;
        if group.rows == 0 && !aggregate.group_by.is_empty() {
            let group = self.groups.remove(contribution.group);
            self.by_key.remove(&group.key);
            self.by_order.remove(&(group.order, group.key));
            return;
        }
        let tallies = group.tallies.iter_mut().zip(&contribution.values);
        for ((tally, value), subject) in tallies.zip(&aggregate.subjects) {
            tally.retract(value, subject.needs);
        }
        self.reorder(contribution.group, collector, aggregate);
    }

    pub(crate) fn has_key(&self, contribution: &Contribution, key: &[Cell]) -> bool {
        *self.groups[contribution.group].key == *key
    }

    /// Moves a group to its place in the order of the result.
    fn reorder(&mut self, id: usize, collector: &Collector, aggregate: &Aggregate) {
        if collector.order_by.is_empty() {
            return;
        }
        let group = &mut self.groups[id];
        let order: Box<[Ordered]> = collector
            .order_by
            .iter()
            .map(|by| Ordered {
                cell: group.column(by.column, aggregate).unwrap_or_default(),
                descending: by.descending,
            })
            .collect();
        if order == group.order && group.rows > 1 {
            return;
        }
        let old = std::mem::replace(&mut group.order, order.clone());
        self.by_order.remove(&(old, Arc::clone(&group.key)));
        self.by_order.insert((order, Arc::clone(&group.key)), id);
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The groups in the order of the result: the values of their columns.
    pub(crate) fn rows<'a>(
        &'a self,
        collector: &Collector,
        aggregate: &'a Aggregate,
    ) -> impl Iterator<Item = Vec<Result<Cell, Overflow>>> + 'a {
        let ids: Box<dyn Iterator<Item = &usize>> = if collector.order_by.is_empty() {
            Box::new(self.by_key.values())
        } else {
            Box::new(self.by_order.values())
        };
        let columns = aggregate.group_by.len() + aggregate.fields.len();
        ids.map(move |id| (0..columns).map(|column| self.groups[*id].column(column, aggregate)).collect())
    }
}

impl Contribution {
    pub(crate) fn values(&self) -> &[Cell] {
        &self.values
    }

    pub(crate) fn has_values(&self, values: &[Cell]) -> bool {
        *self.values == *values
    }
}

impl Group {
    fn column(&self, column: usize, aggregate: &Aggregate) -> Result<Cell, Overflow> {
        match column.checked_sub(self.key.len()) {
            None => Ok(self.key[column].clone()),
            Some(field) => match aggregate.fields[field] {
                Field { function, subject: Some(subject) } => self.tallies[subject].result(function),
                Field { subject: None, .. } => Ok(Cell::Number(Number::from(self.rows))),
            },
        }
    }
}
