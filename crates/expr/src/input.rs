//! Where expressions read from.

use bellwether_model::{Object, Value};

use crate::{
    path::{Absent, Path},
    value::Val,
};

/// Where an expression reads from.
pub trait Input {
    /// The value at a path; `index` is that of the path in [`paths`](crate::Program::paths). To `passed` is added how many fields had to be
    /// looked through.
    fn read<'v>(&'v self, index: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent>;
}

/// An object is its scope's only variable.
impl Input for Object<'_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        path.find(self.fields(), passed).map(Val::from)
    }
}

/// The values of the variables, as their scope declares them; none for a variable that has no value.
#[derive(Clone, Debug)]
pub struct Variables<'a>(pub Vec<Option<Val<'a>>>);

impl Input for Variables<'_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        match self.0.get(path.root()) {
            Some(Some(value)) => path.follow(value.clone(), passed),
            _ => Err(Absent { reached: 0, blocked: false }),
        }
    }
}

/// What was kept of the input: the values at the program's paths, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a>(pub &'a [Option<Value<'a>>]);

impl Input for Facts<'_> {
    fn read<'v>(&'v self, index: usize, path: &Path, _: &mut usize) -> Result<Val<'v>, Absent> {
        match self.0.get(index) {
            Some(Some(value)) => Ok(Val::from(value)),
            _ => Err(Absent { reached: path.steps().len().saturating_sub(1), blocked: false }),
        }
    }
}
