//! Checks a StatusCollector and compiles its expressions.
//!
//! The API server has checked some of this for the objects in a cluster, and nothing for those in files.

use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, LazyLock},
};

use bellwether_api::{Aggregator, Expression, StatusCollectorSpec};
use bellwether_expr::{CompileError, Place, Program, Scope, Type};
use regex::Regex;

use crate::{
    collector::{Aggregate, Collector, CollectorError, Field, OrderColumn, Query, Select, Subject},
    tally::Needs,
};

/// The maximum number of entries in a list of the spec.
const MOST_ENTRIES: usize = 32;

/// The maximum number of rows in a result.
const MOST_ROWS: usize = 1000;

pub(crate) fn compile(spec: &StatusCollectorSpec) -> Result<Collector, Vec<CollectorError>> {
    let mut compiler = Compiler::default();
    compiler.check_shape(spec);
    let limit = compiler.limit(spec.limit);
    let columns = compiler.columns(spec);
    let order_by = compiler.order_by(spec, &columns);
    // First of all: the values of the first programs are the key of a group.
    let group_by = compiler.definitions("groupBy", &spec.group_by);
    let keys = compiler.programs.len();
    let filter = spec.filter.as_ref().and_then(|filter| compiler.filter(filter));
    let query = if spec.select.is_empty() {
        let (subjects, fields) = compiler.combined_fields(spec);
        Query::Aggregate(Arc::new(Aggregate { keys, group_by, subjects, fields, order_by }))
    } else {
        Query::Select(Arc::new(Select { columns: compiler.definitions("select", &spec.select), order_by }))
    };
    if !compiler.errors.is_empty() {
        return Err(compiler.errors);
    }
    Ok(Collector { programs: compiler.programs.into(), filter, query, columns, limit })
}

#[derive(Default)]
struct Compiler<'a> {
    sources: Vec<&'a Expression>,
    programs: Vec<Program>,
    errors: Vec<CollectorError>,
}

impl<'a> Compiler<'a> {
    fn error(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.errors.push(CollectorError { place: place.into(), text: text.into() });
    }

    fn check_shape(&mut self, spec: &StatusCollectorSpec) {
        let lists = [
            ("groupBy", spec.group_by.len()),
            ("combinedFields", spec.combined_fields.len()),
            ("select", spec.select.len()),
            ("orderBy", spec.order_by.len()),
        ];
        for (list, entries) in lists {
            if entries > MOST_ENTRIES {
                self.error(
                    format!("spec.{list}"),
                    format!("at most {MOST_ENTRIES} entries, found {entries}"),
                );
            }
        }
        let aggregates = lists[..2].iter().any(|(_, entries)| *entries > 0);
        match (spec.select.is_empty(), aggregates) {
            (false, true) => self.error(
                "spec.select",
                "not allowed with groupBy or combinedFields; use select to list clusters one by one, groupBy and \
                 combinedFields to combine them",
            ),
            (true, false) => self.error(
                "spec",
                "select is required; set select to list clusters one by one, or groupBy or combinedFields to \
                 combine them",
            ),
            _ => {}
        }
    }

    fn limit(&mut self, limit: i64) -> usize {
        if let Ok(limit @ 1..=MOST_ROWS) = usize::try_from(limit) {
            return limit;
        }
        self.error("spec.limit", format!("must be from 1 to {MOST_ROWS}, found {limit}"));
        MOST_ROWS
    }

    /// The index of the program; `None` after an error.
    fn program(&mut self, source: &'a Expression, field: &str) -> Option<usize> {
        if let Some(known) = self.sources.iter().position(|own| *own == source) {
            return Some(known);
        }
        let scope = Scope::row();
        let program = match &source.0 {
            serde_json::Value::String(text) => Program::cel(text, &scope),
            tree => Program::tree(tree, &scope),
        };
        match program {
            Ok(program) => {
                self.sources.push(source);
                self.programs.push(program);
                Some(self.programs.len() - 1)
            }
            Err(error) => {
                self.errors.push(in_field(field, error));
                None
            }
        }
    }

    fn filter(&mut self, source: &'a Expression) -> Option<usize> {
        let program = self.program(source, "spec.filter")?;
        if ![Type::Bool, Type::Optional].into_iter().any(|own| self.programs[program].can_be(own)) {
            let hint = "write a comparison, for example propagation.health == 'Ready'";
            self.error("spec.filter", format!("the expression must evaluate to bool; {hint}"));
        }
        Some(program)
    }

