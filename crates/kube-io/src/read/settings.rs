//! Limits and intervals of a reader.

use std::{ops::RangeInclusive, time::Duration};

use bellwether_wire::backoff::BackoffLimits;
use rand::Rng;

#[derive(Clone, Debug)]
pub struct Settings {
    /// `None` for all namespaces. Cluster-scoped kinds are always read.
    pub namespace: Option<String>,
    /// Objects in a list page.
    pub page_size: u32,
    /// The timeout of a watch, in whole seconds, drawn from this range each time: watches that start together
    /// do not end together.
    pub watch_lasts: RangeInclusive<Duration>,
    /// A watch that is open for longer than its timeout plus this has a broken connection.
    pub slack: Duration,
    /// The longest time without data on a watch with bookmarks. API servers send bookmarks about once a
    /// minute.
    pub silence: Duration,
    /// The timeout for the headers of a response, and for each chunk of its body.
    pub answers_within: Duration,
    pub pauses: BackoffLimits,
    /// The interval of discovery where CustomResourceDefinitions cannot be watched.
    pub looks_every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: None,
            page_size: 500,
            watch_lasts: Duration::from_mins(5)..=Duration::from_mins(10),
            slack: Duration::from_secs(15),
            silence: Duration::from_mins(3),
            answers_within: Duration::from_mins(1),
            pauses: BackoffLimits::default(),
            looks_every: Duration::from_secs(30),
        }
    }
}

impl Settings {
    pub(super) fn draw_watch_seconds(&self, random: &mut impl Rng) -> u32 {
        let seconds = |duration: &Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1);
        let (least, most) = (seconds(self.watch_lasts.start()), seconds(self.watch_lasts.end()));
        random.random_range(least..=most.max(least))
    }
}
