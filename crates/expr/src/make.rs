//! Lists and maps that an expression creates.

use crate::{
    compare::equal,
    eval::Run,
    functions,
    node::{Element, Field},
    stop::{Outcome, Stop},
    value::{Text, Val},
};

impl<'v> Run<'v> {
    /// One object out of several paths: the fields of the first, overlaid with the named others.
    pub(crate) fn whole(&mut self, at: u32, paths: &'v [(Box<str>, usize)]) -> Outcome<'v> {
        let Some(((_, first), others)) = paths.split_first() else { return Ok(Val::Null) };
        let mut made = Vec::new();
        if let Val::Map(fields) = self.read(at, *first)? {
            self.fuel.burn(2 * fields.len())?;
            let is_replaced = |key: &Val<'v>| matches!(key, Val::Text(key) if others.iter().any(|(name, _)| **name == **key));
            made.extend(fields.iter().filter(|(key, _)| !is_replaced(key)));
        }
        for (name, path) in others {
            match self.read(at, *path) {
                Ok(value) => made.push((Val::Text(Text::Read(name)), value)),
                Err(Stop::Missing(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(Val::map(made))
    }

    pub(crate) fn list(&mut self, elements: &'v [Element]) -> Outcome<'v> {
        self.fuel.burn(elements.len())?;
        let mut entries = Vec::with_capacity(elements.len());
        for element in elements {
            match (element.optional, self.eval(&element.value)?) {
                (true, Val::Optional(None)) => {}
                (true, Val::Optional(Some(value))) => entries.push((*value).clone()),
                (true, other) => return Err(functions::no_such_overload("?", &[other]).at(element.value.at)),
                (false, value) => entries.push(value),
            }
        }
        Ok(Val::list(entries))
    }

    pub(crate) fn map(&mut self, at: u32, fields: &'v [Field]) -> Outcome<'v> {
        let mut made = Vec::with_capacity(fields.len());
        for field in fields {
            let key = self.eval(&field.key)?;
            let value = match (field.optional, self.eval(&field.value)?) {
                (true, Val::Optional(None)) => continue,
                (true, Val::Optional(Some(value))) => (*value).clone(),
                (true, other) => return Err(functions::no_such_overload("?", &[other]).at(field.value.at)),
                (false, value) => value,
            };
            self.add_field(&mut made, key, value).map_err(|stop| stop.at(at))?;
        }
        Ok(Val::map(made))
    }

    /// Adds a field. It is an error if the key is invalid or a duplicate.
    pub(crate) fn add_field(
        &mut self,
        made: &mut Vec<(Val<'v>, Val<'v>)>,
        key: Val<'v>,
        value: Val<'v>,
    ) -> Result<(), Stop<'v>> {
        if !matches!(key, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Text(_)) {
            return Err(Stop::error(format!("invalid map key: {}", key.type_of().one())));
        }
        self.fuel.burn(2 + made.len() / 4)?;
        for (own, _) in made.iter() {
            if equal(&mut self.fuel, own, &key)? {
                let key = functions::text_of(&key).unwrap_or_default();
                return Err(Stop::error(format!("duplicate map key `{key}`")));
            }
        }
        made.push((key, value));
        Ok(())
    }
}
