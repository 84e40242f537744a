//! A group, its members, and all that they own: drawn for a person, or as a tree for programs.

use std::fmt::Write as _;

use bellwether_engine::{Group, GroupKind, MemberKey, StandsFor};
use bellwether_model::State;
use bellwether_terminal::{Screen, columns, cut, cut_middle, how_long, printable, sign, style};
use jiff::Timestamp;
use serde::Serialize;

use crate::owner_tree::{Node, called, is_bad};

/// A line of the drawing.
struct Line {
    /// The branches that lead to it.
    lead: String,
    /// What it is, and its name.
    kind: String,
    name: String,
    state: Option<State>,
    /// What is said of it.
    says: String,
}

/// The tree for a person. Unless all is wanted, only what is not ready is opened, and the rest is counted.
pub fn draw(group: &Group, family: &[Node], all: bool, wide: bool, now: Timestamp, screen: Screen) -> String {
    let mut lines = vec![Line {
        lead: String::new(),
        kind: group.kind.kind.to_string(),
        name: printable(&group.name.to_string()).into_owned(),
        state: Some(group.state),
        says: format!("{}/{} ready", group.counts.ready, group.counts.total),
    }];
    let drawing = Drawing { all, wide, now };
    drawing.branches(&mut lines, family, "", &group.name.namespace);
    let widest = lines.iter().filter(|line| line.state.is_some()).map(Line::columns).max().unwrap_or(0);
    let width = screen.width.map_or(widest, |all| widest.min(room_for_names(all)));
    let mut text = String::new();
    for line in lines {
        let Some(state) = line.state else {
            let what = format!("{}{}", line.lead, line.name);
            let _ = writeln!(text, "{}", screen.width.map_or(what.as_str().into(), |all| cut(&what, all)));
            continue;
        };
        let what = line.within(width);
        let padding = " ".repeat(width.saturating_sub(columns(&what)));
        let word = format!("{} {:<11}", sign(Some(state)), state.name());
        let says = match screen.width.map(|all| all.saturating_sub(width + STATE + GAP)) {
            None => line.says.as_str().into(),
            Some(room) if room < LEAST_SAID => "".into(),
            Some(room) => cut(&line.says, room),
        };
        let line = format!("{what}{padding}  {}  {says}", screen.paint(&word, style(Some(state))));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The columns between two texts, and those of a state with its gap.
const GAP: usize = 2;
const STATE: usize = GAP + 13;

/// With fewer columns, nothing is said that anybody would understand.
const LEAST_SAID: usize = 8;

/// On screens as wide as this, names leave room for what is said.
const WIDE_ENOUGH: usize = 70;
const SAID: usize = 20;

/// How many columns names may take on a screen.
fn room_for_names(screen: usize) -> usize {
    let said = if screen < WIDE_ENOUGH { 0 } else { GAP + SAID };
    screen.saturating_sub(STATE + said)
}

impl Line {
    /// A line about what is not shown.
    fn remark(lead: &str, name: String) -> Self {
        Self { lead: format!("{lead}└─ "), kind: String::new(), name, state: None, says: String::new() }
    }

    fn columns(&self) -> usize {
        columns(&self.lead) + columns(&self.kind) + 1 + columns(&self.name)
    }

    /// What it is about in so many columns. Names are cut in their middle: they begin like those of their owners, and end in
    /// what is theirs alone.
    fn within(&self, most: usize) -> String {
        let Self { lead, kind, name, .. } = self;
        let room = most.saturating_sub(columns(lead) + 1);
        // The name has what the kind leaves, and a little in any case.
        let for_name = columns(name).min(room.saturating_sub(columns(kind)).max(LEAST_SAID));
        let kind = cut_middle(kind, room.saturating_sub(for_name));
        cut(&format!("{lead}{kind} {}", cut_middle(name, for_name)), most).into_owned()
    }
}

/// How it is drawn.
struct Drawing {
    all: bool,
    wide: bool,
    now: Timestamp,
}

impl Drawing {
    /// The lines of some nodes, and of all below them. Those that are where the node above them is need not say so.
    fn branches(&self, lines: &mut Vec<Line>, nodes: &[Node], lead: &str, home: &str) {
        let is_shown = |node: &&Node| self.all || is_bad(node.state);
        let shown: Vec<_> = nodes.iter().filter(is_shown).collect();
        let hidden = nodes.len() - shown.len();
        for (index, node) in shown.iter().enumerate() {
            let is_last = index + 1 == shown.len() && hidden == 0;
            let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let long =
                node.since.map(|since| format!(" for {}", how_long(since, self.now))).unwrap_or_default();
            let what = if self.wide { node.kind.to_string() } else { node.kind.kind.to_string() };
            let says = match node.state {
                State::Ready => String::new(),
                _ => format!("{}{long}: {}", node.reason, node.message),
            };
            lines.push(Line {
                lead: format!("{lead}{branch}"),
                kind: printable(&what).into_owned(),
                name: printable(&called(&node.name, node.stands_for, home)).into_owned(),
                state: Some(node.state),
                says: printable(&says).into_owned(),
            });
            self.branches(lines, &node.children, &format!("{lead}{below}"), &node.name.namespace);
            if node.more > 0 {
                let name = format!("… and {} more below", node.more);
                lines.push(Line::remark(&format!("{lead}{below}"), name));
            }
        }
        if hidden > 0 {
            let what = match (shown.is_empty(), hidden) {
                (true, 1) => "1 is fine".to_owned(),
                (true, hidden) => format!("all {hidden} are fine"),
                (false, 1) => "1 more is fine".to_owned(),
                (false, hidden) => format!("{hidden} more are fine"),
            };
            lines.push(Line::remark(lead, what));
        }
    }
}

/// The names of objects, as kubectl takes them: with the namespace, if it is not that of the group.
pub fn names(nodes: &[Node], home: &str) -> String {
    let mut text = String::new();
    for node in nodes.iter().filter(|node| node.stands_for == StandsFor::Object) {
        let kind = node.kind.to_string().to_lowercase();
        let place = match &*node.name.namespace {
            namespace if namespace == home || namespace.is_empty() => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        let _ = writeln!(text, "{}", printable(&format!("{kind}/{}{place}", node.name.name)));
        text.push_str(&names(&node.children, home));
    }
    text
}

/// An object and what it owns, for programs.
#[derive(Serialize)]
pub struct Branch<'n> {
    group: &'n str,
    kind: &'n str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'n str,
    #[serde(flatten)]
    called: MemberKey<'n>,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<u8>,
    reason: &'n str,
    message: &'n str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owns: Vec<Branch<'n>>,
    /// How many more are below it, too deep to be told one by one.
    #[serde(rename = "moreBelow", skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

impl<'n> Branch<'n> {
    /// A group and its members.
    pub fn of_group(group: &'n Group, family: &'n [Node]) -> Self {
        let (reason, message) = group.deciding().map_or(("", ""), |says| (&*says.reason, &*says.message));
        Self {
            group: &group.kind.group,
            kind: &group.kind.kind,
            namespace: &group.name.namespace,
            called: MemberKey::new(&group.name, StandsFor::Object),
            state: group.state,
            progress: group.progress,
            reason,
            message,
            since: group.since.map(|since| since.to_string()),
            owns: family.iter().map(Self::of).collect(),
            more: None,
        }
    }

    fn of(node: &'n Node) -> Self {
        let GroupKind { group, kind } = &node.kind;
        Self {
            group,
            kind,
            namespace: &node.name.namespace,
            called: MemberKey::new(&node.name, node.stands_for),
            state: node.state,
            progress: Some(node.progress),
            reason: &node.reason,
            message: &node.message,
            since: node.since.map(|since| since.to_string()),
            owns: node.children.iter().map(Self::of).collect(),
            more: Some(node.more).filter(|more| *more > 0),
        }
    }
}
