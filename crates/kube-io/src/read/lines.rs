//! Lines out of pieces that end anywhere.

use std::io::BufRead as _;

/// How much room is kept for the next line when there was a longer one.
const ROOM: usize = 64 * 1024;

/// Puts pieces together to lines.
#[derive(Debug)]
pub(super) struct Lines {
    line: Vec<u8>,
    longest: usize,
}

/// A line is longer than any that makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    /// No line may be longer than this.
    pub(super) fn new(longest: usize) -> Self {
        Self { line: Vec::new(), longest }
    }

    /// Takes from the piece what belongs to the next line. Gives whether the line is whole.
    pub(super) fn next(&mut self, piece: &mut &[u8]) -> Result<bool, TooLong> {
        if self.is_whole() {
            self.line.clear();
            self.line.shrink_to(ROOM);
        }
        // Reading from memory cannot fail.
        let _ = piece.read_until(b'\n', &mut self.line);
        if self.line.len() > self.longest { Err(TooLong) } else { Ok(self.is_whole()) }
    }

    /// The line, as far as it has come.
    pub(super) fn line(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    /// Whether half a line is waiting for the rest.
    pub(super) fn is_torn(&self) -> bool {
        !self.line.is_empty() && !self.is_whole()
    }

    fn is_whole(&self) -> bool {
        self.line.ends_with(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The lines of a text that arrives in pieces of this size, and whether half a line is left.
    fn lines(text: &str, size: usize) -> Result<(Vec<String>, bool), TooLong> {
        let mut lines = Lines::new(8);
        let mut found = Vec::new();
        for mut piece in text.as_bytes().chunks(size) {
            while !piece.is_empty() {
                if lines.next(&mut piece)? {
                    found.push(String::from_utf8_lossy(lines.line()).into_owned());
                }
            }
        }
        Ok((found, lines.is_torn()))
    }

    #[rstest]
    #[case::nothing("", &[], false)]
    #[case::one("one\n", &["one"], false)]
    #[case::two("one\ntwo\n", &["one", "two"], false)]
    #[case::empty_ones("\n\none\n", &["", "", "one"], false)]
    #[case::half("one\ntw", &["one"], true)]
    #[case::as_long_as_may_be("1234567\n", &["1234567"], false)]
    fn pieces_of_any_size_give_the_same(
        #[case] text: &str,
        #[case] expected: &[&str],
        #[case] torn: bool,
        #[values(1, 2, 3, 100)] size: usize,
    ) {
        let expected = expected.iter().map(|&line| line.to_owned()).collect();
        assert_eq!(lines(text, size), Ok((expected, torn)));
    }

    #[rstest]
    fn no_line_is_too_long(#[values(1, 3, 100)] size: usize) {
        assert_eq!(lines("one\n123456789", size), Err(TooLong));
        assert_eq!(lines("12345678\n", size), Err(TooLong));
    }
}
