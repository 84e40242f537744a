//! What a set of conditions says together.

use bellwether_model::State;

use super::{
    phase,
    polarity::{self, Polarity},
    words::{begins_with_failure, meaning},
};
use crate::{
    generation,
    read::{Condition, Reader},
    verdict::Verdict,
};

/// How many conditions of one place are looked at. Nobody has a tenth of them, and the time for an object stays bounded.
const MOST: usize = 1000;

/// The conditions of one place, judged together.
pub(crate) struct Conditions<'o> {
    /// What they are the conditions of: a status, or a part of one.
    whole: Reader<'o>,
    all: Vec<Known<'o>>,
    /// There are more of them.
    cut: bool,
}

/// A condition, and what its type is about.
struct Known<'o> {
    condition: Condition<'o>,
    polarity: Option<Polarity>,
    /// The verdict if it speaks of an older generation: it is not known to hold any more.
    stale: Option<Verdict>,
}

impl<'o> Conditions<'o> {
    /// The conditions of an object.
    pub(crate) fn of(o: &Reader<'o>) -> Self {
        Self::at(o, &o.at("status"))
    }

    /// The conditions of a part of an object. Of a type that is given twice, the first counts.
    pub(crate) fn at(o: &Reader<'_>, whole: &Reader<'o>) -> Self {
        let mut all: Vec<Known<'o>> = Vec::new();
        let mut cut = false;
        for condition in whole.conditions_at("conditions") {
            if all.len() == MOST {
                cut = true;
                break;
            }
            if all.iter().any(|known| known.condition.kind == condition.kind) {
                continue;
            }
            let (polarity, stale) = (polarity::of(condition.kind), generation::stale(o, &condition));
            all.push(Known { condition, polarity, stale });
        }
        Self { whole: whole.clone(), all, cut }
    }

    /// The convention of kstatus: what stalls will not mend itself, what reconciles is under way.
    pub(crate) fn stalled(&self) -> Option<Verdict> {
        let holds = |kind| self.find(kind).filter(|known| known.condition.is_true());
        if let Some(stalled) = holds("Stalled") {
            return Some(stalled.fresh(State::Failed));
        }
        Some(holds("Reconciling")?.fresh(State::InProgress))
    }

    /// The condition Ready, which speaks for all the others.
    pub(crate) fn ready(&self, o: &Reader<'_>) -> Option<Verdict> {
        let ready = self.find("Ready")?;
        if ready.stale.is_some() {
            return ready.stale.clone();
        }
        if ready.condition.is_true() {
            return Some(self.against_ready(o).unwrap_or_else(|| self.unless_cut(ready.says(State::Ready))));
        }
        if let Some(bad) = self.bad().next() {
            return Some(bad.says(State::Failed));
        }
        if let Some(error) = phase::error(&self.whole) {
            return Some(error);
        }
        if let Some(stopped) = self.holding(Polarity::Stopped).next() {
            return Some(stopped.says(State::Suspended));
        }
        // Somebody is at work on it: what the reason complains about is being mended.
        if let Some(under_way) = self.under_way() {
            return Some(under_way.says(State::InProgress));
        }
        let state = ready.state();
        if state == State::Failed {
            return Some(ready.says(state));
        }
        let because = |state| self.because(state).map(|known| known.says(state));
        because(State::Failed).or_else(|| because(State::Suspended)).or_else(|| Some(ready.says(state)))
    }

    /// What says outright that all is not well, although Ready is True.
    fn against_ready(&self, o: &Reader<'_>) -> Option<Verdict> {
        if let Some(failing) = self.because(State::Failed) {
            return Some(failing.says(State::Failed));
        }
        if let Some(bad) = self.bad().find(|bad| polarity::says_outright(Polarity::Bad, bad.condition.kind)) {
            return Some(bad.says(State::Failed));
        }
        let mut stopped = self.holding(Polarity::Stopped);
        if let Some(stopped) =
            stopped.find(|known| polarity::says_outright(Polarity::Stopped, known.condition.kind))
        {
            return Some(stopped.says(State::Suspended));
        }
        let unlike = ["Available", "Healthy"].into_iter().find_map(|kind| {
            self.find(kind).filter(|known| known.stale.is_none() && known.condition.is_false())
        });
        if let Some(unlike) = unlike {
            return Some(unlike.says(unlike.state()));
        }
        phase::judge(o, &self.whole).filter(|phase| phase.state == State::Failed)
    }

