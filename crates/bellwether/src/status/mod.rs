//! `bellwether status`: how Applications and Rollups are, the worst first, or all about one.

mod watch;

use anyhow::Result;
use bellwether_engine::{Detail, Group, Report, Reports};
use bellwether_inspect::{
    observe::{GroupQuery, Notes, Observation},
    owner_tree::{Node, family_of},
    status::{List, SingleGroup, names},
};
use bellwether_model::State;
use bellwether_terminal::Screen;

use crate::{
    cli::{GroupFormat, Status},
    output::{BAD_INPUT, Outcome, as_json, as_yaml},
};

pub(crate) fn run(command: &Status, screen: Screen) -> Result<Outcome> {
    if command.watch {
        return watch::run(command, screen);
    }
    let sight = match Observation::open(&command.scene.place(), command.scene.now(), meant(command)) {
        Ok(sight) => sight,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    match &command.name {
        Some(name) => one(command, name, sight, screen),
        None => list(command, sight, screen),
    }
}

/// What is asked for.
fn meant(command: &Status) -> GroupQuery<'_> {
    match &command.name {
        Some(name) => GroupQuery::One(name),
        None => GroupQuery::All { all_namespaces: command.all_namespaces },
    }
}

fn list(command: &Status, sight: Observation, screen: Screen) -> Result<Outcome> {
    let mut groups = sight.groups();
    groups.retain(|group| is_wanted(group, command.type_.as_deref()));
    let text = match command.output {
        GroupFormat::Json => as_json(&Reports::of(&groups))?,
        GroupFormat::Yaml => as_yaml(&Reports::of(&groups))?,
        GroupFormat::Name => names(&groups),
        // Where the groups could not be read, that is the answer.
        _ if groups.is_empty() && !sight.remarks.problems.is_empty() => String::new(),
        GroupFormat::Table | GroupFormat::Wide => {
            let wide = command.output == GroupFormat::Wide;
            let screen = if wide { screen.without_end() } else { screen };
            List {
                groups: groups.clone(),
                wide,
                all: wide || command.all,
                now: sight.now,
                flags: command.scene.place().flags(),
            }
            .print(screen, &whereabouts(&sight.whereabouts(), command.type_.as_deref()))
        }
    };
    Ok(with_remarks(text, sight.remarks, &groups))
}

fn one(command: &Status, name: &str, sight: Observation, screen: Screen) -> Result<Outcome> {
    let group = match sight.group(name) {
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
            let (family, unseen) = family_of(&group, &sight, false)?;
            notes = unseen;
            let (all, flags) = (wide || command.all, command.scene.place().flags());
            let one = SingleGroup { group: &group, family: &family, all, wide, now: sight.now, flags };
            let evidence = |node: &Node| match &node.rule {
                Some(_) => sight.evidence(&node.kind, &node.name),
                None => Vec::new(),
            };
            one.print(screen, &evidence)
        }
    };
    let mut outcome = with_remarks(text, sight.remarks, std::slice::from_ref(&group));
    outcome.notes.extend(notes);
    Ok(outcome)
}

/// Where was looked, and for what.
fn whereabouts(place: &str, type_: Option<&str>) -> String {
    type_.map_or_else(|| place.to_owned(), |type_| format!("of type {type_} {place}"))
}

fn is_wanted(group: &Group, type_: Option<&str>) -> bool {
    let Some(wanted) = type_ else { return true };
    matches!(&group.detail, Detail::Application { type_: Some(type_), .. } if type_ == wanted)
}

/// The answer, with what could not be read. Where nothing was found, nothing is ready.
pub(crate) fn with_remarks(text: String, remarks: Notes, groups: &[Group]) -> Outcome {
    let Notes { problems, notes, .. } = remarks;
    let is_bad = groups.is_empty() || groups.iter().any(|group| group.state != State::Ready);
    let code = if problems.is_empty() { u8::from(is_bad) } else { BAD_INPUT };
    Outcome { text, errors: problems, notes, code }
}
