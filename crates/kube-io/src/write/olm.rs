//! OLM is told whether an operator may be upgraded: its OperatorCondition is kept in step with a Rollup, by whoever leads.
//!
//! Nothing is asked while nothing changes: it is looked at once by whoever becomes leader, and once after each change.

use std::{
    mem::{self, Discriminant},
    time::Duration,
};

use bellwether_conditions::Statement;
use bellwether_engine::GroupStatus;
use bellwether_wire::{
    backoff::{Backoff, BackoffLimits},
    operator_condition::{Upkeep, UpkeepOutcome, upgradeable},
    read_error::ReadError,
};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tracing::{info, warn};

pub use bellwether_wire::operator_condition::OperatorCondition;

use super::{
    call::{CallError, PATIENCE, exchange},
    lease::Leadership,
};

/// How long other words for the same may wait: each write is another generation, which OLM has to catch up with.
const WORDS_WAIT: Duration = Duration::from_secs(10);

/// The pauses between attempts that fail.
const PAUSES: BackoffLimits =
    BackoffLimits { first: Duration::from_secs(1), longest: Duration::from_mins(1) };

/// Keeps the condition `Upgradeable` of an OperatorCondition in step with that of a Rollup, of which `insights` tell, as
/// long as they do.
pub async fn keep_in_step(
    client: Client,
    place: OperatorCondition,
    rollup: String,
    mut insights: watch::Receiver<GroupStatus>,
    mut leadership: watch::Receiver<Leadership>,
) {
    let mut keeper = OperatorConditionWriter {
        client,
        place,
        term: None,
        says: None,
        written: None,
        backoff: Backoff::new(PAUSES),
        not_before: Instant::now(),
        told: Vec::new(),
    };
    loop {
        let wanted = upgradeable(&insights.borrow_and_update(), &rollup);
        let left = keeper.stand(&leadership.borrow_and_update());
        let due = wanted.filter(|wanted| keeper.says.as_ref() != Some(wanted)).zip(left);
        let pause = match due {
            Some((wanted, left)) => match keeper.not_before(&wanted) {
                moment if moment <= Instant::now() => {
                    keeper.attempt(wanted, left.min(PATIENCE)).await;
                    continue;
                }
                moment => Some(moment),
            },
            None => None,
        };
        let changed = tokio::select! {
            changed = insights.changed() => changed,
            changed = leadership.changed() => changed,
            () = until(pause) => Ok(()),
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Until that moment, or for ever.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The one who looks and writes.
struct OperatorConditionWriter {
    client: Client,
    place: OperatorCondition,
    /// Since when we lead, if we do.
    term: Option<Timestamp>,
    /// What the OperatorCondition says, as far as we know. Nobody else writes that while we lead.
    says: Option<Statement>,
    /// When it was last written.
    written: Option<Instant>,
    backoff: Backoff,
    not_before: Instant,
    /// What people were told of what went wrong, a line for each kind of it, until all is well again.
    told: Vec<Discriminant<ReadError>>,
}

impl OperatorConditionWriter {
    /// When this may be written at the earliest.
    fn not_before(&self, wanted: &Statement) -> Instant {
        let is_turn = self.says.as_ref().is_none_or(|says| says.status != wanted.status);
        let after_words = self.written.filter(|_| !is_turn).map(|written| written + WORDS_WAIT);
        after_words.map_or(self.not_before, |moment| moment.max(self.not_before))
    }

    /// For how long we lead from now on, if we do. At the beginning of a term nothing is known: another may have written
    /// before.
    fn stand(&mut self, leadership: &Leadership) -> Option<Duration> {
        let left = leadership.left_at(std::time::Instant::now());
        let term = match leadership {
            Leadership::Leading { since, .. } => left.map(|_| *since),
            Leadership::Standby { .. } => None,
        };
        if self.term != term {
            (self.term, self.says) = (term, None);
        }
        left
    }

    async fn attempt(&mut self, wanted: Statement, within: Duration) {
        let attempt = self.make(Upkeep::new(self.place.clone(), wanted.clone()));
        let made = timeout(within, attempt).await;
        let made =
            made.unwrap_or_else(|_| Err(ReadError::unavailable(CallError::Timeout(within).to_string())));
        let place = &self.place;
        match made {
            Ok(kept) => {
                if kept == UpkeepOutcome::Written {
                    self.written = Some(Instant::now());
                    let Statement { status, reason, message } = &wanted;
                    info!("{place}: Upgradeable is {} now, {reason}: {message}", status.name());
                } else if !self.told.is_empty() {
                    info!("{place}: it can be kept in step again");
                }
                self.says = Some(wanted);
                self.told.clear();
                self.backoff.reset();
            }
            Err(trouble) => {
                // People are told of each kind of failure once, not of every one.
                let kind = mem::discriminant(&trouble);
                if !self.told.contains(&kind) {
                    self.told.push(kind);
                    let why = place.explain(&trouble);
                    warn!("{place}: Upgradeable cannot be kept in step: {why}; it is tried on");
                }
                let pause = self.backoff.pause_or_as_asked(trouble.retry_after(), &mut rand::rng());
                self.not_before = Instant::now() + pause;
            }
        }
    }

    async fn make(&self, mut upkeep: Upkeep) -> Result<UpkeepOutcome, ReadError> {
        loop {
            let answer = exchange(&self.client, upkeep.request()?).await;
            let (parts, body) = answer.map_err(|error| ReadError::unavailable(error.to_string()))?;
            if let Some(end) = upkeep.answered(&parts, &body, Timestamp::now()) {
                return end;
            }
        }
    }
}
