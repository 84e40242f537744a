//! Leader election: the rules, without a clock and without a cluster.
//!
//! Candidates share a record. Its holder leads as long as it renews the record. The others read the record
//! periodically, and take over when it has not changed for the lease duration. Two rules make sure that no
//! two of them lead at a time:
//!
//! - Time is only ever compared with one's own monotonic clock: what counts is when a change of the record
//!   was *seen*. The times in the record are for people.
//! - A leader counts from before it sent its last renewal, and stops after the renew deadline. The others
//!   count from after they saw that renewal, and wait for the whole lease duration, which is longer.
//!
//! The API server prevents lost updates: every write names the resourceVersion that it replaces.

#[cfg(test)]
mod simulation;

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// The upper bound of the lease duration. A wrong record must not block the election for ever.
pub const MAX_LEASE_DURATION: Duration = Duration::from_mins(10);

/// The spec of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `None` after the holder has released the Lease.
    pub holder: Option<String>,
    pub duration: Duration,
    /// By the clock of the holder.
    pub acquired: Option<Timestamp>,
    /// By the clock of the holder.
    pub renewed: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Write the own identity into the record. It has no holder, or its holder has expired.
    Take,
    /// Write a new renew time: the candidate holds the record already.
    Renew,
    /// Read the record again, at this moment at the latest.
    Wait(Instant),
}

/// One candidate's view of an election.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    duration: Duration,
    renew_deadline: Duration,
    /// The record of another holder, and when this version of it was first seen.
    seen: Option<(Record, Instant)>,
    leads_until: Option<Instant>,
}

impl Election {
    /// `identity` must be unique. The duration is capped at ten minutes, and the renew deadline at two thirds
    /// of the duration.
    pub fn new(identity: &str, duration: Duration, renew_deadline: Duration) -> Self {
        let duration = duration.min(MAX_LEASE_DURATION);
        Self {
            identity: identity.to_owned(),
            duration,
            renew_deadline: renew_deadline.min(duration.mul_f64(2.0 / 3.0)),
            seen: None,
            leads_until: None,
        }
    }

    /// Takes in the record as just read; `None` if it does not exist.
    pub fn observe(&mut self, record: Option<&Record>, now: Instant) -> LeaseStep {
        let Some(record) = record else {
            return self.no_record(now);
        };
        match &record.holder {
            Some(holder) if *holder == self.identity => {
                self.seen = None;
                LeaseStep::Renew
            }
            None => {
                self.seen = None;
                LeaseStep::Take
            }
            Some(_) => {
                self.leads_until = None;
                self.other_holder(record, now)
            }
        }
    }

    /// The write of the last step succeeded. `sent` is when its request was sent.
    pub fn written(&mut self, sent: Instant) {
        self.seen = None;
        self.leads_until = Some(sent + self.renew_deadline);
    }

    pub fn step_down(&mut self) {
        self.leads_until = None;
    }

    /// `None` if this candidate does not lead.
    pub fn leads_until(&self) -> Option<Instant> {
        self.leads_until
    }

    /// The other holder that was last seen.
    pub fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(record, _)| record.holder.as_deref())
    }

    fn other_holder(&mut self, record: &Record, now: Instant) -> LeaseStep {
        let since = match &self.seen {
            Some((seen, since)) if seen == record => *since,
            _ => {
                self.seen = Some((record.clone(), now));
                now
            }
        };
        take_after(since + self.lease_duration(record), now)
    }

    /// The record was deleted, or never written. A holder that was seen may not know that its record is gone,
    /// and may still lead.
    fn no_record(&self, now: Instant) -> LeaseStep {
        match &self.seen {
            Some((record, since)) => take_after(*since + self.lease_duration(record), now),
            None => LeaseStep::Take,
        }
    }

    /// The longer of our own duration and that of the record.
    fn lease_duration(&self, record: &Record) -> Duration {
        record.duration.min(MAX_LEASE_DURATION).max(self.duration)
    }
}

