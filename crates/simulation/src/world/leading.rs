//! Leader election: reads and writes of the Lease.

use std::time::Instant;

use bellwether_wire::election::{LeaseStep, Record};
use rand::Rng as _;

use crate::process::{LEASE, RENEW_DEADLINE, RETRY};

use super::{ScheduledEvent, World};

/// A step of one attempt to acquire or renew the Lease.
pub(super) enum Lead {
    /// The controller sends the read.
    SendRead,
    /// The read reaches an API server.
    Read,
    /// The response reaches the controller: the record and its resourceVersion.
    Seen(Option<Record>, u64),
    /// The write reaches an API server. `follows` is the resourceVersion that it requires.
    Write { record: Record, follows: u64, sent: Instant },
    /// The response reaches the controller: false is a conflict.
    Written(bool, Instant),
    /// The request or its response was lost.
    Failed,
}

impl Lead {
    /// Whether the step happens in the controller, not in an API server.
    pub(super) fn is_in_controller(&self) -> bool {
        !matches!(self, Self::Read | Self::Write { .. })
    }
}

impl World<'_> {
    pub(super) fn lead(&mut self, process: usize, epoch: u64, lead: Lead) {
        let now = self.instant();
        let next = match lead {
            Lead::SendRead => Lead::Read,
            Lead::Read if self.is_lost() => Lead::Failed,
            Lead::Read => Lead::Seen(self.lease.0.clone(), self.lease.1),
            Lead::Seen(record, version) => {
                let renewed = Some(self.wall(process));
                let Some(election) = &mut self.processes[process].election else { return };
                match election.observe(record.as_ref(), now) {
                    LeaseStep::Wait(_) => return self.retry(process, epoch),
                    LeaseStep::Take | LeaseStep::Renew => {
                        let holder = Some(format!("{process}-{epoch}"));
                        let record = Record { holder, duration: LEASE, acquired: None, renewed };
                        Lead::Write { record, follows: version, sent: now }
                    }
                }
            }
            Lead::Write { record, follows, sent } => {
                let (arrives, is_current) = (!self.is_lost(), self.lease.1 == follows);
                if arrives && is_current {
                    self.lease = (Some(record), follows + 1);
                }
                if arrives && !self.is_lost() { Lead::Written(is_current, sent) } else { Lead::Failed }
            }
            Lead::Written(done, sent) => {
                let was_leader = self.leads(process);
                if done && let Some(election) = &mut self.processes[process].election {
                    election.written(sent);
                }
                if !was_leader && self.leads(process) {
                    self.tell(|| format!("controller {process} becomes leader"));
                    self.schedule(self.now, ScheduledEvent::Step(process, epoch));
                }
                return self.retry(process, epoch);
            }
            Lead::Failed => return self.retry(process, epoch),
        };
        // As in kube-io, the timeout of one request is half of the renew deadline.
        let timeout = u64::try_from(RENEW_DEADLINE.as_millis()).unwrap_or_default() / 2;
        let wait = if matches!(next, Lead::Failed) { timeout } else { self.latency() };
        self.schedule(self.now + wait, ScheduledEvent::Lead(process, epoch, next));
    }

    fn retry(&mut self, process: usize, epoch: u64) {
        let at = self.now + self.rng.random_range(RETRY * 9 / 10..RETRY * 11 / 10);
        self.schedule(at, ScheduledEvent::Lead(process, epoch, Lead::SendRead));
    }

    fn is_lost(&mut self) -> bool {
        let is_lossy =
            self.clusters.hub.faults.lost_requests.max(self.clusters.hub.faults.lost_answers) > self.now;
        self.clusters.hub.faults.outage > self.now || is_lossy && self.rng.random_bool(0.3)
    }
}
