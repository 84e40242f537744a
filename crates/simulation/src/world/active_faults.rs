//! Carries out the plan: actions of users, the start and end of faults, crashes and restarts.

use std::{collections::BTreeMap, mem};

use bellwether_engine::{GroupKind, ServedResource};

use crate::{
    inventory::InventoryAction,
    load::{APP, ROLLUP, UserAction},
    objects,
    plan::{Fault, Moment, PlannedAction, Point},
    site::Site,
};

use super::{NOTICED, RESTORED_BY, ScheduledEvent, World, leading::Lead};

/// The faults of the API servers of a cluster. A `Moment` is the end of the fault.
#[derive(Default)]
pub(super) struct ActiveFaults {
    pub(super) outage: Moment,
    /// Status code, and the end.
    pub(super) errors: (u16, Moment),
    pub(super) lost_requests: Moment,
    pub(super) lost_answers: Moment,
    pub(super) refused: Moment,
    pub(super) lag: Moment,
    /// Delay of watch events in milliseconds, and the end.
    pub(super) late: (Moment, Moment),
    pub(super) forbidden: BTreeMap<GroupKind, Moment>,
    /// Kinds that answer 500.
    pub(super) failing: BTreeMap<GroupKind, Moment>,
    pub(super) unserved: BTreeMap<GroupKind, (Moment, ServedResource)>,
}

