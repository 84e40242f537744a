//! `bellwether tree`: a group, its members, and the objects that they own.

use anyhow::{Error, Result};
use bellwether_inspect::{
    observe::{GroupQuery, Observation},
    owner_tree::read_tree,
    tree::{Branch, draw, names},
};
use bellwether_terminal::Screen;

use crate::{
    cli::{GroupFormat, Tree},
    output::{Outcome, as_json, as_yaml},
    status::with_notes,
};

pub(crate) fn run(command: &Tree, screen: Screen) -> Result<Outcome> {
    let read = || {
        let location = command.location().map_err(Error::msg)?;
        let observation = Observation::open(&location, command.input.now(), GroupQuery::One(&command.name))?;
        let group = observation.group(&command.name)?;
        let all = command.all || !matches!(command.output, GroupFormat::Table);
        let (tree, notes) = read_tree(&group, &observation, all)?;
        anyhow::Ok((observation, group, tree, notes))
    };
    let (observation, group, tree, notes) = match read() {
        Ok(read) => read,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let now = observation.now;
    let text = match command.output {
        GroupFormat::Json => as_json(&Branch::of_group(&group, &tree))?,
        GroupFormat::Yaml => as_yaml(&Branch::of_group(&group, &tree))?,
        GroupFormat::Name => names(&tree, &group.name.namespace),
        GroupFormat::Table => draw(&group, &tree, command.all, false, now, screen),
        GroupFormat::Wide => draw(&group, &tree, true, true, now, screen.without_end()),
    };
    let mut outcome = with_notes(text, observation.notes, std::slice::from_ref(&group));
    outcome.notes.extend(notes);
    Ok(outcome)
}
