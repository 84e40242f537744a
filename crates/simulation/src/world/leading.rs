//! How controllers find out who leads.

use std::time::Instant;

use bellwether_wire::election::{LeaseStep, Record};
use rand::Rng as _;

use crate::process::{LEASE, RENEW_DEADLINE, RETRY};

use super::{ScheduledEvent, World};

/// Where a candidate is.
pub(super) enum Lead {
    /// It looks at the record.
    Look,
    /// Its question reaches an API server.
    Read,
    /// What is written reaches it.
    Seen(Option<Record>, u64),
    /// Its claim reaches an API server.
    Write { record: Record, follows: u64, sent: Instant },
    /// It learns that it was written, or not.
    Written(bool, Instant),
    /// Nobody answers.
    Failed,
}

impl Lead {
    /// Whether it happens where the candidate is.
    pub(super) fn is_at_home(&self) -> bool {
        !matches!(self, Self::Read | Self::Write { .. })
    }
}

impl World<'_> {
    pub(super) fn lead(&mut self, process: usize, epoch: u64, lead: Lead) {
        let now = self.instant();
        let next = match lead {
            Lead::Look => Lead::Read,
            Lead::Read if self.is_lost() => Lead::Failed,
            Lead::Read => Lead::Seen(self.lease.0.clone(), self.lease.1),
            Lead::Seen(record, version) => {
                let renewed = Some(self.wall(process));
                let Some(election) = &mut self.processes[process].election else { return };
                match election.observe(record.as_ref(), now) {
                    LeaseStep::Wait(_) => return self.look_again(process, epoch),
                    LeaseStep::Take | LeaseStep::Renew => {
                        let holder = Some(format!("{process}-{epoch}"));
                        let record = Record { holder, duration: LEASE, acquired: None, renewed };
                        Lead::Write { record, follows: version, sent: now }
                    }
                }
            }
            Lead::Write { record, follows, sent } => {
                let (arrives, is_first) = (!self.is_lost(), self.lease.1 == follows);
                if arrives && is_first {
                    self.lease = (Some(record), follows + 1);
                }
                if arrives && !self.is_lost() { Lead::Written(is_first, sent) } else { Lead::Failed }
            }
            Lead::Written(done, sent) => {
                let was_leader = self.leads(process);
                if done && let Some(election) = &mut self.processes[process].election {
                    election.written(sent);
                }
                if !was_leader && self.leads(process) {
                    self.tell(|| format!("controller {process} leads"));
                    self.schedule(self.now, ScheduledEvent::Step(process, epoch));
                }
                return self.look_again(process, epoch);
            }
            Lead::Failed => return self.look_again(process, epoch),
        };
        // A candidate gives an answer half of the time that a leader has.
        let patience = u64::try_from(RENEW_DEADLINE.as_millis()).unwrap_or_default() / 2;
        let wait = if matches!(next, Lead::Failed) { patience } else { self.latency() };
        self.schedule(self.now + wait, ScheduledEvent::Lead(process, epoch, next));
    }

    fn look_again(&mut self, process: usize, epoch: u64) {
        let at = self.now + self.chance.random_range(RETRY * 9 / 10..RETRY * 11 / 10);
        self.schedule(at, ScheduledEvent::Lead(process, epoch, Lead::Look));
    }

    fn is_lost(&mut self) -> bool {
        let is_lossy =
            self.clusters.hub.trouble.lost_requests.max(self.clusters.hub.trouble.lost_answers) > self.now;
        self.clusters.hub.trouble.outage > self.now || is_lossy && self.chance.random_bool(0.3)
    }
}
