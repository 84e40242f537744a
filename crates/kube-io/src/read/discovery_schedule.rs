//! When to run discovery, without network or clock.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Changes of CRDs come in bursts: discovery waits until none has come for this time.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// The upper bound of all [`DEBOUNCE`] pauses of a burst.
const DEBOUNCE_LIMIT: Duration = Duration::from_secs(1);

/// A kind is served a moment after its CRD was created, so that discovery is repeated with these pauses.
const REPEATS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(6)];

/// The first discovery waits so long for the list of CRDs, so that one is enough.
const FIRST_DELAY: Duration = Duration::from_secs(5);

/// The factor for the interval while CRDs are watched. Kinds of aggregated API servers have no CRD, so that
/// discovery still runs from time to time.
const WATCHED_FACTOR: u32 = 10;

/// An event of the watch of CustomResourceDefinitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CrdWatch {
    /// The CRD of this name (`widgets.acme.io`) was applied or deleted.
    Changed {
        name: Box<str>,
        exists: bool,
    },
    /// The watch has started, after a list of these CRDs. Earlier changes may be missing.
    Up {
        names: Vec<Box<str>>,
    },
    /// The watch goes on where it ended.
    Resumed,
    Down,
}

#[derive(Debug)]
pub(super) struct DiscoverySchedule {
    /// The interval while CRDs are not watched.
    interval: Duration,
    is_watched: bool,
    next: Instant,
    /// The backoff after a failed discovery.
    not_before: Instant,
    /// The first change since the last discovery.
    first_change: Option<Instant>,
    /// CRDs that discovery does not reflect yet: whether they exist. An API server that has just started serves
    /// them a moment later, without an event.
    expected: BTreeMap<Box<str>, bool>,
    /// Whether a CRD has changed since the last discovery that ended a series.
    has_changed: bool,
    /// Whether discovery has completed once.
    has_completed: bool,
    /// An index of [`REPEATS`].
    repeats: usize,
}

