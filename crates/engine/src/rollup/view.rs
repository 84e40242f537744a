//! Answers queries about Rollups: the view with all components, and the summary without them.

use bellwether_api::{ConditionStatus, RollupHealth, RollupSpec, State};
use bellwether_conditions::Statement;
use jiff::Timestamp;

use crate::{
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING},
    facts::Facts,
    feeds::Feeds,
    group_ref::GroupRef,
    group_state,
    id::{GroupKind, NamespacedName},
    members::{MemberEntry, MemberId},
    planted::Bug,
    stats::GroupSample,
    view::{
        Condition, Detail, Group, GroupRelation, GroupStatus, Member, Relation, ReportedConditions,
        StandsFor, StatusSummary,
    },
};

use super::{
    Rollups,
    component_entry::{self, ComponentEntry, Target},
    rollup_state::{Evaluation, RollupState},
    status,
    triple::Triple,
};

/// Invalid entries of a spec, as path and error. `name` is the name of the Rollup.
pub fn invalid_components(name: &str, spec: &RollupSpec) -> Vec<(String, String)> {
    let (_, invalid_entries) = component_entry::parse(name, spec);
    invalid_entries.into_iter().map(|invalid| (invalid.spec_path, invalid.text)).collect()
}

impl Rollups {
    /// In no particular order.
    pub(super) fn views(&self, feeds: &Feeds, now: Timestamp) -> Vec<Group> {
        let known = self.all.iter().filter(|rollup| rollup.is_known(feeds));
        known.map(|rollup| view(rollup, feeds, now)).collect()
    }

    /// `None` if there is no such Rollup.
    pub(super) fn status_summary(
        &self,
        group: &GroupRef,
        feeds: &Feeds,
        now: Timestamp,
    ) -> Option<GroupStatus> {
        let rollup = self.all.named(group)?;
        let (triple, state, conditions) =
            if rollup.is_known(feeds) && !Bug::AnswerWithStoredStatus.is_planted() {
                let evaluation = rollup.evaluate(now);
                let triple = evaluation.triple();
                (triple, rollup.state(triple), statements(rollup, &evaluation, feeds))
            } else {
                // A relist is in progress, so components may be from two points in time. Fall back to the
                // published conditions, if they match the last evaluation.
                match rollup
                    .publication
                    .last_published()
                    .and_then(|published| Some((as_published(&published)?, published)))
                {
                    Some((triple, published)) => {
                        let stored = rollup.publication.stored_state();
                        (triple, stored.unwrap_or_else(|| rollup.state(triple)), published)
                    }
                    None => return Some(GroupStatus::waiting_for(rollup.waiting_for(feeds))),
                }
            };
        Some(GroupStatus::Known(Box::new(StatusSummary {
            kind: GroupKind::bellwether("Rollup"),
            name: rollup.name.clone(),
            healthy: triple.health() == RollupHealth::Healthy && !rollup.deleting,
            state,
            since: since(rollup, feeds, state, triple),
            conditions,
            meaning: Some(triple.meaning().into_owned()),
        })))
    }

    /// Rollups by health: Healthy, Warning, Error. Without those that are not evaluated yet.
    pub(super) fn by_health(&self) -> [usize; 3] {
        [RollupHealth::Healthy, RollupHealth::Warning, RollupHealth::Error].map(|health| {
            let evaluated = self.all.iter().filter_map(|rollup| rollup.last_evaluated);
            evaluated.filter(|triple| triple.health() == health).count()
        })
    }

    pub(super) fn all_claims(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        facts: &Facts,
    ) -> Vec<GroupRelation> {
        let relation = |rollup: &RollupState| {
            let matches =
                |entry: &&ComponentEntry| entry.kind == *kind && entry.target.matches(name, &facts.labels);
            let mut entries = rollup.entries.iter().filter(matches).peekable();
            entries.peek()?;
            let is_named = entries.any(|entry| matches!(entry.target, Target::Named(_)));
            let relation = if is_named { Relation::Names } else { Relation::Selects };
            let kind = GroupKind::bellwether("Rollup");
            Some(GroupRelation { kind, name: rollup.name.clone(), relation, clusters: Vec::new() })
        };
        let others = self.all.iter().filter(|rollup| *facts.uid != *rollup.uid());
        let mut relations: Vec<_> = others.filter_map(relation).collect();
        relations.sort_by(|a, b| a.name.cmp(&b.name));
        relations
    }
}