    fn definitions(&mut self, list: &str, entries: &'a [bellwether_api::NamedExpression]) -> Box<[usize]> {
        let mut programs = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let field = format!("spec.{list}[{index}].def");
            if let Some(source) = &entry.def {
                programs.extend(self.program(source, &field));
            } else {
                self.error(field, "required; write an expression, for example inventory.name");
            }
        }
        programs.into()
    }

    fn combined_fields(&mut self, spec: &'a StatusCollectorSpec) -> (Box<[Subject]>, Box<[Field]>) {
        let mut subjects: Vec<Subject> = Vec::new();
        let mut fields = Vec::new();
        for (index, field) in spec.combined_fields.iter().enumerate() {
            let place = format!("spec.combinedFields[{index}].subject");
            let function = field.type_;
            let subject = match &field.subject {
                Some(source) => {
                    let Some(program) = self.program(source, &place) else { continue };
                    self.check_subject(function, program, &place);
                    let known = subjects.iter().position(|subject| subject.program == program);
                    let position = known.unwrap_or_else(|| {
                        subjects.push(Subject::new(program));
                        subjects.len() - 1
                    });
                    subjects[position].use_in(function, spec.group_by.len() + index);
                    Some(position)
                }
                None if function == Aggregator::Count => None,
                None => {
                    let name = name_of(function);
                    self.error(
                        place,
                        format!("required for {name}; write the expression that {name} combines"),
                    );
                    None
                }
            };
            fields.push(Field { function, subject });
        }
        (subjects.into(), fields.into())
    }

    fn check_subject(&mut self, function: Aggregator, program: usize, place: &str) {
        let adds = matches!(function, Aggregator::Sum | Aggregator::Avg);
        let types =
            [Type::Null, Type::Int, Type::Uint, Type::Double, Type::Text, Type::Quantity, Type::Optional];
        if adds && !types.into_iter().any(|own| self.programs[program].can_be(own)) {
            let name = name_of(function);
            self.error(
                place,
                format!("{name} expects a number; use COUNT with a filter to count rows for which something is true"),
            );
        }
    }

    fn columns(&mut self, spec: &StatusCollectorSpec) -> Box<[Box<str>]> {
        let group_by = spec.group_by.iter().map(|entry| ("groupBy", &entry.name));
        let combined = spec.combined_fields.iter().map(|entry| ("combinedFields", &entry.name));
        let select = spec.select.iter().map(|entry| ("select", &entry.name));
        let mut known = BTreeSet::new();
        let (mut list, mut index) = ("", 0);
        let mut columns = Vec::new();
        for (own, name) in group_by.chain(combined).chain(select) {
            (list, index) = if own == list { (list, index + 1) } else { (own, 0) };
            let place = format!("spec.{list}[{index}].name");
            if !is_column_name(name) {
                let text = "invalid column name; use 1 to 63 characters, without spaces at the start or end";
                self.error(place, text);
            } else if !known.insert(name) {
                self.error(place, format!("duplicate column `{name}`; use different names"));
            }
            columns.push(name.as_str().into());
        }
        columns.into()
    }

    fn order_by(&mut self, spec: &StatusCollectorSpec, columns: &[Box<str>]) -> Box<[OrderColumn]> {
        let mut order_by: Vec<OrderColumn> = Vec::new();
        for (index, order) in spec.order_by.iter().enumerate() {
            let place = format!("spec.orderBy[{index}].column");
            let name = &order.column;
            match columns.iter().position(|own| **own == **name) {
                Some(column) if order_by.iter().any(|other| other.column == column) => {
                    self.error(place, format!("duplicate column `{name}`; name each column once"));
                }
                Some(column) => order_by.push(OrderColumn { column, descending: order.descending }),
                None => {
                    let names: Vec<_> = columns.iter().map(|own| format!("`{own}`")).collect();
                    self.error(place, format!("unknown column `{name}`; use one of {}", names.join(", ")));
                }
            }
        }
        order_by.into()
    }
}

impl Subject {
    fn new(program: usize) -> Self {
        Self { program, needs: Needs::default(), adding_columns: Box::default() }
    }

    fn use_in(&mut self, function: Aggregator, column: usize) {
        self.needs.include(function);
        if matches!(function, Aggregator::Sum | Aggregator::Avg) {
            let mut columns = mem::take(&mut self.adding_columns).into_vec();
            columns.push(column);
            self.adding_columns = columns.into();
        }
    }
}

fn name_of(function: Aggregator) -> &'static str {
    match function {
        Aggregator::Count => "COUNT",
        Aggregator::Sum => "SUM",
        Aggregator::Avg => "AVG",
        Aggregator::Min => "MIN",
        Aggregator::Max => "MAX",
    }
}

/// As in the schema of the CRD.
fn is_column_name(name: &str) -> bool {
    // Such a pattern always compiles.
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[^\t\n\f\r \pC]([^\pC]*[^\t\n\f\r \pC])?$").ok());
    name.chars().count() <= 63 && PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(name))
}

fn in_field(field: &str, error: CompileError) -> CollectorError {
    let place = match error.place {
        Place::Tree(path) if path.is_empty() => field.to_owned(),
        Place::Tree(path) => format!("{field}.{path}"),
        place => format!("{field}: {place}"),
    };
    let text = match error.hint {
        Some(hint) => format!("{}; {hint}", error.text),
        None => error.text,
    };
    CollectorError { place, text }
}
