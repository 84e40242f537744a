//! `bellwether wait`: when it ends, and what it prints.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use anyhow::{Result, ensure};
use bellwether_conditions::Statement;
use bellwether_engine::{Detail, Group, GroupKind, Member, NamespacedName, condition_types, ready};
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{
    ROOM_FOR_BARS, Screen, bar, columns, cut, cut_middle, first_items, how_long, percent, printable, sign,
    style,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    observe::Observation,
    owner_tree::{ObjectNames, causes, is_bad, read_tree, reason_and_message},
    status::{after_colon, counts, heading, why},
};

/// The condition to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    Ready,
    /// Only Applications have it.
    Settled,
    /// Only Applications have it.
    Installed,
}

#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    pub goal: Goal,
    /// How long the condition must have been met.
    pub stable: SignedDuration,
    /// End at the first failure.
    pub fail_fast: bool,
    pub timeout: SignedDuration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    Reached,
    Failed,
    TimedOut,
    CannotTell,
}

#[derive(Debug)]
pub struct WaitState {
    options: WaitOptions,
    /// `Application shop/checkout`, which begins the last line: a CI log may have several.
    heading: String,
    /// When the condition was met, as time elapsed since the start.
    reached: Option<SignedDuration>,
}

/// The last line, and the outcome that sets the exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct WaitEnd {
    pub outcome: WaitOutcome,
    pub text: String,
}

impl WaitState {
    /// Fails if groups of this kind do not have the condition.
    pub fn new(group: &Group, options: WaitOptions) -> Result<Self> {
        let kind =
            if group.kind.is_bellwether() { group.kind.kind.to_string() } else { group.kind.to_string() };
        ensure!(
            status_of(options.goal, group).is_some(),
            "{kind} has no condition {}. Use --for ready",
            condition_type(options.goal)
        );
        Ok(Self { options, heading: heading(&group.kind, &group.name), reached: None })
    }

    /// Checks the group, or the kind of a group that was deleted. `silent_since` is set while the API server
    /// does not respond.
    pub fn check(
        &mut self,
        group: Result<&Group, &GroupKind>,
        elapsed: SignedDuration,
        silent_since: Option<Timestamp>,
    ) -> Option<WaitEnd> {
        let Ok(group) = group else { return Some(self.end(WaitOutcome::CannotTell, "unknown: deleted")) };
        if group.deleting {
            return Some(self.end(WaitOutcome::CannotTell, "unknown: being deleted"));
        }
        // The last known state may be stale.
        if silent_since.is_some() {
            self.reached = None;
            return None;
        }
        if status_of(self.options.goal, group) == Some(ConditionStatus::True) {
            let since = *self.reached.get_or_insert(elapsed);
            if elapsed.saturating_sub(since) < self.options.stable {
                return None;
            }
            let held_back = group.held_back().filter(|_| self.options.goal == Goal::Ready);
            let remark = held_back
                .map(|held| format!("; {}", first_items(&held.statement.message)))
                .unwrap_or_default();
            let text = format!("{} after {}{remark}", self.adjective(), in_short(since));
            return Some(self.end(WaitOutcome::Reached, &text));
        }
        self.reached = None;
        let is_over = self.options.fail_fast && has_failed(group);
        is_over.then(|| self.end(WaitOutcome::Failed, &format!("failed: {}", why(group))))
    }

    /// The end after the timeout, or at once for files, which do not change.
    pub fn time_out(&self, group: &Group, is_files: bool, silent_since: Option<Timestamp>) -> WaitEnd {
        if let Some(since) = silent_since {
            let duration = how_long(since, Timestamp::now());
            let text = format!("unknown: no response from the API server for {duration}");
            return self.end(WaitOutcome::CannotTell, &text);
        }
        let after =
            if is_files { String::new() } else { format!(" after {}", in_short(self.options.timeout)) };
        let why = match (self.options.goal, self.reached) {
            (_, Some(_)) => {
                format!(
                    "{} for less than the {} of --stable",
                    self.adjective(),
                    in_short(self.options.stable)
                )
            }
            (Goal::Ready, None) => why(group),
            (goal, None) => {
                condition(goal, group).map(|statement| statement.message.to_string()).unwrap_or_default()
            }
        };
        let status = status_of(self.options.goal, group);
        let is_unknown = matches!(status, None | Some(ConditionStatus::Unknown));
        let (outcome, text) = match group.state {
            State::Failed if self.options.goal == Goal::Ready => {
                (WaitOutcome::Failed, format!("failed{after}: {why}"))
            }
            _ if is_unknown && self.reached.is_none() => {
                (WaitOutcome::CannotTell, format!("unknown{after}: {why}"))
            }
            _ if is_files => {
                let text = format!("not {}: {why} (read from files: not waiting)", self.adjective());
                (WaitOutcome::TimedOut, text)
            }
            _ => (WaitOutcome::TimedOut, format!("timed out{after}: {why}")),
        };
        self.end(outcome, &text)
    }