fn take_after(moment: Instant, now: Instant) -> LeaseStep {
    if now >= moment { LeaseStep::Take } else { LeaseStep::Wait(moment) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const DURATION: Duration = Duration::from_secs(15);
    const DEADLINE: Duration = Duration::from_secs(10);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// `renewed` is in seconds of the holder's clock.
    fn record(holder: &str, renewed: i64) -> Record {
        Record {
            holder: Some(holder.to_owned()).filter(|holder| !holder.is_empty()),
            duration: DURATION,
            acquired: Some(Timestamp::UNIX_EPOCH),
            renewed: Some(Timestamp::from_second(renewed).unwrap()),
        }
    }

    /// [`LeaseStep`] in whole seconds.
    #[derive(Debug, PartialEq)]
    enum Step {
        Take,
        Renew,
        Wait(u64),
    }

    /// An input of candidate `a`.
    enum Input {
        /// It reads this record, and must return this step.
        Reads(Option<Record>, Step),
        /// Its write succeeded; the request was sent at this second.
        Writes(u64),
        StepsDown,
    }
    use Input::{Reads, StepsDown, Writes};

    /// Feeds the inputs to candidate `a`. Each has its second, and the second until which `a` must lead after
    /// it.
    fn play(story: Vec<(u64, Input, Option<u64>)>) {
        let start = Instant::now();
        let mut election = Election::new("a", DURATION, DEADLINE);
        for (index, (at, input, leads_until)) in story.into_iter().enumerate() {
            match input {
                Reads(record, expected) => {
                    let step = match election.observe(record.as_ref(), start + seconds(at)) {
                        LeaseStep::Take => Step::Take,
                        LeaseStep::Renew => Step::Renew,
                        LeaseStep::Wait(until) => Step::Wait((until - start).as_secs()),
                    };
                    assert_eq!(step, expected, "line {index}");
                }
                Writes(sent) => election.written(start + seconds(sent)),
                StepsDown => election.step_down(),
            }
            let until = election.leads_until().map(|until| (until - start).as_secs());
            assert_eq!(until, leads_until, "line {index}");
        }
    }

    #[rstest]
    #[case::no_record(vec![
        (0, Reads(None, Step::Take), None),
        (1, Writes(0), Some(10)),
    ])]
    #[case::it_renews(vec![
        (0, Reads(None, Step::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(Some(record("a", 0)), Step::Renew), Some(10)),
        (3, Writes(2), Some(12)),
    ])]
    #[case::another_leads_and_renews(vec![
        (0, Reads(Some(record("b", 0)), Step::Wait(15)), None),
        (14, Reads(Some(record("b", 14)), Step::Wait(29)), None),
        (28, Reads(Some(record("b", 28)), Step::Wait(43)), None),
    ])]
    #[case::another_stops(vec![
        (0, Reads(Some(record("b", 0)), Step::Wait(15)), None),
        (2, Reads(Some(record("b", 2)), Step::Wait(17)), None),
        (16, Reads(Some(record("b", 2)), Step::Wait(17)), None),
        (17, Reads(Some(record("b", 2)), Step::Take), None),
        (18, Writes(17), Some(27)),
    ])]
    // Another candidate wrote first: the write was a conflict, and the new record must expire.
    #[case::a_third_takes_over_first(vec![
        (0, Reads(Some(record("b", 0)), Step::Wait(15)), None),
        (15, Reads(Some(record("b", 0)), Step::Take), None),
        (16, Reads(Some(record("c", 15)), Step::Wait(31)), None),
    ])]
    #[case::released(vec![
        (0, Reads(Some(record("b", 0)), Step::Wait(15)), None),
        (1, Reads(Some(record("", 1)), Step::Take), None),
        (1, Writes(1), Some(11)),
    ])]
    // The clock of the holder is an hour behind, jumps back, then years ahead: each is a renewal and no more.
    #[case::the_clock_of_another_jumps(vec![
        (0, Reads(Some(record("b", -3600)), Step::Wait(15)), None),
        (2, Reads(Some(record("b", -7200)), Step::Wait(17)), None),
        (4, Reads(Some(record("b", 100_000_000)), Step::Wait(19)), None),
        (19, Reads(Some(record("b", 100_000_000)), Step::Take), None),
    ])]
    // After a restart, or a write whose response was lost, the record names `a`; it leads only after another
    // write.
    #[case::its_own_record_does_not_make_it_lead(vec![
        (0, Reads(Some(record("a", 0)), Step::Renew), None),
        (1, Writes(1), Some(11)),
    ])]
    // The caller steps down at the deadline. The record is still its own, so it may renew.
    #[case::renewed_too_late(vec![
        (0, Reads(None, Step::Take), None),
        (0, Writes(0), Some(10)),
        (10, StepsDown, None),
        (13, Reads(Some(record("a", 0)), Step::Renew), None),
        (13, Writes(13), Some(23)),
    ])]
    #[case::displaced(vec![
        (0, Reads(None, Step::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(Some(record("b", 1)), Step::Wait(17)), None),
    ])]
    // It writes a new record, and leads on if the write succeeds.
    #[case::its_record_is_deleted(vec![
        (0, Reads(None, Step::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(None, Step::Take), Some(10)),
        (2, Writes(2), Some(12)),
    ])]
    // The holder may not have noticed, and may lead until its deadline.
    #[case::the_record_of_another_is_deleted(vec![
        (0, Reads(Some(record("b", 0)), Step::Wait(15)), None),
        (1, Reads(None, Step::Wait(15)), None),
        (2, Reads(Some(record("b", 2)), Step::Wait(17)), None),
        (3, Reads(None, Step::Wait(17)), None),
        (17, Reads(None, Step::Take), None),
    ])]
    #[case::its_record_is_cleared(vec![
        (0, Reads(None, Step::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(Some(record("", 1)), Step::Take), Some(10)),
    ])]
    fn a_candidate_takes_the_safe_step(#[case] story: Vec<(u64, Input, Option<u64>)>) {
        play(story);
    }

    #[rstest]
    #[case::as_ours(15, 15)]
    #[case::longer(60, 60)]
    #[case::shorter(1, 15)]
    #[case::absurd(u64::MAX, 600)]
    fn a_record_may_have_a_longer_duration(#[case] seconds_asked: u64, #[case] seconds_granted: u64) {
        let now = Instant::now();
        let record = Record { duration: seconds(seconds_asked), ..record("b", 0) };
        let step = Election::new("a", DURATION, DEADLINE).observe(Some(&record), now);
        assert_eq!(step, LeaseStep::Wait(now + seconds(seconds_granted)));
    }

    #[rstest]
    #[case::sensible(15, 10, 10)]
    #[case::too_late(15, 60, 10)]
    #[case::absurd(u64::MAX, u64::MAX, 400)]
    fn the_renew_deadline_is_shorter_than_the_duration(
        #[case] duration: u64,
        #[case] deadline: u64,
        #[case] expected: u64,
    ) {
        let now = Instant::now();
        let mut election = Election::new("a", seconds(duration), seconds(deadline));
        election.written(now);
        assert_eq!(election.leads_until(), Some(now + seconds(expected)));
        // The wait for another holder is capped, too.
        let step = election.observe(Some(&record("b", 0)), now);
        assert_eq!(step, LeaseStep::Wait(now + seconds(duration.min(600))));
    }

    #[test]
    fn the_other_holder_is_known() {
        let mut election = Election::new("a", DURATION, DEADLINE);
        assert_eq!(election.leader(), None);
        election.observe(Some(&record("b", 0)), Instant::now());
        assert_eq!(election.leader(), Some("b"));
        election.written(Instant::now());
        assert_eq!(election.leader(), None);
    }
}
