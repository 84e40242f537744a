//! The result of a query with aggregate functions: one row for each group.

use std::{borrow::Cow, collections::BTreeMap, mem, sync::Arc};

use slab::Slab;

use crate::{
    cell::Cell,
    collector::{Aggregate, Field, Subject},
    contribution::{Contribution, Kept},
    errors::{Errors, not_a_number},
    number::Number,
    order::Order,
    tally::{Overflow, Tally},
};

/// The groups that have rows.
#[derive(Debug)]
pub(crate) struct Groups {
    query: Arc<Aggregate>,
    all: Slab<Group>,
    by_key: BTreeMap<Arc<[Cell]>, usize>,
    /// Empty without `orderBy`: then `by_key` has the order of the result.
    by_order: BTreeMap<(Order, Arc<[Cell]>), usize>,
    /// Values that cannot be added.
    pub(crate) errors: Errors,
}

#[derive(Debug)]
struct Group {
    key: Arc<[Cell]>,
    order: Order,
    rows: u64,
    /// One for each subject.
    tallies: Box<[Tally]>,
}

impl Groups {
    pub(crate) fn new(query: &Arc<Aggregate>) -> Self {
        let columns = query.group_by.len() + query.fields.len();
        let mut groups = Self {
            query: Arc::clone(query),
            all: Slab::new(),
            by_key: BTreeMap::new(),
            by_order: BTreeMap::new(),
            errors: Errors::new(columns),
        };
        if query.keys == 0 {
            // Without groupBy, there is one group, even without rows.
            let only = groups.insert(Arc::default());
            groups.reorder(only);
        }
        groups
    }

    /// Adds a row with these values of the programs.
    pub(crate) fn add(&mut self, cluster: &Arc<str>, programs: &[Cell]) -> Contribution {
        let id = self.find(programs);
        let group = &mut self.all[id];
        group.rows += 1;
        let mut values = Vec::with_capacity(self.query.subjects.len());
        for (subject, tally) in self.query.subjects.iter().zip(&mut group.tallies) {
            let value = subject.value(programs);
            tally.add(&value, subject.needs);
            insert_error(&mut self.errors, cluster, subject, &value);
            values.push(Kept::new(value));
        }
        self.reorder(id);
        Contribution::new(id, values)
    }

    /// Changes the values of a row. Returns whether one of them is another one.
    pub(crate) fn change(
        &mut self,
        cluster: &Arc<str>,
        contribution: &mut Contribution,
        programs: &[Cell],
    ) -> bool {
        let old = contribution.group;
        if *self.all[old].key != programs[..self.query.keys] {
            self.move_row(cluster, contribution, programs);
            return true;
        }
        let mut changed = false;
        let subjects = self.query.subjects.iter().zip(&mut self.all[old].tallies);
        for ((subject, tally), value) in subjects.zip(contribution.values_mut()) {
            let new = subject.value(programs);
            if !value.is(&new) {
                changed = true;
                tally.retract(&value.cell(), subject.needs);
                tally.add(&new, subject.needs);
                replace(value, new, &mut self.errors, cluster, subject);
            }
        }
        if changed {
            self.reorder(old);
        }
        changed
    }

    /// Moves a row to another group.
    fn move_row(&mut self, cluster: &Arc<str>, contribution: &mut Contribution, programs: &[Cell]) {
        let old = mem::replace(&mut contribution.group, self.find(programs));
        let Some((from, to)) = self.all.get2_mut(old, contribution.group) else { return };
        from.rows -= 1;
        to.rows += 1;
        let tallies = from.tallies.iter_mut().zip(&mut to.tallies);
        let values = contribution.values_mut().iter_mut();
        for ((subject, (from, to)), value) in self.query.subjects.iter().zip(tallies).zip(values) {
            from.retract(&value.cell(), subject.needs);
            let new = subject.value(programs);
            to.add(&new, subject.needs);
            if !value.is(&new) {
                replace(value, new, &mut self.errors, cluster, subject);
            }
        }
        self.reorder_or_remove(old);
        self.reorder(contribution.group);
    }

