//! What Kubernetes accepts in a condition.

use std::borrow::Cow;

/// The longest type of a condition that Kubernetes accepts, in bytes.
pub const LONGEST_TYPE: usize = 316;
/// The longest reason of a condition that Kubernetes accepts, in bytes.
pub const LONGEST_REASON: usize = 1024;
/// The longest message of a condition that Kubernetes accepts, in bytes.
pub const LONGEST_MESSAGE: usize = 32_768;

/// The text if it is legal as a reason, else the nearest that is.
///
/// A reason begins with a letter, goes on with letters, digits and `_`, `,` or `:`, and ends with none of the last
/// two. Other text loses what cannot stand, and what follows that begins a new word: `image not found` is
/// `ImageNotFound`. Text with nothing of use in it is `Unspecified`.
pub fn legal_reason(text: &str) -> Cow<'_, str> {
    if is_legal_reason(text) {
        return Cow::Borrowed(text);
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
        if reason.len() >= LONGEST_REASON {
            reason.truncate(LONGEST_REASON);
            break;
        }
    }
    reason.truncate(reason.trim_end_matches([',', ':']).len());
    if reason.is_empty() { Cow::Borrowed("Unspecified") } else { Cow::Owned(reason) }
}

fn is_legal_reason(text: &str) -> bool {
    text.len() <= LONGEST_REASON
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with([',', ':'])
        && text.chars().all(is_inner)
}

fn is_inner(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ',' | ':')
}

/// Whether the text is legal as the type of a condition: a name such as `Ready`, or one with a domain before it such
/// as `example.com/Ready`.
pub fn is_legal_type(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    text.len() <= LONGEST_TYPE
        && is_enclosed(name, |character| character.is_ascii_alphanumeric(), "-_.")
        && domain.is_none_or(|domain| domain.split('.').all(is_label))
}

fn is_label(text: &str) -> bool {
    is_enclosed(text, |character| character.is_ascii_lowercase() || character.is_ascii_digit(), "-")
}

/// Whether the text consists of these characters, with some others allowed except at its ends.
fn is_enclosed(text: &str, outer: impl Fn(char) -> bool + Copy, inner: &str) -> bool {
    text.starts_with(outer)
        && text.ends_with(outer)
        && text.chars().all(|character| outer(character) || inner.contains(character))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("MinimumReplicasUnavailable", "MinimumReplicasUnavailable")]
    #[case("A_b,c:d_", "A_b,c:d_")]
    #[case("lower", "lower")]
    #[case("image not found", "ImageNotFound")]
    #[case("cluster-1", "Cluster1")]
    #[case("2-phase", "Phase")]
    #[case("_,x", "X")]
    #[case("ends:,", "Ends")]
    #[case(":", "Unspecified")]
    #[case("", "Unspecified")]
    #[case("größe", "GrE")]
    fn reasons(#[case] text: &str, #[case] reason: &str) {
        assert_eq!(legal_reason(text), reason);
    }

    #[test]
    fn long_reasons_end_legally() {
        assert_eq!(legal_reason(&"a".repeat(2000)).len(), LONGEST_REASON);
        assert_eq!(legal_reason(&"a:".repeat(1000)).len(), LONGEST_REASON - 1);
    }

    #[rstest]
    #[case("Ready", true)]
    #[case("a-b_c.D", true)]
    #[case("bellwether.dev/StatusAggregationValid", true)]
    #[case("", false)]
    #[case("-Ready", false)]
    #[case("Ready.", false)]
    #[case("not ready", false)]
    #[case("/Ready", false)]
    #[case("Example.com/Ready", false)]
    #[case("example..com/Ready", false)]
    #[case("a/b/c", false)]
    fn types(#[case] text: &str, #[case] legal: bool) {
        assert_eq!(is_legal_type(text), legal);
    }

    #[test]
    fn types_have_a_longest() {
        assert!(is_legal_type(&"a".repeat(LONGEST_TYPE)));
        assert!(!is_legal_type(&"a".repeat(LONGEST_TYPE + 1)));
    }

    /// The rule of Kubernetes, character by character.
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
            let reason = legal_reason(&text);
            prop_assert!(kubernetes_accepts(&reason), "{reason:?}");
            if kubernetes_accepts(&text) {
                prop_assert_eq!(&*reason, &text);
            }
        }
    }
}
