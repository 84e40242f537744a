//! Evaluates a list of conditions as a whole.

use bellwether_model::State;

use super::{
    intent, phase,
    polarity::{self, Polarity},
    words::{begins_with_failure, is_negated, is_negative, meaning, tells_failure, words},
};
use crate::{
    generation,
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

/// Bounds the time for one object. Real objects have far fewer.
const MOST: usize = 1000;

/// The conditions of a status, or of a part of it.
pub(crate) struct Conditions<'o> {
    /// The status or the part.
    whole: Reader<'o>,
    all: Vec<Known<'o>>,
    /// Whether conditions beyond [`MOST`] were skipped.
    truncated: bool,
    /// Whether these are the conditions of a part. A parent that accepts a route has nothing more to say.
    is_part: bool,
}

#[derive(Clone)]
struct Known<'o> {
    condition: Condition<'o>,
    polarity: Option<Polarity>,
    /// The verdict if the condition has an older `observedGeneration`: its status may no longer be true.
    stale: Option<Verdict>,
}

impl<'o> Conditions<'o> {
    pub(crate) fn of(o: &Reader<'o>) -> Self {
        Self { is_part: false, ..Self::at(o, &o.at("status")) }
    }

    /// The conditions of a part of `o`. Of duplicate types, the first counts; with different status, it is Unknown.
    pub(crate) fn at(o: &Reader<'_>, whole: &Reader<'o>) -> Self {
        let mut all: Vec<Known<'o>> = Vec::new();
        let mut truncated = false;
        for condition in whole.conditions_at("conditions") {
            if all.len() == MOST {
                truncated = true;
                break;
            }
            if let Some(first) = all.iter_mut().find(|known| known.condition.kind == condition.kind) {
                first.condition.contradicted |= first.condition.status() != condition.status();
                continue;
            }
            let (polarity, stale) = (polarity::of(condition.kind), generation::stale(o, &condition));
            all.push(Known { condition, polarity, stale });
        }
        Self { whole: whole.clone(), all, truncated, is_part: true }
    }

    /// The convention of kstatus: `Stalled` is `Failed`, `Reconciling` is `InProgress`.
    pub(crate) fn stalled(&self) -> Option<Verdict> {
        let holds = |kind| self.find(kind).filter(|known| known.condition.is_true());
        if let Some(stalled) = holds("Stalled") {
            return Some(stalled.fresh(State::Failed));
        }
        let reconciling = holds("Reconciling")?;
        // A retry follows a failure.
        if is_retry(&reconciling.condition)
            && let Some(failed) = self.find("Ready").filter(|ready| ready.has_failed())
        {
            return Some(failed.verdict(State::Failed));
        }
        Some(reconciling.fresh(State::InProgress))
    }

    /// By condition `Ready`, which summarizes the others.
    pub(crate) fn ready(&self, o: &Reader<'_>) -> Option<Verdict> {
        let ready = self.find("Ready")?;
        if ready.stale.is_some() {
            return ready.stale.clone();
        }
        if ready.condition.is_true() {
            return Some(
                self.contradiction(o).unwrap_or_else(|| self.unless_unclear(ready.verdict(State::Ready))),
            );
        }
        if let Some(failure) = self.failures().next() {
            return Some(failure.verdict(State::Failed));
        }
        if let Some(error) = phase::error(&self.whole) {
            return Some(error);
        }
        if let Some(suspended) = self.holding(Polarity::Suspended).next() {
            return Some(suspended.verdict(State::Suspended));
        }
        if let Some(stopped) = self.stopped(o).filter(|stopped| stopped.state != State::InProgress) {
            return Some(stopped);
        }
        if ready.condition.contradicted {
            return Some(ready.verdict(State::Unknown));
        }
        // The controller is still working on it, so a failure in the reason is not final.
        if let Some(progressing) = self.progressing() {
            return Some(progressing.verdict(State::InProgress));
        }
        let state = ready.state();
        if state == State::Failed {
            return Some(ready.verdict(state));
        }
        let failing = self.because(State::Failed).map(|known| known.verdict(State::Failed));
        Some(failing.unwrap_or_else(|| ready.verdict(state)))
    }

