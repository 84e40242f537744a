//! One run: events until the state is correct after the last fault, and stays so.

use bellwether_engine::GroupKind;
use jiff::Timestamp;
use rand::Rng as _;

use crate::{
    combined_final,
    combined_oracle::{Fleet, Member},
    final_checks,
    plan::{Fault, Moment, PlannedAction},
    process::Process,
    site::Site,
    violation::Violation,
};

use super::{RunStats, World};

/// Milliseconds after the last fault within which the state must be correct.
const SETTLE_TIMEOUT: Moment = 25 * 60 * 1000;

/// Milliseconds without a write after which a correct state counts as final.
const REST: Moment = 4_000;

/// A longer `REST` that is used sometimes: longer than any watch and any back-off, in milliseconds.
const LONG_REST: Moment = 15 * 60 * 1000;

/// Maximum number of events of a run.
const MAX_EVENTS: usize = 200_000;

/// Maximum number of writes for each change and each fault, on average over a run. It is above 1 because
/// groups are members of groups.
const MAX_WRITES_PER_CAUSE: u64 = 10;

impl World<'_> {
    /// Processes events until the state is correct after the last fault and stays so. Then all controllers
    /// may restart once, and must find nothing to write.
    pub(crate) fn run(&mut self) -> Result<RunStats, Violation> {
        // The last check of the state: number of changes, and time.
        let mut checked: Option<(u64, Moment)> = None;
        // Until when a correct state must stay as it is.
        let mut rest_until: Option<Moment> = None;
        let mut last = Violation::new("the run does not come to rest");
        loop {
            let next = self.agenda.first_key_value().map(|((moment, _), _)| *moment);
            if let (Some(until), Some(next)) = (rest_until, next)
                && next >= until
            {
                self.now = until;
                if !self.restart_controllers() {
                    self.check_write_count()?;
                    return Ok(self.tally);
                }
                (rest_until, checked) = (None, None);
            }
            let Some(((moment, number), event)) = self.agenda.pop_first() else {
                return Err(Violation::new("the agenda is empty while controllers run"));
            };
            self.now = self.now.max(moment);
            if !event.is_background() {
                self.foreground -= 1;
            }
            self.tally.events += 1;
            if self.tally.events > MAX_EVENTS as u64 {
                return Err(Violation::new(format!("the run has more than {MAX_EVENTS} events")));
            }
            self.handle(number, event)?;
            if let Some(violation) = self.violation.take() {
                return Err(violation);
            }
            for site in Site::ALL {
                self.pass_on(site);
            }
            let Some(calm) = self.calm else { continue };
            if rest_until.is_some() {
                continue;
            }
            let is_late = self.now > self.begun_anew.as_ref().map_or(calm, |(at, _)| *at) + SETTLE_TIMEOUT;
            if !self.is_quiet() {
                if is_late {
                    return Err(last);
                }
                continue;
            }
            if !is_late
                && checked.is_some_and(|(changes, at)| changes == self.changes() && self.now < at + 5_000)
            {
                continue;
            }
            checked = Some((self.changes(), self.now));
            match self.is_right() {
                Ok(()) => {
                    rest_until = Some(self.now + self.rest());
                    if !self.was_right {
                        (self.was_right, self.tally.until_right) = (true, self.now - calm);
                    }
                }
                Err(violation) if is_late => return Err(violation),
                Err(violation) => last = violation,
            }
        }
    }

    /// `REST`, or sometimes `LONG_REST` if no controller has a timer within it.
    fn rest(&mut self) -> Moment {
        let has_timer = |process: &Process| {
            process
                .driver
                .next_change()
                .is_some_and(|next| self.moment(process.name, next) <= self.now + LONG_REST)
        };
        let is_long = self.plan.encore && !self.processes.iter().any(has_timer);
        if is_long && self.rng.random_bool(0.2) { LONG_REST } else { REST }
    }

    /// Restarts all controllers if the plan says so, at most once. Returns whether it did. Not with pending
    /// timers, different clocks or groups being deleted: then a restart may change a status for a while. Nor if
    /// a clock was set back: stored times may be in the future, and a controller that starts corrects them.
    fn restart_controllers(&mut self) -> bool {
        let is_set_back = |action: &PlannedAction| matches!(action, PlannedAction::Fault(Fault::Jump { seconds, .. }) if *seconds < 0);
        let was_set_back = self.plan.actions.iter().any(|(_, action)| is_set_back(action));
        let is_clear = |process: &Process| {
            let next = process.driver.next_change();
            process.skew == self.processes[0].skew
                && !was_set_back
                && next.is_none_or(|next| self.moment(process.name, next) > self.now + SETTLE_TIMEOUT)
        };
        if self.begun_anew.is_some()
            || !self.is_plugged_in()
            || !self.plan.encore
            || !self.processes.iter().all(is_clear)
            || ["Application", "Rollup"].into_iter().any(|own| {
                self.clusters
                    .hub
                    .store
                    .of_kind(&GroupKind::bellwether(own))
                    .any(|object| object.is_deleting())
            })
        {
            return false;
        }
        let Some(leader) = self.leader() else { return false };
        self.begun_anew = Some((self.now, self.processes[leader].driver.stats()));
        self.tell(|| "restart all controllers".to_owned());
        for process in 0..self.processes.len() {
            self.crash(process, 0);
        }
        true
    }

    /// Whether no request, event or write is pending, and controllers have noticed all faults.
    fn is_quiet(&self) -> bool {
        self.foreground == 0
            && !self.may_be_blind()
            && !self.has_silent_watch()
            && self.is_freshness_settled()
            && self.leader().is_some_and(|leader| {
                let next = self.processes[leader].driver.next_change();
                next.is_none_or(|next| self.moment(leader, next) > self.now + REST)
            })
            && self.processes.iter().all(|process| process.inbox.is_empty() && process.unaware <= self.now)
    }

    /// Number of changes in all clusters.
    fn changes(&self) -> u64 {
        Site::ALL.into_iter().map(|site| self.clusters[site].store.revision).sum()
    }

    /// Checks that the number of writes is in proportion to the changes of others and the faults.
    fn check_write_count(&self) -> Result<(), Violation> {
        let faults =
            self.plan.actions.iter().filter(|(_, action)| matches!(action, PlannedAction::Fault(_))).count()
                as u64;
        let (writes, mut others) = (self.tally.writes, self.clusters.hub.store.revision - self.tally.writes);
        if self.plan.has_inventory() {
            others += Site::WORKLOAD.map(|site| self.clusters[site].store.revision).iter().sum::<u64>();
        }
        must!(
            writes <= MAX_WRITES_PER_CAUSE * (others + faults),
            "{writes} writes are too many for {others} changes of others and {faults} faults"
        );
        Ok(())
    }

    /// Whether all clusters of the inventory respond.
    fn is_plugged_in(&self) -> bool {
        Site::WORKLOAD.into_iter().all(|site| {
            let cluster = &self.clusters[site];
            cluster.entry.is_none() || cluster.unplugged.is_none()
        })
    }

    /// The clusters as they are.
    fn fleet(&self, now: Timestamp) -> Fleet<'_> {
        let member = |site| {
            let cluster = &self.clusters[site];
            let (labels, store) = (&cluster.entry.as_ref()?.labels, &cluster.store);
            let (uid, is_stale) = (cluster.uid(site), cluster.unplugged.is_some());
            Some((site, Member { labels, uid, store, is_stale }))
        };
        let clusters = Site::WORKLOAD.into_iter().filter_map(member).collect();
        Fleet { hub: &self.clusters.hub.store, clusters, now }
    }

    /// Checks the end state.
    fn is_right(&self) -> Result<(), Violation> {
        let leader = self.leader();
        let now = self.wall(leader.unwrap_or_default());
        let fleet = self.fleet(now);
        let needed = if self.plan.has_inventory() { combined_final::needed(&fleet) } else { Vec::new() };
        let hub = &self.clusters.hub.store;
        final_checks::is_right(hub, &self.processes, leader, &self.adopted, (now, &needed))?;
        if self.plan.has_inventory() {
            combined_final::is_right(&fleet)?;
        }
        for process in self.processes.iter().filter(|process| process.alive) {
            let leads = leader == Some(process.name);
            final_checks::answers_are_right(
                &self.clusters.hub.store,
                process,
                leads,
                self.wall(process.name),
            )?;
            if self.plan.has_inventory() {
                combined_final::follows_only(&fleet, process)?;
            }
            // What was known of an unplugged cluster stays.
            if self.is_plugged_in() {
                let stores = Site::ALL.map(|site| (site, &self.clusters[site].store));
                final_checks::counts_objects(stores, process)?;
                for site in Site::WORKLOAD {
                    let store = &self.clusters[site].store;
                    final_checks::verdicts_are_right((site, store), process, self.wall(process.name))?;
                }
            }
        }
        if let (Some((_, before)), Some(leader)) = (&self.begun_anew, leader) {
            final_checks::keeps_as_much(before, &self.processes[leader].driver.stats())?;
        }
        Ok(())
    }
}
