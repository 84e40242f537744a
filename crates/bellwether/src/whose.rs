//! `bellwether whose`: the groups that an object belongs to.

use anyhow::Result;
use bellwether_inspect::whose::{WhoseAnswer, find_owners};
use bellwether_terminal::Screen;

use crate::{
    cli::{ObjectFormat, Whose},
    output::{BAD_INPUT, Outcome, as_json, as_yaml},
};

pub(crate) fn run(command: &Whose, screen: Screen) -> Result<Outcome> {
    let location = match command.fleet.of(command.input.location()) {
        Ok(location) => location,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let now = command.input.now();
    let WhoseAnswer { owners, conclusion, problems } = match find_owners(&location, now, &command.object) {
        Ok(answer) => answer,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let text = match command.output {
        ObjectFormat::Text => owners.text(conclusion.as_deref(), screen),
        ObjectFormat::Json => as_json(&owners)?,
        ObjectFormat::Yaml => as_yaml(&owners)?,
    };
    let code = if problems.is_empty() { u8::from(owners.is_empty()) } else { BAD_INPUT };
    Ok(Outcome { text, errors: problems, code, ..Outcome::default() })
}
