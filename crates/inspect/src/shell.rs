//! Words as a shell takes them, for commands that people copy.

use std::borrow::Cow;

/// A word, in quotes if a shell would make something else of it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// A flag with its value, as one more of a command.
pub(crate) fn flag(name: &str, value: &str) -> String {
    format!(" --{name} {}", quoted(value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_path("./dump-1/all.yaml", "./dump-1/all.yaml")]
    #[case::letters_of_any_language("größe/all.yaml", "größe/all.yaml")]
    #[case::a_gap("my dump", "'my dump'")]
    #[case::a_quote("bo's $HOME", r"'bo'\''s $HOME'")]
    #[case::home("~/dump", "'~/dump'")]
    #[case::a_list("{a,b}*", "'{a,b}*'")]
    #[case::nothing("", "''")]
    fn words_stay_what_they_are(#[case] word: &str, #[case] expected: &str) {
        assert_eq!(quoted(word), expected);
    }
}
