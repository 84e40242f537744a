//! Helpers to test functions by expressions.

use std::iter;

use crate::{
    input::Variables,
    program::Program,
    scope::{Absence, Scope},
    stop::{Fuel, Stop},
    value::Val,
};

/// The value of an expression as text, or `error: ...`.
pub(super) fn evaluated(expression: &str) -> String {
    let scope = Scope::variables(iter::empty(), Absence::AsInCel);
    let program = match Program::cel(expression, &scope) {
        Ok(program) => program,
        Err(compile_error) => return format!("error: {}", compile_error.text),
    };
    let nothing = Variables(Vec::new());
    match program.evaluate(&nothing, &mut Fuel::default()) {
        Ok(value) => shown(&value),
        Err(Stop::Error(error)) => format!("error: {}", error.text),
        Err(Stop::TooExpensive) => "too expensive".to_owned(),
        Err(Stop::Missing(_)) => "missing".to_owned(),
    }
}

/// A value as a literal of CEL.
pub(super) fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Uint(number) => format!("{number}u"),
        Val::Double(number) => format!("{number:?}"),
        Val::Text(text) => format!("'{text}'"),
        Val::Bytes(bytes) => format!("b'{}'", bytes.escape_ascii()),
        Val::List(list) => {
            format!("[{}]", list.iter().map(|entry| shown(&entry)).collect::<Vec<_>>().join(", "))
        }
        Val::Map(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}: {}", shown(&key), shown(&value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Val::Type(own) => own.name().to_owned(),
        Val::Optional(None) => "none".to_owned(),
        Val::Optional(Some(value)) => format!("some {}", shown(value)),
        Val::Bool(_) | Val::Int(_) | Val::Timestamp(_) | Val::Duration(_) | Val::Quantity(_) => {
            super::text_of(value).unwrap_or_default()
        }
    }
}
