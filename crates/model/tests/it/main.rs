//! Decoding objects from bytes.

mod broken;
mod kept;
mod larger;
mod oracle;
