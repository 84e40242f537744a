//! `bellwether status`: how Applications and Rollups are, the worst first, or all about one.

mod list;
mod one;
mod rollup;
mod watch;

use std::fmt::Write as _;

use anyhow::Result;
use bellwether_engine::{Group, Kind, Name, Report, Reports, Unreadable};
use bellwether_model::State;
use bellwether_terminal::{Screen, printable};

use crate::{
    cli::{GroupFormat, Status},
    family::{Node, family, kinds_below},
    output::{BAD_INPUT, Outcome, as_json, as_yaml},
    sight::{Meant, Sight},
};

pub(crate) use list::{List, why};
pub(crate) use one::{One, headline, needs};
pub(crate) use rollup::meaning;

pub(crate) fn run(command: &Status, screen: Screen) -> Result<Outcome> {
    if command.watch {
        return watch::run(command, screen);
    }
    let sight = match Sight::open(&command.scene, meant(command)) {
        Ok(sight) => sight,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    match &command.name {
        Some(name) => one(command, name, &sight, screen),
        None => list(command, &sight, screen),
    }
}

/// What is asked for.
fn meant(command: &Status) -> Meant<'_> {
    match &command.name {
        Some(name) => Meant::One(name),
        None => Meant::All { all_namespaces: command.all_namespaces },
    }
}

/// What a group is called: as `bellwether status` takes it.
pub(crate) fn title(group: &Group) -> String {
    called(&group.kind, &group.name)
}

fn called(kind: &Kind, name: &Name) -> String {
    if *kind == Kind::own("Rollup") { format!("rollup/{}", name.name) } else { name.to_string() }
}

fn list(command: &Status, sight: &Sight, screen: Screen) -> Result<Outcome> {
    let mut groups = sight.groups();
    groups.retain(|group| is_wanted(group, command.type_.as_deref()));
    let text = match command.output {
        GroupFormat::Json => as_json(&Reports::of(&groups))?,
        GroupFormat::Yaml => as_yaml(&Reports::of(&groups))?,
        GroupFormat::Name => names(&groups),
        // Where the groups could not be read, that is the answer.
        _ if groups.is_empty() && !sight.problems.is_empty() => String::new(),
        GroupFormat::Table | GroupFormat::Wide => {
            let wide = command.output == GroupFormat::Wide;
            let screen = if wide { screen.without_end() } else { screen };
            List {
                groups: groups.clone(),
                wide,
                all: wide || command.all,
                now: sight.now,
                flags: sight.flags(),
            }
            .print(screen, &whereabouts(&sight.whereabouts(), command.type_.as_deref()))
        }
    };
    Ok(with_problems(text, sight, &groups))
}

fn one(command: &Status, name: &str, sight: &Sight, screen: Screen) -> Result<Outcome> {
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
            let (family, unseen) = family_of(&group, sight, false)?;
            notes = unseen;
            let all = wide || command.all;
            let one = One { group: &group, family: &family, all, wide, now: sight.now, flags: sight.flags() };
            let evidence = |node: &Node| match &node.rule {
                Some(_) => sight.evidence(&node.kind, &node.name),
                None => Vec::new(),
            };
            one.print(screen, &evidence)
        }
    };
    let mut outcome = with_problems(text, sight, std::slice::from_ref(&group));
    outcome.notes.extend(notes);
    Ok(outcome)
}

/// The members of a group with what they own, and what could not be seen of that, a sentence each. What is ready needs no
/// look below it, unless somebody wants to see all.
pub(crate) fn family_of(group: &Group, sight: &Sight, all: bool) -> Result<(Vec<Node>, Vec<String>)> {
    let looked_below = group.members.iter().filter(|member| all || member.state != State::Ready);
    let listed = sight.listed(&kinds_below(looked_below), group.is_rollup())?;
    let is_told = |why: &Unreadable| !matches!(why, Unreadable::NotServed | Unreadable::NotGiven);
    let unseen = listed.unreadable.iter().filter(|(_, why)| is_told(why));
    let unseen = unseen.map(|(kind, why)| format!("of what the members own, no {kind} can be seen: {why}"));
    Ok((family(group, &listed.objects), unseen.collect()))
}

/// Where was looked, and for what.
pub(crate) fn whereabouts(place: &str, type_: Option<&str>) -> String {
    type_.map_or_else(|| place.to_owned(), |type_| format!("of type {type_} {place}"))
}

pub(crate) fn is_wanted(group: &Group, type_: Option<&str>) -> bool {
    type_.is_none_or(|wanted| group.type_.as_deref() == Some(wanted))
}

fn names(groups: &[Group]) -> String {
    groups.iter().fold(String::new(), |mut names, group| {
        let _ = writeln!(names, "{}/{}", group.kind.to_string().to_lowercase(), printable(&group.name.name));
        names
    })
}

/// The answer, with what could not be read. Where nothing was found, nothing is ready.
pub(crate) fn with_problems(text: String, sight: &Sight, groups: &[Group]) -> Outcome {
    let is_bad = groups.is_empty() || groups.iter().any(|group| group.state != State::Ready);
    let code = if sight.problems.is_empty() { u8::from(is_bad) } else { BAD_INPUT };
    Outcome { text, errors: sight.problems.clone(), notes: sight.notes.clone(), code }
}
