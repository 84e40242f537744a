//! What a script may call.
//!
//! Everything here is written anew, for three reasons: what Lua's own functions do is not counted as instructions, some of
//! it differs from run to run, and Argo CD's scripts are written for Lua 5.1.

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

/// The globals of Lua's own that stay: they take the same time whatever they are given.
const KEPT: [&str; 9] =
    ["_VERSION", "assert", "error", "getmetatable", "rawequal", "rawget", "rawlen", "rawset", "type"];

/// Gives a state its library, and tells its globals.
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
    // Texts have the library as their methods, and count as numbers where they say one.
    let texts = shared.table(lua, number::OF_TEXTS)?;
    texts.raw_set("__index", &string)?;
    texts.raw_set("__metatable", false)?;
    lua.set_type_metatable::<LuaString>(Some(texts));
    globals.raw_set("string", string)?;
    lua.set_globals(globals.clone())?;
    Ok(globals)
}
