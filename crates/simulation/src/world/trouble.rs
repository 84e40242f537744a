//! What the plan says: what is done to the cluster, what goes wrong, and the end of it.

use std::collections::BTreeMap;

use bellwether_engine::{Kind, Served};

use crate::{
    load::{APP, Action, ROLLUP},
    objects,
    plan::{Deed, Fault, Moment, Point},
};

use super::{Happening, NOTICED, World, leading::Lead};

/// What goes wrong at the moment, and until when.
#[derive(Default)]
pub(super) struct Trouble {
    pub(super) outage: Moment,
    pub(super) errors: (u16, Moment),
    pub(super) lost_requests: Moment,
    pub(super) lost_answers: Moment,
    pub(super) refused: Moment,
    pub(super) lag: Moment,
    pub(super) late: (Moment, Moment),
    pub(super) forbidden: BTreeMap<Kind, Moment>,
    pub(super) unserved: BTreeMap<Kind, (Moment, Served)>,
}

impl World<'_> {
    pub(super) fn deed(&mut self, number: usize) {
        let plan = self.plan;
        match &plan.deeds[number].1 {
            Deed::Act(action) => {
                self.tell(|| format!("somebody: {action}"));
                let now = self.time();
                action.apply(&mut self.store, now);
            }
            Deed::Fault(fault) => {
                self.tell(|| format!("fault: {fault:?}"));
                self.fault(fault.clone());
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        let until = |lasts: Moment| self.now + lasts;
        match fault {
            Fault::Crash { process, point: Point::Now, down } => self.crash(process, down),
            Fault::Crash { process, point, down } => self.processes[process].doom = Some((point, down)),
            Fault::Freeze { process, lasts } => {
                let until = until(lasts).max(self.processes[process].frozen_until);
                self.processes[process].frozen_until = until;
            }
            Fault::Jump { process, seconds } => {
                self.processes[process].skew += seconds;
                self.processes[process].unaware = self.now + NOTICED;
                self.processes[process].put_back |= seconds < 0;
            }
            Fault::Cut { kind, torn } => self.cut(kind.as_deref().map(objects::kind).as_ref(), torn),
            Fault::Silence { kind } => self.silence(&objects::kind(&kind)),
            // One that lags for longer than a minute is believed: then the cluster was put back.
            Fault::Lag { .. } if self.trouble.lag > self.now => {}
            Fault::Lag { lasts } => {
                self.trouble.lag = until(lasts);
                self.schedule(self.trouble.lag, Happening::CatchUp);
            }
            Fault::Late { by, lasts } => self.trouble.late = (by, until(lasts)),
            Fault::Compact => self.store.compacted = self.store.revision,
            Fault::Outage { lasts } => {
                self.trouble.outage = until(lasts);
                self.cut(None, true);
            }
            Fault::Errors { code, lasts } => self.trouble.errors = (code, until(lasts)),
            Fault::LoseRequests { lasts } => self.trouble.lost_requests = until(lasts),
            Fault::LoseAnswers { lasts } => self.trouble.lost_answers = until(lasts),
            Fault::Forbid { kind, lasts } => {
                let (kind, until) = (objects::kind(&kind), until(lasts));
                // Rights are looked at when a watch begins.
                self.cut(Some(&kind), false);
                self.trouble.forbidden.insert(kind, until);
            }
            Fault::Unserve { kind, lasts, changes } => {
                let (kind, until) = (objects::kind(&kind), until(lasts));
                if let Some(mut served) = self.store.unserve(&kind) {
                    if changes {
                        served.versions.rotate_left(1);
                        served.version = (*served.versions[0]).into();
                    }
                    self.trouble.unserved.insert(kind, (until, served));
                    self.kinds_changed();
                    self.schedule(until, Happening::CatchUp);
                }
            }
            Fault::Refuse { lasts } => self.trouble.refused = until(lasts),
        }
    }

    /// Nothing goes wrong any more.
    pub(super) fn calm(&mut self) {
        self.tell(|| "all faults are over".to_owned());
        self.calm = Some(self.now);
        for (kind, (_, served)) in std::mem::take(&mut self.trouble.unserved) {
            self.store.kinds.insert(kind, served);
            self.kinds_changed();
        }
        self.trouble = Trouble::default();
        for process in 0..self.processes.len() {
            self.processes[process].doom = None;
            self.processes[process].frozen_until = 0;
        }
        if self.plan.sweep {
            self.tell(|| "all Applications and Rollups are deleted".to_owned());
            let now = self.time();
            let apps = ["a", "b", "c"].map(|name| (APP.into(), name.into()));
            let rollups = ["r", "s", "t"].map(|name| (ROLLUP.into(), name.into()));
            for target in apps.into_iter().chain(rollups) {
                Action::Delete(target).apply(&mut self.store, now);
            }
        }
    }

    pub(super) fn start(&mut self, process: usize) {
        self.tell(|| format!("controller {process} begins"));
        let now = self.wall(process);
        self.processes[process].start(now);
        let epoch = self.processes[process].epoch;
        self.soon(Happening::Kinds(process, epoch));
        if self.processes[process].election.is_some() {
            self.soon(Happening::Lead(process, epoch, Lead::Look));
        }
        self.schedule(self.now, Happening::Step(process, epoch));
    }

    pub(super) fn crash(&mut self, process: usize, down: Moment) {
        if !self.processes[process].alive {
            return;
        }
        self.tell(|| format!("controller {process} is killed"));
        self.processes[process].end();
        self.connections.retain(|_, connection| connection.asker.process != process);
        let at = self.now + down;
        self.schedule(at, Happening::Start(process));
    }

    /// Whether a controller ends at this point.
    pub(super) fn ends_at(&mut self, process: usize, point: Point) -> bool {
        let doom = self.processes[process].doom.take_if(|(other, _)| *other == point);
        if let Some((_, down)) = doom {
            self.crash(process, down);
        }
        doom.is_some()
    }
}

impl Deed {
    /// How long it lasts.
    pub(super) fn lasts(&self) -> Moment {
        match self {
            Self::Act(_) => 0,
            Self::Fault(fault) => match fault {
                Fault::Crash { down, .. } => *down,
                Fault::Freeze { lasts, .. }
                | Fault::Lag { lasts }
                | Fault::Late { lasts, .. }
                | Fault::Outage { lasts }
                | Fault::Errors { lasts, .. }
                | Fault::LoseRequests { lasts }
                | Fault::LoseAnswers { lasts }
                | Fault::Forbid { lasts, .. }
                | Fault::Unserve { lasts, .. }
                | Fault::Refuse { lasts } => *lasts,
                Fault::Jump { .. } | Fault::Cut { .. } | Fault::Silence { .. } | Fault::Compact => 0,
            },
        }
    }
}
