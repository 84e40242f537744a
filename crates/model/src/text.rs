//! Makes text from clusters valid for conditions and safe for terminals.

use std::borrow::Cow;

/// The maximum length of a condition reason in Kubernetes, in bytes.
pub const MAX_REASON: usize = 1024;

/// The reason for text without a legal character.
pub const UNSPECIFIED: &str = "Unspecified";

/// Marks truncated text.
const ELLIPSIS: char = '…';

/// The text as a legal reason of a condition.
///
/// A reason starts with a letter, has letters, digits, `_`, `,` and `:`, and does not end with `,` or `:`.
/// Illegal characters are removed and the next letter becomes a capital: `image not found` becomes
/// `ImageNotFound`. Text without a legal character becomes [`UNSPECIFIED`].
pub fn legal_reason<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    if is_legal_reason(&text) {
        return text;
    }
    let mut reason = String::new();
    for word in text.split(|character| !is_inner(character)) {
        let word = if reason.is_empty() {
            word.trim_start_matches(|c: char| !c.is_ascii_alphabetic())
        } else {
            word
        };
        let mut characters = word.chars();
        reason.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        reason.push_str(characters.as_str());
        if reason.len() >= MAX_REASON {
            reason.truncate(MAX_REASON);
            break;
        }
    }
    reason.truncate(reason.trim_end_matches([',', ':']).len());
    if reason.is_empty() { Cow::Borrowed(UNSPECIFIED) } else { Cow::Owned(reason) }
}

fn is_legal_reason(text: &str) -> bool {
    text.len() <= MAX_REASON
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with([',', ':'])
        && text.chars().all(is_inner)
}

fn is_inner(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ',' | ':')
}

/// `Reason: message`, or the message alone where it contains the reason.
pub fn with_reason<'a>(reason: &str, message: &'a str) -> Cow<'a, str> {
    if reason.is_empty() || message.contains(reason) {
        Cow::Borrowed(message)
    } else if message.is_empty() {
        Cow::Owned(reason.to_owned())
    } else {
        Cow::Owned(format!("{reason}: {message}"))
    }
}

/// The word with a capital first letter, as in a reason.
pub fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// The text on one line of at most `longest` bytes. Line breaks, control characters and bidirectional marks
/// become spaces, so text from a cluster cannot control a terminal.
pub fn one_line<'a>(text: impl Into<Cow<'a, str>>, longest: usize) -> Cow<'a, str> {
    let text = text.into();
    if text.len() <= longest && !text.contains(is_hidden) {
        return text;
    }
    let mut line = String::with_capacity(text.len().min(longest));
    for word in text.split(|character: char| character.is_whitespace() || is_hidden(character)) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > longest {
            break;
        }
    }
    shorten(&mut line, longest);
    Cow::Owned(line)
}

/// Truncates the text to at most `longest` bytes at a character boundary, with `…` at the end.
pub fn shorten(text: &mut String, longest: usize) {
    if text.len() <= longest {
        return;
    }
    let room = longest.checked_sub(ELLIPSIS.len_utf8());
    text.truncate(text.floor_char_boundary(room.unwrap_or(longest)));
    if room.is_some() {
        text.truncate(text.trim_end().len());
        text.push(ELLIPSIS);
    }
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("ImagePullBackOff", "no such image", "ImagePullBackOff: no such image")]
    #[case(
        "CrashLoopBackOff",
        "container app: CrashLoopBackOff, exit code 1",
        "container app: CrashLoopBackOff, exit code 1"
    )]
    #[case("", "not found", "not found")]
    #[case("NotFound", "", "NotFound")]
    fn reasons_come_before_messages(#[case] reason: &str, #[case] message: &str, #[case] expected: &str) {
        assert_eq!(with_reason(reason, message), expected);
    }

    #[rstest]
    #[case("MinimumReplicasUnavailable", "MinimumReplicasUnavailable")]
    #[case("A_b,c:d_", "A_b,c:d_")]
    #[case("lower", "lower")]
    #[case("image not found", "ImageNotFound")]
    #[case("a.b/c", "ABC")]
    #[case("cluster-1", "Cluster1")]
    #[case("2-phase", "Phase")]
    #[case("_,x", "X")]
    #[case("ends:,", "Ends")]
    #[case(":", "Unspecified")]
    #[case("", "Unspecified")]
    #[case("…", "Unspecified")]
    #[case("größe", "GrE")]
    fn reasons(#[case] text: &str, #[case] reason: &str) {
        assert_eq!(legal_reason(text), reason);
    }

    #[rstest]
    #[case("running", "Running")]
    #[case("Running", "Running")]
    #[case("élan", "Élan")]
    #[case("", "")]
    fn capitals(#[case] word: &str, #[case] expected: &str) {
        assert_eq!(capitalised(word), expected);
    }

    #[test]
    fn long_reasons_end_legally() {
        assert_eq!(legal_reason("a".repeat(2000)).len(), MAX_REASON);
        assert_eq!(legal_reason("a:".repeat(1000)).len(), MAX_REASON - 1);
    }

    #[rstest]
    #[case("as it is, with  two spaces", 40, "as it is, with  two spaces")]
    #[case("two\nlines\tand a tab ", 40, "two lines and a tab")]
    #[case("\u{1b}[31mred", 40, "[31mred")]
    #[case("\n", 40, "")]
    #[case("one two three", 11, "one two…")]
    #[case("one two\nthree", 12, "one two t…")]
    #[case("ääääää", 8, "ää…")]
    fn lines(#[case] text: &str, #[case] longest: usize, #[case] line: &str) {
        assert_eq!(one_line(text, longest), line);
    }

    #[rstest]
    #[case::fits("abcdef", 6, "abcdef")]
    #[case::does_not_fit("abcdefg", 6, "abc…")]
    #[case::whole_characters("aéééé", 8, "aéé…")]
    #[case::only_the_ellipsis("abcd", 3, "…")]
    #[case::no_room_for_the_ellipsis("abc", 1, "a")]
    fn truncation_is_marked_and_keeps_characters_whole(
        #[case] text: &str,
        #[case] longest: usize,
        #[case] expected: &str,
    ) {
        let mut text = text.to_owned();
        shorten(&mut text, longest);
        assert_eq!(text, expected);
    }

    /// The validation of Kubernetes, byte by byte.
    fn kubernetes_accepts(reason: &str) -> bool {
        let bytes = reason.as_bytes();
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        matches!(bytes, [first, ..] if first.is_ascii_alphabetic())
            && bytes.last().is_some_and(word)
            && bytes.iter().all(|byte| word(byte) || matches!(byte, b',' | b':'))
            && bytes.len() <= 1024
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_legal_reason(text in prop_oneof!["(?s).{0,40}", "[a-z:,_ 1]{0,20}", "[a:, ]{1000,1100}"]) {
            let reason = legal_reason(&*text);
            prop_assert!(kubernetes_accepts(&reason), "{reason:?}");
            if kubernetes_accepts(&text) {
                prop_assert_eq!(&*reason, &text);
            }
        }

        #[test]
        fn any_text_fits_on_a_line(text in "(?s).{0,60}", longest in 0_usize..50) {
            let line = one_line(text, longest);
            prop_assert!(line.len() <= longest && !line.contains(is_hidden), "{line:?}");
        }
    }
}
