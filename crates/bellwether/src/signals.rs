//! Signals that end the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process that Ctrl-C has ended, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Receives SIGINT, SIGTERM and SIGHUP. A signal is not lost while the process does something else.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Stop {
    /// # Panics
    ///
    /// If it is called outside of a Tokio runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Returns after a signal, at once if one has come since the last call.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
