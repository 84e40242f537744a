//! Compiled expressions.

use serde_json::Value as Json;

use crate::{
    cel,
    compile_error::{CompileError, Place},
    eval::Run,
    input::Input,
    node::Node,
    path::Path,
    scope::{Absence, Scope},
    stop::{Error, Fuel, Stop},
    tree,
    types::{Type, Types},
    value::Val,
};

/// An expression that was parsed, checked and compiled.
#[derive(Debug)]
pub struct Program {
    paths: Vec<Path>,
    absence: Absence,
    node: Node,
    types: Types,
    written: Written,
}

/// The source, for the places of errors.
#[derive(Debug)]
enum Written {
    Text(Box<str>),
    Tree(Vec<String>),
}

impl Program {
    /// Compiles an expression in CEL.
    pub fn cel(text: &str, scope: &Scope) -> Result<Self, CompileError> {
        let (node, paths, types) = cel::compile(text, scope).map_err(|slip| slip.in_text(text))?;
        Ok(Self { paths, absence: scope.absence, node, types, written: Written::Text(text.into()) })
    }

    /// Compiles a tree of operations.
    pub fn tree(tree: &Json, scope: &Scope) -> Result<Self, CompileError> {
        let compiled = tree::compile(tree, scope)?;
        Ok(Self {
            paths: compiled.paths,
            absence: scope.absence,
            node: compiled.node,
            types: compiled.types,
            written: Written::Tree(compiled.places),
        })
    }

    /// The parts of the input that the expression reads.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Whether the type checker allows a value of this type. It is true for expressions of unknown type.
    pub fn can_be(&self, one: Type) -> bool {
        self.types.meets(Types::of(one))
    }

    /// Evaluates the expression and deducts its cost from `fuel`.
    pub fn evaluate<'v>(&'v self, input: &'v dyn Input, fuel: &mut Fuel) -> Result<Val<'v>, Stop<'v>> {
        let mut run =
            Run { paths: &self.paths, absence: self.absence, input, fuel: *fuel, locals: Vec::new() };
        let value = run.eval(&self.node);
        *fuel = run.fuel;
        value
    }

    /// The place of an error in the source.
    pub fn place(&self, error: &Error) -> Option<Place> {
        let at = error.at?;
        match &self.written {
            Written::Text(text) => Some(Place::in_text(text, at)),
            Written::Tree(places) => places.get(at as usize).cloned().map(Place::Tree),
        }
    }

    /// Describes why there is no value, in one sentence with the place.
    pub fn describe(&self, stop: &Stop<'_>) -> String {
        match stop {
            Stop::Missing(missing) => missing.to_string(),
            Stop::TooExpensive => "expression exceeded its cost limit".to_owned(),
            Stop::Error(error) => match self.place(error) {
                Some(Place::Tree(root)) if root.is_empty() => error.text.clone(),
                Some(place) => format!("{place}: {}", error.text),
                None => error.text.clone(),
            },
        }
    }
}
