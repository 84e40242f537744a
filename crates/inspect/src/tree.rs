//! `bellwether tree`: a group, its members, and the objects that they own.

use std::fmt::Write as _;

use bellwether_engine::{Group, GroupKind, MemberKey, StandsFor, ready};
use bellwether_health::reasons::SCALED_TO_ZERO;
use bellwether_model::State;
use bellwether_terminal::{Screen, columns, cut, cut_middle, how_long, printable, sign, style};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    owner_tree::{Node, ObjectNames, at, is_bad, local_name, separator},
    status::{counts, why_empty},
};

struct Line {
    /// The branches that lead to the object.
    lead: String,
    kind: String,
    separator: char,
    name: String,
    /// None for a line about objects that are not shown.
    state: Option<State>,
    duration: String,
    why: String,
}

/// The tree for people. Without `all`, objects that are ready are only counted.
pub fn draw(group: &Group, tree: &[Node], all: bool, wide: bool, now: Timestamp, screen: Screen) -> String {
    let kind = if group.kind.is_bellwether() { group.kind.kind.to_string() } else { group.kind.to_string() };
    let mut lines = vec![Line {
        lead: String::new(),
        kind,
        separator: ' ',
        name: printable(&group.name.to_string()).into_owned(),
        state: Some(group.state),
        duration: duration(group.since, now),
        why: why_empty(group).map_or_else(|| format!("{} ready", ready(group)), str::to_owned),
    }];
    let names = ObjectNames::of_nodes(group, tree);
    let drawing = Drawing { all, wide, now, names };
    drawing.branches(&mut lines, tree, "", &group.name.namespace);
    let layout = Layout::of(&lines, screen);
    let mut text = String::new();
    for line in &lines {
        let _ = writeln!(text, "{}", layout.print(line, screen));
    }
    text
}

/// The widths of the columns.
struct Layout {
    /// A longer name is not cut: its line is not aligned, and its message is cut instead.
    names: usize,
    states: usize,
    /// None if no line has a duration, or there is no room.
    durations: Option<usize>,
}

impl Layout {
    fn of(lines: &[Line], screen: Screen) -> Self {
        let objects = || lines.iter().filter(|line| line.state.is_some());
        let widest = |width: fn(&Line) -> usize| objects().map(width).max().unwrap_or(0);
        let states = widest(|line| columns(&line.state()));
        let has_room = screen.width.is_none_or(|all| all >= WIDE_ENOUGH);
        let durations = Some(widest(|line| columns(&line.duration))).filter(|width| has_room && *width > 0);
        let why = if has_room { GAP + ROOM_FOR_WHY } else { 0 };
        let others = GAP + states + durations.map_or(0, |width| GAP + width) + why;
        let room = screen.width.map_or(usize::MAX, |all| all.saturating_sub(others));
        Self { names: widest(Line::columns).min(room), states, durations }
    }

    fn print(&self, line: &Line, screen: Screen) -> String {
        let room = screen.width.unwrap_or(usize::MAX);
        if line.state.is_none() {
            return cut(&format!("{}{}", line.lead, line.name), room).into_owned();
        }
        let state = line.state();
        let object = line.within(room.saturating_sub(GAP + columns(&state)));
        let names = self.names.max(columns(&object)).min(room.saturating_sub(GAP + columns(&state)));
        let mut width = names + GAP + columns(&state);
        let padding = " ".repeat((names + GAP).saturating_sub(columns(&object)));
        let mut text = format!("{object}{padding}{}", screen.paint(&state, style(line.state)));
        // Blanks are written only before content, so that no line ends in one.
        let mut push = |content: &str, start: usize| {
            if !content.is_empty() && start + columns(content) <= room {
                text.extend(std::iter::repeat_n(' ', start - width));
                text.push_str(content);
                width = start + columns(content);
            }
        };
        let mut start = names + GAP + self.states + GAP;
        if let Some(durations) = self.durations {
            push(&line.duration, start);
            start += durations + GAP;
        }
        let room = room.saturating_sub(start);
        if room >= MIN_WHY {
            push(&cut(&line.why, room), start);
        }
        text
    }
}

fn duration(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map(|since| how_long(since, now)).unwrap_or_default()
}

/// Columns between two texts.
const GAP: usize = 2;

/// Fewer columns of a message are of no use.
const MIN_WHY: usize = 8;

/// From this width on, there are durations, and aligned names leave [`ROOM_FOR_WHY`] columns for messages.
const WIDE_ENOUGH: usize = 70;
const ROOM_FOR_WHY: usize = 20;

impl Line {
    /// A line about objects that are not shown.
    fn remark(lead: &str, remark: String) -> Self {
        Self {
            lead: format!("{lead}└─ "),
            kind: String::new(),
            separator: ' ',
            name: remark,
            state: None,
            duration: String::new(),
            why: String::new(),
        }
    }

    fn columns(&self) -> usize {
        columns(&self.lead) + columns(&self.kind) + 1 + columns(&self.name)
    }

    /// With its sign.
    fn state(&self) -> String {
        self.state.map(|state| format!("{} {}", sign(Some(state)), state.name())).unwrap_or_default()
    }

    /// The object in at most `max` columns. Only a name that is wider than the screen is cut, in the middle:
    /// the beginning is often that of the owner, and the end is unique.
    fn within(&self, max: usize) -> String {
        let Self { lead, kind, separator, name, .. } = self;
        let room = max.saturating_sub(columns(lead) + 1);
        let for_name = columns(name).min(room.saturating_sub(columns(kind)).max(MIN_WHY));
        let kind = cut_middle(kind, room.saturating_sub(for_name));
        cut(&format!("{lead}{kind}{separator}{}", cut_middle(name, for_name)), max).into_owned()
    }
}

