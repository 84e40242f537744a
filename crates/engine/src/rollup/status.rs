//! Conditions and status of a Rollup. `statuses` is cheap and runs at each evaluation; `statements` adds
//! reasons and messages when a write is due or a query asks.

use bellwether_api::{
    ConditionStatus::{self, False, True},
    RollupComponentStatus, RollupStatus,
};
use bellwether_conditions::{Class, Damped, Policy, SourceText, Statement, Tally, merge_as, message};
use bellwether_model::text::{legal_reason, one_line};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING, RESOLVED, UPGRADEABLE},
    deciding_condition::deciding_type,
    feeds::{Feed, Feeds},
    group_state,
    id::GroupKind,
    members::MemberId,
    planted::Bug,
    publication::{ConditionSet, Recorded, StateInStatus},
    reasons::rollup as reasons,
    stored_condition::{self, ConditionShape, MESSAGE_BUDGET, StoredCondition},
};

use super::{
    component_entry::{ComponentEntry, Target, spec_path},
    component_report::{Absence, ComponentReport},
    component_reports::ComponentKey,
    rollup_state::{Evaluation, Progressing, RollupState},
};

/// In `status.components`.
const MAX_COMPONENTS: usize = 100;
/// In `status.components`.
const MAX_BYTES: usize = 40 << 10;
/// In bytes, for each component.
const MAX_COMPONENT_MESSAGE: usize = 1024;

