//! Health as other projects report it, with their exact statuses and messages.
//!
//! kstatus and Argo CD contradict each other: a failed Pod is Current in one and Degraded in the other. Users
//! of one of them can compare its verdicts with Bellwether's own.

pub mod argo;
mod go;
pub mod kstatus;
