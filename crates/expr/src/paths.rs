//! The paths that an expression reads, each once.

use crate::path::Path;

/// The most paths that one expression may read. What a person writes reads a handful.
const MOST: usize = 1000;

/// The paths of an expression that is being compiled.
#[derive(Debug, Default)]
pub(crate) struct Paths(Vec<Path>);

impl Paths {
    /// The number of a path; the same for the same path.
    pub(crate) fn keep(&mut self, path: Path) -> Result<usize, String> {
        if let Some(known) = self.0.iter().position(|own| *own == path) {
            return Ok(known);
        }
        if self.0.len() == MOST {
            return Err(format!("the expression reads more than {MOST} different fields"));
        }
        self.0.push(path);
        Ok(self.0.len() - 1)
    }

    pub(crate) fn into_vec(self) -> Vec<Path> {
        self.0
    }
}