    /// The other conditions that are known, by their polarity.
    pub(crate) fn known(&self, o: &Reader<'_>) -> Option<Verdict> {
        if let Some(leaving) = self.holding(Polarity::Leaving).next() {
            return Some(leaving.says(State::Terminating));
        }
        if let Some(triple) = self.triple() {
            return Some(triple);
        }
        if let Some(bad) = self.bad().next() {
            return Some(bad.says(State::Failed));
        }
        if let Some(stopped) = self.holding(Polarity::Stopped).next() {
            return Some(stopped.says(State::Suspended));
        }
        if let Some(halted) = self.halted() {
            return Some(halted);
        }
        if let Some(under_way) = self.under_way() {
            return Some(under_way.says(State::InProgress));
        }
        if let Some(hopeless) = self.because(State::Failed) {
            return Some(hopeless.says(State::Failed));
        }
        if let Some(done) = self.holding(Polarity::Done).next() {
            let state = if is_hopeless(&done.condition) { State::Failed } else { State::Ready };
            return Some(self.unless_cut(done.says(state)));
        }
        let good = [Polarity::Good, Polarity::Sound, Polarity::Done];
        let deciding: Vec<_> = good.into_iter().flat_map(|good| self.of_polarity(good)).collect();
        if let Some(stale) = deciding.iter().find_map(|known| known.stale.clone()) {
            return Some(stale);
        }
        let states = deciding.iter().map(|known| (known.state(), known));
        // The first of the worst, which is the last in the order of `max_by_key` from behind.
        let (state, known) = states.rev().max_by_key(|(state, known)| match state {
            State::Failed => 3,
            State::Ready => 0,
            _ if known.condition.is_false() => 2,
            _ => 1,
        })?;
        // That it has begun is not that it is done.
        let ended = || deciding.iter().any(|known| polarity::speaks_of_an_end(known.condition.kind));
        let begun = state == State::Ready && phase::runs_to_an_end(o) && !ended();
        let state = if begun { State::InProgress } else { state };
        Some(self.unless_cut(known.says(state)))
    }

    /// Available, Progressing and Degraded, as cluster operators have them: together they say all there is to say.
    fn triple(&self) -> Option<Verdict> {
        let [available, progressing, degraded] =
            [self.find("Available")?, self.find("Progressing")?, self.find("Degraded")?];
        if let Some(stale) =
            [available, progressing, degraded].into_iter().find_map(|known| known.stale.clone())
        {
            return Some(stale);
        }
        let at_work = self.under_way().is_some_and(|known| known.condition.kind == "Progressing");
        Some(match (degraded.condition.is_true(), at_work) {
            // Also what is degraded is being mended.
            (_, true) => progressing.says(State::InProgress),
            (true, false) => degraded.says(State::Failed),
            (false, false) if is_hopeless(&progressing.condition) => progressing.says(State::Failed),
            (false, false) if !available.condition.is_true() => available.says(available.state()),
            (false, false) if !degraded.condition.is_false() => degraded.says(State::InProgress),
            (false, false) => self.unless_cut(available.says(State::Ready)),
        })
    }

