//! Finds phrases in text, whatever their case and their line breaks.

/// A phrase that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) offset: usize,
    pub(super) word: String,
    /// What to write instead.
    pub(super) hint: &'static str,
}

/// Not matches, although they contain a phrase: "is no" is wrong only where "is not a" is meant.
const ALLOWED: [&str; 2] = ["there is no ", "there are no "];

/// All places where one of the phrases is. Of two that begin at the same word, the longer one counts.
pub(super) fn find(text: &[u8], phrases: &[&str]) -> Vec<Match> {
    let mut phrases = [phrases, &ALLOWED].concat();
    phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
    let mut matches = Vec::new();
    let (mut end, mut before) = (0, false);
    for (offset, byte) in text.iter().enumerate() {
        let begins_word = is_word(*byte) && !before;
        before = is_word(*byte);
        if !begins_word || offset < end {
            continue;
        }
        let found = phrases.iter().find_map(|phrase| Some((phrase, match_at(text, offset, phrase)?)));
        if let Some((phrase, found)) = found {
            end = found;
            if ALLOWED.contains(phrase) {
                continue;
            }
            matches.push(Match { offset, word: phrase.trim_end().to_owned(), hint: "" });
        }
    }
    matches
}

/// The number of the line with this offset, from 1.
pub(super) fn line_of(text: &[u8], offset: usize) -> usize {
    text[..offset].split(|byte| *byte == b'\n').count()
}

/// The end of the phrase if it begins at `start`, which is the beginning of a word.
fn match_at(text: &[u8], start: usize, phrase: &str) -> Option<usize> {
    if !text[start].eq_ignore_ascii_case(phrase.as_bytes().first()?) {
        return None;
    }
    let mut at = start;
    for (index, word) in phrase.split_whitespace().enumerate() {
        if index > 0 {
            at = skip_gap(text, at)?;
        }
        let end = at + word.len();
        if !text.get(at..end)?.eq_ignore_ascii_case(word.as_bytes())
            || text.get(end).is_some_and(|byte| is_word(*byte))
        {
            return None;
        }
        at = end;
    }
    if phrase.ends_with(' ') {
        let next = skip_gap(text, at)?;
        if match_at(text, next, "longer").is_some() {
            return None;
        }
    }
    Some(at)
}

/// The end of the white space between two words of a sentence. An empty line ends a sentence.
fn skip_gap(text: &[u8], start: usize) -> Option<usize> {
    let gap = text[start..].iter().take_while(|byte| byte.is_ascii_whitespace());
    let (length, breaks) =
        gap.fold((0, 0), |(length, breaks), byte| (length + 1, breaks + usize::from(*byte == b'\n')));
    (length > 0 && breaks < 2 && start + length < text.len()).then_some(start + length)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn words(text: &str, phrases: &[&str]) -> Vec<String> {
        find(text.as_bytes(), phrases).into_iter().map(|found| found.word).collect()
    }

    #[rstest]
    #[case("Nobody knows.", "nobody", true)]
    #[case("NOBODY", "nobody", true)]
    #[case("`nobody`", "nobody", true)]
    #[case("nobodys", "nobody", false)]
    #[case("is_nobody", "nobody", false)]
    #[case("ünobody", "nobody", false)]
    #[case("on its way", "on its way", true)]
    #[case("on  its\n    way.", "on its way", true)]
    #[case("on its\n\nway", "on its way", false)]
    #[case("upon its way", "on its way", false)]
    #[case("this is no rule", "is no ", true)]
    #[case("it is no\nrule", "is no ", true)]
    #[case("is no {kind}", "is no ", true)]
    #[case("is no longer a rule", "is no ", false)]
    #[case("is no\n    longer a rule", "is no ", false)]
    #[case("are no longer rules", "are no ", false)]
    #[case("there is no rule", "is no ", false)]
    #[case("there are no rules", "are no ", false)]
    #[case("is not a rule", "is no ", false)]
    #[case("the answer is no", "is no ", false)]
    #[case("the answer is no.", "is no ", false)]
    fn a_phrase_is_found_at_the_boundaries_of_words(
        #[case] text: &str,
        #[case] phrase: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(!words(text, &[phrase]).is_empty(), expected, "{text:?}");
    }

    #[test]
    fn overlapping_phrases_count_once() {
        let phrases = ["is no ", "there is no such"];
        assert_eq!(words("There is no such field; it is no field", &phrases), ["there is no such", "is no"]);
    }

    #[test]
    fn lines_are_counted_from_one() {
        let text = b"one\ntwo\nthree";
        assert_eq!([0, 3, 4, 8, 12].map(|offset| line_of(text, offset)), [1, 1, 2, 3, 3]);
    }
}
