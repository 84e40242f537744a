//! Limits the Events of each object, as client-go does: an object that flaps would fill etcd with them.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How many Events an object may have at once.
const BURST: u32 = 25;
/// How often an object may have another one after that.
const REFILL: Duration = Duration::from_mins(5);

/// More objects than this have had an Event within two hours only if everything changes. Then the bucket that is
/// nearest to full is forgotten.
const MAX_BUCKETS: usize = 4096;

/// A token bucket for each object, by its UID.
#[derive(Debug, Default)]
pub(super) struct EventLimit {
    /// When each bucket is full again. A full one has no entry.
    full_at: HashMap<Box<str>, Instant>,
}

impl EventLimit {
    /// Takes a token. Returns false if there is none.
    pub(super) fn allows(&mut self, uid: &str, now: Instant) -> bool {
        let full_at = self.full_at.get(uid).copied().unwrap_or(now).max(now) + REFILL;
        if full_at > now + BURST * REFILL {
            return false;
        }
        if self.full_at.len() >= MAX_BUCKETS && !self.full_at.contains_key(uid) {
            self.full_at.retain(|_, full_at| *full_at > now);
            let first = self.full_at.iter().min_by_key(|(_, full_at)| **full_at);
            let first = first.map(|(uid, _)| uid.clone()).filter(|_| self.full_at.len() >= MAX_BUCKETS);
            if let Some(uid) = first {
                self.full_at.remove(&uid);
            }
        }
        self.full_at.insert(uid.into(), full_at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// One change a second for an hour is 3,600 Events without a limit.
    #[test]
    fn a_flapping_object_has_a_burst_and_then_one_event_in_five_minutes() {
        let (mut limit, start) = (EventLimit::default(), Instant::now());
        let allowed: Vec<_> =
            (0..3600).filter(|second| limit.allows("flapping", start + *second * SECOND)).collect();
        assert_eq!(allowed[..25], (0..25).collect::<Vec<_>>());
        assert_eq!(allowed[25..], (1..12).map(|refill| refill * 300).collect::<Vec<_>>());
        assert!(limit.allows("another", start + 3600 * SECOND));
    }

    #[test]
    fn a_bucket_fills_while_the_object_is_quiet() {
        let (mut limit, start) = (EventLimit::default(), Instant::now());
        let count = |limit: &mut EventLimit, now| (0..100).filter(|_| limit.allows("web", now)).count();
        assert_eq!(count(&mut limit, start), 25);
        assert_eq!(count(&mut limit, start + 3 * REFILL), 3);
        assert_eq!(count(&mut limit, start + 100 * REFILL), 25, "it is never more than full");
    }

    #[test]
    fn memory_is_bounded_and_an_empty_bucket_is_kept() {
        let (mut limit, start) = (EventLimit::default(), Instant::now());
        while limit.allows("flapping", start) {}
        for object in 0..3 * MAX_BUCKETS {
            assert!(limit.allows(&object.to_string(), start));
        }
        assert_eq!(limit.full_at.len(), MAX_BUCKETS);
        assert!(!limit.allows("flapping", start));
        let later = start + BURST * REFILL;
        assert!(limit.allows("new", later));
        assert_eq!(limit.full_at.len(), 1, "full buckets need no memory");
    }
}
