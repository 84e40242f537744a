//! The same object in the words of other projects, exactly.
//!
//! kstatus and Argo CD contradict each other on the same object: a failed Pod is Current to one and Degraded to the other.
//! Whoever comes from one of them needs its very words, also where our own rules see more.

pub mod argo;
mod go;
pub mod kstatus;
