//! Writes: requests of controllers, their effects in the store, and the responses.

use std::mem;

use bellwether_engine::{GroupKind, Outcome, Part, Slot, Write};
use bellwether_wire::{Attempt, Discovered, WriteResult};
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

/// Timeout of a write in milliseconds.
const TIMEOUT: Moment = 10_000;

/// A write in flight, with what is needed to check it when it is applied.
pub(super) struct InFlightWrite {
    process: usize,
    epoch: u64,
    slot: Slot,
    change: Write,
    attempt: Attempt,
    /// When the controller gives up waiting for the response.
    deadline: Moment,
    /// The status according to the oracle, from what the controller knew when it sent the write.
    expected: Option<Value>,
    /// The revision up to which the controller knew each kind then.
    knew: Vec<(GroupKind, u64)>,
    /// The store's revision then.
    sent: u64,
    /// The time then, by the clock of the controller.
    at: Timestamp,
    /// When the controller started, by its clock. None if that was set back since.
    began: Option<Timestamp>,
    /// What the controller had answered to queries about the object.
    reported: ReportedStatuses,
}

pub(super) enum WriteStage {
    /// The request travels to an API server.
    Out,
    /// The response travels to the controller.
    Back(ApiResponse),
    /// The request or the response was lost, and the deadline has passed.
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
        let within = left.unwrap_or(TIMEOUT).min(TIMEOUT);
        for (slot, change) in self.processes[process].driver.write(now, leads) {
            if self.ends_at(process, Point::BeforeWrite) {
                return Ok(());
            }
            if let Some(other) =
                (0..self.processes.len()).find(|other| *other != process && self.leads(*other))
            {
                return Err(Violation::new(format!(
                    "controller {process} writes while controller {other} leads"
                )));
            }
            if !self.start_write(process, slot, change, within)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends a write. Returns false if the controller ends.
    fn start_write(
        &mut self,
        process: usize,
        slot: Slot,
        change: Write,
        within: Moment,
    ) -> Result<bool, Violation> {
        self.tell(|| {
            format!("controller {process} writes {:?} of {}: {}", slot.part, slot.object, summary(&change))
        });
        if self.was_right && !matches!(change, Write::Create { dry_run: true, .. }) {
            let (part, object) = (&slot.part, &slot.object);
            return Err(Violation::new(format!(
                "{part:?} of {object} is written although the state was correct"
            )));
        }
        must!(slot.object.cluster.is_hub(), "{} is written in a cluster that is only observed", slot.object);
        if self.plan.has_inventory() {
            let it = &mut self.processes[process];
            let mut published = mem::take(&mut it.published);
            let knew = it.knew();
            let past = Past { store: &self.clusters.hub.store, knew: &knew, now: Timestamp::UNIX_EPOCH };
            let checked = published.check(it, (&slot, &change), &past, self.now);
            it.published = published;
            checked?;
        }
        let it = &self.processes[process];
        let Discovered::Served(served) = it.find(Site::Hub, &slot.object.kind) else {
            let failed = Outcome::Failed("its kind is not served".into()).into();
            return Ok(self.finish(process, slot, change, failed));
        };
        let groups = ["Application", "Rollup"].map(GroupKind::bellwether);
        let is_status = slot.part == Part::Status && groups.contains(&slot.object.kind);
        // During a relist of the object's own kind, or after a list broke off, `View` does not say what the
        // engine knows.
        let is_unclear = |feed: &Feed| {
            let is_bellwether = *feed.reflector.kind() == slot.object.kind;
            feed.view.telling && (is_bellwether || feed.view.unreadable.is_some())
        };
        let is_clear = !it.put_back && !it.feeds_of(Site::Hub).any(is_unclear);
        let expected = if is_status && is_clear {
            let views = it.views(&self.clusters.hub.store);
            if let Write::Status { uid, resource_version: version, patch, .. } = &change {
                let missing = MissingComponents {
                    store: &self.clusters.hub.store,
                    uid,
                    began: it.began,
                    now: self.wall(process),
                };
                missing.check(version.as_str(), patch, |kind| it.is_fickle(kind))?;
            }
            checks::expected(&views, (&slot, &change), &self.clusters.hub.store, self.wall(process))?
        } else {
            None
        };
        let reported = match &change {
            Write::Status { uid, .. } => it.answers.of(uid),
            Write::OwnerReferences { .. }
            | Write::Create { .. }
            | Write::SetFields { .. }
            | Write::Apply { .. }
            | Write::Delete { .. } => ReportedStatuses::new(),
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
            reported,
        }));
        Ok(true)
    }

    fn send(&mut self, write: Box<InFlightWrite>) {
        let is_lost = self.clusters.hub.faults.lost_requests > self.now && self.rng.random_bool(0.5);
        let at = self.now + self.latency();
        if is_lost {
            let deadline = write.deadline;
            self.schedule(deadline, ScheduledEvent::Write(write, WriteStage::Lost));
        } else {
            self.schedule(at, ScheduledEvent::Write(write, WriteStage::Out));
        }
    }

    pub(super) fn advance_write(
        &mut self,
        write: Box<InFlightWrite>,
        stage: WriteStage,
    ) -> Result<(), Violation> {
        if matches!(stage, WriteStage::Out) {
            return self.handle_request(write);
        }
        let process = &self.processes[write.process];
        if process.epoch != write.epoch {
            return Ok(());
        }
        if process.frozen_until > self.now {
            let at = process.frozen_until;
            self.schedule(at, ScheduledEvent::Write(write, stage));
            return Ok(());
        }
        self.handle_response(write, stage)
    }

    /// An API server handles a request.
    fn handle_request(&mut self, write: Box<InFlightWrite>) -> Result<(), Violation> {
        let Ok(request) = write.attempt.request() else {
            return Err(Violation::new(format!("cannot build a request for {:?}", write.change)));
        };
        checks::is_modest(&write.slot, &request)?;
        let response = if let Some(response) = self.error_response() {
            response
        } else {
            let time = self.time().to_string();
            let (response, effect) = api::handle(&mut self.clusters.hub.store, &request, &time);
            if let Some(effect) = &effect {
                self.tally.writes += 1;
                self.tell(|| format!("API server applies {:?} of {}", write.slot.part, write.slot.object));
                let context = checks::Context {
                    past: Past { store: &self.clusters.hub.store, knew: &write.knew, now: write.at },
                    change: &write.change,
                    sent: write.sent,
                    expected: write.expected.as_ref(),
                    began: write.began,
                    reported: &write.reported,
                };
                context.check(effect)?;
                self.adopted.note(effect, &write.change);
                if self.processes[write.process].epoch == write.epoch {
                    self.ends_at(write.process, Point::AfterWrite);
                }
            }
            response
        };
        let is_lost = self.clusters.hub.faults.outage > self.now
            || self.clusters.hub.faults.lost_answers > self.now && self.rng.random_bool(0.5);
        let at = self.now + self.latency();
        if is_lost || at > write.deadline {
            let deadline = write.deadline;
            self.schedule(deadline, ScheduledEvent::Write(write, WriteStage::Lost));
        } else {
            self.schedule(at, ScheduledEvent::Write(write, WriteStage::Back(response)));
        }
        Ok(())
    }

    /// The error response that faults cause, if any.
    fn error_response(&mut self) -> Option<ApiResponse> {
        let status = |code, reason| ApiResponse::status(code, reason, "not now");
        if self.clusters.hub.faults.outage > self.now {
            return Some(status(StatusCode::BAD_GATEWAY, ""));
        }
        let (code, until) = self.clusters.hub.faults.errors;
        if until > self.now && self.rng.random_bool(0.6) {
            let mut response = status(StatusCode::from_u16(code).unwrap_or_default(), "");
            if code == 429 {
                response.parts.headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            return Some(response);
        }
        (self.clusters.hub.faults.refused > self.now)
            .then(|| status(StatusCode::UNPROCESSABLE_ENTITY, "Invalid"))
    }

    /// A controller gets the response, or gives up waiting. An attempt may need another request.
    fn handle_response(&mut self, mut write: Box<InFlightWrite>, stage: WriteStage) -> Result<(), Violation> {
        let done = match stage {
            WriteStage::Back(response) => write.attempt.answered(&response.parts, &response.body),
            WriteStage::Out | WriteStage::Lost => Some(Outcome::Failed("no answer".into()).into()),
        };
        let Some(done) = done else {
            self.send(write);
            return Ok(());
        };
        let process = write.process;
        if self.finish(process, write.slot, write.change, done) { self.go_on(process) } else { Ok(()) }
    }

    /// Gives the outcome of a write to the engine. Returns false if the controller ends.
    fn finish(&mut self, process: usize, slot: Slot, change: Write, done: WriteResult) -> bool {
        self.tell(|| {
            format!("controller {process} wrote {:?} of {}: {:?}", slot.part, slot.object, done.outcome)
        });
        if let (Write::Delete { uid }, Outcome::Written(_)) = (&change, &done.outcome) {
            self.processes[process].deleted.insert(uid.clone());
        }
        let now = self.clock(process);
        let retry_after = done.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
        let effects = self.processes[process].driver.written(now, (slot, change), done.outcome, retry_after);
        self.follow_up(process, effects);
        !self.ends_at(process, Point::AfterAnswer)
    }
}

