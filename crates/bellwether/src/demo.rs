//! stub
use crate::{cli::Demo, output::Outcome, terminal::Screen};
use anyhow::Result;
pub(crate) fn run(_c: &Demo, _s: Screen) -> Result<Outcome> {
    Ok(Outcome::default())
}
