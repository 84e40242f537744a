//! How controllers write: their requests on the way, what API servers make of them, and the answers on the way back.

use bellwether_engine::{Change, GroupKind, Outcome, Part, Slot};
use bellwether_wire::{Attempt, Discovered, Done};
use http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use jiff::{SignedDuration, Timestamp};
use rand::Rng as _;
use serde_json::Value;

use crate::{
    api::{self, ApiResponse},
    checks,
    feed::Feed,
    past::Past,
    plan::{Moment, Point},
    query_checks::ReportedStatuses,
    rollup_checks::MissingComponents,
    site::Site,
    violation::Violation,
};

use super::{ScheduledEvent, World};

/// How long an API server has for its answer.
const PATIENCE: Moment = 10_000;

/// A write that is under way.
pub(super) struct InFlightWrite {
    process: usize,
    epoch: u64,
    slot: Slot,
    change: Change,
    attempt: Attempt,
    /// When nobody waits for an answer any more.
    deadline: Moment,
    /// The status that there is to say, by what the controller knew when this was sent.
    expected: Option<Value>,
    /// What it knew of each kind then.
    knew: Vec<(GroupKind, u64)>,
    /// What had changed by then.
    sent: u64,
    /// The time then, by its clock.
    at: Timestamp,
    /// When it had begun, unless its clock was put back since.
    began: Option<Timestamp>,
    /// What it had told of the object.
    told: ReportedStatuses,
}

/// Where a write is.
pub(super) enum WriteStage {
    /// On its way to an API server.
    Out,
    /// On its way back.
    Back(ApiResponse),
    /// Nobody waits for it any more.
    Lost,
}

