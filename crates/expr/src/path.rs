//! Paths: which part of the input an expression reads.

use std::fmt;

use bellwether_model::{Map, Value};

use crate::{scope::SELF, value::Val};

/// A path from one of the variables of an expression to the part of it that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Which variable, counted as its scope declares them.
    pub(crate) root: usize,
    /// The variable's name; none where the fields of the variable are in scope by themselves.
    pub(crate) name: Option<Box<str>>,
    /// The way from there.
    pub(crate) steps: Box<[Step]>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a field of a map.
    Field(Box<str>),
    /// Into an entry of a list.
    Index(usize),
}

/// Why there is nothing at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// How many steps led somewhere.
    pub reached: usize,
    /// Whether what was reached is something that has no fields or entries at all.
    pub blocked: bool,
}

impl Path {
    /// Which variable it starts from, counted as its scope declares them.
    pub fn root(&self) -> usize {
        self.root
    }

    /// The way from there.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The fields on the way: lists are passed through, as in the plan of what is kept of an object.
    pub fn fields(&self) -> Vec<&str> {
        self.steps
            .iter()
            .filter_map(|step| match step {
                Step::Field(name) => Some(&**name),
                Step::Index(_) => None,
            })
            .collect()
    }

    /// What is at its end in a value that was read. To `passed` is added how many fields had to be looked through.
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

    /// Follows it from the value of its variable. To `passed` is added how many fields had to be looked through.
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

/// Maps that an expression makes may have numbers for keys.
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
