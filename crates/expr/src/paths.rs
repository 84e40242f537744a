//! The distinct paths that an expression reads.

use crate::path::Path;

/// The most paths of one expression. It bounds what is kept of an object.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Paths(Vec<Path>);

impl Paths {
    /// Returns the index of a path, and adds it if it is new.
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
