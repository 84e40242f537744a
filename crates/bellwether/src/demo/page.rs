//! The output of the demo: a page on a terminal, otherwise a line for each change.

use std::{collections::BTreeMap, fmt::Write as _};

use anstyle::{AnsiColor, Style};
use bellwether_engine::{Group, NamespacedName, ready};
use bellwether_inspect::{
    observe::Flags,
    owner_tree::{Cause, Node, ObjectNames, causes},
    status::{List, SingleGroup, dependency, heading, headline, meaning, why},
    tree, wait,
};
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{Screen, cut, rank, style};
use jiff::{SignedDuration, Timestamp};

use super::{
    combined_status::CombinedStatus,
    store::NAMESPACE,
    story::{Narration, SCENES},
};

/// Higher screens show the trees of ready groups, too.
const ROOM_FOR_ALL: usize = 35;

/// Of each group.
const MAX_CAUSES: usize = 2;

struct GroupPanel {
    group: Group,
    tree: Vec<Node>,
}

/// The page in at most `lines` lines: the list, progress or causes, the CombinedStatuses and the trees.
pub(super) fn page(narration: &Narration, screen: Screen, lines: usize) -> String {
    let now = narration.fleet.now();
    let has_room = lines >= ROOM_FOR_ALL;
    let panels = panels(narration, has_room);
    let groups = panels.iter().map(|panel| panel.group.clone()).collect();
    let mut text = head(narration, screen);
    let list = List {
        groups,
        wide: false,
        all: true,
        now,
        flags: Flags::default(),
        type_: None,
        has_clusters: false,
        place: "in the demo",
    };
    text.push_str(&list.print(screen));
    let not_ready = panels.iter().filter(|panel| panel.group.state != State::Ready);
    let details = not_ready.map(|panel| progress_or_causes(panel, now, screen));
    let trees = panels.iter().filter(|panel| has_room || panel.group.state != State::Ready);
    let trees = trees.map(|panel| tree::draw(&panel.group, &panel.tree, has_room, false, now, screen));
    let combined = narration.fleet.combined_statuses();
    let combined = combined.iter().map(|it| combined_status(it, screen));
    for block in details.chain(combined).chain(trees) {
        if text.lines().count() + 1 + block.lines().count() > lines {
            break;
        }
        text.push('\n');
        text.push_str(&block);
    }
    text
}

fn progress_or_causes(GroupPanel { group, tree }: &GroupPanel, now: Timestamp, screen: Screen) -> String {
    let mut text = if group.state == State::InProgress {
        let elapsed = group.since.map_or(SignedDuration::ZERO, |since| now.duration_since(since));
        wait::page(group, elapsed, screen)
    } else {
        // The list has the duration.
        let without_since = Group { since: None, ..group.clone() };
        let flags = Flags::default();
        let one = SingleGroup { group, tree, all: false, wide: false, now, flags, forbidden: &[] };
        let causes = one.causes(&causes(tree), MAX_CAUSES, screen, &|_| Vec::new());
        format!("{}{}{causes}", headline(&without_since, now, screen), meaning(group, screen))
    };
    for unready in group.dependencies().iter().filter(|it| it.ready != ConditionStatus::True) {
        let _ = writeln!(text, "  {}", dependency(unready));
    }
    text
}

fn combined_status(it: &CombinedStatus, screen: Screen) -> String {
    let heading = format!("CombinedStatus of {} {}: {}", it.kind, it.name, it.counts());
    format!("{}\n{}", line(&heading, Style::new().bold(), screen), it.table(screen))
}

fn head(narration: &Narration, screen: Screen) -> String {
    let (bold, quiet) = (Style::new().bold(), AnsiColor::BrightBlack.on_default());
    let title = format!("{}/{}  {}", narration.scene() + 1, SCENES.len(), narration.title());
    let hint = "Simulated clusters, real engine. Press Ctrl-C to end.";
    format!("{}\n{}\n\n", line(&title, bold, screen), line(hint, quiet, screen))
}

