//! stub
use crate::{cli::Adopt, output::Outcome};
use anyhow::Result;
pub(crate) fn run(_c: &Adopt) -> Result<Outcome> {
    Ok(Outcome::default())
}
