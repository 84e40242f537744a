//! A simulated cluster: its objects, its controllers and its kubelets.

use std::time::Duration;

use jiff::Timestamp;

use super::{machines, memory::Memory, operators, store::Store, workloads};

pub(super) struct SimulatedCluster {
    pub(super) store: Store,
    memory: Memory,
    /// Whether the hub can reach it. If not, its controllers go on.
    pub(super) answers: bool,
}

impl SimulatedCluster {
    /// Without objects.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { store: Store::new(now), memory: Memory::default(), answers: true }
    }

    pub(super) fn set_time(&mut self, elapsed: Duration, now: Timestamp) {
        self.memory.set_elapsed(elapsed);
        self.store.set_time(now);
    }

    /// Lets each controller act once.
    pub(super) fn act(&mut self) {
        workloads::act(&mut self.store, &mut self.memory);
        machines::act(&mut self.store, &mut self.memory);
        operators::act(&mut self.store, &mut self.memory);
    }
}
