//! Real Kubernetes control planes for tests, and ways to break them.

mod access;
mod pki;

pub use access::{Access, Login};
pub use pki::{Authority, Credentials, Identity};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data stays good when a test panics while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
