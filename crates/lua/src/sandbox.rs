//! The Lua state of one run, with what a script may use and nothing else.

use std::rc::Rc;

use jiff::Timestamp;
use mlua::{Lua, LuaOptions, Result, StdLib, Table};

use crate::{library, meter::Meter, shared::Shared};

/// The Lua state of one run.
pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    pub(crate) globals: Table,
    pub(crate) shared: Rc<Shared>,
}

/// A state in which a text can be read, but that has nothing to run it with.
pub(crate) fn reader(memory: usize) -> Result<Lua> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
    lua.gc_stop();
    lua.set_memory_limit(memory)?;
    Ok(lua)
}

impl Sandbox {
    /// A fresh state with its library, but without an object.
    pub(crate) fn new(now: Timestamp, meter: &Rc<Meter>) -> Result<Self> {
        let lua = Lua::new_with(StdLib::STRING, LuaOptions::new())?;
        // What a run allocates is kept until its end: then the limit bounds all that is ever allocated, and with it the
        // time that copying takes.
        lua.gc_stop();
        let shared = Shared::new(&lua, now, meter)?;
        let globals = library::open(&lua, &shared)?;
        // Last: what the state itself needs is the same for every script.
        lua.set_memory_limit(meter.memory())?;
        Ok(Self { lua, globals, shared })
    }
}
