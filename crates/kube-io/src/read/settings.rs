//! Limits and intervals of a reader.

use std::{ops::RangeInclusive, time::Duration};

use bellwether_wire::backoff::BackoffLimits;
use rand::Rng;

#[derive(Clone, Debug)]
pub struct ReaderSettings {
    /// `None` for all namespaces. Cluster-scoped kinds are always read.
    pub namespace: Option<String>,
    /// Objects in a list page.
    pub page_size: u32,
    /// The timeout of a watch, in whole seconds, drawn from this range each time: watches that start together
    /// do not end together.
    pub watch_timeout: RangeInclusive<Duration>,
    /// A watch that is open for longer than its timeout plus this has a broken connection.
    pub watch_timeout_grace: Duration,
    /// The longest time without data on a watch with bookmarks. API servers send bookmarks about once a
    /// minute.
    pub idle_timeout: Duration,
    /// The timeout for the headers of a response, and for each chunk of its body.
    pub response_timeout: Duration,
    pub backoff: BackoffLimits,
    /// The interval of discovery where CustomResourceDefinitions cannot be watched.
    pub discovery_interval: Duration,
    /// The interval of lists that notice a cluster that was restored from a backup.
    pub restore_check_interval: Duration,
}

impl Default for ReaderSettings {
    fn default() -> Self {
        Self {
            namespace: None,
            page_size: 500,
            watch_timeout: Duration::from_mins(5)..=Duration::from_mins(10),
            watch_timeout_grace: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(3),
            response_timeout: Duration::from_mins(1),
            backoff: BackoffLimits::default(),
            discovery_interval: Duration::from_secs(30),
            restore_check_interval: Duration::from_secs(15),
        }
    }
}

impl ReaderSettings {
    pub(super) fn draw_watch_seconds(&self, random: &mut impl Rng) -> u32 {
        let seconds = |duration: &Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1);
        let (least, most) = (seconds(self.watch_timeout.start()), seconds(self.watch_timeout.end()));
        random.random_range(least..=most.max(least))
    }
}
