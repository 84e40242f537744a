//! How fast Bellwether is: what the programs that measure it share.

mod expression;
mod rounds;
mod subject;

pub use expression::{Expression, report_expressions};
pub use rounds::median;
pub use subject::{Subject, report};
