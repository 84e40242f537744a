//! The leader copies the condition `Upgradeable` of a Rollup to OLM's OperatorCondition.
//!
//! No requests are sent while nothing changes: a new leader reads the OperatorCondition once, and then once
//! for each change.

use std::{
    mem::{self, Discriminant},
    time::Duration,
};

use bellwether_conditions::Statement;
use bellwether_engine::GroupStatus;
use bellwether_wire::{
    backoff::{Backoff, BackoffLimits},
    operator_condition::{UpgradeableUpdate, UpgradeableUpdateOutcome, upgradeable},
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

use super::call::{CallError, REQUEST_TIMEOUT, exchange};
use crate::leader_election::Leadership;

/// The shortest interval between two writes of the same status with another reason or message. Each write is
/// a new generation, which OLM must observe.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(10);

const BACKOFF: BackoffLimits =
    BackoffLimits { first: Duration::from_secs(1), longest: Duration::from_mins(1) };

/// Runs until the sender of `statuses` or of `leadership` is dropped.
pub async fn sync_operator_condition(
    client: Client,
    target: OperatorCondition,
    rollup: String,
    mut statuses: watch::Receiver<GroupStatus>,
    mut leadership: watch::Receiver<Leadership>,
) {
    let mut writer = OperatorConditionWriter {
        client,
        target,
        term: None,
        stored: None,
        written: None,
        backoff: Backoff::new(BACKOFF),
        not_before: Instant::now(),
        reported: Vec::new(),
    };
    loop {
        let wanted = upgradeable(&statuses.borrow_and_update(), &rollup);
        let left = writer.time_left(&leadership.borrow_and_update());
        let due = wanted.filter(|wanted| writer.stored.as_ref() != Some(wanted)).zip(left);
        let pause = match due {
            Some((wanted, left)) => match writer.not_before(&wanted) {
                moment if moment <= Instant::now() => {
                    writer.attempt(wanted, left.min(REQUEST_TIMEOUT)).await;
                    continue;
                }
                moment => Some(moment),
            },
            None => None,
        };
        let changed = tokio::select! {
            changed = statuses.changed() => changed,
            changed = leadership.changed() => changed,
            () = until(pause) => Ok(()),
        };
        if changed.is_err() {
            return;
        }
    }
}

/// `None` never completes.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

struct OperatorConditionWriter {
    client: Client,
    target: OperatorCondition,
    /// The start of the current term as leader.
    term: Option<Timestamp>,
    /// `Upgradeable` as last read or written in this term. Only the leader writes it.
    stored: Option<Statement>,
    /// The last write.
    written: Option<Instant>,
    backoff: Backoff,
    not_before: Instant,
    /// The kinds of errors that were logged since the last success.
    reported: Vec<Discriminant<ReadError>>,
}

impl OperatorConditionWriter {
    /// The earliest time to write this.
    fn not_before(&self, wanted: &Statement) -> Instant {
        let is_transition = self.stored.as_ref().is_none_or(|stored| stored.status != wanted.status);
        let interval_end = self.written.filter(|_| !is_transition).map(|written| written + MESSAGE_INTERVAL);
        interval_end.map_or(self.not_before, |moment| moment.max(self.not_before))
    }

    /// The time left as leader. A new term forgets `stored`: another leader may have written meanwhile.
    fn time_left(&mut self, leadership: &Leadership) -> Option<Duration> {
        let left = leadership.time_left(std::time::Instant::now());
        let term = match leadership {
            Leadership::Leading { since, .. } => left.map(|_| *since),
            Leadership::Standby { .. } => None,
        };
        if self.term != term {
            self.term = term;
            self.stored = None;
        }
        left
    }

    async fn attempt(&mut self, wanted: Statement, within: Duration) {
        let attempt = self.send_all(UpgradeableUpdate::new(self.target.clone(), wanted.clone()));
        let result = timeout(within, attempt).await;
        let result =
            result.unwrap_or_else(|_| Err(ReadError::unavailable(CallError::Timeout(within).to_string())));
        let object = self.target.to_string();
        match result {
            Ok(outcome) => {
                if outcome == UpgradeableUpdateOutcome::Written {
                    self.written = Some(Instant::now());
                    let Statement { status, reason, message } = &wanted;
                    info!(object, to = status.name(), %reason, cause = &**message, "updated condition Upgradeable");
                } else if !self.reported.is_empty() {
                    info!(object, "updates of condition Upgradeable succeed again");
                }
                self.stored = Some(wanted);
                self.reported.clear();
                self.backoff.reset();
            }
            Err(error) => {
                let pause = self.backoff.next_delay(error.retry_after(), &mut rand::rng());
                // Each kind of error is logged once.
                let kind = mem::discriminant(&error);
                if !self.reported.contains(&kind) {
                    self.reported.push(kind);
                    let error = self.target.explain(&error);
                    warn!(object, after = ?pause, %error, "cannot update condition Upgradeable: retrying");
                }
                self.not_before = Instant::now() + pause;
            }
        }
    }

    async fn send_all(&self, mut upkeep: UpgradeableUpdate) -> Result<UpgradeableUpdateOutcome, ReadError> {
        loop {
            let response = exchange(&self.client, upkeep.request()?).await;
            let (parts, body) = response.map_err(|error| ReadError::unavailable(error.to_string()))?;
            if let Some(end) = upkeep.answered(&parts, &body, Timestamp::now()) {
                return end;
            }
        }
    }
}
