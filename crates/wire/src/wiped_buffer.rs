//! A buffer for bytes from an API server that leaves no copy of them behind.
//!
//! The metadata of a Secret may have its content: `kubectl apply` writes it into an annotation. No plan keeps that
//! annotation, but the bytes that are decoded have it.

use std::{hint::black_box, mem, ops::Deref};

/// Bytes that are overwritten with zeros as soon as they are not needed.
#[derive(Debug, Default)]
pub struct WipedBuffer {
    /// Zeros after the bytes that are used.
    memory: Vec<u8>,
    used: usize,
}

impl WipedBuffer {
    pub fn extend(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        if end > self.memory.len() {
            drop(self.resize(end.max(2 * self.memory.len())));
        }
        if let Some(free) = self.memory.get_mut(self.used..end) {
            free.copy_from_slice(bytes);
            self.used = end;
        }
    }

    /// Removes all bytes, and frees the memory beyond `kept`.
    pub fn clear(&mut self, kept: usize) {
        wipe(&mut self.memory[..self.used]);
        self.used = 0;
        if self.memory.len() > kept {
            drop(self.resize(kept));
        }
    }

    /// The number of bytes that are in memory, whether used or not.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Returns the memory before, which is wiped. A vector that grows by itself would free it as it is.
    fn resize(&mut self, size: usize) -> Vec<u8> {
        let mut before = mem::replace(&mut self.memory, vec![0; size]);
        self.memory[..self.used].copy_from_slice(&before[..self.used]);
        wipe(&mut before[..self.used]);
        before
    }
}

impl Deref for WipedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.used]
    }
}

impl Drop for WipedBuffer {
    fn drop(&mut self) {
        self.clear(usize::MAX);
    }
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // The compiler must not take the zeros for unused.
    black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_bytes_that_it_was_given() {
        let mut buffer = WipedBuffer::default();
        for part in ["", "one ", "two ", "three"] {
            buffer.extend(part.as_bytes());
        }
        assert_eq!(&*buffer, b"one two three");
        buffer.clear(usize::MAX);
        buffer.extend(b"four");
        assert_eq!(&*buffer, b"four");
    }

    #[test]
    fn cleared_memory_is_zero() {
        let mut buffer = WipedBuffer::default();
        buffer.extend(b"secret");
        buffer.clear(usize::MAX);
        assert!(buffer.is_empty() && !buffer.memory.is_empty());
        assert!(buffer.memory.iter().all(|byte| *byte == 0), "{:?}", buffer.memory);
    }

    #[test]
    fn memory_that_is_too_small_or_too_large_is_zero_before_it_is_freed() {
        let mut buffer = WipedBuffer::default();
        buffer.extend(b"secret");
        for size in [100, 6] {
            let before = buffer.resize(size);
            assert!(!before.is_empty() && before.iter().all(|byte| *byte == 0), "{before:?}");
            assert_eq!(&*buffer, b"secret");
        }
    }

    #[test]
    fn memory_beyond_what_is_kept_is_freed() {
        let mut buffer = WipedBuffer::default();
        buffer.extend(&[1; 100]);
        buffer.clear(10);
        assert_eq!(buffer.memory.len(), 10);
    }
}