impl World<'_> {
    pub(super) fn action(&mut self, site: Site, action: &PlannedAction) {
        match action {
            PlannedAction::Act(action) => {
                self.tell(|| format!("user in {site:?}: {action}"));
                let now = self.time();
                action.apply(&mut self.clusters[site].store, now);
            }
            PlannedAction::Fault(fault) => {
                self.tell(|| format!("fault in {site:?}: {fault:?}"));
                self.fault(site, fault.clone());
            }
            PlannedAction::Elsewhere(action) => self.action(Site::East, action),
            PlannedAction::In(site, action) => self.action(*site, action),
            PlannedAction::Everywhere(action) => {
                for site in Site::WORKLOAD {
                    self.action(site, action);
                }
            }
            PlannedAction::Inventory(action) => self.change_inventory(action),
        }
    }

    fn fault(&mut self, site: Site, fault: Fault) {
        let now = self.now;
        let until = |lasts: Moment| now + lasts;
        let cluster = &mut self.clusters[site];
        match fault {
            Fault::Crash { process, point: Point::Now, down } => self.crash(process, down),
            Fault::Crash { process, point, down } => {
                self.processes[process].planned_crash = Some((point, down));
            }
            Fault::Freeze { process, lasts } => {
                let until = until(lasts).max(self.processes[process].frozen_until);
                self.processes[process].frozen_until = until;
            }
            Fault::Jump { process, seconds } => {
                self.processes[process].skew += seconds;
                self.processes[process].unaware = self.now + NOTICED;
                self.processes[process].put_back |= seconds < 0;
            }
            Fault::Cut { kind, torn } => self.cut(site, kind.as_deref().map(objects::kind).as_ref(), torn),
            Fault::Silence { kind } => self.silence(site, &objects::kind(&kind)),
            // Not extended: reflectors accept a stale API server after a minute, as if the cluster was
            // restored from a backup.
            Fault::Lag { .. } if cluster.faults.lag > now => {}
            Fault::Lag { lasts } => {
                cluster.faults.lag = until(lasts);
                self.schedule(until(lasts), ScheduledEvent::CatchUp);
            }
            Fault::Late { by, lasts } => cluster.faults.late = (by, until(lasts)),
            Fault::Compact => cluster.store.compacted = cluster.store.revision,
            Fault::Outage { lasts } => {
                cluster.faults.outage = until(lasts);
                self.cut(site, None, true);
            }
            Fault::Errors { code, lasts } => cluster.faults.errors = (code, until(lasts)),
            Fault::LoseRequests { lasts } => cluster.faults.lost_requests = until(lasts),
            Fault::LoseAnswers { lasts } => cluster.faults.lost_answers = until(lasts),
            Fault::Forbid { kind, lasts } => {
                let (kind, until) = (objects::kind(&kind), until(lasts));
                cluster.faults.forbidden.insert(kind.clone(), until);
                // API servers authorize a watch only when it begins.
                self.cut(site, Some(&kind), false);
            }
            Fault::Unserve { kind, lasts, changes } => {
                let (kind, until) = (objects::kind(&kind), until(lasts));
                if let Some(mut served) = cluster.store.unserve(&kind) {
                    if changes {
                        served.versions.rotate_left(1);
                        served.version = (*served.versions[0]).into();
                    }
                    cluster.faults.unserved.insert(kind, (until, served));
                    self.kinds_changed(site);
                    self.schedule(until, ScheduledEvent::CatchUp);
                }
            }
            Fault::Refuse { lasts } => cluster.faults.refused = until(lasts),
            Fault::Fail { kind, lasts } => {
                let kind = objects::kind(&kind);
                cluster.faults.failing.insert(kind.clone(), until(lasts));
                self.cut(site, Some(&kind), false);
            }
            // It takes longer than a controller needs for its first read.
            Fault::Restore if self.processes.iter().any(|it| it.alive && !it.restores.has_read()) => {}
            Fault::Restore => {
                cluster.version_offset = cluster.version_offset.saturating_sub(RESTORED_BY);
                cluster.restored = Some(now);
                self.cut(site, None, true);
            }
        }
    }

    /// Ends all faults.
    pub(super) fn calm(&mut self) {
        self.tell(|| "all faults are over".to_owned());
        self.calm = Some(self.now);
        for site in Site::ALL {
            for (kind, (_, served)) in mem::take(&mut self.clusters[site].faults).unserved {
                self.clusters[site].store.kinds.insert(kind, served);
                self.kinds_changed(site);
            }
        }
        for process in 0..self.processes.len() {
            self.processes[process].planned_crash = None;
            self.processes[process].frozen_until = 0;
        }
        if self.plan.sweep {
            self.tell(|| "delete all Applications and Rollups".to_owned());
            let now = self.time();
            let apps = ["a", "b", "c"].map(|name| (APP.into(), name.into()));
            let rollups = ["r", "s", "t"].map(|name| (ROLLUP.into(), name.into()));
            for target in apps.into_iter().chain(rollups) {
                UserAction::Delete(target).apply(&mut self.clusters.hub.store, now);
            }
        }
    }

    pub(super) fn start(&mut self, process: usize) {
        self.tell(|| format!("controller {process} starts"));
        let now = self.wall(process);
        self.processes[process].start(now);
        let epoch = self.processes[process].epoch;
        self.soon(ScheduledEvent::Kinds(process, epoch, Site::Hub));
        if self.plan.goes_elsewhere() {
            self.soon(ScheduledEvent::Kinds(process, epoch, Site::East));
        }
        if self.plan.has_inventory() {
            self.soon(ScheduledEvent::ReadInventory(process, epoch));
            self.soon(ScheduledEvent::FindSingletons(process, epoch));
        }
        if self.plan.restores() {
            self.soon(ScheduledEvent::CheckVersions(process, epoch));
        }
        if self.processes[process].election.is_some() {
            self.soon(ScheduledEvent::Lead(process, epoch, Lead::SendRead));
        }
        self.schedule(self.now, ScheduledEvent::Step(process, epoch));
    }

    pub(super) fn crash(&mut self, process: usize, down: Moment) {
        if !self.processes[process].alive {
            return;
        }
        self.tell(|| format!("controller {process} is killed"));
        self.processes[process].end();
        self.connections.retain(|_, connection| connection.origin.process != process);
        let at = self.now + down;
        self.schedule(at, ScheduledEvent::Start(process));
    }

    /// Crashes a controller if its plan says so for this point. Returns whether it did.
    pub(super) fn ends_at(&mut self, process: usize, point: Point) -> bool {
        let planned_crash = self.processes[process].planned_crash.take_if(|(other, _)| *other == point);
        if let Some((_, down)) = planned_crash {
            self.crash(process, down);
        }
        planned_crash.is_some()
    }
}

impl PlannedAction {
    /// Duration in milliseconds.
    pub(super) fn lasts(&self) -> Moment {
        match self {
            Self::Inventory(InventoryAction::Unplug(_, lasts)) => lasts.unwrap_or_default(),
            Self::Act(_) | Self::Inventory(_) => 0,
            Self::Elsewhere(action) | Self::In(_, action) | Self::Everywhere(action) => action.lasts(),
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
                | Fault::Refuse { lasts }
                | Fault::Fail { lasts, .. } => *lasts,
                Fault::Jump { .. }
                | Fault::Cut { .. }
                | Fault::Silence { .. }
                | Fault::Compact
                | Fault::Restore => 0,
            },
        }
    }
}
