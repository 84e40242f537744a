//! Inputs of expressions.

use bellwether_model::{Object, Value};

use crate::{
    path::{Absent, Path},
    value::Val,
};

/// The source of the values that an expression reads.
pub trait Input {
    /// Returns the value at a path. `index` is the position of the path in [`paths`](crate::Program::paths).
    /// Adds to `passed` the number of fields that the lookup searched: the evaluator charges for them.
    fn read<'v>(&'v self, index: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent>;
}

/// The object is the only variable of its scope.
impl Input for Object<'_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        path.find(self.fields(), passed).map(Val::from)
    }
}

/// The values of the variables in the order of their scope; `None` for a variable without a value.
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

/// The values at the paths of a program, in the order of [`paths`](crate::Program::paths).
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
