//! `bellwether tree`: a group, its members, and all that they own.

use anyhow::Result;
use bellwether_inspect::{
    observe::{GroupQuery, Observation},
    owner_tree::family_of,
    tree::{Branch, draw, names},
};
use bellwether_terminal::Screen;

use crate::{
    cli::{GroupFormat, Tree},
    output::{Outcome, as_json, as_yaml},
    status::with_remarks,
};

pub(crate) fn run(command: &Tree, screen: Screen) -> Result<Outcome> {
    let read = || {
        let sight =
            Observation::open(&command.scene.place(), command.scene.now(), GroupQuery::One(&command.name))?;
        let group = sight.group(&command.name)?;
        let all = command.all || !matches!(command.output, GroupFormat::Table);
        let (family, unseen) = family_of(&group, &sight, all)?;
        anyhow::Ok((sight, group, family, unseen))
    };
    let (sight, group, family, unseen) = match read() {
        Ok(read) => read,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let text = match command.output {
        GroupFormat::Json => as_json(&Branch::of_group(&group, &family))?,
        GroupFormat::Yaml => as_yaml(&Branch::of_group(&group, &family))?,
        GroupFormat::Name => names(&family, &group.name.namespace),
        GroupFormat::Table => draw(&group, &family, command.all, false, sight.now, screen),
        GroupFormat::Wide => draw(&group, &family, true, true, sight.now, screen.without_end()),
    };
    let mut outcome = with_remarks(text, sight.remarks, std::slice::from_ref(&group));
    outcome.notes.extend(unseen);
    Ok(outcome)
}
