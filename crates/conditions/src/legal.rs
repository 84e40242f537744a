//! What Kubernetes accepts in a condition.

/// The longest type of a condition that Kubernetes accepts, in bytes.
const LONGEST_TYPE: usize = 316;
/// The longest message of a condition that Kubernetes accepts, in bytes.
pub const LONGEST_MESSAGE: usize = 32_768;

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
    use rstest::rstest;

    use super::*;

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
}
