//! How the story looks: a page on a terminal, a line for each change elsewhere.

use std::{collections::BTreeMap, fmt::Write as _};

use anstyle::{AnsiColor, Style};
use bellwether_engine::{Group, NamespacedName};
use bellwether_inspect::{
    observe::Flags,
    owner_tree::{Cause, Node, causes, in_full},
    status::{List, SingleGroup, headline, meaning, needs, title, why},
    tree, wait,
};
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{Screen, cut, rank, sign, style};
use jiff::{SignedDuration, Timestamp};

use super::{
    store::NAMESPACE,
    story::{Narration, SCENES},
};

/// From so many lines on there is room for all that is in the cluster.
const ROOM_FOR_ALL: usize = 35;

/// So many causes of a group leave room for the rest.
const MOST_CAUSES: usize = 2;

/// A group as it is shown.
struct GroupPanel {
    group: Group,
    family: Vec<Node>,
}

/// The page of this moment, in so many lines at most: the table, what is wrong or under way, and the trees.
pub(super) fn page(telling: &Narration, screen: Screen, lines: usize) -> String {
    let now = telling.cluster.now();
    let has_room = lines >= ROOM_FOR_ALL;
    let shown = shown(telling, has_room);
    let groups = shown.iter().map(|shown| shown.group.clone()).collect();
    let mut text = head(telling, screen);
    text.push_str(
        &List { groups, wide: false, all: true, now, flags: Flags::default() }.print(screen, "in the demo"),
    );
    let bad = || shown.iter().filter(|shown| shown.group.state != State::Ready);
    let words = bad().map(|shown| in_words(shown, now, screen));
    let trees = shown.iter().filter(|shown| has_room || shown.group.state != State::Ready);
    let trees = trees.map(|shown| tree::draw(&shown.group, &shown.family, has_room, false, now, screen));
    for block in words.chain(trees) {
        // What would move the rest off the screen is left out.
        if text.lines().count() + 1 + block.lines().count() > lines {
            break;
        }
        text.push('\n');
        text.push_str(&block);
    }
    text
}

/// What is wrong with a group, or how far along it is.
fn in_words(GroupPanel { group, family }: &GroupPanel, now: Timestamp, screen: Screen) -> String {
    let mut text = if group.state == State::InProgress {
        let elapsed = group.since.map_or(SignedDuration::ZERO, |since| now.duration_since(since));
        wait::page(group, elapsed, screen)
    } else {
        // How long it has been so is in the table.
        let timeless = Group { since: None, ..group.clone() };
        let one = SingleGroup { group, family, all: false, wide: false, now, flags: Flags::default() };
        let causes = one.causes(&causes(family), MOST_CAUSES, screen, &|_| Vec::new());
        format!("{}{}{causes}", headline(&timeless, now, screen), meaning(group, screen))
    };
    for needed in group.dependencies().iter().filter(|needed| needed.ready != ConditionStatus::True) {
        // Writing to text cannot fail.
        let _ = writeln!(text, "  {}", needs(needed));
    }
    text
}

fn head(telling: &Narration, screen: Screen) -> String {
    let fit = |text: String| screen.width.map_or(text.clone(), |width| cut(&text, width).into_owned());
    let says = fit(format!("{}/{}  {}", telling.scene() + 1, SCENES.len(), telling.says()));
    let hint = fit("A cluster in memory, looked at by the real engine. Ctrl-C ends it.".to_owned());
    let (bold, quiet) = (Style::new().bold(), AnsiColor::BrightBlack.on_default());
    format!("{}\n{}\n\n", screen.paint(&says, bold), screen.paint(&hint, quiet))
}

/// The groups, the worst first.
fn shown(telling: &Narration, all: bool) -> Vec<GroupPanel> {
    let mut groups = telling.cluster.groups();
    groups.sort_by_key(|group| (rank(Some(group.state)), group.since));
    let shown = |mut group: Group| {
        let mut family = telling.cluster.family(&group, all);
        let members = group.members.iter_mut().map(|member| &mut member.name);
        for name in members.chain([&mut group.name]) {
            come_home(name);
        }
        family.iter_mut().for_each(all_come_home);
        GroupPanel { group, family }
    };
    groups.into_iter().map(shown).collect()
}

/// Of the namespace in which nearly everything is, nobody needs to be told.
fn come_home(name: &mut NamespacedName) {
    if *name.namespace == *NAMESPACE {
        name.namespace = "".into();
    }
}

fn all_come_home(node: &mut Node) {
    come_home(&mut node.name);
    node.children.iter_mut().for_each(all_come_home);
}

/// What was last said, where each change is a line.
#[derive(Default)]
pub(super) struct ChangeLog {
    scene: Option<usize>,
    groups: BTreeMap<String, String>,
    causes: BTreeMap<String, Vec<String>>,
}

impl ChangeLog {
    /// A line for whatever is not as it was.
    pub(super) fn changes(&mut self, telling: &Narration, screen: Screen) -> Vec<String> {
        let mut lines = Vec::new();
        if self.scene.replace(telling.scene()) != Some(telling.scene()) {
            let says = format!("{}/{}  {}", telling.scene() + 1, SCENES.len(), telling.says());
            lines.push(screen.paint(&says, Style::new().bold()).into_owned());
        }
        let time = telling.cluster.now().strftime("%H:%M:%S").to_string();
        for GroupPanel { group, family } in shown(telling, false) {
            let name = title(&group);
            let is = said(&group, screen);
            if self.groups.insert(name.clone(), is.clone()) != Some(is.clone()) {
                lines.push(format!("{time} {name} {is}"));
            }
            let deeper = deeper(&family, screen);
            let before = self.causes.insert(name, deeper.clone()).unwrap_or_default();
            let new = deeper.into_iter().filter(|cause| !before.contains(cause));
            lines.extend(new.map(|cause| format!("{time}   {cause}")));
        }
        lines
    }
}

/// How a group is, in a line.
fn said(group: &Group, screen: Screen) -> String {
    let state = format!("{} {}", sign(Some(group.state)), group.state.name());
    let state = screen.paint(&state, style(Some(group.state))).into_owned();
    let mut text = format!("{state}, {}/{} ready", group.counts.ready, group.counts.total);
    match why(group) {
        why if why.is_empty() => {}
        why => text.extend([": ", &why]),
    }
    for needed in group.dependencies().iter().filter(|needed| needed.ready != ConditionStatus::True) {
        text.extend(["; ", needs(needed).to_lowercase().trim_end_matches('.')]);
    }
    text
}

/// What has failed below the members.
fn deeper(family: &[Node], screen: Screen) -> Vec<String> {
    let causes = causes(family);
    let failed = causes.iter().filter(|cause| cause.blocks.is_some() && cause.node.state == State::Failed);
    let line = |cause: &Cause<'_>| {
        let node = cause.node;
        let state = format!("{} {}", sign(Some(node.state)), node.state.name());
        let state = screen.paint(&state, style(Some(node.state))).into_owned();
        let what = in_full(&node.kind, &node.name, node.stands_for, "");
        format!("{what} {state} {}: {}", node.reason, node.message)
    };
    failed.map(line).collect()
}
