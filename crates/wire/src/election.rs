//! Who leads: the rules, without a clock and without a cluster.
//!
//! Candidates share a record. Whoever is named in it leads as long as they renew it; the others look at it again and
//! again, and take over when it has not changed for as long as its holder may stay silent. Two things make sure that no two
//! of them lead at a time:
//!
//! - Time is only ever compared with one's own monotonic clock: what counts is when a change of the record was *seen*. The
//!   times in the record are for people.
//! - A leader counts from before it sent its last renewal, and stops after the renew deadline. The others count from after
//!   they saw that renewal, and wait for the whole duration, which is longer.
//!
//! That nobody overwrites what they have not read is the API server's part: every write names the version that it follows.

#[cfg(test)]
mod simulation;

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// The longest silence that a holder may ask for. A mistake in a record must not lock everybody out for ever.
pub const LONGEST_SILENCE: Duration = Duration::from_mins(10);

/// What candidates know of the one who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The leader; none after it has given the lead up.
    pub holder: Option<String>,
    /// How long it may stay silent.
    pub duration: Duration,
    /// When it took the lead, by its own clock.
    pub acquired: Option<Timestamp>,
    /// When it renewed it last, by its own clock.
    pub renewed: Option<Timestamp>,
}

/// What a candidate has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Write one's own name into the record, which names oneself already or nobody that counts.
    Take,
    /// Confirm that one is still there.
    Renew,
    /// Look again, at the latest at this moment.
    Wait(Instant),
}

/// One candidate's view of an election.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    duration: Duration,
    renew_deadline: Duration,
    /// The record of another, and when it was first seen so.
    seen: Option<(Record, Instant)>,
    /// Until when this candidate leads.
    leads_until: Option<Instant>,
}

impl Election {
    /// A candidate of this name, which no other may have. Whatever is asked for, the duration is at most ten minutes, and
    /// the renew deadline well below it.
    pub fn new(identity: &str, duration: Duration, renew_deadline: Duration) -> Self {
        let duration = duration.min(LONGEST_SILENCE);
        Self {
            identity: identity.to_owned(),
            duration,
            renew_deadline: renew_deadline.min(duration.mul_f64(2.0 / 3.0)),
            seen: None,
            leads_until: None,
        }
    }

    /// Takes note of the record as it was read just now; there may be none.
    pub fn observe(&mut self, record: Option<&Record>, now: Instant) -> LeaseStep {
        let Some(record) = record else {
            return self.nothing_there(now);
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
                // Whatever we believed: it is written otherwise.
                self.leads_until = None;
                self.another(record, now)
            }
        }
    }

    /// Takes note that the record was written as the last step wanted it, by a request that was sent at this moment.
    pub fn written(&mut self, sent: Instant) {
        self.seen = None;
        self.leads_until = Some(sent + self.renew_deadline);
    }

    /// Gives the lead up.
    pub fn step_down(&mut self) {
        self.leads_until = None;
    }

    /// Until when this candidate leads, if it does. Every renewal moves it.
    pub fn leads_until(&self) -> Option<Instant> {
        self.leads_until
    }

    /// The one who leads instead, as far as is known.
    pub fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(record, _)| record.holder.as_deref())
    }

    fn another(&mut self, record: &Record, now: Instant) -> LeaseStep {
        let since = match &self.seen {
            Some((seen, since)) if seen == record => *since,
            _ => {
                self.seen = Some((record.clone(), now));
                now
            }
        };
        after(since + self.silence(record), now)
    }

    /// Somebody has deleted the record, or nobody has ever led. A leader that was seen may not know that its record is
    /// gone, and counts on the time that it has left.
    fn nothing_there(&self, now: Instant) -> LeaseStep {
        match &self.seen {
            Some((record, since)) => after(*since + self.silence(record), now),
            None => LeaseStep::Take,
        }
    }

    /// How long the holder of a record may stay silent: as long as we would, or longer if it says so.
    fn silence(&self, record: &Record) -> Duration {
        record.duration.min(LONGEST_SILENCE).max(self.duration)
    }
}

