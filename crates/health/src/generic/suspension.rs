//! What suspends an object, and whether it counts against its group while it is suspended.

use bellwether_model::{State, Value};

use super::{
    intent::SUSPENDING,
    phase, polarity, replicas, status, witness,
    words::{is_at_rest, tells_suspension, words},
};
use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

/// Last word of a flag in the status by which a controller confirms that an object is suspended.
const SUSPENDED: &[&str] = &["hibernated", "pause", "paused", "suspended"];

/// By a field of the spec.
pub(super) fn by_spec(o: &Reader<'_>) -> Option<Verdict> {
    let field = SUSPENDING.iter().find(|field| o.flag(field))?;
    let verdict = Verdict::suspended(reasons::SUSPENDED, format!("{field}=true"));
    let blocks = is_unavailable(o, &verdict, true);
    Some(verdict.blocks(blocks))
}

/// By a flag with which the controller confirms that it has suspended the object.
pub(super) fn by_status(o: &Reader<'_>) -> Option<Verdict> {
    let suspended = |(name, field): &(&str, Reader<'_>)| {
        let is_flag = words(name).last().is_some_and(|last| SUSPENDED.contains(&last.as_str()));
        is_flag && matches!(field.raw(), Some(Value::Bool(true)))
    };
    let (name, field) = o.at("status").fields().find(suspended)?;
    field.value();
    let verdict = Verdict::suspended(reasons::SUSPENDED, format!("status.{name}=true"));
    let blocks = if words(name).last().is_some_and(|last| is_at_rest(last)) {
        has_failed(o)
    } else {
        is_unavailable(o, &verdict, true)
    };
    Some(verdict.blocks(blocks))
}

/// Whether a suspended object of which nothing should run had failed before, or contradicts itself.
pub(crate) fn has_failed(o: &Reader<'_>) -> bool {
    failure(o).is_some_and(|failed| {
        let words = words(&failed.reason);
        // What should not run need not exist: `VMINotExists`.
        !words.ends_with(&["not".to_owned(), "exists".to_owned()])
    })
}

/// What a suspended object reports as failed or contradictory.
fn failure(o: &Reader<'_>) -> Option<Verdict> {
    let failed = |verdict: &Verdict| verdict.state == State::Failed;
    status::evaluate(o).filter(failed).or_else(|| witness::contradiction(o).filter(failed)).or_else(|| {
        let contradicted = o.contradicted(polarity::is_known)?;
        Some(Verdict::unknown(reasons::CONTRADICTORY_CONDITIONS, contradicted.message_or_reason()))
    })
}

/// Whether what runs of a suspended object is not available. `suspended` is the verdict on it, `by_spec` whether a
/// field of the spec suspends it: then its phase says how far it was.
pub(crate) fn is_unavailable(o: &Reader<'_>, suspended: &Verdict, by_spec: bool) -> bool {
    if failure(o).is_some() {
        return true;
    }
    if phase::runs_to_completion(o) || words(&suspended.reason).iter().any(|word| is_at_rest(word)) {
        return false;
    }
    let conditions: Vec<_> = ["Ready", "Available"].iter().filter_map(|kind| o.condition(kind)).collect();
    let by_suspension = |condition: &Condition<'_>| {
        let reason = condition.reason();
        tells_suspension(reason) || (!reason.is_empty() && reason == suspended.reason)
    };
    if conditions.iter().any(|condition| !condition.is_true() && !by_suspension(condition)) {
        return true;
    }
    let in_progress = || status::evaluate(o).is_some_and(|verdict| verdict.state == State::InProgress);
    match replicas::are_ready(o) {
        Some(false) => true,
        None if by_spec && conditions.is_empty() && in_progress() => true,
        _ => witness::is_short(o),
    }
}
