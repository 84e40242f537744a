//! Whether something long is what it was, without keeping it.

use std::{
    hash::{DefaultHasher, Hasher as _},
    io::{self, Write},
};

use serde::Serialize;

/// Stands for something that was written once. Of two that differ, one in 2^64 is taken for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Of something that can be written as JSON.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        let mut writer = HashWriter(DefaultHasher::new());
        // The mill takes everything, and our own kinds can all be written.
        let result = serde_json::to_writer(&mut writer, value);
        debug_assert!(result.is_ok(), "{result:?}");
        Self(writer.0.finish())
    }
}

/// Takes in bytes, and keeps none of them.
struct HashWriter(DefaultHasher);

impl Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_tells_what_differs() {
        let digest = |value| Digest::of(&value);
        assert_eq!(digest(json!({"a": [1, 2]})), digest(json!({"a": [1, 2]})));
        for other in [json!({"a": [2, 1]}), json!({"a": [12]}), json!({"b": [1, 2]}), json!(null)] {
            assert_ne!(digest(json!({"a": [1, 2]})), digest(other));
        }
    }
}
