//! Text from clusters, made fit for conditions and for terminals.

use std::borrow::Cow;

/// The longest reason that Kubernetes accepts.
const LONGEST_REASON: usize = 1024;

/// The same reason, or the nearest one that a condition may have: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`.
pub(crate) fn legal_reason(reason: Cow<'static, str>) -> Cow<'static, str> {
    if is_legal(&reason) {
        return reason;
    }
    // Words become CamelCase: "image not found" is ImageNotFound.
    let mut legal = String::with_capacity(reason.len().min(LONGEST_REASON));
    let mut at_word = true;
    for character in reason.chars() {
        if !is_inner(character) {
            at_word = true;
            continue;
        }
        if legal.is_empty() && !character.is_ascii_alphabetic() {
            continue;
        }
        if legal.len() == LONGEST_REASON {
            break;
        }
        legal.push(if at_word { character.to_ascii_uppercase() } else { character });
        at_word = false;
    }
    legal.truncate(legal.trim_end_matches([',', ':']).len());
    if legal.is_empty() { Cow::Borrowed("Unspecified") } else { Cow::Owned(legal) }
}

fn is_inner(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ',' | ':')
}

fn is_legal(reason: &str) -> bool {
    reason.len() <= LONGEST_REASON
        && reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_')
        && reason.chars().all(is_inner)
}

/// The same text on one line, at most `longest` bytes of it.
pub(crate) fn one_line(text: Cow<'static, str>, longest: usize) -> Cow<'static, str> {
    if text.len() <= longest && !text.contains(is_hidden) {
        return text;
    }
    let mut line = String::with_capacity(text.len().min(longest));
    // Every word is followed by one space, and control characters are spaces too: nothing from a cluster moves a cursor.
    for word in text.split(|character: char| character.is_whitespace() || is_hidden(character)) {
        if word.is_empty() {
            continue;
        }
        let gap = usize::from(!line.is_empty());
        if line.len() + gap + word.len() > longest {
            cut(&mut line, word, longest);
            break;
        }
        if gap == 1 {
            line.push(' ');
        }
        line.push_str(word);
    }
    Cow::Owned(line)
}

/// Whether a character ends lines, moves a cursor or turns the writing round: none of that is text.
fn is_hidden(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// The word with a capital letter, as reasons have it.
pub(crate) fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// As much of the word as there is room for, and a sign that there was more.
fn cut(line: &mut String, word: &str, longest: usize) {
    let ellipsis = '…';
    let room = longest.saturating_sub(ellipsis.len_utf8());
    if line.is_empty() {
        line.push_str(&word[..word.floor_char_boundary(room)]);
    }
    line.truncate(line.floor_char_boundary(room));
    line.push(ellipsis);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("MinimumReplicasUnavailable", "MinimumReplicasUnavailable")]
    #[case("image not found", "ImageNotFound")]
    #[case("2-phase", "Phase")]
    #[case("a.b/c", "ABC")]
    #[case("ends:", "Ends")]
    #[case("", "Unspecified")]
    #[case("…", "Unspecified")]
    fn reasons(#[case] reason: &'static str, #[case] legal: &str) {
        assert_eq!(legal_reason(reason.into()), legal);
    }

    #[rstest]
    #[case("as it is, with  two spaces", 40, "as it is, with  two spaces")]
    #[case("two\nlines\tand a tab", 40, "two lines and a tab")]
    #[case("\u{1b}[31mred", 40, "[31mred")]
    #[case("one two three", 10, "one two…")]
    #[case("ääääää", 8, "ää…")]
    fn lines(#[case] text: &'static str, #[case] longest: usize, #[case] line: &str) {
        assert_eq!(one_line(text.into(), longest), line);
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_legal_reason(text in ".{0,40}") {
            let reason = legal_reason(text.into());
            prop_assert!(is_legal(&reason), "{reason:?}");
        }

        #[test]
        fn any_text_fits_on_a_line(text in "(?s).{0,60}", longest in 3_usize..50) {
            let line = one_line(text.into(), longest);
            prop_assert!(line.len() <= longest && !line.contains(char::is_control), "{line:?}");
        }
    }
}
