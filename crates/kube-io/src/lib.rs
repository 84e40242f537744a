//! What talks to clusters: it reads them into news for the engine, and writes what the engine wants.

pub mod audience;
mod connected;
pub mod read;
pub mod spine;
pub mod vitals;
pub mod write;

mod clock;