/// To take the lead, but not before this moment.
fn after(moment: Instant, now: Instant) -> LeaseStep {
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

    /// A record of `holder`, renewed at this second of its own clock.
    fn record(holder: &str, renewed: i64) -> Record {
        Record {
            holder: Some(holder.to_owned()).filter(|holder| !holder.is_empty()),
            duration: DURATION,
            acquired: Some(Timestamp::UNIX_EPOCH),
            renewed: Some(Timestamp::from_second(renewed).unwrap()),
        }
    }

    /// What a candidate does now.
    #[derive(Debug, PartialEq)]
    enum Does {
        Take,
        Renew,
        /// Waits until this second.
        Wait(u64),
    }

    /// What happens to candidate A, second by second.
    enum Happens {
        /// It reads the record; this is what it does then.
        Reads(Option<Record>, Does),
        /// It has written the record, by a request sent at this second.
        Writes(u64),
        /// It gives up.
        StepsDown,
    }
    use Happens::{Reads, StepsDown, Writes};

    /// Lets things happen to candidate A, and looks after each of them until which second it leads.
    fn play(story: Vec<(u64, Happens, Option<u64>)>) {
        let start = Instant::now();
        let mut election = Election::new("a", DURATION, DEADLINE);
        for (index, (at, happens, leads_until)) in story.into_iter().enumerate() {
            match happens {
                Reads(record, does) => {
                    let step = match election.observe(record.as_ref(), start + seconds(at)) {
                        LeaseStep::Take => Does::Take,
                        LeaseStep::Renew => Does::Renew,
                        LeaseStep::Wait(until) => Does::Wait((until - start).as_secs()),
                    };
                    assert_eq!(step, does, "line {index}");
                }
                Writes(sent) => election.written(start + seconds(sent)),
                StepsDown => election.step_down(),
            }
            let until = election.leads_until().map(|until| (until - start).as_secs());
            assert_eq!(until, leads_until, "line {index}");
        }
    }

    #[rstest]
    #[case::nobody_was_there(vec![
        (0, Reads(None, Does::Take), None),
        (1, Writes(0), Some(10)),
    ])]
    #[case::it_renews(vec![
        (0, Reads(None, Does::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(Some(record("a", 0)), Does::Renew), Some(10)),
        (3, Writes(2), Some(12)),
    ])]
    #[case::another_leads_and_renews(vec![
        (0, Reads(Some(record("b", 0)), Does::Wait(15)), None),
        (14, Reads(Some(record("b", 14)), Does::Wait(29)), None),
        (28, Reads(Some(record("b", 28)), Does::Wait(43)), None),
    ])]
    #[case::another_stops(vec![
        (0, Reads(Some(record("b", 0)), Does::Wait(15)), None),
        (2, Reads(Some(record("b", 2)), Does::Wait(17)), None),
        (16, Reads(Some(record("b", 2)), Does::Wait(17)), None),
        (17, Reads(Some(record("b", 2)), Does::Take), None),
        (18, Writes(17), Some(27)),
    ])]
    // Another was quicker: the write was a conflict, and there is a new record to wait for.
    #[case::a_third_takes_over_first(vec![
        (0, Reads(Some(record("b", 0)), Does::Wait(15)), None),
        (15, Reads(Some(record("b", 0)), Does::Take), None),
        (16, Reads(Some(record("c", 15)), Does::Wait(31)), None),
    ])]
    #[case::released(vec![
        (0, Reads(Some(record("b", 0)), Does::Wait(15)), None),
        (1, Reads(Some(record("", 1)), Does::Take), None),
        (1, Writes(1), Some(11)),
    ])]
    // The other's clock is an hour behind, jumps back, then years ahead: each is a sign of life and no more.
    #[case::the_clock_of_another_jumps(vec![
        (0, Reads(Some(record("b", -3600)), Does::Wait(15)), None),
        (2, Reads(Some(record("b", -7200)), Does::Wait(17)), None),
        (4, Reads(Some(record("b", 100_000_000)), Does::Wait(19)), None),
        (19, Reads(Some(record("b", 100_000_000)), Does::Take), None),
    ])]
    // It restarted, or its claim was written but the answer lost: the record names it, but it leads only when it has written.
    #[case::its_own_record_is_no_lead(vec![
        (0, Reads(Some(record("a", 0)), Does::Renew), None),
        (1, Writes(1), Some(11)),
    ])]
    // The shell ends the lead at the deadline; the record is still its own, so it may go on.
    #[case::renewed_too_late(vec![
        (0, Reads(None, Does::Take), None),
        (0, Writes(0), Some(10)),
        (10, StepsDown, None),
        (13, Reads(Some(record("a", 0)), Does::Renew), None),
        (13, Writes(13), Some(23)),
    ])]
    #[case::displaced(vec![
        (0, Reads(None, Does::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(Some(record("b", 1)), Does::Wait(17)), None),
    ])]
    // Its own record is gone: it writes a new one, and leads on if that goes well.
    #[case::somebody_deletes_its_record(vec![
        (0, Reads(None, Does::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(None, Does::Take), Some(10)),
        (2, Writes(2), Some(12)),
    ])]
    // The other may not have noticed, and counts on its deadline.
    #[case::somebody_deletes_the_record_of_another(vec![
        (0, Reads(Some(record("b", 0)), Does::Wait(15)), None),
        (1, Reads(None, Does::Wait(15)), None),
        (2, Reads(Some(record("b", 2)), Does::Wait(17)), None),
        (3, Reads(None, Does::Wait(17)), None),
        (17, Reads(None, Does::Take), None),
    ])]
    #[case::somebody_empties_its_record(vec![
        (0, Reads(None, Does::Take), None),
        (0, Writes(0), Some(10)),
        (2, Reads(Some(record("", 1)), Does::Take), Some(10)),
    ])]
    fn a_candidate_does_what_is_safe(#[case] story: Vec<(u64, Happens, Option<u64>)>) {
        play(story);
    }

    #[rstest]
    #[case::as_ours(15, 15)]
    #[case::longer(60, 60)]
    #[case::shorter(1, 15)]
    #[case::absurd(u64::MAX, 600)]
    fn a_holder_may_ask_for_more_time(#[case] asked: u64, #[case] granted: u64) {
        let now = Instant::now();
        let record = Record { duration: seconds(asked), ..record("b", 0) };
        let step = Election::new("a", DURATION, DEADLINE).observe(Some(&record), now);
        assert_eq!(step, LeaseStep::Wait(now + seconds(granted)));
    }

    #[rstest]
    #[case::sensible(15, 10, 10)]
    #[case::too_late(15, 60, 10)]
    #[case::absurd(u64::MAX, u64::MAX, 400)]
    fn the_deadline_is_before_the_end_whatever_is_asked_for(
        #[case] duration: u64,
        #[case] deadline: u64,
        #[case] expected: u64,
    ) {
        let now = Instant::now();
        let mut election = Election::new("a", seconds(duration), seconds(deadline));
        election.written(now);
        assert_eq!(election.leads_until(), Some(now + seconds(expected)));
        // Nor does it wait for ever for another.
        let step = election.observe(Some(&record("b", 0)), now);
        assert_eq!(step, LeaseStep::Wait(now + seconds(duration.min(600))));
    }

    #[test]
    fn the_other_leader_is_known() {
        let mut election = Election::new("a", DURATION, DEADLINE);
        assert_eq!(election.leader(), None);
        election.observe(Some(&record("b", 0)), Instant::now());
        assert_eq!(election.leader(), Some("b"));
        election.written(Instant::now());
        assert_eq!(election.leader(), None);
    }
}
