//! When to look which kinds there are. It knows no network and no clock.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Changes come in bursts: a look waits until there is no more for so long,
const QUIET: Duration = Duration::from_millis(100);

/// but never longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// A kind is served a moment after it was defined, so a change is followed by more than one look: these are the pauses
/// after each. Who is not there after the last is not going to be.
const LOOKS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(6)];

/// Kinds of other API servers come without a definition; they are noticed by a look now and then, so many times less often
/// than where nothing is heard at all.
const RARELY: u32 = 10;

/// What a cluster says about the kinds that are defined in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CrdWatch {
    /// A definition of this name (`widgets.acme.io`) has changed; it is there, or not any more.
    Changed { name: Box<str>, there: bool },
    /// From now on changes are told. There may have been some before.
    Up,
    /// Changes are not told any more.
    Down,
}

/// When to look next, and for what.
#[derive(Debug)]
pub(super) struct DiscoverySchedule {
    /// How often to look when nothing is heard.
    every: Duration,
    deaf: bool,
    next: Instant,
    /// Whoever wants a look earlier has to wait: the last one failed.
    not_before: Instant,
    /// When the first change came for which nobody has looked yet.
    first: Option<Instant>,
    /// What is to be there, or not to be there.
    expected: BTreeMap<Box<str>, bool>,
    /// Whether it has only begun to hear. An API server that has just begun itself serves what is defined a moment later,
    /// and tells nobody.
    fresh: bool,
    looks: usize,
}

impl DiscoverySchedule {
    /// The first look is now.
    pub(super) fn new(every: Duration, now: Instant) -> Self {
        Self {
            every,
            deaf: true,
            next: now,
            not_before: now,
            first: None,
            expected: BTreeMap::new(),
            fresh: false,
            looks: LOOKS.len(),
        }
    }

    /// When to look next.
    pub(super) fn next(&self) -> Instant {
        self.next.max(self.not_before)
    }

    /// Something was heard.
    pub(super) fn heard(&mut self, heard: CrdWatch, now: Instant) {
        match heard {
            CrdWatch::Changed { name, there } => {
                self.expected.insert(name, there);
                self.looks = 0;
                self.soon(now);
            }
            CrdWatch::Up => {
                self.deaf = false;
                self.fresh = true;
                self.looks = 0;
                self.soon(now);
            }
            CrdWatch::Down => {
                self.deaf = true;
                self.no_later_than(now + self.every);
            }
        }
    }

    /// Somebody wants a look.
    pub(super) fn asked(&mut self, now: Instant) {
        self.soon(now);
    }

    /// Someone has looked. `is_there` says whether a definition is served.
    pub(super) fn looked(&mut self, is_there: impl Fn(&str) -> bool, now: Instant) {
        self.first = None;
        self.next = now + if self.deaf { self.every } else { self.every * RARELY };
        self.expected.retain(|name, there| is_there(name) != *there);
        match LOOKS.get(self.looks) {
            Some(&pause) if self.fresh || !self.expected.is_empty() => {
                self.looks += 1;
                self.no_later_than(now + pause);
            }
            // All is as expected. But a change may be a new version of what was there before: one more look.
            Some(_) => {
                self.looks = LOOKS.len();
                self.no_later_than(now + PATIENCE);
            }
            None => {
                self.fresh = false;
                self.expected.clear();
            }
        }
    }

    /// The look failed; try again after this pause, and not before.
    pub(super) fn failed(&mut self, pause: Duration, now: Instant) {
        self.first = None;
        self.next = now + pause;
        self.not_before = self.next;
    }

    fn soon(&mut self, now: Instant) {
        let first = *self.first.get_or_insert(now);
        let quiet = (now + QUIET).min(first + PATIENCE);
        // A burst puts off only the look that it has asked for itself.
        self.next = if first == now { self.next.min(quiet) } else { quiet };
    }

    fn no_later_than(&mut self, at: Instant) {
        self.next = self.next.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);

