//! The columns of SELECT: expressions and aggregates, and their names.

use bellwether_api::{Aggregator, CombinedField, Expression, NamedExpression};
use sqlparser::{
    ast::{
        DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned as _,
    },
    tokenizer::Location,
};

use crate::{cel::Cel, error::SqlError, expression, path::last_field};

/// The longest name of a column of a StatusCollector.
const MAX_NAME: usize = 63;

/// What a column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Plain(Cel),
    Aggregate { function: Aggregator, subject: Option<Cel> },
}

/// A column of SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) content: Content,
    pub(crate) at: Location,
}

/// The name of a function in upper case.
pub(crate) fn function_name(function: &Function) -> String {
    function.name.to_string().to_uppercase()
}

pub(crate) fn aggregator(name: &str) -> Option<Aggregator> {
    Some(match name {
        "COUNT" => Aggregator::Count,
        "SUM" => Aggregator::Sum,
        "AVG" => Aggregator::Avg,
        "MIN" => Aggregator::Min,
        "MAX" => Aggregator::Max,
        _ => return None,
    })
}

impl Content {
    pub(crate) fn of(expression: &Expr) -> Result<Self, SqlError> {
        if let Expr::Nested(inner) = expression {
            return Self::of(inner);
        }
        let Expr::Function(call) = expression else {
            return Ok(Self::Plain(expression::translate(expression)?));
        };
        let name = function_name(call);
        let Some(function) = aggregator(&name) else {
            return Ok(Self::Plain(expression::translate(expression)?));
        };
        let at = call.span().start;
        let is_of_rows = matches!(&call.args, FunctionArguments::List(list)
            if matches!(&*list.args, [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]));
        if call.over.is_some() {
            return Err(SqlError::at(at, "window functions are not supported").hint("remove OVER"));
        }
        if call.filter.is_some() {
            return Err(
                SqlError::at(at, "FILTER is not supported").hint("use WHERE, or GROUP BY the condition")
            );
        }
        if matches!(&call.args, FunctionArguments::List(list)
            if list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
        {
            return Err(SqlError::at(at, format!("{name}(DISTINCT …) is not supported"))
                .hint("use SELECT DISTINCT, and count the rows of the result"));
        }
        match expression::arguments(call).as_deref() {
            _ if is_of_rows && function == Aggregator::Count => {
                Ok(Self::Aggregate { function, subject: None })
            }
            Some([subject]) => {
                let subject = Some(expression::translate(subject)?);
                Ok(Self::Aggregate { function, subject })
            }
            _ => Err(SqlError::at(at, format!("{name}() takes one expression")).hint(match function {
                Aggregator::Count => "write COUNT(*) or COUNT(status.phase)".to_owned(),
                _ => format!("write {name}(status.replicas)"),
            })),
        }
    }

    pub(crate) fn is_aggregate(&self) -> bool {
        matches!(self, Self::Aggregate { .. })
    }

    /// The name of a column without AS.
    fn name(&self, number: usize) -> String {
        match self {
            Self::Plain(cel) => {
                let name = last_field(&cel.text).map(|name| name.chars().take(MAX_NAME).collect());
                name.unwrap_or_else(|| format!("column{number}"))
            }
            Self::Aggregate { function, .. } => match function {
                Aggregator::Count => "count",
                Aggregator::Sum => "sum",
                Aggregator::Avg => "avg",
                Aggregator::Min => "min",
                Aggregator::Max => "max",
            }
            .to_owned(),
        }
    }
}

/// Adds a column. A name that the user did not choose gives way to one that exists.
pub(crate) fn push(
    columns: &mut Vec<Column>,
    content: Content,
    alias: Option<String>,
    at: Location,
) -> Result<(), SqlError> {
    let is_taken = |name: &str| columns.iter().any(|column| column.name == name);
    let name = match alias {
        Some(alias) if is_taken(&alias) => {
            return Err(
                SqlError::at(at, format!("duplicate column {alias:?}")).hint("use different names after AS")
            );
        }
        Some(alias) if alias.chars().count() > MAX_NAME => {
            return Err(SqlError::at(
                at,
                format!("the name of a column must have at most {MAX_NAME} characters"),
            ));
        }
        Some(alias) if alias.trim() != alias || alias.is_empty() || alias.chars().any(char::is_control) => {
            return Err(SqlError::at(at, format!("invalid column name {alias:?}"))
                .hint("use 1 to 63 characters, without spaces at the start or end"));
        }
        Some(alias) => alias,
        None => {
            let name = content.name(columns.len() + 1);
            let others = (2..).map(|number| format!("{name}_{number}"));
            [name.clone()].into_iter().chain(others).find(|name| !is_taken(name)).unwrap_or(name)
        }
    };
    columns.push(Column { name, content, at });
    Ok(())
}

pub(crate) fn named(column: &Column, cel: &Cel) -> NamedExpression {
    NamedExpression { name: column.name.clone(), def: Some(Expression::cel(&*cel.text)) }
}

pub(crate) fn combined(column: &Column, function: Aggregator, subject: Option<&Cel>) -> CombinedField {
    CombinedField {
        name: column.name.clone(),
        type_: function,
        subject: subject.map(|cel| Expression::cel(&*cel.text)),
    }
}
