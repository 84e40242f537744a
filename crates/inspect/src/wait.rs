//! Waiting until a group is ready, or it is clear that it will not be: when that ends, and what is said on the way.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Result, ensure};
use bellwether_conditions::Statement;
use bellwether_engine::{Detail, Group, GroupKind, Member, NamespacedName, condition_types};
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{Screen, bar, columns, cut, first_items, how_long, printable, sign, style};
use jiff::{SignedDuration, Timestamp};

use crate::{
    observe::Observation,
    owner_tree::{causes, family_of, in_full, is_bad},
    status::{title, why},
};

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// All members are ready.
    Ready,
    /// All members of an Application have been acted on in their latest version.
    Settled,
    /// All named components and dependencies of an Application exist.
    Installed,
}

/// How long to wait, and for what.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    pub goal: Goal,
    /// The goal must have been reached for so long.
    pub stable: SignedDuration,
    /// Whether a failure is the end, or may mend itself until the time is up.
    pub fail_fast: bool,
    pub timeout: SignedDuration,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    Reached,
    Failed,
    TimedOut,
    CannotTell,
}

/// What is waited for, and how far that has come.
#[derive(Debug)]
pub struct WaitState {
    terms: WaitOptions,
    /// Since when it has been reached.
    reached: Option<SignedDuration>,
}

/// How it ended, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct WaitEnd {
    pub ending: WaitOutcome,
    pub says: String,
}

impl WaitState {
    /// Fails if a group such as this one has no such goal.
    pub fn new(group: &Group, terms: WaitOptions) -> Result<Self> {
        let api = if group.kind.is_own() { String::new() } else { format!(" of {}", group.kind.group) };
        ensure!(
            progress(terms.goal, group).is_some(),
            "{}s{api} have no such condition: wait for ready",
            group.kind.kind
        );
        Ok(Self { terms, reached: None })
    }

    /// Looks at the group after so long, or at what kind it was; and since when the cluster is silent, if it is. Gives back
    /// how it ended, if it did.
    pub fn look(
        &mut self,
        group: Result<&Group, &GroupKind>,
        elapsed: SignedDuration,
        silent: Option<Timestamp>,
    ) -> Option<WaitEnd> {
        let group = match group {
            Ok(group) => group,
            Err(kind) => {
                let says = format!("cannot tell: the {} was deleted", kind.kind);
                return Some(WaitEnd { ending: WaitOutcome::CannotTell, says });
            }
        };
        if group.state == State::Terminating {
            return Some(WaitEnd {
                ending: WaitOutcome::CannotTell,
                says: "cannot tell: it is being deleted".to_owned(),
            });
        }
        // Nobody knows whether it still is what it was.
        if silent.is_some() {
            self.reached = None;
            return None;
        }
        if progress(self.terms.goal, group) == Some(ConditionStatus::True) {
            let since = *self.reached.get_or_insert(elapsed);
            if elapsed.saturating_sub(since) < self.terms.stable {
                return None;
            }
            // Whoever asks for damping is content with it, and may want to know.
            let but = group.held_back().filter(|_| self.terms.goal == Goal::Ready);
            let but =
                but.map(|held| format!("; {}", first_items(&held.statement.message))).unwrap_or_default();
            let says = format!("{} after {}{but}", self.word(), in_short(since));
            return Some(WaitEnd { ending: WaitOutcome::Reached, says });
        }
        self.reached = None;
        let failed = self.terms.fail_fast && has_failed(group);
        failed.then(|| WaitEnd { ending: WaitOutcome::Failed, says: format!("failed: {}", why(group)) })
    }

    /// There is no more time, or no time will help.
    pub fn time_is_up(&self, group: &Group, for_ever: bool, silent: Option<Timestamp>) -> WaitEnd {
        if let Some(silent) = silent {
            let long = how_long(silent, Timestamp::now());
            let says = format!("cannot tell: the cluster has not been heard from for {long}");
            return WaitEnd { ending: WaitOutcome::CannotTell, says };
        }
        let when = if for_ever { String::new() } else { format!(" after {}", in_short(self.terms.timeout)) };
        let what = match (self.terms.goal, self.reached) {
            (_, Some(_)) => format!("it has not been so for {}", in_short(self.terms.stable)),
            (Goal::Ready, None) => why(group),
            (goal, None) => condition(goal, group).map(|says| says.message.to_string()).unwrap_or_default(),
        };
        let is_unknown = matches!(progress(self.terms.goal, group), None | Some(ConditionStatus::Unknown));
        match group.state {
            State::Failed if self.terms.goal == Goal::Ready => {
                WaitEnd { ending: WaitOutcome::Failed, says: format!("failed{when}: {what}") }
            }
            _ if is_unknown && self.reached.is_none() => {
                WaitEnd { ending: WaitOutcome::CannotTell, says: format!("cannot tell{when}: {what}") }
            }
            _ if for_ever => {
                let says = format!("not {}, and files do not change: {what}", self.word());
                WaitEnd { ending: WaitOutcome::TimedOut, says }
            }
            _ => WaitEnd {
                ending: WaitOutcome::TimedOut,
                says: format!("timed out{when}: still waiting for {what}"),
            },
        }
    }

    /// What is waited for, in a word.
    fn word(&self) -> &'static str {
        match self.terms.goal {
            Goal::Ready => "ready",
            Goal::Settled => "settled",
            Goal::Installed => "installed",
        }
    }
}

fn condition(goal: Goal, group: &Group) -> Option<&Statement> {
    let wanted = match goal {
        Goal::Ready => condition_types::READY,
        Goal::Settled => condition_types::SETTLED,
        Goal::Installed => condition_types::INSTALLED,
    };
    group.conditions.iter().find(|condition| condition.type_ == wanted).map(|condition| &condition.statement)
}

