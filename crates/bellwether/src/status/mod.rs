//! `bellwether status`: the health of Applications and Rollups, as a list or one in detail.

mod watch;

use anyhow::Result;
use bellwether_engine::{Detail, Group, Report, Reports};
use bellwether_inspect::{
    observe::{GroupQuery, Location, Notes, Observation},
    owner_tree::{Node, read_tree},
    status::{List, SingleGroup, names},
};
use bellwether_model::State;
use bellwether_terminal::Screen;

use crate::{
    cli::{GroupFormat, Status},
    output::{BAD_INPUT, Outcome, as_json, as_yaml},
};

pub(crate) fn run(command: &Status, screen: Screen) -> Result<Outcome> {
    let location = match command.location() {
        Ok(location) => location,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    if command.watch {
        return watch::run(command, &location, screen);
    }
    let observation = match Observation::open(&location, command.input.now(), query(command)) {
        Ok(observation) => observation,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    match &command.name {
        Some(name) => one(command, name, &location, observation, screen),
        None => list(command, &location, observation, screen),
    }
}

fn query(command: &Status) -> GroupQuery<'_> {
    match &command.name {
        Some(name) => GroupQuery::One(name),
        None => GroupQuery::All { all_namespaces: command.all_namespaces },
    }
}

fn list(command: &Status, location: &Location, observation: Observation, screen: Screen) -> Result<Outcome> {
    let mut groups = observation.groups();
    groups.retain(|group| has_type(group, command.type_.as_deref()));
    let text = match command.output {
        GroupFormat::Json => as_json(&Reports::of(&groups))?,
        GroupFormat::Yaml => as_yaml(&Reports::of(&groups))?,
        GroupFormat::Name => names(&groups),
        // The errors say why there is none.
        _ if groups.is_empty() && !observation.notes.problems.is_empty() => String::new(),
        GroupFormat::Table | GroupFormat::Wide => {
            let wide = command.output == GroupFormat::Wide;
            let screen = if wide { screen.without_end() } else { screen };
            List {
                groups: groups.clone(),
                wide,
                all: wide || command.all,
                now: observation.now,
                flags: location.flags(),
                has_clusters: !location.clusters.is_empty(),
                type_: command.type_.as_deref(),
                place: &observation.whereabouts(),
            }
            .print(screen)
        }
    };
    Ok(with_notes(text, observation.notes, &groups))
}

fn one(
    command: &Status,
    name: &str,
    location: &Location,
    mut observation: Observation,
    screen: Screen,
) -> Result<Outcome> {
    let group = match observation.group(name) {
        Ok(group) => group,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let mut notes = Vec::new();
    let text = match command.output {
        GroupFormat::Json => as_json(&Report::of(&group))?,
        GroupFormat::Yaml => as_yaml(&Report::of(&group))?,
        GroupFormat::Name => names(std::slice::from_ref(&group)),
        GroupFormat::Table | GroupFormat::Wide => {
            let wide = command.output == GroupFormat::Wide;
            let screen = if wide { screen.without_end() } else { screen };
            let (tree, of_tree) = read_tree(&group, &observation, false)?;
            notes = of_tree;
            // The page has them.
            let forbidden = std::mem::take(&mut observation.notes.forbidden);
            let one = SingleGroup {
                group: &group,
                tree: &tree,
                all: wide || command.all,
                wide,
                now: observation.now,
                flags: location.flags(),
                forbidden: &forbidden,
            };
            let evidence = |node: &Node| match &node.rule {
                Some(_) => observation.evidence_in(node.cluster.as_deref(), &node.kind, &node.name),
                None => Vec::new(),
            };
            one.print(screen, &evidence)
        }
    };
    let mut outcome = with_notes(text, observation.notes, std::slice::from_ref(&group));
    outcome.notes.extend(notes);
    Ok(outcome)
}

fn has_type(group: &Group, type_: Option<&str>) -> bool {
    let Some(wanted) = type_ else { return true };
    matches!(&group.detail, Detail::Application { type_: Some(type_), .. } if type_ == wanted)
}

/// The exit code is 0 only if there are groups, all are Ready, and all could be read.
pub(crate) fn with_notes(text: String, notes: Notes, groups: &[Group]) -> Outcome {
    let is_bad = groups.is_empty() || groups.iter().any(|group| group.state != State::Ready);
    let below: Vec<_> = notes.of_below(!is_bad).map(|(_, note)| note.clone()).collect();
    let Notes { mut problems, unread_clusters, mut notes, forbidden, .. } = notes;
    problems.extend(unread_clusters.iter().map(ToString::to_string));
    notes.extend(forbidden);
    notes.extend(below);
    let code = if problems.is_empty() { u8::from(is_bad) } else { BAD_INPUT };
    Outcome { text, errors: problems, notes, code, ..Outcome::default() }
}
