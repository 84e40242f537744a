//! The Lua state of one run, with the library and nothing else.

use std::rc::Rc;

use jiff::Timestamp;
use mlua::{Lua, LuaOptions, Result, StdLib, Table};

use crate::{library, meter::Meter, shared::Shared};

pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    pub(crate) globals: Table,
    pub(crate) shared: Rc<Shared>,
}

/// A state to parse scripts in, without a library.
pub(crate) fn reader(memory: usize) -> Result<Lua> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
    lua.gc_stop();
    lua.set_memory_limit(memory)?;
    Ok(lua)
}

impl Sandbox {
    /// Creates a state with the library. The caller adds the object.
    pub(crate) fn new(now: Timestamp, meter: &Rc<Meter>) -> Result<Self> {
        let lua = Lua::new_with(StdLib::STRING, LuaOptions::new())?;
        // Without collection, the limit bounds all allocations of the run, and with them the time for
        // copying.
        lua.gc_stop();
        let shared = Shared::new(&lua, now, meter)?;
        let globals = library::open(&lua, &shared)?;
        // Set last, so that creating the state cannot fail.
        lua.set_memory_limit(meter.memory())?;
        Ok(Self { lua, globals, shared })
    }
}
