//! The state that native functions share, and their calls into the script.

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

/// The maximum nesting of native and script functions. Each level uses the stack of the process, and a stack
/// overflow aborts it.
const DEEPEST: usize = 32;

/// The state that native functions share during a run.
pub(crate) struct Shared {
    pub(crate) meter: Rc<Meter>,
    pub(crate) now: Timestamp,
    pub(crate) original: Originals,
    /// The order of iteration of each table, by address. The collector is off, so an address stays that of
    /// one table.
    pub(crate) walks: RefCell<HashMap<*const c_void, Rc<Walk>>>,
    /// Numbers that replace addresses in strings, in order of first use.
    addresses: RefCell<HashMap<*const c_void, usize>>,
    /// The number of native functions that wait for a call into the script.
    depth: Cell<usize>,
    /// Finished threads, for reuse.
    spare: RefCell<Vec<Thread>>,
}

/// Lua's own functions, for use by native ones.
pub(crate) struct Originals {
    pub(crate) format: Function,
    pub(crate) getmetatable: Function,
    pcall: Function,
    pub(crate) setmetatable: Function,
    pub(crate) tonumber: Function,
    pub(crate) tostring: Function,
}

/// The order of iteration of a table.
pub(crate) struct Walk {
    /// Indexes from 1 to this come first.
    pub(crate) list: i64,
    /// The other keys, in order. They are in a table of Lua, so that they count as memory of the script.
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

    /// Calls a function of the script, and returns its results or the value that it raised. The outer error
    /// is one that the script must not catch.
    ///
    /// The function runs in its own thread, which can be abandoned when the budget is exhausted. Lua's
    /// `pcall` calls it there: it returns the raised value as it is, while mlua would convert it to a string
    /// and call into the script for that.
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
        // A native error may be the end of the budget.
        self.meter.charge_catch(lua)?;
        Ok(Err(thrown))
    }

    /// A number that replaces an address in strings, which must not differ from run to run.
    pub(crate) fn address(&self, of: *const c_void) -> usize {
        let mut addresses = self.addresses.borrow_mut();
        let next = addresses.len() + 1;
        *addresses.entry(of).or_insert(next)
    }
}