impl World<'_> {
    /// Sends the writes that are due.
    pub(super) fn write(&mut self, process: usize) -> Result<(), Violation> {
        let (now, leads) = (self.clock(process), self.leads(process));
        let left = self.processes[process].election.as_ref().and_then(|election| {
            let left = election.leads_until()?.checked_duration_since(self.instant())?;
            u64::try_from(left.as_millis()).ok()
        });
        let within = left.unwrap_or(PATIENCE).min(PATIENCE);
        for (slot, change) in self.processes[process].driver.write(now, leads) {
            if self.ends_at(process, Point::BeforeWrite) {
                return Ok(());
            }
            if let Some(other) =
                (0..self.processes.len()).find(|other| *other != process && self.leads(*other))
            {
                return Err(Violation::new(format!("controller {process} writes while {other} leads")));
            }
            if !self.depart(process, slot, change, within)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A write leaves. Gives whether the controller goes on.
    fn depart(
        &mut self,
        process: usize,
        slot: Slot,
        change: Change,
        within: Moment,
    ) -> Result<bool, Violation> {
        self.tell(|| {
            format!("controller {process} writes {:?} of {}: {}", slot.part, slot.object, summary(&change))
        });
        if self.was_right && !matches!(change, Change::Create { dry_run: true, .. }) {
            let (part, object) = (&slot.part, &slot.object);
            return Err(Violation::new(format!(
                "{part:?} of {object} is written although everything was right"
            )));
        }
        must!(slot.object.cluster.is_hub(), "{} is written, and only looked at", slot.object);
        let it = &self.processes[process];
        let Discovered::Served(served) = it.find(Site::Hub, &slot.object.kind) else {
            let failed = Outcome::Failed("its kind is not served".into()).into();
            return Ok(self.finish(process, slot, change, failed));
        };
        let judged = ["Application", "Rollup"].map(GroupKind::own);
        let is_status = slot.part == Part::Status && judged.contains(&slot.object.kind);
        // In the middle of a list of its own kind, or of one that has broken off, nobody can tell what is known.
        let is_unclear = |feed: &Feed| {
            let is_own = *feed.follower.kind() == slot.object.kind;
            feed.view.telling && (is_own || feed.view.unreadable.is_some())
        };
        let is_clear = !it.put_back && !it.feeds_of(Site::Hub).any(is_unclear);
        let expected = if is_status && is_clear {
            let views = it.views(&self.clusters.hub.store);
            if let Change::Status { uid, version, patch, .. } = &change {
                let missed = MissingComponents {
                    store: &self.clusters.hub.store,
                    uid,
                    began: it.began,
                    now: self.wall(process),
                };
                missed.check(version.as_str(), patch, |kind| it.is_fickle(kind))?;
            }
            checks::expected(&views, (&slot, &change), &self.clusters.hub.store, self.wall(process))?
        } else {
            None
        };
        let told = match &change {
            Change::Status { uid, .. } => it.answers.of(uid),
            Change::Owners { .. }
            | Change::Create { .. }
            | Change::Replace { .. }
            | Change::Apply { .. }
            | Change::Delete { .. } => ReportedStatuses::new(),
        };
        let (knew, at, began) = (it.knew(), self.wall(process), Some(it.began).filter(|_| !it.put_back));
        let attempt = Attempt::new(served, slot.clone(), change.clone());
        let (epoch, deadline, sent) = (it.epoch, self.now + within, self.clusters.hub.store.revision);
        self.send(Box::new(InFlightWrite {
            process,
            epoch,
            slot,
            change,
            attempt,
            deadline,
            expected,
            knew,
            sent,
            at,
            began,
            told,
        }));
        Ok(true)
    }

    fn send(&mut self, flight: Box<InFlightWrite>) {
        let is_lost = self.clusters.hub.trouble.lost_requests > self.now && self.chance.random_bool(0.5);
        let at = self.now + self.latency();
        if is_lost {
            let deadline = flight.deadline;
            self.schedule(deadline, ScheduledEvent::Fly(flight, WriteStage::Lost));
        } else {
            self.schedule(at, ScheduledEvent::Fly(flight, WriteStage::Out));
        }
    }

    pub(super) fn fly(&mut self, flight: Box<InFlightWrite>, journey: WriteStage) -> Result<(), Violation> {
        if matches!(journey, WriteStage::Out) {
            return self.land(flight);
        }
        let process = &self.processes[flight.process];
        if process.epoch != flight.epoch {
            return Ok(());
        }
        if process.frozen_until > self.now {
            let at = process.frozen_until;
            self.schedule(at, ScheduledEvent::Fly(flight, journey));
            return Ok(());
        }
        self.arrive(flight, journey)
    }

    /// A request reaches an API server.
    fn land(&mut self, flight: Box<InFlightWrite>) -> Result<(), Violation> {
        let Ok(request) = flight.attempt.request() else {
            return Err(Violation::new("no request can be made of a change"));
        };
        checks::is_modest(&flight.slot, &request)?;
        let answer = if let Some(answer) = self.refusal() {
            answer
        } else {
            let time = self.time().to_string();
            let (answer, deed) = api::handle(&mut self.clusters.hub.store, &request, &time);
            if let Some(deed) = &deed {
                self.tally.writes += 1;
                self.tell(|| format!("it is done: {:?} of {}", flight.slot.part, flight.slot.object));
                let context = checks::Context {
                    past: Past { store: &self.clusters.hub.store, knew: &flight.knew, now: flight.at },
                    change: &flight.change,
                    sent: flight.sent,
                    expected: flight.expected.as_ref(),
                    began: flight.began,
                    told: &flight.told,
                };
                context.check(deed)?;
                self.adopted.note(deed, &flight.change);
                if self.processes[flight.process].epoch == flight.epoch {
                    self.ends_at(flight.process, Point::AfterWrite);
                }
            }
            answer
        };
        let is_lost = self.clusters.hub.trouble.outage > self.now
            || self.clusters.hub.trouble.lost_answers > self.now && self.chance.random_bool(0.5);
        let at = self.now + self.latency();
        if is_lost || at > flight.deadline {
            let deadline = flight.deadline;
            self.schedule(deadline, ScheduledEvent::Fly(flight, WriteStage::Lost));
        } else {
            self.schedule(at, ScheduledEvent::Fly(flight, WriteStage::Back(answer)));
        }
        Ok(())
    }

    /// What an API server says that does nothing.
    fn refusal(&mut self) -> Option<ApiResponse> {
        let status = |code, reason| ApiResponse::status(code, reason, "not now");
        if self.clusters.hub.trouble.outage > self.now {
            return Some(status(StatusCode::BAD_GATEWAY, ""));
        }
        let (code, until) = self.clusters.hub.trouble.errors;
        if until > self.now && self.chance.random_bool(0.6) {
            let mut answer = status(StatusCode::from_u16(code).unwrap_or_default(), "");
            if code == 429 {
                answer.parts.headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            return Some(answer);
        }
        (self.clusters.hub.trouble.refused > self.now)
            .then(|| status(StatusCode::UNPROCESSABLE_ENTITY, "Invalid"))
    }

    /// An answer reaches the controller, or none does.
    fn arrive(&mut self, mut flight: Box<InFlightWrite>, journey: WriteStage) -> Result<(), Violation> {
        let done = match journey {
            WriteStage::Back(answer) => flight.attempt.answered(&answer.parts, &answer.body),
            WriteStage::Out | WriteStage::Lost => Some(Outcome::Failed("no answer".into()).into()),
        };
        let Some(done) = done else {
            self.send(flight);
            return Ok(());
        };
        let process = flight.process;
        if self.finish(process, flight.slot, flight.change, done) { self.go_on(process) } else { Ok(()) }
    }

    /// A controller learns how a write has ended. Gives whether it goes on.
    fn finish(&mut self, process: usize, slot: Slot, change: Change, done: Done) -> bool {
        self.tell(|| {
            format!("controller {process} hears of {:?} of {}: {:?}", slot.part, slot.object, done.outcome)
        });
        if let (Change::Delete { uid }, Outcome::Done(_)) = (&change, &done.outcome) {
            self.processes[process].deleted.insert(uid.clone());
        }
        let now = self.clock(process);
        let retry_after = done.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
        let effects = self.processes[process].driver.written(now, (slot, change), done.outcome, retry_after);
        self.follow_up(process, effects);
        !self.ends_at(process, Point::AfterAnswer)
    }
}

/// A change in a few words.
fn summary(change: &Change) -> String {
    match change {
        Change::Status { version, patch, .. } => {
            let conditions = patch["conditions"].as_array().into_iter().flatten();
            let conditions = conditions.map(|it| format!("{}={}", text(&it["type"]), text(&it["status"])));
            let fields = patch.as_object().into_iter().flatten().filter(|(field, _)| *field != "conditions");
            let fields = fields.map(|(field, value)| format!("{field}={value}"));
            let words: Vec<_> = conditions.chain(fields).collect();
            format!("after {}: {}", version.as_str(), words.join(", "))
        }
        Change::Owners { version, owners, .. } => {
            let owners: Vec<_> = owners.iter().map(|owner| &*owner.uid).collect();
            format!("after {}: {owners:?}", version.as_str())
        }
        Change::Create { dry_run, .. } => format!("create{}", if *dry_run { ", only to try" } else { "" }),
        Change::Replace { version, .. } => format!("replace after {}", version.as_str()),
        Change::Apply { manager, status, .. } => format!("apply as {manager}: {status}"),
        Change::Delete { uid } => format!("delete {uid}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
