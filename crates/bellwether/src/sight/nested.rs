//! Groups that are members of others: they are as the engine sees them, not as somebody last wrote.

use std::collections::HashMap;

use bellwether_engine::{
    Effect, Engine, Event, FeedId, Group, Kind, Name, News, OperatorCondition, OperatorFacts, Seen,
};
use bellwether_health::Verdict;
use jiff::Timestamp;

use super::is_application;

/// The groups that were seen.
#[derive(Default)]
pub(super) struct Nested {
    feeds: HashMap<Kind, FeedId>,
    seen: HashMap<(FeedId, Name), Box<Seen>>,
    /// Those that count one another and come to no end: of them nobody can tell how they are.
    pub(super) restless: Vec<(Kind, Name)>,
}

impl Nested {
    /// The engine follows a kind.
    pub(super) fn follow(&mut self, feed: FeedId, kind: &Kind) {
        if is_group(kind) {
            self.feeds.insert(kind.clone(), feed);
        }
    }

    /// The engine is told this.
    pub(super) fn hear(&mut self, feed: FeedId, news: &News) {
        if self.feeds.values().any(|known| *known == feed) {
            match news {
                News::Seen(name, seen) => drop(self.seen.insert((feed, name.clone()), seen.clone())),
                News::Gone(name) => drop(self.seen.remove(&(feed, name.clone()))),
                News::Listing => self.seen.retain(|(known, _), _| *known != feed),
                News::Served(_) | News::Unreadable(_) | News::PutBack | News::Listed => {}
            }
        }
    }

    /// Tells the engine of those among its groups that others count how they are by its own account, from the inside out,
    /// until it knows. Gives back what follows from that.
    pub(super) fn settle(&mut self, engine: &mut Engine, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.restless.clear();
        for round in 0.. {
            let groups = engine.groups(now);
            let counts_some = |group: &Group| group.members.iter().any(|member| is_group(&member.kind));
            if !groups.iter().any(counts_some) {
                break;
            }
            let corrected = groups.iter().filter_map(|group| Some((group, self.correct(group)?)));
            let (restless, events): (Vec<_>, Vec<_>) = corrected.unzip();
            if events.is_empty() {
                break;
            }
            effects.extend(engine.step(now, events));
            // Each round is right about those that count only what the one before was right about: there are never more
            // rounds than groups, unless some of them count one another.
            if round >= groups.len() {
                self.restless =
                    restless.iter().map(|group| (group.kind.clone(), group.name.clone())).collect();
                break;
            }
        }
        effects
    }

    /// What the engine has to be told of a group, if it was told otherwise.
    fn correct(&mut self, group: &Group) -> Option<Event> {
        let feed = *self.feeds.get(&group.kind)?;
        let seen = self.seen.get_mut(&(feed, group.name.clone()))?;
        let verdict = verdict_on(group, &seen.facts.verdict)?;
        let operator = seen.facts.operator.as_deref().map(|facts| Box::new(as_operator(group, facts)));
        if (&seen.facts.verdict, &seen.facts.operator) == (&verdict, &operator) {
            return None;
        }
        (seen.facts.verdict, seen.facts.operator) = (verdict, operator);
        Some(Event::Feed(feed, News::Seen(group.name.clone(), seen.clone())))
    }
}

/// Whether objects of a kind are groups of others.
pub(crate) fn is_group(kind: &Kind) -> bool {
    is_application(kind) || kind.is_rollup()
}

/// The verdict on a group as the engine sees it, in place of that on what is stored.
pub(crate) fn verdict_on(group: &Group, stored: &Verdict) -> Option<Verdict> {
    let says = group.deciding()?;
    Some(Verdict {
        state: group.state,
        progress: group.progress.unwrap_or_default(),
        reason: says.reason.to_string().into(),
        message: says.message.to_string().into(),
        since: group.since,
        later: None,
        ..stored.clone()
    })
}

/// What is said of a group in the words of operators. What is no Rollup does not speak so, and stays as it was read.
fn as_operator(group: &Group, before: &OperatorFacts) -> OperatorFacts {
    if !group.is_rollup() {
        return before.clone();
    }
    let conditions = group.conditions.iter().filter(|condition| condition.kind != "Resolved");
    let conditions = conditions.map(|condition| OperatorCondition {
        kind: condition.kind,
        status: condition.says.status,
        reason: condition.says.reason.as_ref().into(),
        message: condition.says.message.as_ref().into(),
        since: group.since,
        observed_generation: before.generation,
    });
    OperatorFacts { conditions: conditions.collect(), ..before.clone() }
}