fn summary(change: &Write) -> String {
    match change {
        Write::Status { resource_version: version, patch, .. } => {
            let conditions = patch["conditions"].as_array().into_iter().flatten();
            let conditions = conditions.map(|it| format!("{}={}", text(&it["type"]), text(&it["status"])));
            let fields = patch.as_object().into_iter().flatten().filter(|(field, _)| *field != "conditions");
            let fields = fields.map(|(field, value)| format!("{field}={value}"));
            let items: Vec<_> = conditions.chain(fields).collect();
            format!("based on {}: {}", version.as_str(), items.join(", "))
        }
        Write::OwnerReferences { resource_version: version, owners, .. } => {
            let owners: Vec<_> = owners.iter().map(|owner| &*owner.uid).collect();
            format!("based on {}: owners {owners:?}", version.as_str())
        }
        Write::Create { dry_run, .. } => format!("create{}", if *dry_run { " (dry run)" } else { "" }),
        Write::SetFields { resource_version: version, fields, .. } => {
            let fields: Vec<_> =
                fields.iter().map(|(path, value)| format!("{}={value}", path.join("."))).collect();
            format!("based on {}: {}", version.as_str(), fields.join(", "))
        }
        Write::Apply { manager, status, .. } => format!("apply as {manager}: {status}"),
        Write::Delete { uid } => format!("delete {uid}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
