//! The budget of a run, and what is left of it.

use std::{cell::Cell, rc::Rc};

use mlua::{Error, HookTriggers, Lua, Result, Table, Value, VmState};

use crate::failure::Resource;

/// The limits of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Instructions of Lua. Native work counts as the instructions that would take about as long.
    pub instructions: u64,
    /// Bytes of all allocations, with the object and the Lua state.
    pub memory: usize,
}

impl Default for Budget {
    /// A thousand times the instructions of a usual script, and memory for the largest object that an API
    /// server stores.
    fn default() -> Self {
        Self { instructions: 1_000_000, memory: 32 << 20 }
    }
}

/// The number of instructions between two calls of the hook.
const STRIDE: u32 = 100;

/// Each stride costs one more instruction per this many bytes that one instruction could walk over. At this
/// rate the worst use of memory (adding fields to a full table in a loop) takes about two seconds.
const BYTES_PER_INSTRUCTION: usize = 64;

/// The fixed cost of a native call, in instructions.
const CALL: usize = 10;

/// The cost of a caught error: unwinding, and its message.
const CATCH: usize = 1_000;

/// More than the maximum nesting of threads.
const DEEPEST: u32 = 1_000;

/// The remaining budget of one run.
pub(crate) struct Meter {
    left: Cell<u64>,
    memory: usize,
    /// The bytes of the object that one instruction can walk over.
    reach: Cell<usize>,
    /// The bytes in use when the script started.
    loaded: Cell<usize>,
    over: Cell<Option<Resource>>,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            left: Cell::new(budget.instructions),
            // To Lua, 0 means no limit.
            memory: budget.memory.max(1),
            reach: Cell::new(0),
            loaded: Cell::new(0),
            over: Cell::new(None),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// The resource that was exhausted first.
    pub(crate) fn over(&self) -> Option<Resource> {
        self.over.get()
    }

    /// Ends the run. Its outcome is discarded, whatever the script does afterwards.
    pub(crate) fn end(&self, of: Resource) -> Error {
        if self.over.get().is_none() {
            self.over.set(Some(of));
        }
        Error::external(format!("Lua script exceeded its {of} limit"))
    }

    /// Starts charging for memory, when the object is loaded. `reach` is the size of its largest single part.
    pub(crate) fn begin(&self, lua: &Lua, reach: usize) {
        self.loaded.set(lua.used_memory());
        self.reach.set(reach);
    }

    /// Pays for work in instructions.
    pub(crate) fn charge(&self, work: usize) -> Result<()> {
        if self.over.get().is_some() {
            return Err(self.end(Resource::Instructions));
        }
        let left = self.left.get().checked_sub(work as u64);
        self.left.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| self.end(Resource::Instructions))
    }

    /// Pays for a native call.
    pub(crate) fn charge_call(&self, arguments: usize) -> Result<()> {
        self.charge(CALL + arguments)
    }

    /// Pays for an error before the script catches it.
    pub(crate) fn charge_catch(&self, lua: &Lua) -> Result<()> {
        self.charge(CATCH + self.surcharge(lua))
    }

    /// Pays for reading or copying bytes.
    pub(crate) fn charge_bytes(&self, bytes: usize) -> Result<()> {
        self.charge(bytes / 16)
    }

    /// Ends the run if there is no memory for this many bytes. Native code calls it before it allocates
    /// outside of Lua.
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

/// Counts the instructions of a state from now on.
///
/// When the budget is exhausted, the thread yields and is never resumed. This is not an error, so the script
/// cannot catch it, and no to-be-closed variable runs. An error would not do: it closes the variables of the
/// running function while the hook is off. Therefore all code of a script must run in threads.
pub(crate) fn watch(lua: &Lua, meter: Rc<Meter>) -> Result<()> {
    let canary = Canary::new(lua)?;
    let ignored = Cell::new(0);
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(STRIDE), move |lua, _| {
        if !canary.is_alive() {
            let _ = meter.end(Resource::Memory);
        }
        match meter.stride(lua) {
            Ok(()) => Ok(VmState::Continue),
            // Nested threads yield one by one. More yields mean that code runs which cannot yield.
            Err(over) if ignored.get() > DEEPEST => Err(over),
            Err(_) => {
                ignored.set(ignored.get() + 1);
                Ok(VmState::Yield)
            }
        }
    })
}

/// A table without references, which is gone after a garbage collection.
///
/// The collector is off, but Lua still runs it before it fails an allocation. A script that creates garbage
/// could then allocate without end.
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
