//! The result of a collector, kept up to date row by row.

use std::{mem, sync::Arc};

use bellwether_api::CombinedResult;

use crate::{
    cell::Cell,
    collector::{Collector, Query},
    contribution::Contribution,
    errors::Errors,
    evaluate::{Evaluated, Failure},
    groups::Groups,
    render::{self, Page},
    row::Row,
    selection::{Selected, Selection},
};

/// The rows of a collector's input, and its result.
///
/// The caller numbers the rows, because it usually has several tables with the same rows and finds a row once for
/// all of them. A number stands for one cluster until its row is removed, and the memory of a table grows with the
/// largest number.
#[derive(Debug)]
pub struct Table {
    collector: Arc<Collector>,
    rows: Vec<State>,
    contents: Contents,
    /// The values of the programs for the current row.
    values: Box<[Cell]>,
}

/// What the rows contribute to the result.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) body: Body,
    pub(crate) row_errors: Errors,
}

#[derive(Debug)]
pub(crate) enum Body {
    Selection(Selection),
    Groups(Groups),
}

/// What one row contributes.
#[derive(Debug, Default)]
enum State {
    /// Nothing: the filter is not true, or there is no row.
    #[default]
    LeftOut,
    Failed(Box<[Failure]>),
    Selected(Selected),
    Combined(Contribution),
}

impl Table {
    /// A table without rows.
    pub fn new(collector: Arc<Collector>) -> Self {
        let body = match &collector.query {
            Query::Select(select) => Body::Selection(Selection::new(select)),
            Query::Aggregate(aggregate) => Body::Groups(Groups::new(aggregate)),
        };
        let row_errors = Errors::new(collector.columns.len());
        let values = collector.programs.iter().map(|_| Cell::Null).collect();
        Self { collector, rows: Vec::new(), contents: Contents { body, row_errors }, values }
    }

    /// Inserts or replaces the row with this number. Returns whether the result may have changed.
    pub fn upsert(&mut self, number: usize, cluster: &Arc<str>, row: &Row<'_>) -> bool {
        let evaluated = self.collector.evaluate(row, &mut self.values);
        if number >= self.rows.len() {
            self.rows.resize_with(number + 1, State::default);
        }
        self.contents.change(cluster, &mut self.rows[number], evaluated, &self.values)
    }

    /// Removes the row with this number. Returns whether the result may have changed.
    pub fn remove(&mut self, number: usize, cluster: &Arc<str>) -> bool {
        let state = self.rows.get_mut(number).map(mem::take).unwrap_or_default();
        self.contents.retract(cluster, &state)
    }

    /// The result as the API has it, with the name of the collector.
    pub fn result(&self, name: &str) -> CombinedResult {
        self.page(name, 0, self.collector.limit)
    }

    /// At most `limit` rows after the first `offset`, instead of those within the limit of the collector.
    pub fn page(&self, name: &str, offset: usize, limit: usize) -> CombinedResult {
        self.render(name, Page { offset, limit, max_bytes: None })
    }

    /// The result, cut so that its JSON has at most `max_bytes`, if the name of the collector leaves room for
    /// anything: the last rows are left out first, then errors, then the names of the columns.
    pub fn result_within(&self, name: &str, max_bytes: usize) -> CombinedResult {
        self.render(name, Page { offset: 0, limit: self.collector.limit, max_bytes: Some(max_bytes) })
    }

    fn render(&self, name: &str, page: Page) -> CombinedResult {
        render::page(&self.collector, &self.contents, name, page)
    }
}

impl Contents {
    fn change(
        &mut self,
        cluster: &Arc<str>,
        state: &mut State,
        evaluated: Evaluated,
        values: &[Cell],
    ) -> bool {
        // The most frequent case.
        if let (Evaluated::Values, State::Combined(contribution), Body::Groups(groups)) =
            (&evaluated, &mut *state, &mut self.body)
        {
            return groups.change(cluster, contribution, values);
        }
        match (evaluated, &*state, &self.body) {
            (Evaluated::LeftOut, ..) => return self.retract(cluster, &mem::take(state)),
            (Evaluated::Failed(failures), State::Failed(known), _) if *failures == **known => return false,
            (Evaluated::Values, State::Selected(selected), Body::Selection(selection))
                if selection.is_same(selected, values) =>
            {
                return false;
            }
            (Evaluated::Failed(failures), ..) => {
                self.retract(cluster, state);
                self.row_errors.add_row(cluster, &failures);
                *state = State::Failed(failures.into());
            }
            (Evaluated::Values, ..) => {
                self.retract(cluster, state);
                *state = match &mut self.body {
                    Body::Selection(selection) => State::Selected(selection.add(cluster, values)),
                    Body::Groups(groups) => State::Combined(groups.add(cluster, values)),
                };
            }
        }
        true
    }

    /// Removes what a row contributes. Returns whether that is anything.
    fn retract(&mut self, cluster: &Arc<str>, state: &State) -> bool {
        match (state, &mut self.body) {
            (State::Failed(failures), _) => self.row_errors.retract_row(cluster, failures),
            (State::Selected(selected), Body::Selection(selection)) => selection.retract(cluster, selected),
            (State::Combined(contribution), Body::Groups(groups)) => groups.retract(cluster, contribution),
            _ => return false,
        }
        true
    }
}
