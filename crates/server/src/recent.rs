//! Answers that hold for a short time.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

/// At most `max` answers: a new one replaces the oldest.
pub(crate) struct Recent<K, V> {
    answers: HashMap<K, Answer<V>>,
    by_age: BTreeMap<u64, K>,
    next: u64,
    max: usize,
}

struct Answer<V> {
    number: u64,
    until: Instant,
    value: V,
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self { answers: HashMap::new(), by_age: BTreeMap::new(), next: 0, max }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.answers
            .get(key)
            .filter(|answer| answer.until > Instant::now())
            .map(|answer| answer.value.clone())
    }

    pub(crate) fn put(&mut self, key: K, value: V, holds: Duration) {
        let answer = Answer { number: self.next, until: Instant::now() + holds, value };
        self.next += 1;
        self.by_age.insert(answer.number, key.clone());
        if let Some(before) = self.answers.insert(key, answer) {
            self.by_age.remove(&before.number);
        }
        if self.answers.len() > self.max
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.answers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLDS: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn the_oldest_answer_makes_room_for_a_new_one() {
        let mut recent = Recent::new(2);
        for key in ["a", "b", "a", "c"] {
            recent.put(key, key.len(), HOLDS);
        }
        assert_eq!(["a", "b", "c"].map(|key| recent.get(&key).is_some()), [true, false, true]);
        assert_eq!((recent.answers.len(), recent.by_age.len()), (2, 2));
        tokio::time::advance(HOLDS).await;
        assert_eq!(recent.get(&"c"), None);
    }
}
