//! `bellwether whose`: to which Application an object belongs, and of which Rollups it is a component.

use anyhow::Result;
use bellwether_inspect::whose::{WhoseAnswer, ask};
use bellwether_terminal::Screen;

use crate::{
    cli::{ExplainFormat, Whose},
    output::{BAD_INPUT, Outcome, as_json, as_yaml},
};

pub(crate) fn run(command: &Whose, screen: Screen) -> Result<Outcome> {
    let WhoseAnswer { found, denial, problems } =
        match ask(&command.scene.place(), command.scene.now(), &command.object) {
            Ok(answer) => answer,
            Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
        };
    let text = match command.output {
        ExplainFormat::Text => found.told(denial.as_deref(), screen),
        ExplainFormat::Json => as_json(&found)?,
        ExplainFormat::Yaml => as_yaml(&found)?,
    };
    let code = if problems.is_empty() { u8::from(found.is_nobodys()) } else { BAD_INPUT };
    Ok(Outcome { text, errors: problems, code, ..Outcome::default() })
}
