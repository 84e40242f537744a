//! What a run may cost, and what it has cost so far.

use std::{cell::Cell, rc::Rc};

use mlua::{Error, HookTriggers, Lua, Result, Table, Value, VmState};

use crate::failure::Resource;

/// What a run may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many instructions of Lua it may take. Work that is done outside of instructions counts as the instructions
    /// that would take about as long.
    pub instructions: u64,
    /// How many bytes it may allocate in all, the object and the Lua state included.
    pub memory: usize,
}

impl Default for Budget {
    /// A thousand times what a usual script takes, and room for the largest object that an API server stores.
    fn default() -> Self {
        Self { instructions: 1_000_000, memory: 32 << 20 }
    }
}

/// The instructions between two looks at the meter.
const STRIDE: u32 = 100;

/// A stride costs one more instruction for each so many bytes that one instruction could walk over. At this rate the worst
/// that instructions can do with memory (adding a field to a table that is full, over and over) takes about two seconds.
const BYTES_PER_INSTRUCTION: usize = 64;

/// What a call of one of our functions costs beside what it does.
const CALL: usize = 10;

/// What an error costs that is caught: unwinding, and the text of the error.
const CATCH: usize = 1_000;

/// More threads than can wait for each other.
const DEEPEST: u32 = 1_000;

/// The budget of one run, being used up.
pub(crate) struct Meter {
    left: Cell<u64>,
    memory: usize,
    /// What one instruction can walk over in the object.
    reach: Cell<usize>,
    /// The bytes that were allocated when the script began.
    loaded: Cell<usize>,
    over: Cell<Option<Resource>>,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            left: Cell::new(budget.instructions),
            // Lua takes 0 for no limit at all.
            memory: budget.memory.max(1),
            reach: Cell::new(0),
            loaded: Cell::new(0),
            over: Cell::new(None),
        }
    }

    /// How many bytes may be allocated in all.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// What ran out, if something did.
    pub(crate) fn over(&self) -> Option<Resource> {
        self.over.get()
    }

    /// Ends the run. Nothing that the script does afterwards counts.
    pub(crate) fn end(&self, of: Resource) -> Error {
        if self.over.get().is_none() {
            self.over.set(Some(of));
        }
        Error::external("the script exceeded its budget")
    }

    /// The object is loaded: from here on the script pays for what it holds, and for the largest single part of the
    /// object.
    pub(crate) fn begin(&self, lua: &Lua, reach: usize) {
        self.loaded.set(lua.used_memory());
        self.reach.set(reach);
    }

    /// Pays for work that takes as long as so many instructions.
    pub(crate) fn charge(&self, work: usize) -> Result<()> {
        if self.over.get().is_some() {
            return Err(self.end(Resource::Instructions));
        }
        let left = self.left.get().checked_sub(work as u64);
        self.left.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| self.end(Resource::Instructions))
    }

    /// Pays for a call of one of our functions.
    pub(crate) fn charge_call(&self, arguments: usize) -> Result<()> {
        self.charge(CALL + arguments)
    }

    /// Pays for an error that is about to be caught.
    pub(crate) fn charge_catch(&self, lua: &Lua) -> Result<()> {
        self.charge(CATCH + self.surcharge(lua))
    }

    /// Pays for copying or looking at so many bytes.
    pub(crate) fn charge_bytes(&self, bytes: usize) -> Result<()> {
        self.charge(bytes / 16)
    }

    /// Ends the run if there is no room for so many more bytes. What is built outside of Lua asks first.
    pub(crate) fn need(&self, lua: &Lua, bytes: usize) -> Result<()> {
        if lua.used_memory().saturating_add(bytes) > self.memory {
            return Err(self.end(Resource::Memory));
        }
        Ok(())
    }

    fn surcharge(&self, lua: &Lua) -> usize {
        let held = lua.used_memory().saturating_sub(self.loaded.get());
        (held + self.reach.get()) / BYTES_PER_INSTRUCTION
    }

    fn stride(&self, lua: &Lua) -> Result<()> {
        self.charge(STRIDE as usize + self.surcharge(lua))
    }
}

/// Watches over the instructions of a state from now on.
///
/// When the budget is used up, the thread is left where it is and never resumed. That is no error, so nothing in the script
/// can catch it, and no variable that wants to be closed sees it. An error would not do: it closes the variables of the
/// function that runs, while the hook is off. Therefore all code of a script runs in threads, and nothing here calls it in
/// another way.
pub(crate) fn watch(lua: &Lua, meter: Rc<Meter>) -> Result<()> {
    let canary = Canary::new(lua)?;
    let ignored = Cell::new(0);
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(STRIDE), move |lua, _| {
        if !canary.is_alive() {
            let _ = meter.end(Resource::Memory);
        }
        match meter.stride(lua) {
            Ok(()) => Ok(VmState::Continue),
            // Threads within threads stop one by one. More would mean that code runs which cannot be left.
            Err(over) if ignored.get() > DEEPEST => Err(over),
            Err(_) => {
                ignored.set(ignored.get() + 1);
                Ok(VmState::Yield)
            }
        }
    })
}

/// A value that nobody holds, so that it is gone after a garbage collection.
///
/// The collector is off, but Lua still runs it before it fails an allocation. A script that lives on the garbage of its
/// past could then allocate without end.
struct Canary(Table);

impl Canary {
    fn new(lua: &Lua) -> Result<Self> {
        let weak = lua.create_table()?;
        weak.raw_set("__mode", "v")?;
        let cage = lua.create_table()?;
        cage.set_metatable(Some(weak))?;
        cage.raw_set(1, lua.create_table()?)?;
        Ok(Self(cage))
    }

    fn is_alive(&self) -> bool {
        self.0.raw_get::<Value>(1).is_ok_and(|canary| !canary.is_nil())
    }
}
