//! The functions that a script can call.
//!
//! They replace Lua's own for three reasons: a hook does not count the work of native functions, some results
//! of Lua's differ from run to run, and Argo CD's scripts are written for Lua 5.1.

mod base;
mod call;
mod matching;
mod number;
mod order;
mod sort;
mod table;
mod text;
mod time;

use std::rc::Rc;

use mlua::{Lua, LuaString, Result, Table, Value};

use crate::shared::Shared;

/// Lua's own globals that stay: their cost does not depend on the size of their arguments.
const KEPT: [&str; 9] =
    ["_VERSION", "assert", "error", "getmetatable", "rawequal", "rawget", "rawlen", "rawset", "type"];

/// Installs the library, and returns the globals.
pub(crate) fn open(lua: &Lua, shared: &Rc<Shared>) -> Result<Table> {
    let own = lua.globals();
    let globals = lua.create_table()?;
    for name in KEPT {
        globals.raw_set(name, own.raw_get::<Value>(name)?)?;
    }
    globals.raw_set("_G", &globals)?;
    shared.add(lua, &globals, base::FUNCTIONS)?;
    order::open(lua, shared, &globals)?;
    let table = shared.table(lua, table::FUNCTIONS)?;
    globals.raw_set("unpack", table.raw_get::<Value>("unpack")?)?;
    globals.raw_set("table", table)?;
    let math = shared.table(lua, number::FUNCTIONS)?;
    math.raw_set("pi", std::f64::consts::PI)?;
    math.raw_set("huge", f64::INFINITY)?;
    globals.raw_set("math", math)?;
    globals.raw_set("os", shared.table(lua, time::FUNCTIONS)?)?;
    let string = shared.table(lua, text::FUNCTIONS)?;
    shared.add(lua, &string, matching::FUNCTIONS)?;
    // Strings have the library as methods, and numeric strings work in arithmetic.
    let texts = shared.table(lua, number::OF_TEXTS)?;
    texts.raw_set("__index", &string)?;
    texts.raw_set("__metatable", false)?;
    lua.set_type_metatable::<LuaString>(Some(texts));
    globals.raw_set("string", string)?;
    lua.set_globals(globals.clone())?;
    Ok(globals)
}
