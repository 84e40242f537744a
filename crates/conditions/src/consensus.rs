//! What sources have in common.

use std::collections::BTreeMap;

use crate::policy::Class;

/// The reasons and messages of sources, counted, so that the one they share is known without asking all of them.
///
/// Only policies that ask for what is shared need it. Each text is kept once, however many sources give it, and an
/// empty one says nothing and is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consensus {
    reasons: [Texts; 3],
    messages: [Texts; 3],
}

/// Texts and how many sources give each.
type Texts = BTreeMap<Box<str>, usize>;

impl Consensus {
    /// No sources yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A source of this class says this.
    pub fn add(&mut self, class: Class, reason: &str, message: &str) {
        increment(&mut self.reasons[class as usize], reason);
        increment(&mut self.messages[class as usize], message);
    }

    /// A source of this class that said this no longer does.
    pub fn remove(&mut self, class: Class, reason: &str, message: &str) {
        decrement(&mut self.reasons[class as usize], reason);
        decrement(&mut self.messages[class as usize], message);
    }

    /// The reason that all sources of the class share.
    pub fn reason(&self, class: Class) -> Option<&str> {
        shared(&self.reasons[class as usize])
    }

    /// The message that all sources of the class share, apart from those that say nothing.
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
