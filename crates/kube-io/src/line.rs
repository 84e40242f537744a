//! Text from outside, made fit for a sentence of ours.

use std::error::Error;

/// The longest that is passed on of what somebody else said.
const LONGEST: usize = 1024;

/// What is put where a text was cut.
const CUT: &str = "…";

/// The same text on one line, without control characters, and not too long.
pub(crate) fn line(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let joined = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    shortened(joined, LONGEST)
}

/// At most so many bytes of a text; whole characters, and a sign that something is missing.
pub(crate) fn shortened(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest.saturating_sub(CUT.len())));
        text.push_str(CUT);
    }
    text
}

/// The reason at the bottom of an error: what is above it only says who passed it on.
pub(crate) fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    line(&error.to_string())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_it_is("all is well", "all is well")]
    #[case::lines("two\n  lines\t", "two lines")]
    #[case::escapes("red\u{1b}[31m", "red [31m")]
    #[case::nothing("\n", "")]
    fn text_becomes_one_line(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(line(text), expected);
    }

    #[rstest]
    #[case::fits("abcdef", 6, "abcdef")]
    #[case::does_not("abcdefg", 6, "abc…")]
    #[case::whole_characters("aéééé", 8, "aéé…")]
    #[case::no_room_at_all("abc", 1, "…")]
    fn a_cut_shows_and_breaks_no_character(
        #[case] text: &str,
        #[case] longest: usize,
        #[case] expected: &str,
    ) {
        assert_eq!(shortened(text.to_owned(), longest), expected);
    }
}
