//! What the status of an object says, whatever its spec says.

use bellwether_model::State;

use super::{
    conditions::Conditions,
    phase, replicas,
    witness::{self, NOT_PARTS},
    words,
};
use crate::{
    read::Reader,
    reasons,
    verdict::{Rule, Verdict, worst},
};

/// By the status alone. `Ready` needs a witness that nothing contradicts.
pub(super) fn evaluate(o: &Reader<'_>) -> Option<Verdict> {
    let contradiction =
        |verdict: Option<Verdict>| verdict.map(|verdict| verdict.by(&Rule::generic("contradiction")));
    match witness(o) {
        Some(ready) if ready.state == State::Ready => {
            Some(contradiction(witness::contradiction(o)).unwrap_or(ready))
        }
        // A phase `Unknown` says nothing, and `Stopped` not why: what else the status says decides.
        Some(open)
            if open.reason == "Unknown"
                || (open.state == State::InProgress && words::is_halted(&open.reason)) =>
        {
            let failure = witness::contradiction(o).filter(|verdict| verdict.state == State::Failed);
            Some(contradiction(failure).unwrap_or(open))
        }
        Some(verdict) => Some(verdict),
        None => contradiction(witness::failure(o))
            .or_else(|| Some(witness::counters(o)?.by(&Rule::generic("replicas")))),
    }
}

/// By the conditions, the phase and the counters of the status.
fn witness(o: &Reader<'_>) -> Option<Verdict> {
    let conditions = Conditions::of(o);
    if let Some(verdict) = conditions.stalled() {
        return Some(verdict.by(&Rule::generic("stalled")));
    }
    if let Some(verdict) = conditions.ready(o) {
        return Some(verdict.by(&Rule::generic("ready")));
    }
    // A condition covers one aspect, a phase the whole object. Neither is complete: the worst decides.
    let whole = phase::evaluate(o, &o.at("status")).map(|verdict| verdict.by(&Rule::generic("phase")));
    // Steps of a kind that runs to completion may fail and be retried.
    let steps = whole.is_some() && phase::runs_to_completion(o);
    let aspects = conditions.known(o).into_iter().chain(parts(o, !steps));
    let aspects: Vec<_> = aspects.map(|verdict| verdict.by(&Rule::generic("conditions"))).collect();
    let step = whole.as_ref().is_some_and(|whole| aspects.is_empty() && phase::is_step(whole));
    let replicas = replicas::evaluate(o).map(|verdict| verdict.by(&Rule::generic("replicas")));
    match worst(whole.into_iter().chain(aspects)) {
        // Too few ready replicas override a Ready phase or condition.
        Some(ready) if ready.state == State::Ready => {
            let counted = replicas.filter(|_| replicas::has_ready_counter(o));
            match counted {
                Some(replicas) if step || replicas.state != State::Ready => Some(replicas),
                // A step says how far the object is.
                _ if step => Some(Verdict { state: State::InProgress, progress: 0, ..ready }),
                _ => Some(ready),
            }
        }
        Some(verdict) => Some(verdict),
        None => replicas,
    }
}

/// Bounds the time for one object.
const MAX_PARTS: usize = 10_000;

/// Verdicts on the parts of a status: parents, ancestors and listeners of the Gateway API, and entries of any
/// other list or map that have conditions or, with `phases`, a phase.
fn parts(o: &Reader<'_>, phases: bool) -> Vec<Verdict> {
    let parts =
        o.at("status").fields().filter(|(name, _)| !NOT_PARTS.contains(name)).flat_map(|(name, part)| {
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
    let mut evaluated = 0;
    let mut verdicts: Vec<_> = parts
        .take(MAX_PARTS)
        .inspect(|_| evaluated += 1)
        .filter_map(|(what, part)| {
            let conditions = Conditions::at(o, &part);
            let verdict =
                conditions.stalled().or_else(|| conditions.ready(o)).or_else(|| conditions.known(o));
            let verdict = verdict.or_else(|| phase::evaluate(o, &part).filter(|_| phases))?;
            let name = ["parentRef.name", "ancestorRef.name", "name"]
                .into_iter()
                .map(|path| part.text(path))
                .find(|name| !name.is_empty())
                .map(|name| format!(" {name}"))
                .unwrap_or_default();
            Some(verdict.about(&format!("{what}{name}")))
        })
        .collect();
    if evaluated == MAX_PARTS {
        let message = format!("too many entries in status, only the first {MAX_PARTS} are evaluated");
        verdicts.push(Verdict::unknown(reasons::TOO_MANY_STATUS_ENTRIES, message));
    }
    verdicts
}
