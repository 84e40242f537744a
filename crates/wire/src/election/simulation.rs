//! Random elections with slow and lost requests, lost responses, candidates that freeze, and wrong clocks. No
//! two candidates may lead at the same moment.

use std::{collections::BTreeMap, ops::Range};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::*;

const DURATION: Duration = Duration::from_millis(1500);
const DEADLINE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_millis(500);
const HOUR: Duration = Duration::from_hours(1);

/// The API server. `version` counts the writes.
#[derive(Clone, Default)]
struct Store {
    record: Option<Record>,
    version: u64,
}

/// A scheduled event of one candidate.
enum Moment {
    /// The candidate starts a round.
    Start,
    /// Its read request reaches the server.
    Read,
    /// The response to the read reaches it.
    ReadDone(Store),
    /// Its write request reaches the server.
    Write { follows: u64, sent: Instant },
    /// The response to the write reaches it.
    Written { sent: Instant },
}

struct World {
    chance: StdRng,
    start: Instant,
    store: Store,
    candidates: Vec<Election>,
    /// The number orders events of the same moment.
    agenda: BTreeMap<(Instant, u64), (usize, Moment)>,
    number: u64,
    /// The leaders, one entry for each change.
    leaders: Vec<usize>,
}

impl World {
    fn new(seed: u64, candidates: usize) -> Self {
        let start = Instant::now() + HOUR;
        let mut world = Self {
            chance: StdRng::seed_from_u64(seed),
            start,
            store: Store::default(),
            candidates: Vec::new(),
            agenda: BTreeMap::new(),
            number: 0,
            leaders: Vec::new(),
        };
        for index in 0..candidates {
            world.candidates.push(Election::new(&index.to_string(), DURATION, DEADLINE));
            let first = world.millis(0..1000);
            world.schedule(start + first, index, Moment::Start);
        }
        world
    }

    fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.chance.random_range(range))
    }

    /// The latency of a message; `None` if it is lost.
    fn travel(&mut self) -> Option<Duration> {
        match self.chance.random_range(0..20) {
            0 => None,
            1 => Some(self.millis(0..3000)),
            _ => Some(self.millis(0..50)),
        }
    }

    fn schedule(&mut self, at: Instant, candidate: usize, moment: Moment) {
        self.number += 1;
        self.agenda.insert((at, self.number), (candidate, moment));
    }

    fn send(&mut self, now: Instant, candidate: usize, moment: Moment) {
        if let Some(travel) = self.travel() {
            self.schedule(now + travel, candidate, moment);
        }
    }

    fn step(&mut self, now: Instant, candidate: usize, moment: Moment) {
        match moment {
            Moment::Start => {
                self.send(now, candidate, Moment::Read);
                // Sometimes it freezes for longer than the lease duration.
                let pause = if self.chance.random_bool(0.02) { self.millis(0..4000) } else { Duration::ZERO };
                self.schedule(now + RETRY + pause, candidate, Moment::Start);
            }
            Moment::Read => {
                let store = self.store.clone();
                self.send(now, candidate, Moment::ReadDone(store));
            }
            Moment::ReadDone(Store { record, version }) => {
                match self.candidates[candidate].observe(record.as_ref(), now) {
                    LeaseStep::Take | LeaseStep::Renew => {
                        self.send(now, candidate, Moment::Write { follows: version, sent: now });
                    }
                    LeaseStep::Wait(until) => assert!(until > now),
                }
            }
            Moment::Write { follows, sent } if follows == self.store.version => {
                let clock = self.chance.random_range(-1_000_000..1_000_000);
                let renewed = Timestamp::from_second(clock).ok();
                let holder = Some(candidate.to_string());
                self.store = Store {
                    record: Some(Record { holder, duration: DURATION, acquired: None, renewed }),
                    version: follows + 1,
                };
                self.send(now, candidate, Moment::Written { sent });
            }
            Moment::Written { sent } => {
                if now < sent + TIMEOUT {
                    self.candidates[candidate].written(sent);
                }
            }
            // A conflict.
            Moment::Write { .. } => {}
        }
    }

    /// The candidates that believe to lead.
    fn leading(&self, now: Instant) -> Vec<usize> {
        let leads = |election: &Election| election.leads_until().is_some_and(|until| now < until);
        (0..self.candidates.len()).filter(|index| leads(&self.candidates[*index])).collect()
    }

    fn run(&mut self, length: Duration) {
        while let Some(((now, _), (candidate, moment))) = self.agenda.pop_first() {
            if now > self.start + length {
                return;
            }
            self.step(now, candidate, moment);
            let leading = self.leading(now);
            assert!(leading.len() <= 1, "{leading:?} lead at {:?}", now - self.start);
            if let Some(leader) = leading.first()
                && self.leaders.last() != Some(leader)
            {
                self.leaders.push(*leader);
            }
        }
    }
}

#[test]
fn never_do_two_lead() {
    let mut changes = 0;
    for seed in 0..150 {
        let mut world = World::new(seed, 3);
        world.run(Duration::from_mins(2));
        assert!(!world.leaders.is_empty(), "no candidate ever led with seed {seed}");
        changes += world.leaders.len() - 1;
    }
    assert!(changes > 150, "too few faults: the leader changed {changes} times in all");
}
