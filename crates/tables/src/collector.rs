//! Compiled StatusCollectors.

use std::{collections::BTreeSet, fmt, sync::Arc};

use bellwether_api::{Aggregator, StatusCollectorSpec};
use bellwether_expr::Program;

use crate::{compile, tally::Needs};

/// A StatusCollector that was checked and compiled.
#[derive(Debug)]
pub struct Collector {
    /// Without duplicates: each is evaluated once for a row.
    pub(crate) programs: Box<[Program]>,
    /// The index of a program, as in all fields below.
    pub(crate) filter: Option<usize>,
    pub(crate) query: Query,
    pub(crate) columns: Box<[Box<str>]>,
    pub(crate) limit: usize,
}

#[derive(Debug)]
pub(crate) enum Query {
    Select(Arc<Select>),
    Aggregate(Arc<Aggregate>),
}

/// One row for each cluster.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) columns: Box<[usize]>,
    pub(crate) order_by: Box<[OrderColumn]>,
}

/// One row for each group.
#[derive(Debug)]
pub(crate) struct Aggregate {
    /// The number of programs that are the key of a group: the first ones.
    pub(crate) keys: usize,
    /// The programs of the first columns.
    pub(crate) group_by: Box<[usize]>,
    pub(crate) subjects: Box<[Subject]>,
    pub(crate) fields: Box<[Field]>,
    pub(crate) order_by: Box<[OrderColumn]>,
}

/// The argument of one or more aggregate functions.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) program: usize,
    pub(crate) needs: Needs,
    /// The columns that add its values.
    pub(crate) adding_columns: Box<[usize]>,
}

/// An aggregate function.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) function: Aggregator,
    /// The index of a subject; `None` to count rows.
    pub(crate) subject: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderColumn {
    pub(crate) column: usize,
    pub(crate) descending: bool,
}

/// A variable of the expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The cluster.
    Inventory,
    /// The object in the hub.
    Obj,
    /// The object in the cluster.
    Returned,
    /// What is known of the object in the cluster.
    Propagation,
}

/// An error in a StatusCollector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorError {
    /// Path of the field, with line and column if it is in CEL: `spec.filter: line 1, column 4`.
    pub place: String,
    /// What is wrong, and often what to write instead.
    pub text: String,
}

impl fmt::Display for CollectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

impl std::error::Error for CollectorError {}

impl Collector {
    /// Checks and compiles a StatusCollector. Returns all errors, not only the first.
    pub fn compile(spec: &StatusCollectorSpec) -> Result<Self, Vec<CollectorError>> {
        compile::compile(spec)
    }

    /// The paths that the expressions read of a variable. An empty path is the whole variable. Indexes of
    /// lists are left out.
    pub fn paths(&self, variable: Variable) -> BTreeSet<Box<[Box<str>]>> {
        let paths = self.programs.iter().flat_map(Program::paths);
        paths
            .filter(|path| path.root() == variable as usize)
            .map(|path| path.fields().into_iter().map(Into::into).collect())
            .collect()
    }

    /// The names of the columns of a result, in order.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|name| &**name)
    }
}
