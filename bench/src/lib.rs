//! Benchmarks of Bellwether: the code that the programs in `bin/` share.

pub mod app_k8s_io;
mod changes;
mod combined;
mod driver;
mod expression;
pub mod live;
mod population;
mod rounds;
mod subject;
pub mod umbrella;
pub mod workload;

pub use changes::{Pair, nanos, time_of_a_change};
pub use combined::CombinedTable;
pub use driver::{DecodedObject, Driver};
pub use expression::{Expression, report_expressions};
pub use population::Population;
pub use rounds::{cpu_time, median};
pub use subject::{Subject, report};