    fn end(&self, outcome: WaitOutcome, text: &str) -> WaitEnd {
        WaitEnd { outcome, text: format!("{}: {text}", self.heading) }
    }

    fn adjective(&self) -> &'static str {
        match self.options.goal {
            Goal::Ready => "ready",
            Goal::Settled => "settled",
            Goal::Installed => "installed",
        }
    }
}

fn condition_type(goal: Goal) -> &'static str {
    match goal {
        Goal::Ready => condition_types::READY,
        Goal::Settled => condition_types::SETTLED,
        Goal::Installed => condition_types::INSTALLED,
    }
}

fn condition(goal: Goal, group: &Group) -> Option<&Statement> {
    let wanted = condition_type(goal);
    group.conditions.iter().find(|condition| condition.type_ == wanted).map(|condition| &condition.statement)
}

/// None if the group does not have the condition. Only an Application has the condition `Ready`: the state of other
/// groups stands for it.
fn status_of(goal: Goal, group: &Group) -> Option<ConditionStatus> {
    match (&group.detail, goal, group.state) {
        (Detail::Application { .. }, ..) | (_, Goal::Settled | Goal::Installed, _) => {
            condition(goal, group).map(|statement| statement.status)
        }
        (_, Goal::Ready, State::Ready) => Some(ConditionStatus::True),
        (_, Goal::Ready, State::Unknown) => Some(ConditionStatus::Unknown),
        (_, Goal::Ready, _) => Some(ConditionStatus::False),
    }
}