    fn find(&self, kind: &str) -> Option<&Known<'o>> {
        let found = self.all.iter().find(|known| known.condition.kind == kind)?;
        found.condition.look();
        Some(found)
    }

    fn of_polarity(&self, wanted: Polarity) -> impl Iterator<Item = &Known<'o>> {
        let known = self.all.iter().filter(move |known| known.polarity == Some(wanted));
        known.inspect(|known| known.condition.look())
    }

    /// Those that hold, of the newest generation.
    fn holding(&self, wanted: Polarity) -> impl Iterator<Item = &Known<'o>> {
        self.of_polarity(wanted).filter(|known| known.stale.is_none() && known.condition.is_true())
    }

    /// What is bad. A reason that says that all is well is believed, and so is one that says that it is only a delay of
    /// what is not yet good.
    fn bad(&self) -> impl Iterator<Item = &Known<'o>> {
        let bad =
            self.holding(Polarity::Bad).filter(|bad| meaning(bad.condition.reason()) != Some(State::Ready));
        bad.chain(self.holding(Polarity::NotGood).filter(|known| !is_delay(&known.condition)))
    }

    /// What is under way.
    fn under_way(&self) -> Option<&Known<'o>> {
        // A Deployment, and what follows its example, is still Progressing when its new replicas are available.
        let unfinished = |known: &&Known<'o>| meaning(known.condition.reason()) != Some(State::Ready);
        let delayed = || self.holding(Polarity::NotGood).find(|known| is_delay(&known.condition));
        self.holding(Polarity::UnderWay).find(unfinished).or_else(delayed)
    }

    /// What is no longer under way, though it is not done.
    fn halted(&self) -> Option<Verdict> {
        self.of_polarity(Polarity::UnderWay).find_map(|known| {
            let state = known.state();
            let halted = known.stale.is_none() && !known.condition.is_true() && state != State::InProgress;
            halted.then(|| known.says(state))
        })
    }

    /// A good condition that is false for a reason that means this state.
    fn because(&self, state: State) -> Option<&Known<'o>> {
        let found = self.all.iter().find(|known| {
            let good = matches!(known.polarity, Some(Polarity::Good | Polarity::Sound | Polarity::Done));
            let condition = &known.condition;
            good && known.stale.is_none()
                && condition.is_false()
                && meaning(condition.reason()) == Some(state)
                && !condition.is_mild()
        })?;
        found.condition.look();
        Some(found)
    }

    /// Where not all conditions were looked at, nobody can say that all is well.
    fn unless_cut(&self, verdict: Verdict) -> Verdict {
        if self.cut && verdict.state == State::Ready {
            return Verdict::unknown("TooManyConditions", format!("it has more than {MOST} conditions"));
        }
        verdict
    }
}

impl Known<'_> {
    /// What a good condition says about the state: True is ready, and else its reason tells more.
    fn state(&self) -> State {
        let condition = &self.condition;
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
            // What is not known is hopeless only where it is said outright, and only of the whole.
            Some(State::Failed) if condition.is_false() || condition.kind == "Ready" => State::Failed,
            Some(state @ (State::Suspended | State::Terminating)) => state,
            _ if !condition.is_false() => State::InProgress,
            _ if begins_with_failure(condition.message()) => State::Failed,
            Some(State::InProgress) => State::InProgress,
            _ if self.polarity == Some(Polarity::Sound) => State::Failed,
            _ => State::InProgress,
        }
    }

    fn says(&self, state: State) -> Verdict {
        let condition = &self.condition;
        Verdict::new(state, condition.reason_or_type().to_owned(), condition.says()).since(condition.since())
    }

    /// The same, unless it speaks of an older generation.
    fn fresh(&self, state: State) -> Verdict {
        self.stale.clone().unwrap_or_else(|| self.says(state))
    }
}

/// Whether the reason of a condition, or the beginning of its message, says that it will not mend itself.
fn is_hopeless(condition: &Condition<'_>) -> bool {
    meaning(condition.reason()) == Some(State::Failed) || begins_with_failure(condition.message())
}

/// Whether the reason of a condition says that it is only a matter of time.
fn is_delay(condition: &Condition<'_>) -> bool {
    meaning(condition.reason()) == Some(State::InProgress)
}
