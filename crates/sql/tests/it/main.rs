//! Statements, and the collectors that they mean.

mod errors;
mod properties;
mod translation;