    /// What contradicts Ready=True.
    fn contradiction(&self, o: &Reader<'_>) -> Option<Verdict> {
        if let Some(failing) = self.because(State::Failed) {
            return Some(failing.verdict(State::Failed));
        }
        if let Some(failure) =
            self.failures().find(|failure| polarity::is_listed(Polarity::Negative, failure.condition.kind))
        {
            return Some(failure.verdict(State::Failed));
        }
        let mut suspended = self.holding(Polarity::Suspended);
        if let Some(suspended) =
            suspended.find(|known| polarity::is_listed(Polarity::Suspended, known.condition.kind))
        {
            return Some(suspended.verdict(State::Suspended));
        }
        if let Some(stopped) = self.stopped(o) {
            return Some(stopped);
        }
        let not_available = ["Available", "Healthy"].into_iter().find_map(|kind| {
            self.find(kind).filter(|known| known.stale.is_none() && known.condition.is_false())
        });
        if let Some(known) = not_available {
            return Some(known.verdict(known.state()));
        }
        // A good condition may be older than a phase.
        phase::evaluate(o, &self.whole)
            .filter(|phase| matches!(phase.state, State::Failed | State::InProgress | State::Terminating))
    }

    /// By the polarity of the other known conditions.
    pub(crate) fn known(&self, o: &Reader<'_>) -> Option<Verdict> {
        if let Some(deleting) = self.holding(Polarity::Deleting).next() {
            return Some(deleting.verdict(State::Terminating));
        }
        if let Some(triple) = self.triple() {
            return Some(triple);
        }
        if let Some(failure) = self.failures().next() {
            return Some(failure.verdict(State::Failed));
        }
        if let Some(suspended) = self.holding(Polarity::Suspended).next() {
            return Some(suspended.verdict(State::Suspended));
        }
        if let Some(stopped) = self.stopped(o) {
            let failing = self.because(State::Failed).map(|known| known.verdict(State::Failed));
            return Some(failing.unwrap_or(stopped));
        }
        if let Some(halted) = self.halted() {
            return Some(halted);
        }
        if let Some(progressing) = self.progressing() {
            return Some(progressing.verdict(State::InProgress));
        }
        if let Some(failing) = self.because(State::Failed) {
            return Some(failing.verdict(State::Failed));
        }
        if let Some(done) = self.holding(Polarity::Completion).next() {
            let state = if is_failure(&done.condition) { State::Failed } else { State::Ready };
            return Some(self.unless_unclear(done.verdict(state)));
        }
        let good = [Polarity::Positive, Polarity::Validity, Polarity::Completion, Polarity::Step];
        let deciding: Vec<_> = good.into_iter().flat_map(|good| self.of_polarity(good)).collect();
        if let Some(contradicted) = deciding.iter().find(|known| known.condition.contradicted) {
            return Some(contradicted.verdict(State::Unknown));
        }
        if let Some(stale) = deciding.iter().find_map(|known| known.stale.clone()) {
            return Some(stale);
        }
        let states = deciding.iter().map(|known| (known.state(), known));
        // `max_by_key` returns the last maximum: reversed, the first of the worst.
        let (state, known) = states.rev().max_by_key(|(state, known)| match state {
            State::Failed => 3,
            State::Ready => 0,
            _ if known.condition.is_false() => 2,
            _ => 1,
        })?;
        // A kind that runs to completion is Ready only by a condition about completion.
        let completed = || deciding.iter().any(|known| polarity::is_completion(known.condition.kind));
        let incomplete = state == State::Ready && phase::runs_to_completion(o) && !completed();
        let steps_only = state == State::Ready && deciding.iter().all(|known| self.is_step(known));
        let state = if incomplete || steps_only { State::InProgress } else { state };
        Some(self.unless_unclear(known.verdict(state)))
    }