/// Whether the goal is reached; nothing if it is none of such a group. A Rollup has no condition that says all of it.
fn progress(goal: Goal, group: &Group) -> Option<ConditionStatus> {
    match (&group.detail, goal, group.state) {
        (Detail::Rollup { .. }, Goal::Ready, State::Ready) => Some(ConditionStatus::True),
        (Detail::Rollup { .. }, Goal::Ready, State::Unknown) => Some(ConditionStatus::Unknown),
        (Detail::Rollup { .. }, Goal::Ready, _) => Some(ConditionStatus::False),
        _ => condition(goal, group).map(|says| says.status),
    }
}

/// Whether it is in vain to wait any longer. Of a component that has failed, the operator of another one may take care.
fn has_failed(group: &Group) -> bool {
    match group.detail {
        Detail::Application { .. } => group.counts.failed > 0,
        Detail::Rollup { .. } => group.state == State::Failed,
    }
}

/// `38s`, `1m12s`, `2h05m`.
fn in_short(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// What a member of a group is called.
fn named(group: &Group, member: &Member) -> String {
    in_full(&member.kind, &member.name, member.stands_for, &group.name.namespace)
}

/// So many causes are told when it was in vain.
const MOST_CAUSES: usize = 3;

/// What holds up the members, a line each.
pub fn because(group: &Group, sight: &Observation) -> Result<String> {
    let (family, _) = family_of(group, sight, false)?;
    let mut text = String::new();
    for cause in causes(&family).iter().filter(|cause| cause.blocks.is_some()).take(MOST_CAUSES) {
        let more = if cause.more > 0 { format!(" (and {} more)", cause.more) } else { String::new() };
        let node = cause.node;
        let what = in_full(&node.kind, &node.name, node.stands_for, &group.name.namespace);
        let says = format!("{what}{more}: {}", node.message);
        let _ = writeln!(text, "because of {}", printable(&says));
    }
    Ok(text)
}

/// The bars: one for the whole, one for each member that is not ready.
pub fn page(group: &Group, elapsed: SignedDuration, screen: Screen) -> String {
    let seconds = elapsed.as_secs();
    let counts = &group.counts;
    let mut text = format!(
        "{}  {}  {}/{} ready  {}:{:02}\n",
        printable(&title(group)),
        bar(group.progress),
        counts.ready,
        counts.total,
        seconds / 60,
        seconds % 60,
    );
    let waits: Vec<_> = group.members.iter().filter(|member| is_bad(member.state)).collect();
    let name = |member: &Member| printable(&named(group, member)).into_owned();
    let width = waits.iter().map(|member| columns(&name(member))).max().unwrap_or(0);
    for member in &waits {
        let state = Some(member.state);
        let name = name(member);
        let padding = " ".repeat(width - columns(&name));
        let progress = Some(member.progress).filter(|_| member.state != State::Unknown);
        // Nobody says how far along a component of a Rollup is.
        let bar = match member.operator {
            Some(_) => format!("{:<11}", member.state.name()),
            None => format!("{:<14}", bar(progress)),
        };
        let used = 2 + 2 + width + 2 + columns(&bar) + 2;
        let says = printable(&member.message);
        let says = screen
            .width
            .map_or(says.clone(), |all| cut(&says, all.saturating_sub(used).max(20)).into_owned().into());
        let sign = sign(state).to_string();
        let _ = writeln!(text, "  {} {name}{padding}  {bar}  {says}", screen.paint(&sign, style(state)));
    }
    let fine = group.members.len() - waits.len();
    if fine > 0 {
        let _ = writeln!(
            text,
            "  {} {fine} {} fine",
            screen.paint("✓", style(Some(State::Ready))),
            if fine == 1 { "is" } else { "are" }
        );
    }
    text
}

/// What was last said, where each change is a line.
#[derive(Default)]
pub struct ProgressLog {
    whole: String,
    /// Each with its name.
    members: BTreeMap<(GroupKind, NamespacedName), (String, String)>,
}

impl ProgressLog {
    /// A line for whatever is not as it was.
    pub fn changes(&mut self, group: &Group, now: Timestamp) -> Vec<String> {
        let time = now.strftime("%H:%M:%S");
        let percent = group.progress.map(|progress| format!(" ({progress}%)")).unwrap_or_default();
        let mut lines = Vec::new();
        let whole = format!(
            "{} is {}, {}/{} ready",
            title(group),
            group.state.name(),
            group.counts.ready,
            group.counts.total
        );
        if self.whole != whole {
            lines.push(format!("{time} {}{percent}", printable(&whole)));
            self.whole = whole;
        }
        let mut members = BTreeMap::new();
        for member in &group.members {
            let key = (member.kind.clone(), member.name.clone());
            let says = format!("{} {}: {}", member.state.name(), member.reason, member.message);
            let name = named(group, member);
            let before = self.members.get(&key).map(|(_, says)| says);
            // What has been ready since the beginning is no news.
            if before != Some(&says) && (before.is_some() || is_bad(member.state)) {
                let state = format!("{} {}", sign(Some(member.state)), member.state.name());
                let says = format!("{name} {state}: {}", member.message);
                lines.push(format!("{time} {}{percent}", printable(&says)));
            }
            members.insert(key, (name, says));
        }
        for (_, (name, _)) in self.members.iter().filter(|(key, _)| !members.contains_key(key)) {
            lines.push(format!("{time} {} is gone", printable(name)));
        }
        self.members = members;
        lines
    }
}
