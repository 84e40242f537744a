//! Text of API servers and libraries, made fit for a message.

use std::error::Error;

use bellwether_model::text::one_line;

/// In bytes.
const MAX_LENGTH: usize = 1024;

/// The text on one line, without control characters and not longer than 1,024 bytes.
pub fn bounded_line(text: &str) -> String {
    one_line(text.trim(), MAX_LENGTH).into_owned()
}

/// The innermost source of an error: the layers above it only repeat that a request failed.
pub fn root_cause(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    bounded_line(&error.to_string())
}
