//! Columns of the input: paths into the variables of a row.

use std::fmt::Write as _;

use bellwether_expr::{Program, Scope};
use sqlparser::{
    ast::{AccessExpr, Expr, Ident, Spanned as _, Subscript, Value},
    tokenizer::Location,
};

use crate::{
    cel::{Cel, field},
    error::SqlError,
    source::ROOT,
};

/// The variables of a row.
const VARIABLES: [&str; 4] = ["inventory", "obj", "returned", "propagation"];

/// The fields of most objects, which need neither `obj` nor `$`.
const FIELDS: [&str; 7] = ["apiVersion", "kind", "metadata", "spec", "data", "type", "status"];

/// Words that people try, and what they mean.
const SYNONYMS: &[(&str, &str)] = &[
    ("cluster", "inventory.name"),
    ("cluster_name", "inventory.name"),
    ("name", "metadata.name"),
    ("namespace", "metadata.namespace"),
    ("labels", "metadata.labels"),
    ("annotations", "metadata.annotations"),
    ("phase", "status.phase"),
    ("replicas", "spec.replicas"),
    ("health", "propagation.health"),
    ("progress", "propagation.progress"),
    ("stale", "propagation.stale"),
    ("found", "propagation.found"),
];

enum Step {
    Field(String),
    Index(u64),
}

/// A path, if the expression is one.
pub(crate) fn of(expression: &Expr) -> Option<Result<Cel, SqlError>> {
    let mut steps = Vec::new();
    let first = match expression {
        Expr::Identifier(first) => first,
        Expr::CompoundIdentifier(names) => {
            let (first, rest) = names.split_first()?;
            steps.extend(rest.iter().map(|name| Step::Field(name.value.clone())));
            first
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let first = match &**root {
                Expr::Identifier(first) => first,
                Expr::CompoundIdentifier(names) => {
                    let (first, rest) = names.split_first()?;
                    steps.extend(rest.iter().map(|name| Step::Field(name.value.clone())));
                    first
                }
                _ => return None,
            };
            for access in access_chain {
                match step(access, expression.span().start) {
                    Ok(step) => steps.push(step),
                    Err(error) => return Some(Err(error)),
                }
            }
            first
        }
        _ => return None,
    };
    Some(rooted(first, steps))
}

fn step(access: &AccessExpr, at: Location) -> Result<Step, SqlError> {
    let index = match access {
        AccessExpr::Dot(Expr::Identifier(name)) => return Ok(Step::Field(name.value.clone())),
        AccessExpr::Subscript(Subscript::Index { index }) => index,
        _ => return Err(not_a_step(at)),
    };
    match index {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(name) | Value::DoubleQuotedString(name) => {
                Ok(Step::Field(name.clone()))
            }
            Value::Number(number, _) => {
                number.parse().map(Step::Index).map_err(|_| not_a_step(value.span.start))
            }
            _ => Err(not_a_step(value.span.start)),
        },
        Expr::Identifier(Ident { value, quote_style: Some(_), .. }) => Ok(Step::Field(value.clone())),
        other => Err(not_a_step(other.span().start)),
    }
}

fn not_a_step(at: Location) -> SqlError {
    SqlError::at(at, "a path takes a quoted field or a number in brackets")
        .hint("write metadata.labels['app.kubernetes.io/name'] or status.conditions[0].type")
}

fn rooted(first: &Ident, mut steps: Vec<Step>) -> Result<Cel, SqlError> {
    let at = first.span.start;
    let name = first.value.as_str();
    let (variable, field) = if name == ROOT {
        if steps.is_empty() {
            return Err(SqlError::at(at, "$ is the whole row").hint("write a path such as $.status.phase"));
        }
        match steps.remove(0) {
            Step::Field(first)
                if VARIABLES.contains(&first.as_str()) && first != "obj" && first != "returned" =>
            {
                (first, None)
            }
            Step::Field(first) if first == "status" => ("returned".to_owned(), Some(first)),
            Step::Field(first) => ("obj".to_owned(), Some(first)),
            Step::Index(_) => {
                return Err(SqlError::at(at, "a path must start with a field, not with an index"));
            }
        }
    } else if VARIABLES.contains(&name) {
        (name.to_owned(), None)
    } else if name == "status" {
        ("returned".to_owned(), Some(name.to_owned()))
    } else if FIELDS.contains(&name) {
        ("obj".to_owned(), Some(name.to_owned()))
    } else {
        return Err(unknown(first));
    };
    let mut text = variable;
    text.extend(field.iter().map(|name| self::field(name)));
    for step in steps {
        match step {
            Step::Field(name) => text.push_str(&self::field(&name)),
            Step::Index(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
    }
    match Program::cel(&text, &Scope::row()) {
        Ok(_) => Ok(Cel::primary(text)),
        Err(error) => Err(SqlError { hint: error.hint, ..SqlError::at(at, error.text) }),
    }
}

fn unknown(first: &Ident) -> SqlError {
    let name = first.value.as_str();
    let error = SqlError::at(first.span.start, format!("unknown column {name:?}"));
    if first.quote_style.is_some() {
        return error.hint(format!("for text, write single quotes: '{name}'"));
    }
    let synonym = SYNONYMS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word)).map(|(_, path)| *path);
    let similar = || {
        let known = VARIABLES.iter().chain(&FIELDS).copied();
        let distance = |word: &&str| strsim::osa_distance(&name.to_lowercase(), &word.to_lowercase());
        known.min_by_key(distance).filter(|word| distance(word) <= 2)
    };
    match synonym.or_else(similar) {
        Some(meant) => error.hint(format!("did you mean {meant}?")),
        None => error.hint(format!(
            "write a path such as inventory.name, status.phase, spec.replicas, propagation.health or obj.{name}"
        )),
    }
}

/// The last field of a path in CEL or after `$`: the name of its column.
///
/// ```
/// assert_eq!(bellwether_sql::last_field("$.inventory.name"), Some("name"));
/// assert_eq!(bellwether_sql::last_field("obj.metadata.labels['example.com/team']"), Some("team"));
/// assert_eq!(bellwether_sql::last_field("1 + 2"), None);
/// ```
pub fn last_field(path: &str) -> Option<&str> {
    let is_legal =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '[' | ']' | '\'' | '"' | '$');
    if !path.chars().all(is_legal)
        || path.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '\'' | '"' | '-'))
    {
        return None;
    }
    let is_name = |part: &&str| part.chars().any(char::is_alphabetic);
    path.rsplit(['.', '/', '[', ']', '\'', '"', '$']).find(is_name)
}
