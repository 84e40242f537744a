//! The binary as its users meet it.
