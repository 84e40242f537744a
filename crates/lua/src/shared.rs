//! What our functions share during a run, and how they call those of the script.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ffi::c_void,
    rc::Rc,
};

use jiff::Timestamp;
use mlua::{Error, Function, Lua, MultiValue, Result, Table, Thread, Value, thread::ThreadStatus};

use crate::{
    failure::{self, Resource},
    meter::Meter,
};

/// How deep our functions and those of the script may call each other. Each level takes some of the stack of the process,
/// and a process whose stack is used up dies.
const DEEPEST: usize = 32;

/// What our functions share during a run.
pub(crate) struct Shared {
    pub(crate) meter: Rc<Meter>,
    pub(crate) now: Timestamp,
    /// Lua's own functions that ours are built upon.
    pub(crate) original: Originals,
    /// The order in which the fields of tables are visited, by the table's address. The collector is off, so an address
    /// means one table for the whole run.
    pub(crate) walks: RefCell<HashMap<*const c_void, Rc<Walk>>>,
    /// The numbers that stand for addresses in texts, in the order in which they were asked for.
    addresses: RefCell<HashMap<*const c_void, usize>>,
    /// How many functions of ours wait for code of the script that they called.
    depth: Cell<usize>,
    /// Threads that have done their work and can be used again.
    spare: RefCell<Vec<Thread>>,
}

/// Lua's own functions that ours are built upon.
pub(crate) struct Originals {
    pub(crate) format: Function,
    pub(crate) getmetatable: Function,
    pcall: Function,
    pub(crate) setmetatable: Function,
    pub(crate) tonumber: Function,
    pub(crate) tostring: Function,
}

/// The order in which a table is visited.
pub(crate) struct Walk {
    /// The fields 1 to this come first.
    pub(crate) list: i64,
    /// Then these, a list of keys. Lua keeps it, so that it counts as memory of the script.
    pub(crate) others: Table,
}

impl Originals {
    fn of(lua: &Lua) -> Result<Self> {
        let own = lua.globals();
        let function = |name: &str| own.raw_get::<Function>(name);
        Ok(Self {
            format: own.raw_get::<Table>("string")?.raw_get("format")?,
            getmetatable: function("getmetatable")?,
            pcall: function("pcall")?,
            setmetatable: function("setmetatable")?,
            tonumber: function("tonumber")?,
            tostring: function("tostring")?,
        })
    }
}

impl Shared {
    pub(crate) fn new(lua: &Lua, now: Timestamp, meter: &Rc<Meter>) -> Result<Rc<Self>> {
        Ok(Rc::new(Self {
            meter: Rc::clone(meter),
            now,
            original: Originals::of(lua)?,
            walks: RefCell::default(),
            addresses: RefCell::default(),
            depth: Cell::new(0),
            spare: RefCell::default(),
        }))
    }

    /// Calls a function of the script, and gives what it returns or what it throws. The outer error is for what the script
    /// may not catch.
    ///
    /// It runs in a thread of its own, so that it can be left when the budget is used up. There Lua's own `pcall` calls it:
    /// that hands over what is thrown as it is, where mlua would make a text of it by calling into the script once more.
    pub(crate) fn call(
        &self,
        lua: &Lua,
        function: Value,
        arguments: MultiValue,
    ) -> Result<std::result::Result<MultiValue, Value>> {
        if self.depth.get() >= DEEPEST {
            return Err(Error::runtime("stack overflow"));
        }
        self.depth.set(self.depth.get() + 1);
        let result = self.call_in_thread(lua, function, arguments);
        self.depth.set(self.depth.get() - 1);
        result
    }

    fn call_in_thread(
        &self,
        lua: &Lua,
        function: Value,
        mut arguments: MultiValue,
    ) -> Result<std::result::Result<MultiValue, Value>> {
        let spare = self.spare.borrow_mut().pop();
        let pcall = self.original.pcall.clone();
        let thread = match spare {
            Some(thread) => thread.reset(pcall).map(|()| thread)?,
            None => lua.create_thread(pcall)?,
        };
        arguments.push_front(function);
        let mut results = thread.resume::<MultiValue>(arguments)?;
        if thread.status() != ThreadStatus::Finished {
            return Err(self.meter.end(Resource::Instructions));
        }
        self.spare.borrow_mut().push(thread);
        if results.pop_front() == Some(Value::Boolean(true)) {
            return Ok(Ok(results));
        }
        let thrown = results.pop_front().unwrap_or_default();
        if failure::is_no_memory_thrown(&thrown) {
            return Err(self.meter.end(Resource::Memory));
        }
        // An error in Rust that nobody caught on its way may have been the end of the budget.
        self.meter.charge_catch(lua)?;
        Ok(Err(thrown))
    }

    /// The number that stands for an address in texts, so that they do not differ from run to run.
    pub(crate) fn address(&self, of: *const c_void) -> usize {
        let mut addresses = self.addresses.borrow_mut();
        let next = addresses.len() + 1;
        *addresses.entry(of).or_insert(next)
    }
}