    /// `Available`, `Progressing` and `Degraded` of cluster operators. Together they decide alone.
    pub(crate) fn triple(&self) -> Option<Verdict> {
        let [available, progressing, degraded] =
            [self.find("Available")?, self.find("Progressing")?, self.find("Degraded")?];
        if let Some(stale) =
            [available, progressing, degraded].into_iter().find_map(|known| known.stale.clone())
        {
            return Some(stale);
        }
        // A completed rollout keeps Progressing=True, with reason NewReplicaSetAvailable.
        let is_progressing =
            progressing.condition.is_true() && meaning(progressing.condition.reason()) != Some(State::Ready);
        Some(match (degraded.condition.is_true(), is_progressing) {
            // Also if degraded: the operator is repairing it.
            (_, true) => progressing.verdict(State::InProgress),
            (true, false) => degraded.verdict(State::Failed),
            (false, false) if is_failure(&progressing.condition) => progressing.verdict(State::Failed),
            (false, false) if !available.condition.is_true() => available.verdict(available.state()),
            (false, false) if !degraded.condition.is_false() => degraded.verdict(State::InProgress),
            (false, false) => self.unless_unclear(available.verdict(State::Ready)),
        })
    }

    /// Whether the list has a condition of this type.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.find(kind).is_some()
    }

    /// Whether every condition `is` so.
    pub(crate) fn all(&self, is: impl Fn(&Condition<'_>) -> bool) -> bool {
        self.all.iter().all(|known| is(&known.condition))
    }

    /// By the known conditions, for kinds whose rule knows which condition means `Ready`: `Accepted` may.
    pub(crate) fn decided(&self, o: &Reader<'_>) -> Option<Verdict> {
        let part = Conditions {
            whole: self.whole.clone(),
            all: self.all.clone(),
            truncated: self.truncated,
            is_part: true,
        };
        part.known(o)
    }

    /// A condition of unknown polarity whose reason or message tells a failure.
    pub(crate) fn unknown_failure(&self) -> Option<Verdict> {
        let unknown = self.all.iter().filter(|known| known.polarity.is_none() && known.stale.is_none());
        let mut failed = unknown.filter(|known| {
            let reason = known.condition.reason();
            // `NoFallbackFound` beside False is good news.
            let reason = if known.condition.is_false() && is_negated(reason) { "" } else { reason };
            is_negative(reason, known.condition.message())
        });
        let failed = failed.next()?;
        failed.condition.record();
        Some(failed.verdict(State::Failed))
    }

    fn find(&self, kind: &str) -> Option<&Known<'o>> {
        let found = self.all.iter().find(|known| known.condition.kind == kind)?;
        found.condition.record();
        Some(found)
    }

    fn of_polarity(&self, wanted: Polarity) -> impl Iterator<Item = &Known<'o>> {
        let known = self.all.iter().filter(move |known| known.polarity == Some(wanted));
        known.inspect(|known| known.condition.record())
    }

    /// Those that are True and not stale.
    fn holding(&self, wanted: Polarity) -> impl Iterator<Item = &Known<'o>> {
        self.of_polarity(wanted).filter(|known| known.stale.is_none() && known.condition.is_true())
    }

    /// `Negative` conditions unless the reason is good, `Negated` ones unless the reason means progress.
    fn failures(&self) -> impl Iterator<Item = &Known<'o>> {
        let negative = self
            .holding(Polarity::Negative)
            .filter(|known| meaning(known.condition.reason()) != Some(State::Ready));
        negative.chain(self.holding(Polarity::Negated).filter(|known| !is_delay(&known.condition)))
    }

    /// A condition that means progress.
    fn progressing(&self) -> Option<&Known<'o>> {
        // A completed rollout keeps Progressing=True, with reason NewReplicaSetAvailable.
        let unfinished = |known: &&Known<'o>| meaning(known.condition.reason()) != Some(State::Ready);
        let delayed = || self.holding(Polarity::Negated).find(|known| is_delay(&known.condition));
        self.holding(Polarity::Progressing).find(unfinished).or_else(delayed)
    }

    /// By a condition such as `Stopped`.
    fn stopped(&self, o: &Reader<'_>) -> Option<Verdict> {
        let stopped = self.holding(Polarity::Halted).next()?;
        let condition = &stopped.condition;
        Some(stopped.verdict(intent::of_stopped(o, condition.reason(), condition.message())))
    }

    /// A progress condition that is not True, with a reason that means another state.
    fn halted(&self) -> Option<Verdict> {
        self.of_polarity(Polarity::Progressing).find_map(|known| {
            let state = known.state();
            let halted = known.stale.is_none() && !known.condition.is_true() && state != State::InProgress;
            halted.then(|| known.verdict(state))
        })
    }

    /// A positive condition that is False with a reason that means `state`.
    fn because(&self, state: State) -> Option<&Known<'o>> {
        let found = self.all.iter().find(|known| {
            let good = matches!(
                known.polarity,
                Some(Polarity::Positive | Polarity::Validity | Polarity::Completion | Polarity::Step)
            );
            let condition = &known.condition;
            good && known.stale.is_none()
                && condition.is_false()
                && meaning(condition.reason()) == Some(state)
                && !condition.is_mild()
        })?;
        found.condition.record();
        Some(found)
    }

    fn is_step(&self, known: &Known<'_>) -> bool {
        let ends = ["ccepted", "dmitted", "Valid", "ResolvedRefs"];
        let is_accepted = ends.iter().any(|end| known.condition.kind.ends_with(end));
        known.polarity == Some(Polarity::Step) || (is_accepted && !self.is_part)
    }

    /// `Unknown` instead of `Ready` if conditions were skipped, or if a part contradicts itself.
    fn unless_unclear(&self, verdict: Verdict) -> Verdict {
        let unclear = |known: &&Known<'_>| {
            known.condition.contradicted
                && known.polarity.is_some_and(|polarity| polarity != Polarity::Neutral)
        };
        if self.is_part
            && verdict.state == State::Ready
            && let Some(contradicted) = self.all.iter().find(unclear)
        {
            contradicted.condition.record();
            return contradicted.verdict(State::Unknown);
        }
        if self.truncated && verdict.state == State::Ready {
            return Verdict::unknown(
                reasons::TOO_MANY_CONDITIONS,
                format!("too many conditions, only the first {MOST} are evaluated"),
            );
        }
        verdict
    }
}