impl DiscoverySchedule {
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            is_watched: false,
            next: now + FIRST_DELAY,
            not_before: now,
            first_change: None,
            expected: BTreeMap::new(),
            has_changed: false,
            has_completed: false,
            repeats: REPEATS.len(),
        }
    }

    pub(super) fn next(&self) -> Instant {
        self.next.max(self.not_before)
    }

    pub(super) fn crd_watch(&mut self, event: CrdWatch, now: Instant) {
        match event {
            CrdWatch::Changed { name, exists } => {
                self.expected.insert(name, exists);
                self.has_changed = true;
                self.repeats = 0;
                self.soon(now);
            }
            CrdWatch::Up { names } => {
                // A CRD may have been deleted or got a new version just before the list.
                self.has_changed |= self.has_completed;
                self.is_watched = true;
                self.expected.extend(names.into_iter().map(|name| (name, true)));
                self.repeats = 0;
                self.no_later_than(now);
            }
            CrdWatch::Resumed => self.is_watched = true,
            CrdWatch::Down => {
                self.is_watched = false;
                self.no_later_than(if self.has_completed { now + self.interval } else { now });
            }
        }
    }

    /// A feed has requested a discovery.
    pub(super) fn requested(&mut self, now: Instant) {
        self.soon(now);
    }

    /// Discovery has completed. `is_served` says whether the kind of a CRD is served, `is_complete` whether all
    /// API groups are known.
    pub(super) fn completed(&mut self, is_served: impl Fn(&str) -> bool, is_complete: bool, now: Instant) {
        self.first_change = None;
        self.has_completed = true;
        self.next = now + if self.is_watched { self.interval * WATCHED_FACTOR } else { self.interval };
        self.expected.retain(|name, exists| is_served(name) != *exists);
        match REPEATS.get(self.repeats) {
            Some(&pause) if !is_complete || !self.expected.is_empty() => {
                self.repeats += 1;
                self.no_later_than(now + pause);
            }
            // Once more: the change may be a new version of a kind that was served before.
            Some(_) if self.has_changed => {
                self.has_changed = false;
                self.repeats = REPEATS.len();
                self.no_later_than(now + DEBOUNCE_LIMIT);
            }
            _ => {
                self.has_changed = false;
                self.repeats = REPEATS.len();
                self.expected.clear();
            }
        }
    }

    /// Discovery has failed; the next one is not before the end of this pause.
    pub(super) fn failed(&mut self, pause: Duration, now: Instant) {
        self.first_change = None;
        self.next = now + pause;
        self.not_before = self.next;
    }

    fn soon(&mut self, now: Instant) {
        let first = *self.first_change.get_or_insert(now);
        let debounced = (now + DEBOUNCE).min(first + DEBOUNCE_LIMIT);
        // A burst postpones only the discovery that it has caused itself.
        self.next = if first == now { self.next.min(debounced) } else { debounced };
    }

    fn no_later_than(&mut self, at: Instant) {
        self.next = self.next.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    fn milliseconds(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn widgets(exists: bool) -> CrdWatch {
        CrdWatch::Changed { name: "widgets.acme.io".into(), exists }
    }

    /// With a CRD watch, after the discoveries of the start.
    fn settled(start: Instant) -> DiscoverySchedule {
        let mut schedule = DiscoverySchedule::new(INTERVAL, start);
        schedule.crd_watch(up(), start);
        schedule.completed(|_| true, true, start);
        schedule
    }

    fn up() -> CrdWatch {
        CrdWatch::Up { names: vec!["widgets.acme.io".into()] }
    }

    /// The times of the discoveries until the schedule is idle, in milliseconds from the start.
    fn discoveries(
        schedule: &mut DiscoverySchedule,
        start: Instant,
        is_served: impl Fn(Duration) -> bool,
    ) -> Vec<u64> {
        let (mut times, mut last) = (Vec::new(), start);
        while times.len() < 10 && schedule.next() < last + INTERVAL * WATCHED_FACTOR {
            last = schedule.next();
            times.push(u64::try_from((last - start).as_millis()).unwrap());
            schedule.completed(|_| is_served(last - start), true, last);
        }
        times
    }

    #[test]
    fn it_is_idle_while_nothing_changes() {
        let start = Instant::now();
        assert_eq!(settled(start).next(), start + INTERVAL * WATCHED_FACTOR);
    }

    #[test]
    fn it_polls_without_a_crd_watch() {
        let start = Instant::now();
        let mut schedule = DiscoverySchedule::new(INTERVAL, start);
        schedule.crd_watch(CrdWatch::Down, start);
        assert_eq!(discoveries(&mut schedule, start, |_| true)[..3], [0, 30_000, 60_000]);
        let mut schedule = settled(start);
        schedule.crd_watch(CrdWatch::Down, start);
        assert_eq!(discoveries(&mut schedule, start, |_| true)[..2], [30_000, 60_000]);
        let later = start + milliseconds(5);
        schedule.crd_watch(up(), later);
        assert_eq!(
            discoveries(&mut schedule, start, |_| true)[..2],
            [5, 1005],
            "earlier changes are not missed"
        );
    }

    #[test]
    fn it_is_idle_again_after_the_watch_has_resumed() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(CrdWatch::Down, start);
        schedule.crd_watch(CrdWatch::Resumed, start);
        let first = start + INTERVAL;
        assert_eq!(schedule.next(), first, "events may have been missed");
        schedule.completed(|_| true, true, first);
        assert_eq!(schedule.next(), first + INTERVAL * WATCHED_FACTOR);
    }

    #[test]
    fn the_first_discovery_waits_a_little_for_the_crds() {
        let start = Instant::now();
        let mut schedule = DiscoverySchedule::new(INTERVAL, start);
        assert_eq!(schedule.next(), start + FIRST_DELAY);
        let listed = start + milliseconds(20);
        schedule.crd_watch(up(), listed);
        assert_eq!(discoveries(&mut schedule, start, |_| true), [20], "one is enough");
    }

    /// It responds before it serves all CRDs, and sends no event when it does.
    #[test]
    fn an_api_server_that_has_just_started_is_asked_several_times() {
        let start = Instant::now();
        let mut schedule = DiscoverySchedule::new(INTERVAL, start);
        schedule.crd_watch(up(), start);
        assert_eq!(discoveries(&mut schedule, start, |at| at > milliseconds(1000)), [0, 300, 1300]);
    }

    #[test]
    fn an_api_group_that_does_not_respond_at_the_start_is_asked_for_several_times() {
        let start = Instant::now();
        let mut schedule = DiscoverySchedule::new(INTERVAL, start);
        schedule.crd_watch(up(), start);
        for pause in REPEATS {
            schedule.completed(|_| true, false, start);
            assert_eq!(schedule.next(), start + pause);
        }
        schedule.completed(|_| true, false, start);
        assert_eq!(schedule.next(), start + INTERVAL * WATCHED_FACTOR);
    }

    #[test]
    fn a_kind_that_is_served_at_once_leads_to_two_discoveries() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(widgets(true), start);
        assert_eq!(discoveries(&mut schedule, start, |_| true), [100, 1100]);
    }

    #[test]
    fn discovery_repeats_until_a_new_kind_is_served() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(widgets(true), start);
        assert_eq!(discoveries(&mut schedule, start, |at| at > milliseconds(1000)), [100, 400, 1400, 2400]);
    }

    #[test]
    fn discovery_repeats_until_a_deleted_kind_is_gone() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(widgets(false), start);
        assert_eq!(discoveries(&mut schedule, start, |at| at < milliseconds(300)), [100, 400, 1400]);
    }

    #[test]
    fn the_repeats_for_a_kind_that_is_never_served_end() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(widgets(true), start);
        assert_eq!(discoveries(&mut schedule, start, |_| false), [100, 400, 1400, 4400, 10_400]);
    }

    #[test]
    fn a_burst_leads_to_one_discovery() {
        let start = Instant::now();
        let mut schedule = settled(start);
        for at in (0..=500).step_by(50) {
            schedule.crd_watch(widgets(true), start + milliseconds(at));
        }
        assert_eq!(schedule.next(), start + milliseconds(600));
    }

    #[test]
    fn an_endless_burst_does_not_postpone_discovery_for_ever() {
        let start = Instant::now();
        let mut schedule = settled(start);
        for at in (0..5000).step_by(50) {
            schedule.crd_watch(widgets(true), start + milliseconds(at));
        }
        assert_eq!(schedule.next(), start + DEBOUNCE_LIMIT);
    }

    #[test]
    fn a_requested_discovery_is_soon() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(CrdWatch::Down, start);
        schedule.requested(start);
        assert_eq!(schedule.next(), start + DEBOUNCE);
    }

    #[test]
    fn a_failed_discovery_is_retried() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.crd_watch(widgets(true), start);
        let at = start + DEBOUNCE;
        schedule.failed(milliseconds(700), at);
        assert_eq!(discoveries(&mut schedule, at, |_| true), [700, 1700]);
    }

    #[test]
    fn a_request_does_not_shorten_the_backoff() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.failed(milliseconds(3000), start);
        schedule.requested(start);
        schedule.crd_watch(widgets(true), start + milliseconds(500));
        assert_eq!(discoveries(&mut schedule, start, |_| true), [3000, 4000]);
    }
}
