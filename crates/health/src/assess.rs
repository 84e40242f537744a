//! Who decides: the first that applies.

use std::borrow::Cow;

use bellwether_model::{Object, Plan, State};
use jiff::{SignedDuration, Timestamp};

use crate::{
    builtin,
    evidence::{Evidence, Trace},
    generation, generic,
    read::{Condition, Reader},
    user::UserRules,
    verdict::{Rule, Source, Verdict},
};

/// What a verdict depends on besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: Timestamp,
    /// The rules that users wrote. They go before all others.
    pub rules: Option<&'a UserRules>,
    /// Whether the built-in rules take part. Without them only the generic rules decide.
    pub builtin: bool,
    /// Whether the kind has a status subresource, where discovery has told. A kind that has none, and an object without a
    /// status, has nothing to wait for.
    pub has_status: Option<bool>,
}

impl Context<'_> {
    /// With the built-in rules, none of users, and nothing known from discovery.
    pub fn at(now: Timestamp) -> Self {
        Self { now, rules: None, builtin: true, has_status: None }
    }
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The verdict.
    pub verdict: Verdict,
    /// The fields that the rules read, in their order.
    pub evidence: Vec<Evidence>,
}

/// Says how an object is.
pub fn assess(object: &Object<'_>, context: &Context<'_>) -> Verdict {
    decide(object, &Reader::new(object, context.now, None), context)
}

/// Says how an object is, and on which fields that rests.
pub fn explain(object: &Object<'_>, context: &Context<'_>) -> Explained {
    let trace = Trace::default();
    let verdict = decide(object, &Reader::new(object, context.now, Some(&trace)), context);
    Explained { verdict, evidence: trace.into_evidence() }
}

/// What must be kept of the objects of a kind for [`assess`] to judge them by our own rules; [`UserRules::keep_for`]
/// adds what those of users need.
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
        return rule.judge(object, reader);
    }
    if context.builtin
        && let Some(rule) = builtin::find(object.group(), object.kind())
    {
        let id = Rule { source: Source::Builtin, id: Cow::Borrowed(rule.id) };
        let verdict = rule.judge(reader);
        // Whatever a rule looks at: nothing is ready that its controller has not seen.
        let behind = || generation::reported_behind(reader).filter(|_| verdict.state == State::Ready);
        return behind().unwrap_or(verdict).by(&id);
    }
    if let Some(verdict) = generic::judge(reader) {
        return verdict;
    }
    if context.has_status == Some(false) && !reader.has("status") {
        return Verdict::no_status_expected();
    }
    if let Some(verdict) = generic::unreported(reader) {
        return verdict;
    }
    let group = if object.group().is_empty() { "" } else { "." };
    Verdict::unknown(
        "NoRule",
        format!(
            "no rule knows {}{group}{}, and its status has no condition, phase or counter that speaks for itself",
            object.kind(),
            object.group()
        ),
    )
}

/// The conditions by which a namespace says what is in the way of its deletion.
const IN_THE_WAY: &[&str] =
    &["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure"];

fn terminating(reader: &Reader<'_>) -> Verdict {
    let finalizers: Vec<_> = reader
        .items("metadata.finalizers")
        .filter_map(|finalizer| finalizer.value().and_then(|value| value.as_text()))
        .collect();
    let is_namespace = (reader.text("apiVersion"), reader.text("kind")) == ("v1", "Namespace");
    let conditions = if is_namespace { IN_THE_WAY } else { &[] };
    let in_the_way = conditions.iter().find_map(|kind| reader.condition(kind).filter(Condition::is_true));
    let message = match (in_the_way, finalizers.as_slice()) {
        (Some(condition), _) => format!("it is being deleted: {}", condition.says()),
        (None, []) => "it is being deleted".to_owned(),
        (None, finalizers) => format!("it is being deleted and waits for {}", finalizers.join(", ")),
    };
    Verdict::new(State::Terminating, "BeingDeleted", message)
        .since(deleted_at(reader))
        .by(&Rule::generic("deletion"))
}

/// When somebody deleted it. The timestamp says by when it should be gone, which is a grace period later.
fn deleted_at(reader: &Reader<'_>) -> Option<Timestamp> {
    let gone_by = reader.time("metadata.deletionTimestamp")?;
    let grace = SignedDuration::from_secs(reader.count("metadata.deletionGracePeriodSeconds"));
    gone_by.checked_sub(grace).ok()
}
