//! Random load and random faults on a real control plane, and somebody who watches whether what is published is true.
//!
//! - What happens: `cast` has the objects, `rules` the rules that come and go, and `load` changes them all. `stage` is the
//!   control plane, `replica` a controller on it, and `faults` breaks everything.
//! - What is true: `fact` is what matters of an object, and `truth` says from scratch what there is to say of an Application.
//! - What was published: `watch` sees it, `witness` writes down in the `chronicle` how the members were, `trouble` says how
//!   late a controller may be, and `judge` compares. `verdict` does when all is quiet.
//! - What is told of it: `alarm` at once, `report` in the end.

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
