//! Text from outside, made fit for a sentence of ours.

use std::error::Error;

use bellwether_model::text::one_line;

/// The longest that is passed on of what somebody else said.
const LONGEST: usize = 1024;

/// The same text on one line, without control characters, and not too long.
pub fn line(text: &str) -> String {
    one_line(text.trim(), LONGEST).into_owned()
}

/// The reason at the bottom of an error: what is above it only says who passed it on.
pub fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    line(&error.to_string())
}
