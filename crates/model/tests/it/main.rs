//! What is read from bytes, and what is not.

mod broken;
mod kept;
mod larger;
mod oracle;
