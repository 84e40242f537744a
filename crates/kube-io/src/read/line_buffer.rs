//! Assembles lines from chunks.

use std::io::BufRead as _;

use bellwether_wire::wiped_buffer::WipedBuffer;

/// The capacity that is kept after a longer line.
const CAPACITY: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Lines {
    line: WipedBuffer,
    longest: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    /// `longest` includes the newline.
    pub(super) fn new(longest: usize) -> Self {
        Self { line: WipedBuffer::default(), longest }
    }

    /// Takes the bytes of the next line from the chunk. Returns whether the line is complete.
    pub(super) fn next(&mut self, chunk: &mut &[u8]) -> Result<bool, TooLong> {
        if self.is_complete() {
            self.line.clear(CAPACITY);
        }
        let rest = *chunk;
        // Reading from memory cannot fail.
        let taken = chunk.skip_until(b'\n').unwrap_or(rest.len());
        self.line.extend(&rest[..taken]);
        if self.line.len() > self.longest { Err(TooLong) } else { Ok(self.is_complete()) }
    }

    /// The line without the newline; it may be incomplete.
    pub(super) fn line(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    /// Whether the last line is incomplete.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.line.is_empty() && !self.is_complete()
    }

    fn is_complete(&self) -> bool {
        self.line.ends_with(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The lines of a text in chunks of this size, and whether the last line is incomplete.
    fn lines(text: &str, size: usize) -> Result<(Vec<String>, bool), TooLong> {
        let mut lines = Lines::new(8);
        let mut found = Vec::new();
        for mut chunk in text.as_bytes().chunks(size) {
            while !chunk.is_empty() {
                if lines.next(&mut chunk)? {
                    found.push(String::from_utf8_lossy(lines.line()).into_owned());
                }
            }
        }
        Ok((found, lines.is_incomplete()))
    }

    #[rstest]
    #[case::nothing("", &[], false)]
    #[case::one("one\n", &["one"], false)]
    #[case::two("one\ntwo\n", &["one", "two"], false)]
    #[case::empty_ones("\n\none\n", &["", "", "one"], false)]
    #[case::incomplete("one\ntw", &["one"], true)]
    #[case::longest("1234567\n", &["1234567"], false)]
    fn chunks_of_any_size_give_the_same_lines(
        #[case] text: &str,
        #[case] expected: &[&str],
        #[case] torn: bool,
        #[values(1, 2, 3, 100)] size: usize,
    ) {
        let expected = expected.iter().map(|&line| line.to_owned()).collect();
        assert_eq!(lines(text, size), Ok((expected, torn)));
    }

    #[rstest]
    fn lines_that_are_too_long_are_errors(#[values(1, 3, 100)] size: usize) {
        assert_eq!(lines("one\n123456789", size), Err(TooLong));
        assert_eq!(lines("12345678\n", size), Err(TooLong));
    }
}
