//! The rules for any kind: what operators mean by their conditions, phases and counters.
//!
//! In this order, the first that has something to say: a spec that is suspended; the generation; `Stalled` and
//! `Reconciling`; `Ready`; the worst of the other conditions that are known, of those of parts such as parents, ancestors
//! and listeners, and of a phase; counters of replicas. What has a spec and no status is on its way.

pub(crate) mod conditions;
pub(crate) mod phase;
pub(crate) mod polarity;
pub(crate) mod replicas;
pub(crate) mod words;

use bellwether_model::State;

use self::conditions::Conditions;
use crate::{
    generation,
    read::Reader,
    verdict::{Rule, Verdict},
};

/// The fields that the generic rules read.
pub(crate) const READS: &[&str] = &["spec.*", "status"];

/// The verdict, if anything in the object speaks for itself.
pub(crate) fn judge(o: &Reader<'_>) -> Option<Verdict> {
    // A controller does not look at what is suspended, so this goes before the generation.
    if let Some(verdict) = phase::stopped(o) {
        return Some(verdict.by(&Rule::generic("suspended")));
    }
    if let Some(verdict) = generation::reported_behind(o) {
        return Some(verdict.by(&Rule::generic("generation")));
    }
    let conditions = Conditions::of(o);
    if let Some(verdict) = conditions.stalled() {
        return Some(verdict.by(&Rule::generic("stalled")));
    }
    if let Some(verdict) = conditions.ready(o) {
        return Some(verdict.by(&Rule::generic("ready")));
    }
    // Each condition speaks for an aspect, a phase for the whole, and what all of them leave out nobody knows: the worst
    // is believed.
    let whole = phase::judge(o, &o.at("status")).map(|verdict| verdict.by(&Rule::generic("phase")));
    // The steps of what runs to an end may fail and be done again.
    let steps = whole.is_some() && phase::runs_to_an_end(o);
    let aspects = conditions.known(o).into_iter().chain(parts(o, !steps));
    let aspects = aspects.map(|verdict| verdict.by(&Rule::generic("conditions")));
    let replicas = replicas::judge(o).map(|verdict| verdict.by(&Rule::generic("replicas")));
    match worst(whole.into_iter().chain(aspects)) {
        // Counters do not make anything ready that says nothing else, but they can tell that it is not.
        Some(ready) if ready.state == State::Ready => {
            let replicas =
                replicas.filter(|replicas| replicas.state != State::Ready && replicas::counts_the_ready(o));
            Some(replicas.unwrap_or(ready))
        }
        Some(verdict) => Some(verdict),
        None => replicas,
    }
}

/// Something is wanted of it, and nobody has reported on it yet: there is a spec and no status, or the list of conditions
/// is there and empty.
pub(crate) fn unreported(o: &Reader<'_>) -> Option<Verdict> {
    let message = if o.has("status") {
        o.at("status.conditions")
            .value()?
            .as_list()?
            .is_empty()
            .then_some("its controller has reported no condition yet")
    } else {
        let wanted = o.at("spec").fields().next().is_some();
        wanted.then_some("it has no status: nobody has reported on it yet")
    };
    Some(Verdict::in_progress("NoStatusYet", message?).by(&Rule::generic("unreported")))
}

/// Lists in a status that are no parts of it: its own conditions, and those that tell of the past.
const NO_PARTS: &[&str] = &["conditions", "history", "events", "revisions", "attempts"];

/// How many parts are looked at, so that the time for an object stays bounded.
const MOST_PARTS: usize = 10_000;

/// What the parts of a status say: the parents, ancestors and listeners of the Gateway API, and every other list or map
/// whose entries have conditions of their own, or phases.
fn parts(o: &Reader<'_>, phases: bool) -> Vec<Verdict> {
    let parts =
        o.at("status").fields().filter(|(name, _)| !NO_PARTS.contains(name)).flat_map(|(name, part)| {
            let entries = part.entries();
            let what = match name {
                "parents" => "parent",
                "ancestors" => "ancestor",
                "listeners" => "listener",
                name => name,
            };
            let parts = if entries.is_empty() { vec![part] } else { entries };
            parts.into_iter().filter(Reader::is_map).map(move |part| (what, part))
        });
    let mut looked_at = 0;
    let mut verdicts: Vec<_> = parts
        .take(MOST_PARTS)
        .inspect(|_| looked_at += 1)
        .filter_map(|(what, part)| {
            let conditions = Conditions::at(o, &part);
            let verdict =
                conditions.stalled().or_else(|| conditions.ready(o)).or_else(|| conditions.known(o));
            let verdict = verdict.or_else(|| phase::judge(o, &part).filter(|_| phases))?;
            let name = ["parentRef.name", "ancestorRef.name", "name"]
                .into_iter()
                .map(|path| part.text(path))
                .find(|name| !name.is_empty())
                .map(|name| format!(" {name}"))
                .unwrap_or_default();
            Some(verdict.about(&format!("{what}{name}")))
        })
        .collect();
    if looked_at == MOST_PARTS {
        verdicts.push(Verdict::unknown("TooManyParts", "its status has more parts than anybody looks at"));
    }
    verdicts
}

/// The worst of several verdicts; the first of equals.
pub(crate) fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Option<Verdict> {
    worst_by(verdicts, |verdict| verdict.state)
}

/// The worst of several things by their state; the first of equals.
fn worst_by<T>(things: impl IntoIterator<Item = T>, state: impl Fn(&T) -> State) -> Option<T> {
    things
        .into_iter()
        .reduce(|worst, next| if badness(state(&next)) > badness(state(&worst)) { next } else { worst })
}

fn badness(state: State) -> u8 {
    match state {
        State::Ready => 0,
        State::Suspended => 1,
        State::Unknown => 2,
        State::InProgress | State::Missing => 3,
        State::Terminating => 4,
        State::Failed => 5,
    }
}
