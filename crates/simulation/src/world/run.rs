//! The course of a run: until all is right, and stays so.

use bellwether_engine::GroupKind;
use rand::Rng as _;

use crate::{
    final_checks,
    plan::{Moment, PlannedAction},
    process::Process,
    site::Site,
    violation::Violation,
};

use super::{Tally, World};

/// So long after the last fault everything has to be right.
const PATIENCE: Moment = 25 * 60 * 1000;

/// So long after everything is right nothing may be written.
const REST: Moment = 4_000;

/// Or so long, which is longer than any watch lasts and anybody waits.
const LONG_REST: Moment = 15 * 60 * 1000;

/// So much may happen before it looks as if it never ends.
const MOST: usize = 200_000;

/// So many writes may follow from one change or one fault, on an average over a run: Applications belong to others.
const MOST_WRITES: u64 = 10;

impl World<'_> {
    /// Lets everything happen: until all is right after the last fault, and stays so; and then perhaps once more, with
    /// controllers that begin anew and must find nothing to do.
    pub(crate) fn run(&mut self) -> Result<Tally, Violation> {
        // When it was last looked whether all is right, and after which change; and how long it has to
        // stay so.
        let mut looked: Option<(u64, Moment)> = None;
        let mut right: Option<Moment> = None;
        let mut wrong = Violation::new("it never comes to rest");
        loop {
            let next = self.agenda.first_key_value().map(|((moment, _), _)| *moment);
            if let (Some(until), Some(next)) = (right, next)
                && next >= until
            {
                self.now = until;
                if !self.begin_anew() {
                    self.writes_are_few()?;
                    return Ok(self.tally);
                }
                (right, looked) = (None, None);
            }
            let Some(((moment, number), happening)) = self.agenda.pop_first() else {
                return Err(Violation::new("nothing is left to happen, though controllers run"));
            };
            self.now = self.now.max(moment);
            if !happening.is_background() {
                self.foreground -= 1;
            }
            self.tally.happenings += 1;
            if self.tally.happenings > MOST as u64 {
                return Err(Violation::new("it never ends"));
            }
            self.happen(number, happening)?;
            if let Some(wrong) = self.wrong.take() {
                return Err(wrong);
            }
            for site in Site::ALL {
                self.pass_on(site);
            }
            let Some(calm) = self.calm else { continue };
            if right.is_some() {
                continue;
            }
            let is_late = self.now > self.begun_anew.as_ref().map_or(calm, |(at, _)| *at) + PATIENCE;
            if !self.is_quiet() {
                if is_late {
                    return Err(wrong);
                }
                continue;
            }
            if !is_late
                && looked.is_some_and(|(happened, at)| happened == self.changes() && self.now < at + 5_000)
            {
                continue;
            }
            looked = Some((self.changes(), self.now));
            match self.is_right() {
                Ok(()) => {
                    right = Some(self.now + self.rest());
                    if !self.was_right {
                        (self.was_right, self.tally.until_right) = (true, self.now - calm);
                    }
                }
                Err(still) if is_late => return Err(still),
                Err(still) => wrong = still,
            }
        }
    }

    /// How long nothing may happen: now and then longer, where nothing is waited for.
    fn rest(&mut self) -> Moment {
        let waits = |process: &Process| {
            process.driver.next().is_some_and(|next| self.moment(process.name, next) <= self.now + LONG_REST)
        };
        let is_long = self.plan.encore && !self.processes.iter().any(waits);
        if is_long && self.chance.random_bool(0.2) { LONG_REST } else { REST }
    }

    /// Lets all controllers begin anew, now and then. Gives whether they do: once at most, and not where time, another clock
    /// or one of ours of which nothing is written any more would make them say something else for a moment.
    fn begin_anew(&mut self) -> bool {
        let is_clear = |process: &Process| {
            let next = process.driver.next();
            process.skew == self.processes[0].skew
                && next.is_none_or(|next| self.moment(process.name, next) > self.now + PATIENCE)
        };
        if self.begun_anew.is_some()
            || !self.plan.encore
            || !self.processes.iter().all(is_clear)
            || ["Application", "Rollup"].into_iter().any(|own| {
                self.clusters.hub.store.of_kind(&GroupKind::own(own)).any(|object| object.is_deleting())
            })
        {
            return false;
        }
        let Some(leader) = self.leader() else { return false };
        self.begun_anew = Some((self.now, self.processes[leader].driver.census()));
        self.tell(|| "all controllers begin anew".to_owned());
        for process in 0..self.processes.len() {
            self.crash(process, 0);
        }
        true
    }

    /// Whether nothing is under way, and nothing is still to be noticed.
    fn is_quiet(&self) -> bool {
        self.foreground == 0
            && !self.connections.values().any(|connection| connection.silent)
            && self.leader().is_some_and(|leader| {
                let next = self.processes[leader].driver.next();
                next.is_none_or(|next| self.moment(leader, next) > self.now + REST)
            })
            && self.processes.iter().all(|process| process.inbox.is_empty() && process.unaware <= self.now)
    }

    /// How many changes there were, in all clusters.
    fn changes(&self) -> u64 {
        Site::ALL.into_iter().map(|site| self.clusters[site].store.revision).sum()
    }

    /// Whether no more was written than what others did, and what went wrong, can explain.
    fn writes_are_few(&self) -> Result<(), Violation> {
        let faults =
            self.plan.deeds.iter().filter(|(_, deed)| matches!(deed, PlannedAction::Fault(_))).count() as u64;
        let (writes, others) = (self.tally.writes, self.clusters.hub.store.revision - self.tally.writes);
        must!(
            writes <= MOST_WRITES * (others + faults),
            "there were {writes} writes, after {others} changes of others and {faults} faults"
        );
        Ok(())
    }

    /// Whether everything is as it should be.
    fn is_right(&self) -> Result<(), Violation> {
        let leader = self.leader();
        let now = self.wall(leader.unwrap_or_default());
        final_checks::is_right(&self.clusters.hub.store, &self.processes, leader, &self.adopted, now)?;
        for process in self.processes.iter().filter(|process| process.alive) {
            let leads = leader == Some(process.name);
            final_checks::answers_are_right(
                &self.clusters.hub.store,
                process,
                leads,
                self.wall(process.name),
            )?;
            let stores = Site::ALL.map(|site| (site, &self.clusters[site].store));
            final_checks::counts_objects(stores, process)?;
            final_checks::verdicts_are_right(
                &self.clusters[Site::East].store,
                process,
                self.wall(process.name),
            )?;
        }
        if let (Some((_, before)), Some(leader)) = (&self.begun_anew, leader) {
            final_checks::keeps_as_much(before, &self.processes[leader].driver.census())?;
        }
        Ok(())
    }
}
