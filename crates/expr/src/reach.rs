//! Access to values: paths of the input, fields of maps, entries of lists, and what it means that they are
//! missing.

use std::rc::Rc;

use crate::{
    compare,
    eval::Run,
    functions,
    node::Node,
    path::{Absent, Path, Step},
    scope::Absence,
    stop::{Missing, Outcome, Stop, What},
    value::{Text, Val},
};

impl<'v> Run<'v> {
    #[inline]
    pub(crate) fn read(&mut self, at: u32, path: usize) -> Outcome<'v> {
        let (index, path) = (path, &self.paths[path]);
        let mut passed = 0;
        let found = self.input.read(index, path, &mut passed);
        self.fuel.burn(passed / 16)?;
        match found {
            Ok(Val::Null) if self.absence == Absence::Null => {
                Err(missing(path, Absent { reached: path.steps.len().saturating_sub(1), blocked: false }))
            }
            Ok(value) => Ok(value),
            Err(absent) if absent.blocked => Err(blocked(path, absent).at(at)),
            Err(absent) => Err(missing(path, absent)),
        }
    }

    pub(crate) fn has(&mut self, at: u32, path: usize) -> Result<bool, Stop<'v>> {
        let (index, path) = (path, &self.paths[path]);
        let is_lenient = self.absence != Absence::AsInCel;
        let mut passed = 0;
        let found = self.input.read(index, path, &mut passed);
        self.fuel.burn(passed / 16)?;
        match found {
            Ok(Val::Null) if self.absence == Absence::Null => Ok(false),
            Ok(_) => Ok(true),
            Err(_) if is_lenient => Ok(false),
            Err(absent) if absent.blocked => Err(blocked(path, absent).at(at)),
            // In CEL, a field at the top of the object is a variable, and `has()` cannot test a variable.
            Err(absent)
                if absent.reached + 1 == path.steps.len()
                    && path.steps.len() > usize::from(path.name.is_none()) =>
            {
                Ok(false)
            }
            Err(absent) => Err(missing(path, absent)),
        }
    }

    /// The operand of an optional field or entry. Where a missing field is not an error, the operand may be
    /// missing, too.
    pub(crate) fn eval_optional(&mut self, of: &'v Node, optional: bool) -> Outcome<'v> {
        match self.eval(of) {
            Err(Stop::Missing(_)) if optional && self.absence != Absence::AsInCel => Ok(Val::Optional(None)),
            other => other,
        }
    }

    pub(crate) fn select(&mut self, of: Val<'v>, field: &'v str, optional: bool) -> Outcome<'v> {
        match of {
            Val::Map(fields) => {
                self.fuel.burn(fields.len() / 16)?;
                match fields.get(field) {
                    found if optional => Ok(self.optional(found)),
                    Some(Val::Null) if self.absence == Absence::Null => Err(Stop::not_there(field)),
                    Some(value) => Ok(value),
                    None => Err(Stop::not_there(field)),
                }
            }
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(of)) => self.select((*of).clone(), field, true),
            Val::Null if optional && self.absence != Absence::AsInCel => Ok(Val::Optional(None)),
            Val::Null if !optional => Err(Stop::not_there(field)),
            other => Err(no_fields(&other, field)),
        }
    }

    /// Wraps the value of an optional field. SQL's null counts as none.
    fn optional(&self, found: Option<Val<'v>>) -> Val<'v> {
        let is_nothing = |value: &Val<'v>| matches!(value, Val::Null) && self.absence == Absence::Null;
        Val::Optional(found.filter(|value| !is_nothing(value)).map(Rc::new))
    }

    pub(crate) fn has_field(&mut self, at: u32, of: &'v Node, field: &'v str) -> Result<bool, Stop<'v>> {
        let is_lenient = self.absence != Absence::AsInCel;
        let of = match self.eval(of) {
            Err(Stop::Missing(_)) if is_lenient => return Ok(false),
            other => other?,
        };
        match of {
            Val::Map(fields) => {
                self.fuel.burn(fields.len() / 16)?;
                Ok(match fields.get(field) {
                    Some(Val::Null) => self.absence != Absence::Null,
                    found => found.is_some(),
                })
            }
            Val::Optional(None) => Ok(false),
            Val::Optional(Some(inner)) => match self.select((*inner).clone(), field, true)? {
                Val::Optional(found) => Ok(found.is_some()),
                _ => Ok(false),
            },
            _ if is_lenient => Ok(false),
            other => Err(no_fields(&other, field).at(at)),
        }
    }

    pub(crate) fn index(&mut self, of: &Val<'v>, index: &Val<'v>, optional: bool) -> Outcome<'v> {
        let found = match (of, index) {
            (Val::List(list), _) => {
                let position = position(index)
                    .ok_or_else(|| Stop::error(format!("invalid list index: {}", index.type_of().one())))?;
                usize::try_from(position).ok().and_then(|position| list.get(position))
            }
            (Val::Map(fields), _) => compare::find(&mut self.fuel, fields, index)?,
            (Val::Optional(None), _) => return Ok(Val::Optional(None)),
            (Val::Optional(Some(of)), _) => return self.index(of, index, true),
            (Val::Null, _) => None,
            (other, _) => return Err(functions::no_such_overload("[]", &[(*other).clone(), index.clone()])),
        };
        if optional {
            return Ok(self.optional(found));
        }
        match found {
            Some(Val::Null) if self.absence == Absence::Null => Err(no_entry(of, index)),
            Some(value) => Ok(value),
            None => Err(no_entry(of, index)),
        }
    }
}

/// The list index for a number of any type, if it is an integer.
fn position(index: &Val<'_>) -> Option<i64> {
    match index {
        Val::Int(number) => Some(*number),
        Val::Uint(number) => i64::try_from(*number).ok(),
        // Beyond 2^53 doubles are not exact, and no list is that long.
        #[expect(clippy::cast_possible_truncation)]
        Val::Double(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => Some(*number as i64),
        _ => None,
    }
}

fn missing(path: &Path, absent: Absent) -> Stop<'_> {
    let is_variable = absent.reached == 0 && path.name.is_none();
    Stop::Missing(Missing(match path.steps.get(absent.reached) {
        Some(Step::Index(index)) => What::Index(i64::try_from(*index).unwrap_or(i64::MAX)),
        Some(Step::Field(name)) if !is_variable => What::Key(Text::Read(name)),
        _ => What::Variable(path),
    }))
}

fn blocked<'v>(path: &Path, absent: Absent) -> Stop<'v> {
    let reached =
        Path { root: path.root, name: path.name.clone(), steps: path.steps[..absent.reached].into() };
    match path.steps.get(absent.reached) {
        Some(Step::Index(index)) => {
            Stop::error(format!("cannot read entry {index}: {reached} is not a list"))
        }
        Some(Step::Field(name)) => Stop::error(format!("cannot read field `{name}`: {reached} is not a map")),
        None => Stop::error(format!("{reached} cannot be read")),
    }
}

fn no_entry<'v>(of: &Val<'v>, index: &Val<'v>) -> Stop<'v> {
    let what = match (of, index) {
        (_, Val::Text(text)) => What::Key(text.clone()),
        (Val::List(_), _) => What::Index(position(index).unwrap_or_default()),
        (_, other) => What::Key(Text::Made(
            functions::text_of(other).unwrap_or_else(|| other.type_of().to_string()).into(),
        )),
    };
    Stop::Missing(Missing(what))
}

fn no_fields<'v>(of: &Val<'v>, field: &str) -> Stop<'v> {
    Stop::error(format!("cannot read field `{field}` of {}", of.type_of().one()))
}
