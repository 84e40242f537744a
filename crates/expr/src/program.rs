//! Programs: expressions that were read once and can be evaluated on anything.

use bellwether_model::{Object, Value};
use serde_json::Value as Json;

use crate::{
    cel,
    eval::Run,
    mistake::{Mistake, Place},
    node::Node,
    path::{Absent, Path},
    scope::{Absence, Scope},
    stop::{Error, Fuel, Stop},
    tree,
    types::{Type, Types},
    value::Val,
};

/// An expression that was read, checked and made ready to be evaluated.
#[derive(Debug)]
pub struct Program {
    pub(crate) paths: Vec<Path>,
    pub(crate) absence: Absence,
    node: Node,
    types: Types,
    written: Written,
}

/// As what it was written: where in it a mistake is.
#[derive(Debug)]
enum Written {
    Text(Box<str>),
    Tree(Vec<String>),
}

/// Where an expression reads from.
pub trait Input {
    /// The value at a path; `index` is that of the path in [`Program::paths`]. To `passed` is added how many fields had to be
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

impl Program {
    /// Reads an expression in CEL.
    pub fn cel(text: &str, scope: &Scope) -> Result<Self, Mistake> {
        let (node, paths, types) = cel::compile(text, scope).map_err(|slip| slip.in_text(text))?;
        Ok(Self { paths, absence: scope.absence, node, types, written: Written::Text(text.into()) })
    }

    /// Reads a tree of operations.
    pub fn tree(tree: &Json, scope: &Scope) -> Result<Self, Mistake> {
        let compiled = tree::compile(tree, scope)?;
        Ok(Self {
            paths: compiled.paths,
            absence: scope.absence,
            node: compiled.node,
            types: compiled.types,
            written: Written::Tree(compiled.places),
        })
    }

    /// The parts of the input that it reads.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Whether its value can have this type, as far as can be told beforehand.
    pub fn can_be(&self, one: Type) -> bool {
        self.types.meets(Types::of(one))
    }

    /// Its value. What is not used of the fuel is left.
    pub fn evaluate<'v>(&'v self, input: &'v dyn Input, fuel: &mut Fuel) -> Result<Val<'v>, Stop<'v>> {
        let mut run = Run { program: self, input, fuel: *fuel, locals: Vec::new() };
        let value = run.eval(&self.node);
        *fuel = run.fuel;
        value
    }

    /// Where an error arose.
    pub fn place(&self, error: &Error) -> Option<Place> {
        let at = error.at?;
        match &self.written {
            Written::Text(text) => Some(Place::in_text(text, at)),
            Written::Tree(places) => places.get(at as usize).cloned().map(Place::Tree),
        }
    }

    /// Why there is no value, in one sentence.
    pub fn describe(&self, stop: &Stop<'_>) -> String {
        match stop {
            Stop::Missing(missing) => missing.to_string(),
            Stop::TooExpensive => "it takes more steps than it is given".to_owned(),
            Stop::Error(error) => match self.place(error) {
                Some(Place::Tree(root)) if root.is_empty() => error.text.clone(),
                Some(place) => format!("{place}: {}", error.text),
                None => error.text.clone(),
            },
        }
    }
}
