//! Calls of native functions: arguments, costs and errors.

use std::rc::Rc;

use mlua::{Error, Function, IntoLua, Lua, LuaString, MultiValue, Result, Table, Value, debug::Debug};

use crate::{
    failure::{self, NAME, Resource},
    meter::Meter,
    object::{self, type_name},
    shared::Shared,
};

pub(crate) type Native = fn(&mut Call<'_>) -> Result<MultiValue>;

pub(crate) struct Call<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) shared: &'a Rc<Shared>,
    pub(crate) arguments: Vec<Value>,
    name: &'static str,
}

impl Shared {
    /// Creates a function of Lua that calls a native one.
    pub(crate) fn function(
        self: &Rc<Self>,
        lua: &Lua,
        name: &'static str,
        native: impl Fn(&mut Call<'_>) -> Result<MultiValue> + 'static,
    ) -> Result<Function> {
        let shared = Rc::clone(self);
        lua.create_function(move |lua, arguments: MultiValue| {
            Call::new(lua, &shared, name, arguments).answer(&native)
        })
    }

    pub(crate) fn table(self: &Rc<Self>, lua: &Lua, natives: &[(&'static str, Native)]) -> Result<Table> {
        let table = lua.create_table_with_capacity(0, natives.len())?;
        self.add(lua, &table, natives)?;
        Ok(table)
    }

    pub(crate) fn add(
        self: &Rc<Self>,
        lua: &Lua,
        table: &Table,
        natives: &[(&'static str, Native)],
    ) -> Result<()> {
        natives.iter().try_for_each(|(name, native)| table.raw_set(*name, self.function(lua, name, *native)?))
    }
}

/// The maximum length of a numeral. Lua parses any length, and nothing meters that.
const MAX_NUMERAL: usize = 256;

/// An error of the script that passes through a native function. It already has a line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Passed(String);

impl<'a> Call<'a> {
    pub(crate) fn new(
        lua: &'a Lua,
        shared: &'a Rc<Shared>,
        name: &'static str,
        arguments: MultiValue,
    ) -> Self {
        Self { lua, shared, arguments: arguments.into_vec(), name }
    }

    /// Pays for the call and makes it.
    pub(crate) fn answer(&mut self, native: impl Fn(&mut Self) -> Result<MultiValue>) -> Result<MultiValue> {
        let paid = self.meter().charge_call(self.arguments.len());
        paid.and_then(|()| native(self)).map_err(|error| self.blame(error))
    }

    pub(crate) fn meter(&self) -> &'a Meter {
        &self.shared.meter
    }

    pub(crate) fn count(&self) -> usize {
        self.arguments.len()
    }

    /// An argument, counted from 1 as in Lua's messages; nil if it is missing.
    pub(crate) fn any(&self, index: usize) -> Value {
        self.arguments.get(index - 1).cloned().unwrap_or_default()
    }

    /// An argument that is required, but may be nil.
    pub(crate) fn given(&self, index: usize) -> Result<Value> {
        self.arguments.get(index - 1).cloned().ok_or_else(|| self.bad(index, "value expected"))
    }

    pub(crate) fn table(&self, index: usize) -> Result<Table> {
        match self.any(index) {
            Value::Table(table) => Ok(table),
            _ => Err(self.expected(index, "table")),
        }
    }

    pub(crate) fn function(&self, index: usize) -> Result<Function> {
        match self.any(index) {
            Value::Function(function) => Ok(function),
            _ => Err(self.expected(index, "function")),
        }
    }

    /// A string. Numbers are converted.
    pub(crate) fn text(&self, index: usize) -> Result<LuaString> {
        self.as_text(&self.any(index))?.ok_or_else(|| self.expected(index, "string"))
    }

    pub(crate) fn text_or_nil(&self, index: usize) -> Result<Option<LuaString>> {
        if self.any(index).is_nil() { Ok(None) } else { self.text(index).map(Some) }
    }

    /// A number. Numeric strings are converted.
    pub(crate) fn number(&self, index: usize) -> Result<Value> {
        self.as_number(&self.any(index))?.ok_or_else(|| self.expected(index, "number"))
    }

    #[expect(clippy::cast_precision_loss, reason = "as in Lua")]
    pub(crate) fn float(&self, index: usize) -> Result<f64> {
        Ok(match self.number(index)? {
            Value::Integer(number) => number as f64,
            Value::Number(number) => number,
            _ => f64::NAN,
        })
    }

    /// An integer. Fractions are truncated, as in Lua 5.1.
    pub(crate) fn integer(&self, index: usize) -> Result<i64> {
        Ok(truncated(&self.number(index)?))
    }

    pub(crate) fn integer_or(&self, index: usize, default: i64) -> Result<i64> {
        if self.any(index).is_nil() { Ok(default) } else { self.integer(index) }
    }

    /// A string, if the value is a string or a number.
    pub(crate) fn as_text(&self, value: &Value) -> Result<Option<LuaString>> {
        Ok(match value {
            Value::String(text) => Some(text.clone()),
            Value::Integer(_) => self.lua.coerce_string(value.clone())?,
            Value::Number(number) => self.lua.coerce_string(object::number_of(*number))?,
            _ => None,
        })
    }

    /// A number, if the value is a number or a numeric string.
    pub(crate) fn as_number(&self, value: &Value) -> Result<Option<Value>> {
        match value {
            Value::Integer(_) | Value::Number(_) => Ok(Some(value.clone())),
            Value::String(text) if text.as_bytes().len() <= MAX_NUMERAL => {
                let number: Value = self.shared.original.tonumber.call(text)?;
                Ok((!number.is_nil()).then_some(number))
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn one(&self, value: impl IntoLua) -> Result<MultiValue> {
        Ok(MultiValue::from_vec(vec![value.into_lua(self.lua)?]))
    }

    /// Creates a string, and pays for it.
    pub(crate) fn make_text(&self, bytes: &[u8]) -> Result<Value> {
        self.meter().charge_bytes(bytes.len())?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    /// Calls a function of the script, and passes on what it raises.
    pub(crate) fn invoke(&self, function: &Function, arguments: MultiValue) -> Result<MultiValue> {
        let result = self.shared.call(self.lua, Value::Function(function.clone()), arguments)?;
        result.map_err(|thrown| Error::external(Passed(thrown_text(&thrown))))
    }

    pub(crate) fn expected(&self, index: usize, wanted: &str) -> Error {
        let got = self.arguments.get(index - 1).map_or("no value", type_name);
        self.bad(index, &format!("{wanted} expected, got {got}"))
    }

    pub(crate) fn bad(&self, index: usize, what: &str) -> Error {
        Error::RuntimeError(format!("bad argument #{index} to '{}' ({what})", self.name))
    }

    /// Adds the line of the call to an error, unless the run is over.
    fn blame(&self, error: Error) -> Error {
        if failure::is_no_memory(&error) {
            let _ = self.meter().end(Resource::Memory);
        }
        if self.meter().over().is_some() {
            return error;
        }
        if let Error::ExternalError(inner) = &error
            && let Some(Passed(text)) = inner.downcast_ref()
        {
            return Error::RuntimeError(text.clone());
        }
        let text = failure::root_text(&error);
        let line = self.lua.inspect_stack(1, line_of).flatten();
        Error::RuntimeError(line.map_or(text.clone(), |line| format!("{NAME}:{line}: {text}")))
    }
}

/// The message of a raised value. Metamethods of a table are not called: no code of the script runs while an
/// error unwinds.
fn thrown_text(thrown: &Value) -> String {
    match thrown {
        Value::String(text) => text.to_string_lossy(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Error(error) => failure::root_text(error),
        other => failure::error_object(other),
    }
}

fn line_of(function: &Debug<'_>) -> Option<usize> {
    function.current_line()
}

/// An error that is not about one argument.
pub(crate) fn error(text: impl Into<String>) -> Error {
    Error::RuntimeError(text.into())
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, and NaN is 0")]
pub(crate) fn truncated(number: &Value) -> i64 {
    match number {
        Value::Integer(number) => *number,
        Value::Number(number) => *number as i64,
        _ => 0,
    }
}