/// A failed component may be repaired by the operator of another one, so a single one does not fail a Rollup.
fn has_failed(group: &Group) -> bool {
    match group.detail {
        Detail::Application { .. } | Detail::BindingPolicy { .. } => group.counts.failed > 0,
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

const MAX_CAUSES: usize = 3;

/// `cause: Pod/web-0: Unschedulable: …`, a line for each of the first causes below members.
pub fn cause_lines(group: &Group, observation: &Observation) -> Result<String> {
    let (tree, _) = read_tree(group, observation, false)?;
    let names = ObjectNames::of_nodes(group, &tree);
    let mut text = String::new();
    for cause in causes(&tree).iter().filter(|cause| cause.blocks.is_some()).take(MAX_CAUSES) {
        let more = if cause.more > 0 { format!(" (and {} more)", cause.more) } else { String::new() };
        let line = format!("cause: {}{more}{}", names.of_node(cause.node), after_colon(&cause.node.why()));
        let _ = writeln!(text, "{}", printable(&line));
    }
    Ok(text)
}

/// Fewer columns of a message are of no use.
const MIN_MESSAGE: usize = 8;

/// Of a name, on a terminal.
const MIN_NAME: usize = 12;

/// Progress bars: one for the group, one for each member that is not ready.
pub fn page(group: &Group, elapsed: SignedDuration, screen: Screen) -> String {
    let fit = |line: String| screen.width.map_or(line.clone(), |width| cut(&line, width).into_owned());
    let seconds = elapsed.as_secs();
    let head = format!(
        "{}  {}  {} ready  {}:{:02}",
        printable(&heading(&group.kind, &group.name)),
        bar(group.progress),
        ready(group),
        seconds / 60,
        seconds % 60,
    );
    let mut text = fit(head) + "\n";
    let names = ObjectNames::of_members(group);
    let (waiting, healthy): (Vec<_>, Vec<_>) = group.members.iter().partition(|member| is_bad(member.state));
    // On a narrow screen, names and messages need the room.
    let has_room = screen.width.is_none_or(|width| width >= ROOM_FOR_BARS);
    let bars: Vec<_> = waiting
        .iter()
        .map(|member| {
            let progress = Some(member.progress).filter(|_| member.state != State::Unknown);
            // Operators report no progress in percent.
            match member.component_conditions {
                Some(_) => format!("{:<11}", member.state.name()),
                None if has_room => format!("{:<14}", bar(progress)),
                None => format!("{:<4}", percent(progress)),
            }
        })
        .collect();
    let around = 4 + 2 + bars.iter().map(|bar| columns(bar)).max().unwrap_or(0);
    let name = |member: &Member| printable(&names.of_listed_member(member)).into_owned();
    let widest = waiting.iter().map(|member| columns(&name(member))).max();
    // Messages are cut first: a name is copied.
    let room = screen.width.map_or(usize::MAX, |all| all.saturating_sub(around).max(MIN_NAME));
    let width = widest.unwrap_or(0).min(room);
    for (member, bar) in waiting.iter().zip(bars) {
        let state = Some(member.state);
        let name = cut_middle(&name(member), width).into_owned();
        let padding = " ".repeat(width.saturating_sub(columns(&name)));
        let room_for_why = screen.width.map_or(usize::MAX, |all| all.saturating_sub(around + width + 2));
        let why = reason_and_message(member.state, &member.reason, &member.message);
        let why = if room_for_why < MIN_MESSAGE { "".into() } else { printable(&why) };
        let line = fit(format!("  {} {name}{padding}  {bar}  {why}", sign(state)).trim_end().to_owned());
        // The sign is coloured after the cut, which counts columns.
        let sign = sign(state).to_string();
        let line = line.replacen(&sign, &screen.paint(&sign, style(state)), 1);
        let _ = writeln!(text, "{line}");
    }
    if !healthy.is_empty() {
        let states = counts(healthy.iter().map(|member| member.state), |_| "");
        let _ = writeln!(text, "  {} {states}", screen.paint("✓", style(Some(State::Ready))));
    }
    text
}

/// With its cluster.
type MemberIdentity = (GroupKind, NamespacedName, Option<Arc<str>>);

/// What was last printed, where each change is a line.
#[derive(Default)]
pub struct ProgressLog {
    group: String,
    /// The name of each member, and its state, reason and message.
    members: BTreeMap<MemberIdentity, (String, String)>,
}

impl ProgressLog {
    /// A line for each change since the last call.
    pub fn changes(&mut self, group: &Group, now: Timestamp) -> Vec<String> {
        let time = now.strftime("%H:%M:%S");
        let percent = |progress: Option<u8>| progress.map(|it| format!(" ({it}%)")).unwrap_or_default();
        let mut lines = Vec::new();
        let status =
            format!("{}: {}, {} ready", heading(&group.kind, &group.name), group.state.name(), ready(group));
        if self.group != status {
            lines.push(format!("{time} {}{}", printable(&status), percent(group.progress)));
            self.group = status;
        }
        let names = ObjectNames::of_members(group);
        let mut members = BTreeMap::new();
        for member in &group.members {
            let key = (member.kind.clone(), member.name.clone(), member.cluster.clone());
            let status = format!("{} {}: {}", member.state.name(), member.reason, member.message);
            let name = names.of_member(member);
            let before = self.members.get(&key).map(|(_, status)| status);
            // Members that are ready from the beginning have no line.
            if before != Some(&status) && (before.is_some() || is_bad(member.state)) {
                let why = reason_and_message(member.state, &member.reason, &member.message);
                let line = format!("{name}: {}{}", member.state.name(), after_colon(&why));
                // Operators report no progress in percent.
                let is_rolling_out =
                    member.state == State::InProgress && member.component_conditions.is_none();
                let progress = Some(member.progress).filter(|_| is_rolling_out);
                lines.push(format!("{time} {}{}", printable(&line), percent(progress)));
            }
            members.insert(key, (name, status));
        }
        for (_, (name, _)) in self.members.iter().filter(|(key, _)| !members.contains_key(key)) {
            lines.push(format!("{time} {}: deleted", printable(name)));
        }
        self.members = members;
        lines
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::ObjectCounts;
    use bellwether_engine::StandsFor;
    use rstest::rstest;

    use super::*;

    fn member(name: &str, state: State) -> Member {
        Member {
            kind: GroupKind::new("apps", "Deployment"),
            name: NamespacedName::new("shop", name),
            cluster: None,
            stands_for: StandsFor::Object,
            uid: None,
            state,
            progress: 0,
            reason: "ReplicasNotReady".to_owned(),
            message: "0 of 1 replicas ready".to_owned(),
            since: None,
            rule: None,
            cause: None,
            component_conditions: None,
        }
    }

    /// Names are not cut: messages are, and bars are left out.
    #[rstest]
    #[case(60, "  ◐ Deployment/service-with-a-rather-long-name-000    0%\n")]
    #[case(80, "  ◐ Deployment/service-with-a-rather-long-name-000    0%  0 of 1 replicas ready\n")]
    #[case(
        120,
        "  ◐ Deployment/service-with-a-rather-long-name-000  ·········   0%  0 of 1 replicas ready\n"
    )]
    fn long_names_fit_on_the_screen(#[case] width: usize, #[case] expected: &str) {
        let names = ["service-with-a-rather-long-name-000", "service-with-a-rather-long-name-001"];
        let mut members: Vec<_> = names.iter().map(|name| member(name, State::InProgress)).collect();
        members.push(member("web", State::Ready));
        members.push(member("batch", State::Suspended));
        let group = Group {
            kind: GroupKind::bellwether("Application"),
            name: NamespacedName::new("shop", "many"),
            state: State::InProgress,
            deleting: false,
            since: None,
            conditions: Vec::new(),
            counts: ObjectCounts { total: 4, ready: 1, ..ObjectCounts::default() },
            progress: Some(50),
            members,
            clusters: None,
            detail: Detail::Application { type_: None, version: None, dependencies: Vec::new() },
        };
        let screen = Screen { color: false, width: Some(width) };
        let page = page(&group, SignedDuration::from_secs(98), screen);
        assert!(page.lines().all(|line| columns(line) <= width), "{page}");
        assert!(page.starts_with("Application shop/many  ████▌····  50%  1/4 ready  1:38\n"), "{page}");
        assert!(page.ends_with("\n  ✓ 1 Suspended, 1 Ready\n"), "{page}");
        assert!(page.contains(expected), "{page}");
    }
}
