//! How fast Bellwether is: what the programs that measure it share.

mod rounds;
mod subject;

pub use rounds::median;
pub use subject::{Subject, report};