pub(super) const CONDITIONS: ConditionSet = ConditionSet {
    own: &[AVAILABLE, PROGRESSING, DEGRADED, UPGRADEABLE, RESOLVED],
    recorded: &[
        Recorded::State(StateInStatus {
            last_event: |status| status.last_event.clone(),
            message: deciding_message,
        }),
        Recorded::Condition(UPGRADEABLE, None),
    ],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

/// Of the most significant bad condition: it names the components that decide.
fn deciding_message(conditions: &[StoredCondition]) -> Option<&str> {
    let type_ = deciding_type(|type_| stored_condition::status(conditions, type_));
    stored_condition::find(conditions, type_)?.message.as_deref()
}

/// `None` for conditions that do not apply.
pub(super) fn statuses(
    rollup: &RollupState,
    evaluation: &Evaluation,
    feeds: &Feeds,
) -> [(&'static str, Option<ConditionStatus>); 5] {
    let triple = evaluation.triple();
    let upgradeable = || rollup.reports.upgradeable.status(&rollup.policies().upgradeable);
    let resolved = if problems(rollup, feeds).next().is_none() { True } else { False };
    [
        (AVAILABLE, Some(triple.available)),
        (PROGRESSING, Some(triple.progressing)),
        (DEGRADED, Some(triple.degraded)),
        (UPGRADEABLE, rollup.spec.upgradeable.then(upgradeable)),
        (RESOLVED, Some(resolved)),
    ]
}

/// The same with reasons and messages.
pub(super) fn statements(
    rollup: &RollupState,
    evaluation: &Evaluation,
    feeds: &Feeds,
) -> [(&'static str, Option<Statement>); 5] {
    let (policies, reports) = (rollup.policies(), &rollup.reports);
    let condition = |policy: &Policy,
                     tally: &Tally<ComponentKey>,
                     damped: Damped,
                     which: fn(&ComponentReport) -> ReasonAndMessage| {
        let Damped { class, until, .. } = damped;
        let text_of = |key: &ComponentKey| source_text(rollup, feeds, key, which);
        let mut statement = merge_as(class, policy, tally, text_of);
        // The message describes an issue that the status does not show yet.
        if let Some(until) = until {
            let mut message = format!("not reported before {until}: ");
            let rest = Policy { budget: policy.budget.saturating_sub(message.len()), ..policy.clone() };
            message += &merge_as(Some(Class::Issue), &rest, tally, text_of).message;
            statement.message = message.into();
        }
        if Bug::UseFirstReason.is_planted()
            && let Some(first) = class.and_then(|class| tally.keys(class).next())
        {
            statement.reason = legal_reason(text_of(first).reason).into_owned().into();
        }
        statement
    };
    let available = condition(&policies.available, &reports.available, evaluation.available, |report| {
        ReasonAndMessage::of(&report.available)
    });
    let degraded = condition(&policies.degraded, &reports.degraded, evaluation.degraded, |report| {
        ReasonAndMessage::of(&report.degraded)
    });
    let progressing = match evaluation.progressing {
        Progressing::InterventionRequired => requires_intervention(rollup, feeds),
        Progressing::Terminating => terminating(rollup, feeds),
        Progressing::As(class) => {
            let damped = Damped::immediate(class);
            condition(&policies.progressing, &reports.progressing, damped, |report| {
                ReasonAndMessage::of(&report.progressing)
            })
        }
    };
    let upgradeable = rollup.spec.upgradeable.then(|| {
        let damped = Damped::immediate(reports.upgradeable.worst());
        condition(&policies.upgradeable, &reports.upgradeable, damped, |report| {
            report.upgradeable.as_ref().map(ReasonAndMessage::of).unwrap_or_default()
        })
    });
    [
        (AVAILABLE, Some(available)),
        (PROGRESSING, Some(progressing)),
        (DEGRADED, Some(degraded)),
        (UPGRADEABLE, upgradeable),
        (RESOLVED, Some(resolved(rollup, feeds))),
    ]
}

#[derive(Default)]
struct ReasonAndMessage(String, String);

impl ReasonAndMessage {
    fn of(contribution: &bellwether_conditions::Contribution<'_>) -> Self {
        Self(contribution.reason.clone().into_owned(), contribution.message.clone().into_owned())
    }
}

/// What a message says about a component.
fn source_text<'a>(
    rollup: &RollupState,
    feeds: &Feeds,
    key: &ComponentKey,
    which: fn(&ComponentReport) -> ReasonAndMessage,
) -> SourceText<'a> {
    let name = format!("{}:", rollup.reports.display(key)).into();
    let ReasonAndMessage(reason, message) =
        rollup.report(key.member_id, feeds).as_ref().map(which).unwrap_or_default();
    SourceText { name, reason: reason.into(), message: message.into() }
}

fn terminating(rollup: &RollupState, feeds: &Feeds) -> Statement {
    let message = group_state::deletion_message(feeds, &GroupKind::bellwether("Rollup"), &rollup.name);
    Statement::new(True, reasons::TERMINATING, message)
}

/// Under `Matrix`, such a component decides, whatever the others report.
fn requires_intervention(rollup: &RollupState, feeds: &Feeds) -> Statement {
    let tally = &rollup.reports.requiring_intervention;
    let which = |report: &ComponentReport| {
        let ReasonAndMessage(reason, _) = ReasonAndMessage::of(&report.progressing);
        let ReasonAndMessage(why, message) = ReasonAndMessage::of(&report.degraded);
        ReasonAndMessage(
            reason,
            format!("requires manual intervention: {}", if message.is_empty() { why } else { message }),
        )
    };
    let items = tally.keys(Class::Issue).map(|key| {
        let text = source_text(rollup, feeds, key, which);
        (text.name, text.message)
    });
    let text = message(items, tally.len(), MESSAGE_BUDGET);
    let latest = tally.latest(Class::Issue).map(|key| source_text(rollup, feeds, key, which).reason);
    Statement::new(False, legal_reason(latest.unwrap_or_default()).into_owned(), text)
}

/// Everything that makes Resolved False: reason, subject and text.
fn problems<'a>(
    rollup: &'a RollupState,
    feeds: &'a Feeds,
) -> impl Iterator<Item = (&'static str, String, String)> + 'a {
    let invalid_entries = rollup
        .invalid_entries
        .iter()
        .map(|invalid| (invalid.reason, invalid.spec_path.clone(), invalid.text.clone()));
    let kinds = rollup.kind_feeds.iter().filter_map(|(kind, feed)| {
        let why = feeds.get(*feed)?.unreadable.as_ref()?;
        Some((why.reason(), kind.to_string(), format!("{why}{}", why.remedy(kind))))
    });
    let entries = rollup.entries.iter().filter_map(|entry| {
        let (reason, text) = problem(entry, feeds.get(entry.feed)?)?;
        Some((reason, spec_path(entry.index), text))
    });
    let cycles = rollup.cycle.iter().map(|name| {
        let text = "component cycle: remove one of the two Rollups from the components of the other";
        (reasons::COMPONENT_CYCLE, format!("Rollup/{name}"), text.to_owned())
    });
    invalid_entries.chain(kinds).chain(entries).chain(cycles)
}

/// Whether an entry fits the scope of its kind and matches anything.
fn problem(entry: &ComponentEntry, feed: &Feed) -> Option<(&'static str, String)> {
    let kind = &entry.kind;
    let is_namespaced = feed.served.as_ref().map(|served| served.namespaced);
    let in_namespace = match &entry.target {
        Target::Named(name) => !name.namespace.is_empty(),
        Target::Selected { namespace, .. } => namespace.is_some(),
    };
    match (is_namespaced, in_namespace, &entry.target, &entry.absence) {
        (Some(false), true, ..) => {
            Some((reasons::CLUSTER_SCOPED, format!("{kind} is cluster-scoped: remove the namespace")))
        }
        (Some(true), false, Target::Named(name), _) => Some((
            reasons::NAMESPACE_REQUIRED,
            format!("{kind} is namespaced: set the namespace of {}", name.name),
        )),
        (_, _, Target::Selected { text, .. }, Some(Absence::NoObjectsSelected)) => {
            Some((reasons::NO_OBJECTS_SELECTED, format!("no {kind} matches selector {text}")))
        }
        _ => None,
    }
}

fn resolved(rollup: &RollupState, feeds: &Feeds) -> Statement {
    let problems: Vec<_> = problems(rollup, feeds).collect();
    let Some((reason, ..)) = problems.first() else {
        return Statement::new(True, reasons::ALL_KINDS_RESOLVED, "All kinds resolved");
    };
    let (reason, count) = (*reason, problems.len());
    let items = problems.into_iter().map(|(_, what, text)| (format!("{what}:"), text));
    Statement::new(False, reason, message(items, count, MESSAGE_BUDGET))
}

pub(super) fn render(rollup: &RollupState, feeds: &Feeds, now: Timestamp) -> RollupStatus {
    let evaluation = rollup.evaluate(now);
    let triple = evaluation.triple();
    let statements = statements(rollup, &evaluation, feeds);
    let placeholders = rollup.entries.iter().enumerate().filter(|(_, entry)| entry.absence.is_some());
    let placeholders =
        placeholders.filter(|(index, _)| !rollup.is_component(MemberId::Placeholder(*index))).count();
    let placeholders =
        placeholders + rollup.invalid_entries.iter().filter(|invalid| invalid.counted_kind.is_some()).count();
    let count = rollup.members.total() - placeholders;
    let state = rollup.state(triple);
    RollupStatus {
        observed_generation: Some(rollup.publication.generation),
        conditions: rollup.publication.conditions(statements, now).into_iter().map(Into::into).collect(),
        meaning: Some(triple.meaning().into_owned()),
        health: Some(triple.health()),
        state: Some(state),
        components: components(rollup, feeds),
        component_count: i32::try_from(count).ok(),
        last_event: rollup.publication.last_event(state, now),
    }
}

fn components(rollup: &RollupState, feeds: &Feeds) -> Vec<RollupComponentStatus> {
    let mut bytes_left = MAX_BYTES;
    let component_status = |member_id: MemberId| {
        let (report, entry) = (rollup.report(member_id, feeds)?, rollup.members.get(member_id)?);
        let (triple, most_significant) = (report.triple(), report.most_significant());
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Some(RollupComponentStatus {
            group: (*entry.kind.group).into(),
            kind: (*entry.kind.kind).into(),
            namespace: some(&entry.name.namespace),
            name: (*entry.name.name).into(),
            available: triple.available,
            progressing: triple.progressing,
            degraded: triple.degraded,
            upgradeable: report
                .upgradeable
                .as_ref()
                .filter(|_| rollup.spec.upgradeable)
                .map(|contribution| contribution.status),
            reason: some(&legal_reason(&*most_significant.reason)),
            message: some(&one_line(&*most_significant.message, MAX_COMPONENT_MESSAGE)),
            since: entry.since.map(Time),
            presence: rollup.presence(member_id),
        })
    };
    rollup
        .reports
        .worst_first()
        .filter(|member_id| rollup.is_component(*member_id))
        .filter_map(component_status)
        .take(MAX_COMPONENTS)
        .take_while(|component| {
            let size = serde_json::to_string(component).map_or(usize::MAX, |text| text.len());
            let fits = size <= bytes_left;
            bytes_left = bytes_left.saturating_sub(size);
            fits
        })
        .collect()
}
