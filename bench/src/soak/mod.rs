//! Random load and random faults on a real control plane, and somebody who watches whether what is published is true.
//!
//! `cast` has the objects, `load` changes them, `stage` is the control plane, `replica` a controller on it and `faults`
//! what breaks them. `chronicle` remembers how the members were, `witness` writes it and sees what is published, `truth`
//! says from scratch what there is to say, `judge` compares what is published all the time, and `verdict` when all is
//! quiet. `report` is what is told in the end.

mod alarm;
mod cast;
mod chronicle;
mod fact;
mod faults;
mod judge;
mod load;
mod replica;
mod report;
mod rules;
mod stage;
mod trouble;
mod truth;
mod verdict;
mod watch;
mod witness;

pub use alarm::Alarms;
pub use faults::Faults;
pub use judge::{Judged, judge};
pub use load::Load;
pub use report::{Check, Report};
pub use stage::Stage;
pub use trouble::Troubles;
pub use verdict::settle;
pub use witness::Witness;