    pub(crate) fn retract(&mut self, cluster: &Arc<str>, contribution: &Contribution) {
        let group = &mut self.all[contribution.group];
        group.rows -= 1;
        let subjects = self.query.subjects.iter().zip(&mut group.tallies);
        for ((subject, tally), value) in subjects.zip(contribution.values()) {
            let value = value.cell();
            tally.retract(&value, subject.needs);
            remove_error(&mut self.errors, cluster, subject, &value);
        }
        self.reorder_or_remove(contribution.group);
    }

    /// The group of a row; a new one has no rows.
    fn find(&mut self, programs: &[Cell]) -> usize {
        let key = &programs[..self.query.keys];
        self.by_key.get(key).copied().unwrap_or_else(|| self.insert(key.into()))
    }

    fn reorder_or_remove(&mut self, id: usize) {
        if self.all[id].rows == 0 && self.query.keys > 0 {
            let group = self.all.remove(id);
            self.by_key.remove(&group.key);
            self.by_order.remove(&(group.order, group.key));
        } else {
            self.reorder(id);
        }
    }

    /// Inserts a group without rows.
    fn insert(&mut self, key: Arc<[Cell]>) -> usize {
        let tallies = self.query.subjects.iter().map(|_| Tally::default()).collect();
        let group = Group { key: Arc::clone(&key), order: Order::default(), rows: 0, tallies };
        let id = self.all.insert(group);
        self.by_key.insert(key, id);
        id
    }

    /// Moves a group to its place in the result.
    fn reorder(&mut self, id: usize) {
        if self.query.order_by.is_empty() {
            return;
        }
        let group = &mut self.all[id];
        let value = |column| group.column(column, &self.query).unwrap_or_default();
        let order = Order::new(&self.query.order_by, value);
        if order == group.order {
            return;
        }
        let key = Arc::clone(&group.key);
        let old = mem::replace(&mut group.order, order.clone());
        self.by_order.remove(&(old, Arc::clone(&key)));
        self.by_order.insert((order, key), id);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The values of the columns, in the order of the result.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Vec<Result<Cell, Overflow>>> {
        // One of the two is empty.
        let by_key = self.by_key.values().filter(|_| self.query.order_by.is_empty());
        let columns = self.query.group_by.len() + self.query.fields.len();
        by_key.chain(self.by_order.values()).map(move |id| {
            let group = &self.all[*id];
            (0..columns).map(|column| group.column(column, &self.query)).collect()
        })
    }
}

impl Group {
    fn column(&self, column: usize, query: &Aggregate) -> Result<Cell, Overflow> {
        match column.checked_sub(query.group_by.len()) {
            None => Ok(self.key[query.group_by[column]].clone()),
            Some(field) => match query.fields[field] {
                Field { function, subject: Some(subject) } => self.tallies[subject].result(function),
                Field { subject: None, .. } => Ok(Cell::Number(Number::from(self.rows))),
            },
        }
    }
}

impl Subject {
    /// The value that the tally counts.
    fn value<'a>(&self, programs: &'a [Cell]) -> Cow<'a, Cell> {
        let value = &programs[self.program];
        if self.needs.measures() { value.measured() } else { Cow::Borrowed(value) }
    }
}

fn replace(value: &mut Kept, new: Cow<'_, Cell>, errors: &mut Errors, cluster: &Arc<str>, subject: &Subject) {
    remove_error(errors, cluster, subject, &value.cell());
    insert_error(errors, cluster, subject, &new);
    *value = Kept::new(new);
}

fn insert_error(errors: &mut Errors, cluster: &Arc<str>, subject: &Subject, value: &Cell) {
    if subject.adding_columns.is_empty() {
        return;
    }
    let Some(text) = not_a_number(value) else { return };
    for column in &subject.adding_columns {
        errors.insert(Some(*column), cluster, text.clone());
    }
}

fn remove_error(errors: &mut Errors, cluster: &str, subject: &Subject, value: &Cell) {
    if matches!(value, Cell::Null | Cell::Number(_)) {
        return;
    }
    for column in &subject.adding_columns {
        errors.remove(Some(*column), cluster);
    }
}
