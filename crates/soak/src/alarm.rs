//! Errors that the run has found.

use std::{
    io::{Write as _, stderr},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// All errors so far. Each is printed at once, and again in the report.
#[derive(Clone)]
pub(crate) struct Alarms {
    begun: Instant,
    all: Arc<Mutex<Vec<String>>>,
}

impl Default for Alarms {
    fn default() -> Self {
        Self { begun: Instant::now(), all: Arc::default() }
    }
}

impl Alarms {
    pub(crate) fn raise(&self, what: &str) {
        let line = format!("{} {what}", self.clock());
        log(&format!("ERROR: {line}"));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The time since the start, as minutes and seconds.
    pub(crate) fn clock(&self) -> String {
        let seconds = self.begun.elapsed().as_secs();
        format!("{:>3}:{:02}", seconds / 60, seconds % 60)
    }
}

/// Prints progress. A closed standard error is not an error.
pub(crate) fn log(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}
