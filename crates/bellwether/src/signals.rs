//! Being asked to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a process that Ctrl-C has ended answers in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// Hears when somebody asks the process to stop, also while it does something else.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Stop {
    /// From now on. It must be called on a runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Ends when somebody asks, or has asked since this was last called.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