pub(super) fn view(rollup: &RollupState, feeds: &Feeds, now: Timestamp) -> Group {
    let evaluation = rollup.evaluate(now);
    let triple = evaluation.triple();
    let condition = |(type_, statement): (&'static str, Statement)| Condition {
        type_,
        since: rollup.publication.since(type_, statement.status),
        statement,
        held_until: match type_ {
            AVAILABLE => evaluation.available.until,
            DEGRADED => evaluation.degraded.until,
            _ => None,
        },
    };
    let state = rollup.state(triple);
    Group {
        kind: GroupKind::bellwether("Rollup"),
        name: rollup.name.clone(),
        state,
        deleting: rollup.deleting,
        since: since(rollup, feeds, state, triple),
        conditions: statements(rollup, &evaluation, feeds).into_iter().map(condition).collect(),
        counts: rollup.members.counts(),
        progress: group_state::progress(rollup.members.progress(), state),
        members: rollup
            .reports
            .worst_first()
            .filter_map(|member_id| member(rollup, feeds, member_id, rollup.members.get(member_id)?))
            .collect(),
        clusters: None,
        detail: Detail::Rollup { health: triple.health(), meaning: triple.meaning().into_owned() },
    }
}

fn statements(
    rollup: &RollupState,
    evaluation: &Evaluation,
    feeds: &Feeds,
) -> Vec<(&'static str, Statement)> {
    let statements = status::statements(rollup, evaluation, feeds).into_iter();
    statements.filter_map(|(type_, statement)| Some((type_, statement?))).collect()
}

/// `None` if a condition is missing.
fn as_published(published: &[(&'static str, Statement)]) -> Option<Triple> {
    let status = |type_: &str| {
        published.iter().find(|(other, _)| *other == type_).map(|(_, statement)| statement.status)
    };
    Some(Triple {
        available: status(AVAILABLE)?,
        progressing: status(PROGRESSING)?,
        degraded: status(DEGRADED)?,
    })
}

pub(super) fn sample(rollup: &RollupState, feeds: &Feeds, triple: Triple) -> GroupSample {
    let state = rollup.state(triple);
    GroupSample::new(&rollup.publication, &rollup.members, state, since(rollup, feeds, state, triple))
}

/// For probes and the terminal alike. Since the first component was in this state; if none is, since the
/// health has its value.
fn since(rollup: &RollupState, feeds: &Feeds, state: State, triple: Triple) -> Option<Timestamp> {
    if rollup.deleting {
        return group_state::deleted_at(feeds, &GroupKind::bellwether("Rollup"), &rollup.name);
    }
    if matches!(state, State::Failed | State::Missing | State::InProgress) && rollup.members.count(state) > 0
    {
        return rollup.members.earliest(state);
    }
    health_since(rollup, triple)
}

/// Since when the health has its value, by the transition times of the conditions: the earliest of those that
/// make it bad, or the latest of all if it is good.
fn health_since(rollup: &RollupState, triple: Triple) -> Option<Timestamp> {
    let since = |(kind, status): &(&str, ConditionStatus)| rollup.publication.since(kind, *status);
    let all = triple.conditions();
    let deciding = all.iter().filter(|condition| triple.health() == Triple::of_one(condition).health());
    match triple.health() {
        RollupHealth::Healthy => all.iter().map(since).collect::<Option<Vec<_>>>()?.into_iter().max(),
        RollupHealth::Warning | RollupHealth::Error => deciding.filter_map(since).min(),
    }
}

fn member(rollup: &RollupState, feeds: &Feeds, member_id: MemberId, entry: &MemberEntry) -> Option<Member> {
    let report = rollup.report(member_id, feeds)?;
    let most_significant = report.most_significant();
    let stored = match member_id {
        MemberId::Object(id) => feeds.object(id),
        MemberId::Placeholder(_) => None,
    };
    let stands_for = match member_id {
        MemberId::Object(_) => StandsFor::Object,
        MemberId::Placeholder(index) => match rollup.entries.get(index).map(|entry| &entry.target) {
            Some(Target::Named(_)) => StandsFor::Object,
            Some(Target::Selected { .. }) => StandsFor::Selector,
            None => StandsFor::Entry,
        },
    };
    let Triple { available, progressing, degraded } = report.triple();
    let upgradeable = report
        .upgradeable
        .as_ref()
        .filter(|_| rollup.spec.upgradeable)
        .map(|contribution| contribution.status);
    let message = if most_significant.message.is_empty() {
        &most_significant.reason
    } else {
        &most_significant.message
    };
    Some(Member {
        kind: entry.kind.clone(),
        name: entry.name.clone(),
        cluster: None,
        stands_for,
        uid: stored.map(|stored| stored.facts.uid.clone()),
        state: entry.state,
        progress: entry.progress,
        reason: most_significant.reason.clone().into_owned(),
        message: message.clone().into_owned(),
        since: entry.since,
        // The operator decides, not a rule.
        rule: None,
        cause: None,
        component_conditions: Some(ReportedConditions { available, progressing, degraded, upgradeable }),
    })
}
