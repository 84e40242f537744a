//! The result of a collector, kept up to date row by row.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
};

use bellwether_api::CombinedResult;

use crate::{
    cell::{Cell, Ordered},
    collector::{Aggregate, Collector, Query},
    errors::{Errors, not_a_number},
    evaluate::{Evaluated, Failure},
    groups::{Contribution, Groups},
    render,
    row::Row,
    tally::Overflow,
};

/// The rows of a collector's input and its result.
#[derive(Debug)]
pub struct Table {
    pub(crate) collector: Arc<Collector>,
    rows: HashMap<Arc<str>, State>,
    pub(crate) body: Body,
    pub(crate) row_errors: Errors,
    pub(crate) aggregation_errors: Errors,
    /// The values of the programs for the current row.
    values: Vec<Cell>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Select(BTreeMap<(Box<[Ordered]>, Arc<str>), Arc<[Cell]>>),
    Aggregate(Groups),
}

/// What a row contributes to the result.
#[derive(Debug)]
enum State {
    LeftOut,
    Failed(Box<[Failure]>),
    Selected(Arc<[Cell]>),
    Combined(Contribution),
}

impl Table {
    /// A table without rows.
    pub fn new(collector: Arc<Collector>) -> Self {
        let body = match &collector.query {
            Query::Select(_) => Body::Select(BTreeMap::new()),
            Query::Aggregate(aggregate) => Body::Aggregate(Groups::new(&collector, aggregate)),
        };
        let columns = collector.columns.len();
        Self {
            collector,
            rows: HashMap::new(),
            body,
            row_errors: Errors::new(columns),
            aggregation_errors: Errors::new(columns),
            values: Vec::new(),
        }
    }

    /// Inserts or replaces the row of a cluster. Returns whether the result may have changed.
    pub fn upsert(&mut self, cluster: &Arc<str>, row: &Row<'_>) -> bool {
        let mut values = mem::take(&mut self.values);
        let evaluated = self.collector.evaluate(row, &mut values);
        let changed = self.apply(cluster, evaluated, &values);
        self.values = values;
        changed
    }

    fn apply(&mut self, cluster: &Arc<str>, evaluated: Evaluated, values: &[Cell]) -> bool {
        let collector = Arc::clone(&self.collector);
        let old = self.rows.get_mut(cluster).map(|state| mem::replace(state, State::LeftOut));
        let is_new = old.is_none();
        let old = old.unwrap_or(State::LeftOut);
        let (state, changed) = match evaluated {
            Evaluated::LeftOut => (State::LeftOut, self.retract(cluster, old)),
            Evaluated::Failed(failures) => match old {
                State::Failed(known) if *known == *failures => (State::Failed(known), false),
                old => {
                    self.retract(cluster, old);
                    for failure in &failures {
                        self.row_errors.insert(failure.column, cluster, failure.text.clone());
                    }
                    (State::Failed(failures.into()), true)
                }
            },
            Evaluated::Values => match &collector.query {
                Query::Select(programs) => self.select(cluster, old, programs, values),
                Query::Aggregate(aggregate) => self.combine(cluster, old, aggregate, values),
            },
        };
        if is_new {
            self.rows.insert(Arc::clone(cluster), state);
        } else if let Some(place) = self.rows.get_mut(cluster) {
            *place = state;
        }
        changed
    }

    fn select(
        &mut self,
        cluster: &Arc<str>,
        old: State,
        programs: &[usize],
        values: &[Cell],
    ) -> (State, bool) {
        if let State::Selected(known) = &old
            && known.iter().eq(programs.iter().map(|program| &values[*program]))
        {
            return (old, false);
        }
        self.retract(cluster, old);
        let cells: Arc<[Cell]> = programs.iter().map(|program| values[*program].clone()).collect();
        let order = self.order(&cells);
        if let Body::Select(selected) = &mut self.body {
            selected.insert((order, Arc::clone(cluster)), Arc::clone(&cells));
        }
        (State::Selected(cells), true)
    }

