//! Many elections with everything that can go wrong between a candidate and an API server: slow requests, lost requests,
//! lost answers, candidates that freeze and go on, clocks that are wrong. At no moment do two candidates lead.

use std::{collections::BTreeMap, ops::Range};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::*;

const DURATION: Duration = Duration::from_millis(1500);
const DEADLINE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(200);
const GIVE_UP: Duration = Duration::from_millis(500);
const HOUR: Duration = Duration::from_hours(1);

/// What an API server has: a record, and how often it was written.
#[derive(Clone, Default)]
struct Store {
    record: Option<Record>,
    version: u64,
}

/// What happens to one candidate, at one moment.
enum Moment {
    /// It begins a round.
    Look,
    /// Its question reaches the server.
    Read,
    /// The server's answer reaches it.
    Seen(Store),
    /// Its claim reaches the server.
    Write { follows: u64, sent: Instant },
    /// The server's word reaches it that this was done.
    Written { sent: Instant },
}

struct World {
    chance: StdRng,
    start: Instant,
    store: Store,
    candidates: Vec<Election>,
    /// What is to come, in its order; the number tells what comes at the same moment apart.
    agenda: BTreeMap<(Instant, u64), (usize, Moment)>,
    number: u64,
    /// How often the lead has changed hands.
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
            world.then(start + first, index, Moment::Look);
        }
        world
    }

    fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.chance.random_range(range))
    }

    /// How long a message takes; none if it is lost.
    fn travel(&mut self) -> Option<Duration> {
        match self.chance.random_range(0..20) {
            0 => None,
            1 => Some(self.millis(0..3000)),
            _ => Some(self.millis(0..50)),
        }
    }

    fn then(&mut self, at: Instant, candidate: usize, moment: Moment) {
        self.number += 1;
        self.agenda.insert((at, self.number), (candidate, moment));
    }

    /// Sends a message on its way.
    fn send(&mut self, now: Instant, candidate: usize, moment: Moment) {
        if let Some(travel) = self.travel() {
            self.then(now + travel, candidate, moment);
        }
    }

    fn step(&mut self, now: Instant, candidate: usize, moment: Moment) {
        match moment {
            Moment::Look => {
                self.send(now, candidate, Moment::Read);
                // Now and then it freezes for longer than anybody waits.
                let pause = if self.chance.random_bool(0.02) { self.millis(0..4000) } else { Duration::ZERO };
                self.then(now + RETRY + pause, candidate, Moment::Look);
            }
            Moment::Read => {
                let store = self.store.clone();
                self.send(now, candidate, Moment::Seen(store));
            }
            Moment::Seen(Store { record, version }) => {
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
                if now < sent + GIVE_UP {
                    self.candidates[candidate].written(sent);
                }
            }
            // The version is another one by now: a conflict.
            Moment::Write { .. } => {}
        }
    }

    /// The candidates that lead at this moment, by their own account.
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
        assert!(!world.leaders.is_empty(), "nobody ever led in world {seed}");
        changes += world.leaders.len() - 1;
    }
    assert!(changes > 150, "nothing went wrong: the lead changed hands {changes} times in all");
}