/// Cuts the text to the width of the screen.
fn line(text: &str, style: Style, screen: Screen) -> String {
    let text = screen.width.map_or(text.into(), |width| cut(text, width));
    screen.paint(&text, style).into_owned()
}

/// The groups, the worst first.
fn panels(narration: &Narration, all: bool) -> Vec<GroupPanel> {
    let mut groups = narration.fleet.groups();
    groups.sort_by_key(|group| (rank(Some(group.state)), group.since));
    let panel = |mut group: Group| {
        let mut tree = narration.fleet.tree(&group, all);
        let members = group.members.iter_mut().map(|member| &mut member.name);
        for name in members.chain([&mut group.name]) {
            drop_namespace(name);
        }
        tree.iter_mut().for_each(drop_namespaces);
        GroupPanel { group, tree }
    };
    groups.into_iter().map(panel).collect()
}

/// Nearly all objects are in this namespace, so the output leaves it out.
fn drop_namespace(name: &mut NamespacedName) {
    if *name.namespace == *NAMESPACE {
        name.namespace = "".into();
    }
}

fn drop_namespaces(node: &mut Node) {
    drop_namespace(&mut node.name);
    node.children.iter_mut().for_each(drop_namespaces);
}

/// What was last printed, where each change is a line.
#[derive(Default)]
pub(super) struct ChangeLog {
    scene: Option<usize>,
    groups: BTreeMap<String, String>,
    causes: BTreeMap<String, Vec<String>>,
    combined: BTreeMap<String, String>,
}

impl ChangeLog {
    /// A line for each change since the last call.
    pub(super) fn changes(&mut self, narration: &Narration, screen: Screen) -> Vec<String> {
        let mut lines = Vec::new();
        if self.scene.replace(narration.scene()) != Some(narration.scene()) {
            let title = format!("{}/{}  {}", narration.scene() + 1, SCENES.len(), narration.title());
            lines.push(screen.paint(&title, Style::new().bold()).into_owned());
        }
        let time = narration.fleet.now().strftime("%H:%M:%S").to_string();
        for GroupPanel { group, tree } in panels(narration, false) {
            let name = heading(&group.kind, &group.name);
            let status = status(&group, screen);
            if self.groups.insert(name.clone(), status.clone()) != Some(status.clone()) {
                lines.push(format!("{time} {name}: {status}"));
            }
            let failed = failed_causes(&group, &tree, screen);
            let before = self.causes.insert(name, failed.clone()).unwrap_or_default();
            let new = failed.into_iter().filter(|cause| !before.contains(cause));
            lines.extend(new.map(|cause| format!("{time}   {cause}")));
        }
        for it in narration.fleet.combined_statuses() {
            let (name, summary) = (format!("CombinedStatus {}/{}", it.kind, it.name), it.summary());
            if self.combined.insert(name.clone(), summary.clone()) != Some(summary.clone()) {
                lines.push(format!("{time} {name}: {summary}"));
            }
        }
        lines
    }
}

fn status(group: &Group, screen: Screen) -> String {
    let state = screen.paint(group.state.name(), style(Some(group.state)));
    let mut text = format!("{state}, {} ready", ready(group));
    match why(group) {
        why if why.is_empty() => {}
        why => text.extend([": ", &why]),
    }
    for unready in group.dependencies().iter().filter(|it| it.ready != ConditionStatus::True) {
        text.extend(["; ", &dependency(unready)]);
    }
    text
}

/// The failed objects below members.
fn failed_causes(group: &Group, tree: &[Node], screen: Screen) -> Vec<String> {
    let names = ObjectNames::of_nodes(group, tree);
    let causes = causes(tree);
    let failed = causes.iter().filter(|cause| cause.blocks.is_some() && cause.node.state == State::Failed);
    let line = |cause: &Cause<'_>| {
        let node = cause.node;
        let state = screen.paint(node.state.name(), style(Some(node.state)));
        format!("{}: {state}: {}", names.of_node(node), node.why())
    };
    failed.map(line).collect()
}
