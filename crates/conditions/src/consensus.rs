//! Counts of reasons and messages, to find the one that all sources share.

use std::collections::BTreeMap;

use crate::policy::Class;

/// Counts the reasons and messages of the sources of each class, so that a shared text is found without
/// reading all sources.
///
/// Needed only for [`Choice::Common`](crate::Choice::Common) and
/// [`WhenFine::Agreed`](crate::WhenFine::Agreed). Each distinct text is stored once. Empty texts are not
/// counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consensus {
    reasons: [Texts; 3],
    messages: [Texts; 3],
}

/// How many sources give each text.
type Texts = BTreeMap<Box<str>, usize>;

impl Consensus {
    /// Without sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a source.
    pub fn add(&mut self, class: Class, reason: &str, message: &str) {
        increment(&mut self.reasons[class as usize], reason);
        increment(&mut self.messages[class as usize], message);
    }

    /// Undoes [`add`](Self::add) of the same values.
    pub fn remove(&mut self, class: Class, reason: &str, message: &str) {
        decrement(&mut self.reasons[class as usize], reason);
        decrement(&mut self.messages[class as usize], message);
    }

    /// The reason that all sources of the class share, if there is one.
    pub fn reason(&self, class: Class) -> Option<&str> {
        shared(&self.reasons[class as usize])
    }

    /// The message that all sources of the class with a message share, if there is one.
    pub fn message(&self, class: Class) -> Option<&str> {
        shared(&self.messages[class as usize])
    }
}

fn increment(texts: &mut Texts, text: &str) {
    if let Some(count) = texts.get_mut(text) {
        *count += 1;
    } else if !text.is_empty() {
        texts.insert(text.into(), 1);
    }
}

fn decrement(texts: &mut Texts, text: &str) {
    match texts.get_mut(text) {
        Some(count) if *count > 1 => *count -= 1,
        _ => {
            texts.remove(text);
        }
    }
}

fn shared(texts: &Texts) -> Option<&str> {
    let (text, _) = texts.first_key_value().filter(|_| texts.len() == 1)?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::no_sources(&[], None)]
    #[case::one(&["A"], Some("A"))]
    #[case::alike(&["A", "A", "A"], Some("A"))]
    #[case::different(&["A", "B"], None)]
    #[case::empty_texts(&["", "A", ""], Some("A"))]
    #[case::only_empty_texts(&["", ""], None)]
    fn shared_texts(#[case] texts: &[&str], #[case] shared: Option<&str>) {
        for class in Class::ALL {
            let mut consensus = Consensus::new();
            for text in texts {
                consensus.add(class, text, text);
            }
            assert_eq!((consensus.reason(class), consensus.message(class)), (shared, shared));
            for other in Class::ALL.into_iter().filter(|other| *other != class) {
                assert_eq!((consensus.reason(other), consensus.message(other)), (None, None));
            }
        }
    }

    #[test]
    fn removing_a_source_undoes_adding_it() {
        let mut consensus = Consensus::new();
        consensus.add(Class::Issue, "A", "one");
        consensus.add(Class::Issue, "A", "two");
        consensus.add(Class::Issue, "B", "two");
        consensus.remove(Class::Issue, "A", "one");
        assert_eq!((consensus.reason(Class::Issue), consensus.message(Class::Issue)), (None, Some("two")));
        consensus.remove(Class::Issue, "B", "two");
        assert_eq!(consensus.reason(Class::Issue), Some("A"));
        consensus.remove(Class::Issue, "A", "two");
        assert_eq!(consensus, Consensus::new());
    }
}