    fn combine(
        &mut self,
        cluster: &Arc<str>,
        old: State,
        aggregate: &Aggregate,
        values: &[Cell],
    ) -> (State, bool) {
        let key: Vec<Cell> = aggregate.group_by.iter().map(|program| values[*program].clone()).collect();
        let subjects = aggregate.subjects.iter().map(|subject| {
            let value = values[subject.program].clone();
            if subject.needs.measures() { value.measured() } else { value }
        });
        let subjects: Box<[Cell]> = subjects.collect();
        if let (Body::Aggregate(groups), State::Combined(known)) = (&self.body, &old)
            && groups.has_key(known, &key)
            && known.has_values(&subjects)
        {
            return (old, false);
        }
        self.retract(cluster, old);
        for (subject, value) in aggregate.subjects.iter().zip(&subjects) {
            let Some(text) = not_a_number(value) else { continue };
            for column in &subject.adding_columns {
                self.aggregation_errors.insert(Some(*column), cluster, text.clone());
            }
        }
        let Body::Aggregate(groups) = &mut self.body else { return (State::LeftOut, false) };
        (State::Combined(groups.add(&key, subjects, &self.collector, aggregate)), true)
    }

    /// Removes what a row contributes. Returns whether that is anything.
    fn retract(&mut self, cluster: &str, state: State) -> bool {
        match state {
            State::LeftOut => return false,
            State::Failed(failures) => {
                for failure in &failures {
                    self.row_errors.remove(failure.column, cluster);
                }
            }
            State::Selected(cells) => {
                let order = self.order(&cells);
                if let Body::Select(selected) = &mut self.body {
                    selected.remove(&(order, cluster.into()));
                }
            }
            State::Combined(contribution) => {
                let Query::Aggregate(aggregate) = &self.collector.query else { return false };
                for (subject, value) in aggregate.subjects.iter().zip(contribution.values()) {
                    if not_a_number(value).is_some() {
                        for column in &subject.adding_columns {
                            self.aggregation_errors.remove(Some(*column), cluster);
                        }
                    }
                }
                if let Body::Aggregate(groups) = &mut self.body {
                    groups.retract(&contribution, &self.collector, aggregate);
                }
            }
        }
        true
    }

    fn order(&self, cells: &[Cell]) -> Box<[Ordered]> {
        let order = self.collector.order_by.iter();
        order.map(|by| Ordered { cell: cells[by.column].clone(), descending: by.descending }).collect()
    }

    /// Removes the row of a cluster. Returns whether the result may have changed.
    pub fn remove(&mut self, cluster: &str) -> bool {
        match self.rows.remove(cluster) {
            Some(state) => self.retract(cluster, state),
            None => false,
        }
    }

    /// The result as the API has it, with the collector's name.
    pub fn result(&self, name: &str) -> CombinedResult {
        render::result(self, name)
    }

    /// At most `limit` rows after the first `offset`, instead of those within the collector's limit.
    pub fn page(&self, name: &str, offset: usize, limit: usize) -> CombinedResult {
        render::page(self, name, offset, limit)
    }

    /// As [`Table::result`], with rows cut off at the end until its JSON has at most `max_bytes`, if that is possible.
    pub fn result_within(&self, name: &str, max_bytes: usize) -> CombinedResult {
        render::cut(self.result(name), max_bytes)
    }

    pub(crate) fn total_rows(&self) -> usize {
        match &self.body {
            Body::Select(selected) => selected.len(),
            Body::Aggregate(groups) => groups.len(),
        }
    }

    /// The rows of the result, before the limit.
    pub(crate) fn ordered_rows(&self) -> Box<dyn Iterator<Item = Vec<Result<Cell, Overflow>>> + '_> {
        match (&self.body, &self.collector.query) {
            (Body::Aggregate(groups), Query::Aggregate(aggregate)) => {
                Box::new(groups.rows(&self.collector, aggregate))
            }
            (Body::Select(selected), _) => {
                Box::new(selected.values().map(|cells| cells.iter().cloned().map(Ok).collect()))
            }
            // The body is made for the query.
            (Body::Aggregate(_), Query::Select(_)) => Box::new(std::iter::empty()),
        }
    }
}