struct Drawing<'g> {
    all: bool,
    wide: bool,
    now: Timestamp,
    names: ObjectNames<'g>,
}

impl Drawing<'_> {
    /// Adds the lines of nodes and their descendants. `namespace` is that of the owner, which children leave
    /// out.
    fn branches(&self, lines: &mut Vec<Line>, nodes: &[Node], lead: &str, namespace: &str) {
        let is_shown = |node: &&Node| self.all || is_bad(node.state);
        let (shown, hidden): (Vec<_>, Vec<_>) = nodes.iter().partition(is_shown);
        let (scaled_down, hidden): (Vec<_>, Vec<_>) = hidden.into_iter().partition(|node| is_old(node));
        let is_all_shown = hidden.is_empty() && scaled_down.is_empty();
        for (index, node) in shown.iter().enumerate() {
            let is_last = index + 1 == shown.len() && is_all_shown;
            let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let kind = if self.wide { node.kind.to_string() } else { self.names.kind(&node.kind) };
            let is_explained = node.state != State::Ready || node.reason == SCALED_TO_ZERO;
            let why = if is_explained { node.why() } else { "".into() };
            // What is below a member is in its cluster.
            let cluster = at(node.cluster.as_deref().filter(|_| node.member.is_some()));
            let name = local_name(&node.name, node.stands_for, namespace).into_owned() + &cluster;
            lines.push(Line {
                lead: format!("{lead}{branch}"),
                kind: printable(&kind).into_owned(),
                separator: separator(node.stands_for),
                name: printable(&name).into_owned(),
                state: Some(node.state),
                duration: duration(node.since, self.now),
                why: printable(&why).into_owned(),
            });
            self.branches(lines, &node.children, &format!("{lead}{below}"), &node.name.namespace);
            if node.omitted > 0 {
                let remark = format!("… {} more objects below", node.omitted);
                lines.push(Line::remark(&format!("{lead}{below}"), remark));
            }
        }
        if !is_all_shown {
            let noun = if shown.is_empty() { "" } else { "more" };
            let states = counts(hidden.iter().map(|node| node.state), |_| noun);
            let old = match scaled_down.len() {
                0 => String::new(),
                1 => "1 ReplicaSet scaled to 0".to_owned(),
                count => format!("{count} ReplicaSets scaled to 0"),
            };
            let comma = if states.is_empty() || old.is_empty() { "" } else { ", " };
            // Once for the members, and where nothing else is shown.
            let hint = match (shown.is_empty() || lead.is_empty(), hidden.len() + scaled_down.len()) {
                (false, _) => "",
                (true, 1) => " (use --all to list it)",
                (true, _) => " (use --all to list them)",
            };
            lines.push(Line::remark(lead, format!("{states}{comma}{old}{hint}")));
        }
    }
}

/// A ReplicaSet of an old revision, as Deployments keep them for a rollback.
fn is_old(node: &Node) -> bool {
    (&*node.kind.group, &*node.kind.kind) == ("apps", "ReplicaSet")
        && node.member.is_none()
        && node.state == State::Ready
        && node.reason == SCALED_TO_ZERO
}

/// The objects as arguments of kubectl, with `-n` where the namespace is not that of the group.
pub fn names(nodes: &[Node], namespace: &str) -> String {
    let mut text = String::new();
    for node in nodes.iter().filter(|node| node.stands_for == StandsFor::Object) {
        let kind = node.kind.to_string().to_lowercase();
        let flag = match &*node.name.namespace {
            own if own == namespace || own.is_empty() => String::new(),
            own => format!(" -n {own}"),
        };
        let _ = writeln!(text, "{}", printable(&format!("{kind}/{}{flag}", node.name.name)));
        text.push_str(&names(&node.children, namespace));
    }
    text
}

/// An object with the objects that it owns, for `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch<'n> {
    group: &'n str,
    kind: &'n str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'n str,
    #[serde(flatten)]
    key: MemberKey<'n>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'n str>,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<u8>,
    reason: &'n str,
    message: &'n str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Branch<'n>>,
    /// Descendants that are too deep to be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_descendants: Option<usize>,
}

impl<'n> Branch<'n> {
    pub fn of_group(group: &'n Group, tree: &'n [Node]) -> Self {
        let (reason, message) = group
            .deciding_condition()
            .map_or(("", ""), |statement| (&*statement.reason, &*statement.message));
        Self {
            group: &group.kind.group,
            kind: &group.kind.kind,
            namespace: &group.name.namespace,
            key: MemberKey::new(&group.name, StandsFor::Object),
            cluster: None,
            state: group.state,
            progress: group.progress,
            reason,
            message,
            since: group.since.map(|since| since.to_string()),
            children: tree.iter().map(Self::of).collect(),
            omitted_descendants: None,
        }
    }

    fn of(node: &'n Node) -> Self {
        let GroupKind { group, kind } = &node.kind;
        Self {
            group,
            kind,
            namespace: &node.name.namespace,
            key: MemberKey::new(&node.name, node.stands_for),
            cluster: node.cluster.as_deref(),
            state: node.state,
            progress: Some(node.progress),
            reason: &node.reason,
            message: &node.message,
            since: node.since.map(|since| since.to_string()),
            children: node.children.iter().map(Self::of).collect(),
            omitted_descendants: Some(node.omitted).filter(|omitted| *omitted > 0),
        }
    }
}
