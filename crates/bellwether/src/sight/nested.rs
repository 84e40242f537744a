//! Groups that are members of others: they are as the engine sees them, not as somebody last wrote.

use std::collections::HashMap;

use bellwether_engine::{
    Effect, Engine, Event, FeedId, Group, Kind, Name, News, OperatorCondition, OperatorFacts, Seen,
};
use bellwether_health::Verdict;
use jiff::Timestamp;

use super::{eye::rollup, is_application};

/// So deep may groups be members of members. Those in a circle come to no end.
const DEEPEST: usize = 16;

/// The groups that were seen.
#[derive(Default)]
pub(super) struct Nested {
    feeds: HashMap<Kind, FeedId>,
    seen: HashMap<(FeedId, Name), Box<Seen>>,
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

    /// Tells the engine of those among its groups that others count how they are by its own account, from the inside out. Gives back what follows from that.
    pub(super) fn settle(&mut self, engine: &mut Engine, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..DEEPEST {
            let groups = engine.groups();
            let counts_some = |group: &Group| group.members.iter().any(|member| is_group(&member.kind));
            if !groups.iter().any(counts_some) {
                break;
            }
            let events: Vec<_> = groups.iter().filter_map(|group| self.correct(group)).collect();
            if events.is_empty() {
                break;
            }
            effects.extend(engine.step(now, events));
        }
        effects
    }

    /// What the engine has to be told of a group, if it was told otherwise.
    fn correct(&mut self, group: &Group) -> Option<Event> {
        let feed = *self.feeds.get(&group.kind)?;
        let seen = self.seen.get_mut(&(feed, group.name.clone()))?;
        let says = group.deciding()?;
        let verdict = Verdict {
            state: group.state,
            progress: group.progress.unwrap_or_default(),
            reason: says.reason.to_string().into(),
            message: says.message.to_string().into(),
            since: group.since,
            later: None,
            ..seen.facts.verdict.clone()
        };
        let operator = seen.facts.operator.as_deref().map(|facts| Box::new(as_operator(group, facts)));
        if (&seen.facts.verdict, &seen.facts.operator) == (&verdict, &operator) {
            return None;
        }
        (seen.facts.verdict, seen.facts.operator) = (verdict, operator);
        Some(Event::Feed(feed, News::Seen(group.name.clone(), seen.clone())))
    }
}

fn is_group(kind: &Kind) -> bool {
    is_application(kind) || *kind == rollup()
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
