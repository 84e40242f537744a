//! How a cluster is read.

use std::{ops::RangeInclusive, time::Duration};

use bellwether_wire::backoff::BackoffLimits;
use rand::Rng;

/// How a cluster is read. The defaults are good for most.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The one namespace that is read; all of them if there is none. Kinds without namespaces are read all the same.
    pub namespace: Option<String>,
    /// How many objects a page of a list has.
    pub page_size: u32,
    /// How long a watch lasts before it is begun anew, in whole seconds. It is drawn from this range each time, so that
    /// watches which began together do not end together.
    pub watch_lasts: RangeInclusive<Duration>,
    /// How long after its time a watch may still be open. One that is open for longer has lost its other end.
    pub slack: Duration,
    /// How long a watch may be silent after the server has spoken of its own accord. API servers do so about once a minute
    /// where they do at all.
    pub silence: Duration,
    /// How long an answer may take to begin, and how long it may pause.
    pub answers_within: Duration,
    /// The pauses between attempts.
    pub pauses: BackoffLimits,
    /// How often to look which kinds there are, where the cluster does not tell when that changes.
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
    /// How long the next watch lasts, in seconds.
    pub(super) fn draw_watch_seconds(&self, random: &mut impl Rng) -> u32 {
        let seconds = |duration: &Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1);
        let (least, most) = (seconds(self.watch_lasts.start()), seconds(self.watch_lasts.end()));
        random.random_range(least..=most.max(least))
    }
}
