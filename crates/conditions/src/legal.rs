//! Limits of Kubernetes for conditions.

/// In bytes, as the schema of `metav1.Condition` has it.
const MAX_TYPE: usize = 316;
/// The longest message that `metav1.Condition` allows, in bytes.
pub const MAX_MESSAGE: usize = 32_768;

/// True for a legal condition type: a name such as `Ready`, or a qualified one such as `example.com/Ready`.
pub fn is_legal_type(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    text.len() <= MAX_TYPE
        && is_enclosed(name, |character| character.is_ascii_alphanumeric(), "-_.")
        && domain.is_none_or(|domain| domain.split('.').all(is_label))
}

fn is_label(text: &str) -> bool {
    is_enclosed(text, |character| character.is_ascii_lowercase() || character.is_ascii_digit(), "-")
}

/// True if `text` has only `outer` and `inner` characters, and begins and ends with an `outer` one.
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
        assert!(is_legal_type(&"a".repeat(MAX_TYPE)));
        assert!(!is_legal_type(&"a".repeat(MAX_TYPE + 1)));
    }
}
