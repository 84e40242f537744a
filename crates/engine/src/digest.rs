//! Compares long values without keeping them.

use std::{
    hash::{DefaultHasher, Hasher as _},
    io::{self, Write},
};

use serde::Serialize;

/// A 64-bit hash of a value's JSON. Different values collide with a probability of 2^-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn of(value: &impl Serialize) -> Self {
        let mut writer = HashWriter(DefaultHasher::new());
        // Hashing cannot fail, and all values that we hash are serializable.
        let result = serde_json::to_writer(&mut writer, value);
        debug_assert!(result.is_ok(), "{result:?}");
        Self(writer.0.finish())
    }
}

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
    fn different_values_have_different_digests() {
        let digest = |value| Digest::of(&value);
        assert_eq!(digest(json!({"a": [1, 2]})), digest(json!({"a": [1, 2]})));
        for other in [json!({"a": [2, 1]}), json!({"a": [12]}), json!({"b": [1, 2]}), json!(null)] {
            assert_ne!(digest(json!({"a": [1, 2]})), digest(other));
        }
    }
}