impl Known<'_> {
    /// The state by a positive condition.
    fn state(&self) -> State {
        let condition = &self.condition;
        if is_at_work(condition) {
            return State::InProgress;
        }
        if condition.is_true() {
            return State::Ready;
        }
        if condition.is_severe() {
            return State::Failed;
        }
        if condition.is_mild() {
            return State::InProgress;
        }
        let reason = meaning(condition.reason());
        match reason {
            // With status Unknown, a failure in the reason counts only for Ready.
            Some(State::Failed) if condition.is_false() || condition.kind == "Ready" => State::Failed,
            Some(State::Terminating) => State::Terminating,
            _ if !condition.is_false() => State::InProgress,
            _ if begins_with_failure(condition.message()) => State::Failed,
            Some(State::InProgress) => State::InProgress,
            _ if tells_failure(condition.message()) => State::Failed,
            _ if self.polarity == Some(Polarity::Validity) => State::Failed,
            _ => State::InProgress,
        }
    }

    /// Whether a positive condition is False because of a failure.
    fn has_failed(&self) -> bool {
        self.stale.is_none() && self.condition.is_false() && self.state() == State::Failed
    }

    fn verdict(&self, state: State) -> Verdict {
        let condition = &self.condition;
        Verdict::new(state, condition.reason_or_type().to_owned(), condition.message_or_reason())
            .since(condition.since())
    }

    /// The same, unless the condition is stale.
    fn fresh(&self, state: State) -> Verdict {
        self.stale.clone().unwrap_or_else(|| self.verdict(state))
    }
}

/// Whether the reason, or the beginning of the message, means failure.
fn is_failure(condition: &Condition<'_>) -> bool {
    meaning(condition.reason()) == Some(State::Failed) || begins_with_failure(condition.message())
}

/// Whether the reason means another attempt: `ProgressingWithRetry`.
fn is_retry(condition: &Condition<'_>) -> bool {
    words(condition.reason()).iter().any(|word| matches!(word.as_str(), "retry" | "retrying" | "retries"))
}

/// Whether an operator is at work: `Running=True` of an Ansible operator, with reason Running and a message that
/// says at what.
fn is_at_work(condition: &Condition<'_>) -> bool {
    let at_work = |text: &str| words(text).first().is_some_and(|first| first.ends_with("ing"));
    condition.kind == "Running"
        && condition.is_true()
        && condition.reason() == "Running"
        && at_work(condition.message())
}

/// Whether the reason means progress.
fn is_delay(condition: &Condition<'_>) -> bool {
    meaning(condition.reason()) == Some(State::InProgress)
}
