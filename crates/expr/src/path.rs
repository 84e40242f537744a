//! The parts of the input that an expression reads.

use std::fmt;

use bellwether_model::{Map, Value};

use crate::{scope::SELF, value::Val};

/// A path from a variable to a part of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The index of the variable in its scope.
    pub(crate) root: usize,
    /// The name of the variable; `None` where its fields are names of their own.
    pub(crate) name: Option<Box<str>>,
    pub(crate) steps: Box<[Step]>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field of a map.
    Field(Box<str>),
    /// An entry of a list, counted from 0.
    Index(usize),
}

/// Why a path leads to no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The number of steps that led to a value.
    pub reached: usize,
    /// Whether the last value has no fields or entries at all, for example a string.
    pub blocked: bool,
}

impl Path {
    /// The index of the variable in its scope.
    pub fn root(&self) -> usize {
        self.root
    }

    /// The steps from the variable to the value.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The fields of the path. Indexes are left out, as in a [`Plan`](bellwether_model::Plan), which keeps
    /// all entries of a list.
    pub fn fields(&self) -> Vec<&str> {
        self.steps
            .iter()
            .filter_map(|step| match step {
                Step::Field(name) => Some(&**name),
                Step::Index(_) => None,
            })
            .collect()
    }

    /// Looks the path up in a decoded value. Adds to `passed` the number of fields that were searched.
    #[inline]
    pub fn find<'v>(&self, mut value: &'v Value<'v>, passed: &mut usize) -> Result<&'v Value<'v>, Absent> {
        for (reached, step) in self.steps.iter().enumerate() {
            *passed += value.as_map().map_or(0, Map::len);
            let next = match (step, value) {
                (Step::Field(name), Value::Map(fields)) => fields.get(name),
                (Step::Index(index), Value::List(list)) => list.get(*index),
                (Step::Index(_), Value::Map(_)) | (_, Value::Null) => None,
                _ => return Err(Absent { reached, blocked: true }),
            };
            value = next.ok_or(Absent { reached, blocked: false })?;
        }
        Ok(value)
    }

    /// Looks the path up in the value of its variable. Adds to `passed` the number of fields that were
    /// searched.
    pub fn follow<'v>(&self, mut value: Val<'v>, passed: &mut usize) -> Result<Val<'v>, Absent> {
        for (reached, step) in self.steps.iter().enumerate() {
            if let Val::Map(fields) = &value {
                *passed += fields.len();
            }
            let next = match (step, &value) {
                (Step::Field(name), Val::Map(fields)) => fields.get(name),
                (Step::Index(index), Val::List(list)) => list.get(*index),
                (Step::Index(index), Val::Map(fields)) => entry_numbered(fields, *index),
                (_, Val::Null) => None,
                _ => return Err(Absent { reached, blocked: true }),
            };
            value = next.ok_or(Absent { reached, blocked: false })?;
        }
        Ok(value)
    }
}

/// Only maps that an expression creates can have integer keys.
fn entry_numbered<'v>(fields: &crate::value::Fields<'v>, index: usize) -> Option<Val<'v>> {
    fields.iter().find_map(|(key, value)| match key {
        Val::Int(number) if usize::try_from(number) == Ok(index) => Some(value),
        Val::Uint(number) if usize::try_from(number) == Ok(index) => Some(value),
        _ => None,
    })
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        if self.name.is_none() && self.steps.is_empty() {
            return f.write_str(SELF);
        }
        if let Some(name) = &self.name {
            f.write_str(name)?;
            first = false;
        }
        for step in &self.steps {
            match step {
                Step::Field(name) if is_word(name) => write!(f, "{}{name}", if first { "" } else { "." })?,
                Step::Field(name) => write!(f, "['{name}']")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            first = false;
        }
        Ok(())
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || char == '_')
}