    fn milliseconds(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn widgets(there: bool) -> CrdWatch {
        CrdWatch::Changed { name: "widgets.acme.io".into(), there }
    }

    /// One that hears, and has looked as often as it does when it begins.
    fn settled(start: Instant) -> DiscoverySchedule {
        let mut schedule = DiscoverySchedule::new(EVERY, start);
        schedule.heard(CrdWatch::Up, start);
        for _ in 0..=LOOKS.len() {
            schedule.looked(|_| false, start);
        }
        schedule
    }

    /// When it looks until it rests, counted from the start.
    fn looks(
        schedule: &mut DiscoverySchedule,
        start: Instant,
        is_there: impl Fn(Duration) -> bool,
    ) -> Vec<u64> {
        let (mut looks, mut last) = (Vec::new(), start);
        while looks.len() < 10 && schedule.next() < last + EVERY * RARELY {
            last = schedule.next();
            looks.push(u64::try_from((last - start).as_millis()).unwrap());
            schedule.looked(|_| is_there(last - start), last);
        }
        looks
    }

    #[test]
    fn it_rests_while_nothing_changes() {
        let start = Instant::now();
        assert_eq!(settled(start).next(), start + EVERY * RARELY);
    }

    #[test]
    fn it_looks_now_and_then_where_nothing_is_heard() {
        let start = Instant::now();
        let mut schedule = DiscoverySchedule::new(EVERY, start);
        assert_eq!(looks(&mut schedule, start, |_| false)[..3], [0, 30_000, 60_000]);
        let mut schedule = settled(start);
        schedule.heard(CrdWatch::Down, start);
        assert_eq!(looks(&mut schedule, start, |_| false)[..2], [30_000, 60_000]);
        let later = start + milliseconds(5);
        schedule.heard(CrdWatch::Up, later);
        assert_eq!(looks(&mut schedule, start, |_| false)[0], 105, "what came before is not missed");
    }

    /// It answers before it serves all that is defined, and nothing changes when it does.
    #[test]
    fn an_api_server_that_has_just_begun_is_looked_at_several_times() {
        let start = Instant::now();
        let mut schedule = DiscoverySchedule::new(EVERY, start);
        schedule.looked(|_| false, start);
        schedule.heard(CrdWatch::Up, start);
        assert_eq!(looks(&mut schedule, start, |_| false), [100, 400, 1400, 4400, 10_400]);
    }

    #[test]
    fn a_kind_that_is_there_at_once_is_looked_at_twice() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.heard(widgets(true), start);
        assert_eq!(looks(&mut schedule, start, |_| true), [100, 1100]);
    }

    #[test]
    fn a_kind_that_comes_late_is_waited_for() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.heard(widgets(true), start);
        assert_eq!(looks(&mut schedule, start, |at| at > milliseconds(1000)), [100, 400, 1400, 2400]);
    }

    #[test]
    fn a_kind_that_goes_late_is_waited_for() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.heard(widgets(false), start);
        assert_eq!(looks(&mut schedule, start, |at| at < milliseconds(300)), [100, 400, 1400]);
    }

    #[test]
    fn a_kind_that_never_comes_is_given_up() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.heard(widgets(true), start);
        assert_eq!(looks(&mut schedule, start, |_| false), [100, 400, 1400, 4400, 10_400]);
    }

    #[test]
    fn a_burst_is_one_look() {
        let start = Instant::now();
        let mut schedule = settled(start);
        for at in (0..=500).step_by(50) {
            schedule.heard(widgets(true), start + milliseconds(at));
        }
        assert_eq!(schedule.next(), start + milliseconds(600));
    }

    #[test]
    fn a_burst_without_end_puts_nothing_off_for_ever() {
        let start = Instant::now();
        let mut schedule = settled(start);
        for at in (0..5000).step_by(50) {
            schedule.heard(widgets(true), start + milliseconds(at));
        }
        assert_eq!(schedule.next(), start + PATIENCE);
    }

    #[test]
    fn who_asks_gets_a_look_soon() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.heard(CrdWatch::Down, start);
        schedule.asked(start);
        assert_eq!(schedule.next(), start + QUIET);
    }

    #[test]
    fn a_look_that_failed_is_tried_again() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.heard(widgets(true), start);
        let at = start + QUIET;
        schedule.failed(milliseconds(700), at);
        assert_eq!(looks(&mut schedule, at, |_| true), [700, 1700]);
    }

    #[test]
    fn a_server_that_asked_for_patience_is_not_asked_because_somebody_else_asks() {
        let start = Instant::now();
        let mut schedule = settled(start);
        schedule.failed(milliseconds(3000), start);
        schedule.asked(start);
        schedule.heard(widgets(true), start + milliseconds(500));
        assert_eq!(looks(&mut schedule, start, |_| true), [3000, 4000]);
    }
}
