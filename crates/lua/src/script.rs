//! Compiled scripts.

use std::rc::Rc;

use bellwether_model::Value;
use jiff::Timestamp;
use mlua::{Function, Lua, MultiValue, Table, Value as Lua5, chunk::ChunkMode};

use crate::{
    compile_error::CompileError,
    failure::{Failure, NAME},
    meter::{self, Budget, Meter},
    object,
    sandbox::{self, Sandbox},
};

/// A script without syntax errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    source: String,
}

/// The fields `status` and `message` of the table that the script returned; empty where they are nil.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The health status, as the script returned it.
    pub status: String,
    /// The message for users.
    pub message: String,
}

/// The maximum length of a script, in bytes. Parsing is not metered. The longest known script has a tenth of
/// this.
const LONGEST: usize = 256 << 10;

impl Script {
    /// Checks the syntax of a script. Binary chunks are rejected.
    pub fn compile(source: &str) -> Result<Self, CompileError> {
        if source.len() > LONGEST {
            return Err(CompileError::too_long(LONGEST));
        }
        sandbox::reader(Budget::default().memory)
            .and_then(|lua| load(&lua, source).map(|_| ()))
            .map_err(|error| CompileError::from_error(&error, source))?;
        Ok(Self { source: source.to_owned() })
    }

    /// Runs the script on an object. `now` is the time that it sees. Each run has its own Lua state.
    pub fn run(&self, object: &Value<'_>, now: Timestamp, budget: Budget) -> Result<Outcome, Failure> {
        let meter = Rc::new(Meter::new(budget));
        let result = self.attempt(object, now, &meter);
        // A run that exceeded its budget has no outcome, even if the script returned one.
        match meter.over() {
            Some(of) => Err(Failure::too_expensive(of)),
            None => result,
        }
    }

    fn attempt(&self, object: &Value<'_>, now: Timestamp, meter: &Rc<Meter>) -> Result<Outcome, Failure> {
        let prepare = || -> mlua::Result<(Sandbox, Function)> {
            let sandbox = Sandbox::new(now, meter)?;
            let script = load(&sandbox.lua, &self.source)?;
            let (object, reach) = object::load(&sandbox.lua, object)?;
            sandbox.globals.raw_set("obj", object)?;
            meter::watch(&sandbox.lua, Rc::clone(meter))?;
            meter.begin(&sandbox.lua, reach);
            Ok((sandbox, script))
        };
        let (sandbox, script) = prepare().map_err(|error| Failure::from_error(&error))?;
        let result = sandbox.shared.call(&sandbox.lua, Lua5::Function(script), MultiValue::new());
        match result.map_err(|error| Failure::from_error(&error))? {
            Ok(values) => outcome(values.front().unwrap_or(&Lua5::Nil)),
            Err(thrown) => Err(Failure::from_thrown(&thrown)),
        }
    }
}

fn load(lua: &Lua, source: &str) -> mlua::Result<Function> {
    lua.load(source).set_name(format!("={NAME}")).set_mode(ChunkMode::Text).into_function()
}

fn outcome(returned: &Lua5) -> Result<Outcome, Failure> {
    match returned {
        Lua5::Nil => Ok(Outcome::default()),
        Lua5::Table(table) => {
            Ok(Outcome { status: field(table, "status")?, message: field(table, "message")? })
        }
        other => Err(Failure::Error {
            line: None,
            text: format!(
                "the script must return a table with status and message, not a {}",
                object::type_name(other)
            ),
        }),
    }
}

/// A field of the returned table, read without metamethods: they would run code of the script.
fn field(table: &Table, name: &str) -> Result<String, Failure> {
    match table.raw_get(name).map_err(|error| Failure::from_error(&error))? {
        Lua5::Nil => Ok(String::new()),
        Lua5::String(text) => Ok(String::from_utf8_lossy(&text.as_bytes()).into_owned()),
        other => Err(Failure::Error {
            line: None,
            text: format!(
                "{name} in the returned table must be a string, not a {}",
                object::type_name(&other)
            ),
        }),
    }
}
