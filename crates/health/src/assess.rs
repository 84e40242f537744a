//! The order in which rules are evaluated.

use std::borrow::Cow;

use bellwether_model::{Object, Plan, State};
use jiff::{SignedDuration, Timestamp};

use crate::{
    builtin,
    evidence::{Evidence, Trace},
    generation,
    generic::{self, polarity},
    read::{Condition, Contradicted, Reader},
    reasons,
    user::UserRules,
    verdict::{Rule, Source, Verdict},
};

/// What a verdict depends on besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time of evaluation. Some rules fail a condition only after a grace period.
    pub now: Timestamp,
    /// User rules. They take precedence over built-in and generic rules.
    pub rules: Option<&'a UserRules>,
    /// Whether built-in rules are evaluated. Without them, only user and generic rules are.
    pub builtin: bool,
    /// Whether the kind has a status subresource, if known from discovery. An object without a status of a
    /// kind without that subresource is `Ready`.
    pub has_status: Option<bool>,
}

impl Context<'_> {
    /// Built-in rules on, no user rules, no discovery.
    pub fn at(now: Timestamp) -> Self {
        Self { now, rules: None, builtin: true, has_status: None }
    }
}

/// A verdict with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The same as from [`assess`].
    pub verdict: Verdict,
    /// The fields that the rules read, in the order of reading.
    pub evidence: Vec<Evidence>,
}

/// Evaluates an object.
pub fn assess(object: &Object<'_>, context: &Context<'_>) -> Verdict {
    decide(object, &Reader::new(object, context.now, None, &Contradicted::default()), context)
}

/// Evaluates an object and records the fields that the rules read.
pub fn explain(object: &Object<'_>, context: &Context<'_>) -> Explained {
    let trace = Trace::default();
    let contradicted = Contradicted::default();
    let verdict = decide(object, &Reader::new(object, context.now, Some(&trace), &contradicted), context);
    Explained { verdict, evidence: trace.into_evidence() }
}

/// The fields that built-in and generic rules read. [`UserRules::add_fields_for`] adds those of user rules.
pub fn plan(group: &str, kind: &str) -> Plan {
    match builtin::find(group, kind) {
        Some(rule) => rule.plan(),
        None => Plan::identity().with_all(generic::READS),
    }
}

fn decide(object: &Object<'_>, reader: &Reader<'_>, context: &Context<'_>) -> Verdict {
    if reader.has("metadata.deletionTimestamp") {
        return terminating(reader);
    }
    if let Some(rule) = context.rules.and_then(|rules| rules.rule_for(object)) {
        return rule.evaluate(object, reader);
    }
    if context.builtin
        && let Some(rule) = builtin::find(object.group(), object.kind())
    {
        let id = Rule { source: Source::Builtin, id: Cow::Borrowed(rule.id) };
        let verdict = rule.evaluate(reader);
        // Rules need not check the generation: a stale status never makes an object Ready.
        let behind = || generation::reported_behind(reader).filter(|_| verdict.state == State::Ready);
        return unless_contradicted(reader, behind().unwrap_or(verdict).by(&id), rule.reads_alone());
    }
    if let Some(verdict) = generic::evaluate(reader) {
        return unless_contradicted(reader, verdict, false);
    }
    if context.has_status == Some(false) && !reader.has("status") {
        return Verdict::no_status_expected();
    }
    if let Some(verdict) = generic::unreported(reader) {
        return verdict;
    }
    let group = if object.group().is_empty() { "" } else { "." };
    Verdict::unknown(
        reasons::NO_RULE,
        format!(
            "no rule for {}{group}{}, and no known condition, phase or counter in its status",
            object.kind(),
            object.group()
        ),
    )
}

/// `Unknown` instead of `Ready` if a condition that matters is reported twice, with different status: one that the
/// rule has read, or, unless the rule `reads_alone`, one whose polarity is known.
fn unless_contradicted(reader: &Reader<'_>, verdict: Verdict, reads_alone: bool) -> Verdict {
    if verdict.state != State::Ready {
        return verdict;
    }
    match reader.contradicted(|kind| !reads_alone && polarity::is_known(kind)) {
        Some(contradicted) => {
            Verdict::unknown(reasons::CONTRADICTORY_CONDITIONS, contradicted.message_or_reason())
                .by(&verdict.rule)
        }
        None => verdict,
    }
}

/// Conditions of a Namespace that name what blocks its deletion.
const DELETION_BLOCKERS: &[&str] =
    &["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure"];

fn terminating(reader: &Reader<'_>) -> Verdict {
    let finalizers: Vec<_> = reader
        .items("metadata.finalizers")
        .filter_map(|finalizer| finalizer.value().and_then(|value| value.as_text()))
        .collect();
    let is_namespace = (reader.text("apiVersion"), reader.text("kind")) == ("v1", "Namespace");
    let conditions = if is_namespace { DELETION_BLOCKERS } else { &[] };
    let blocker = conditions.iter().find_map(|kind| reader.condition(kind).filter(Condition::is_true));
    let message = match (blocker, finalizers.as_slice()) {
        (Some(condition), _) => condition.message_or_reason(),
        (None, []) => "being deleted".to_owned(),
        (None, finalizers) => format!("waiting for finalizers: {}", finalizers.join(", ")),
    };
    Verdict::new(State::Terminating, reasons::DELETING, message)
        .since(deleted_at(reader))
        .by(&Rule::generic("deletion"))
}

/// The time of the delete request. `deletionTimestamp` is that time plus the grace period.
fn deleted_at(reader: &Reader<'_>) -> Option<Timestamp> {
    let deadline = reader.time("metadata.deletionTimestamp")?;
    let grace = SignedDuration::from_secs(reader.count("metadata.deletionGracePeriodSeconds"));
    deadline.checked_sub(grace).ok()
}
