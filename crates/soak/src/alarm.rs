//! What was wrong.

use std::{
    io::{Write as _, stderr},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// All that was wrong so far. It is told at once, and again in the end.
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
    /// Something is wrong.
    pub(crate) fn raise(&self, what: &str) {
        let line = format!("{} {what}", self.clock());
        say(&format!("WRONG: {line}"));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// All that was wrong so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many things were.
    pub(crate) fn count(&self) -> usize {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The time since the beginning, as minutes and seconds.
    pub(crate) fn clock(&self) -> String {
        let seconds = self.begun.elapsed().as_secs();
        format!("{:>3}:{:02}", seconds / 60, seconds % 60)
    }
}

/// Tells whoever looks on what is going on. Nothing depends on their listening.
pub(crate) fn say(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}
