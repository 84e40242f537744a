//! The evaluator: walks through a program, on fuel.

use std::{cmp::Ordering, rc::Rc};

use crate::{
    compare::{self, equal, order},
    functions::{self, Function, MOST_ARGUMENTS, maths},
    node::{Arithmetic, Comparison, Constant, Element, Field, Node, Op},
    path::{Absent, Path, Step},
    program::{Input, Program},
    scope::Absence,
    stop::{Fuel, Missing, Outcome, Stop, What},
    value::{Text, Val},
};

/// How deep the values that an expression makes may be in each other.
const DEEPEST: usize = 200;

/// One evaluation.
pub(crate) struct Run<'v> {
    pub(crate) program: &'v Program,
    pub(crate) input: &'v dyn Input,
    pub(crate) fuel: Fuel,
    /// The variables of the loops around, the innermost last.
    pub(crate) locals: Vec<Val<'v>>,
}

impl<'v> Run<'v> {
    pub(crate) fn eval(&mut self, node: &'v Node) -> Outcome<'v> {
        self.fuel.burn(1)?;
        // What comparisons are made of comes first, and by itself: it is most of what is ever evaluated.
        match &node.op {
            Op::Constant(Constant::Value(value)) => Ok(Val::from(value)),
            Op::Read(path) => self.read(node.at, *path),
            _ if node.is_question() => self.answer(node).map(Val::Bool),
            _ => {
                let value = self.compute(node)?;
                // Values in values in values: comparing or dropping them takes a little of the stack for each level.
                if value.depth() > DEEPEST { Err(Stop::TooExpensive) } else { Ok(value) }
            }
        }
    }

    /// Whether something is so; `of` is what asks, and stands `at` its place.
    pub(crate) fn truth(&mut self, node: &'v Node, of: &str, at: u32) -> Result<bool, Stop<'v>> {
        if node.is_question() {
            self.fuel.burn(1)?;
            return self.answer(node);
        }
        match self.eval(node)? {
            Val::Bool(truth) => Ok(truth),
            other => Err(functions::unsuited(of, &[other]).at(at)),
        }
    }

    /// The answer to a question, which was paid for.
    fn answer(&mut self, node: &'v Node) -> Result<bool, Stop<'v>> {
        match &node.op {
            Op::Compare(comparison, operands) => {
                let left = self.eval(&operands[0])?;
                let right = self.eval(&operands[1])?;
                self.compare(*comparison, &left, &right).map_err(|stop| stop.at(node.at))
            }
            Op::All(operands) => self.joined(operands, false),
            Op::Any(operands) => self.joined(operands, true),
            Op::Not(operand) => self.truth(operand, "!", node.at).map(|truth| !truth),
            Op::Has(path) => self.has(node.at, *path),
            Op::HasField { of, field } => self.has_field(node.at, of, field),
            Op::In(operands) => {
                let what = self.eval(&operands[0])?;
                let within = self.eval(&operands[1])?;
                self.is_in(&what, &within).map_err(|stop| stop.at(node.at))
            }
            Op::IsNull(asked) => self.is_null(asked),
            Op::IsSomething(asked) => self.is_null(asked).map(|is_null| !is_null),
            Op::Matches(text, pattern) => match self.eval(text)? {
                Val::Text(text) => pattern.is_match(&mut self.fuel, &text),
                other => Err(functions::unsuited("matches", &[other]).at(node.at)),
            },
            // Nothing else is a question.
            _ => Ok(false),
        }
    }

    /// The value of what is no question, which was paid for.
    #[inline(never)]
    fn compute(&mut self, node: &'v Node) -> Outcome<'v> {
        match &node.op {
            Op::Constant(constant) => {
                if let Constant::Bytes(bytes) = constant {
                    self.fuel.burn_bytes(bytes.len())?;
                }
                Ok(constant.as_val())
            }
            Op::Local(slot) => match self.locals.get(*slot) {
                Some(Val::Null) | None if self.program.absence == Absence::Null => Err(not_there("null")),
                // The compiler numbered them.
                value => Ok(value.cloned().unwrap_or_default()),
            },
            Op::Select { of, field, optional } => {
                let of = self.eval_optional(of, *optional)?;
                self.select(of, field, *optional).map_err(|stop| stop.at(node.at))
            }
            Op::Index { of, index, optional } => {
                let of = self.eval_optional(of, *optional)?;
                let index = self.eval(index)?;
                self.index(&of, &index, *optional).map_err(|stop| stop.at(node.at))
            }
            Op::Negate(operand) => {
                let operand = self.eval(operand)?;
                maths::negate(&operand).map_err(|stop| stop.at(node.at))
            }
            Op::Conditional(parts) => {
                let chosen = if self.truth(&parts[0], "?:", node.at)? { &parts[1] } else { &parts[2] };
                self.eval(chosen)
            }
            Op::Arithmetic(arithmetic, operands) => {
                let left = self.eval(&operands[0])?;
                let right = self.eval(&operands[1])?;
                let work = match arithmetic {
                    Arithmetic::Add => maths::add,
                    Arithmetic::Subtract => maths::subtract,
                    Arithmetic::Multiply => maths::multiply,
                    Arithmetic::Divide => maths::divide,
                    Arithmetic::Modulo => maths::modulo,
                };
                work(&mut self.fuel, &left, &right).map_err(|stop| stop.at(node.at))
            }
            Op::Whole(paths) => self.whole(node.at, paths),
            Op::List(elements) => self.list(elements),
            Op::Map(fields) => self.map(node.at, fields),
            Op::Loop(the_loop) => self.go_through(node.at, the_loop),
            Op::Bind(parts) => {
                let value = self.eval(&parts[0])?;
                self.with_local(value, &parts[1])
            }
            Op::Mapped { parts, flat } => self.mapped(node.at, parts, *flat),
            Op::Call(candidates, arguments) => {
                self.call(candidates, arguments).map_err(|stop| stop.at(node.at))
            }
            // The null of SQL; what is read and what is asked is done elsewhere.
            _ => Err(not_there("null")),
        }
    }

    fn call(&mut self, candidates: &[&'static Function], arguments: &'v [Node]) -> Outcome<'v> {
        let mut values: [Val<'v>; MOST_ARGUMENTS] = Default::default();
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.eval(argument)?;
        }
        let values = &values[..arguments.len().min(MOST_ARGUMENTS)];
        match functions::suited(candidates, values) {
            Some(function) => (function.run)(&mut self.fuel, values),
            None => Err(functions::unsuited(candidates[0].name, values)),
        }
    }

    fn read(&mut self, at: u32, path: usize) -> Outcome<'v> {
        let (index, path) = (path, &self.program.paths[path]);
        let mut passed = 0;
        let found = self.input.read(index, path, &mut passed);
        self.fuel.burn(passed / 16)?;
        match found {
            Ok(Val::Null) if self.program.absence == Absence::Null => {
                Err(missing(path, Absent { reached: path.steps.len().saturating_sub(1), blocked: false }))
            }
            Ok(value) => Ok(value),
            Err(absent) if absent.blocked => Err(blocked(path, absent).at(at)),
            Err(absent) => Err(missing(path, absent)),
        }
    }

    fn has(&mut self, at: u32, path: usize) -> Result<bool, Stop<'v>> {
        let (index, path) = (path, &self.program.paths[path]);
        let is_lenient = self.program.absence != Absence::AsInCel;
        let mut passed = 0;
        let found = self.input.read(index, path, &mut passed);
        self.fuel.burn(passed / 16)?;
        match found {
            Ok(Val::Null) if self.program.absence == Absence::Null => Ok(false),
            Ok(_) => Ok(true),
            Err(_) if is_lenient => Ok(false),
            Err(absent) if absent.blocked => Err(blocked(path, absent).at(at)),
            // A field at the top of an object is a variable to the expression: whether it is there cannot be asked.
            Err(absent)
                if absent.reached + 1 == path.steps.len()
                    && path.steps.len() > usize::from(path.name.is_none()) =>
            {
                Ok(false)
            }
            Err(absent) => Err(missing(path, absent)),
        }
    }

    /// What an optional field is asked of: where absence is no error, it may itself not be there.
    fn eval_optional(&mut self, of: &'v Node, optional: bool) -> Outcome<'v> {
        match self.eval(of) {
            Err(Stop::Missing(_)) if optional && self.program.absence != Absence::AsInCel => {
                Ok(Val::Optional(None))
            }
            other => other,
        }
    }

    fn select(&mut self, of: Val<'v>, field: &'v str, optional: bool) -> Outcome<'v> {
        match of {
            Val::Map(fields) => {
                self.fuel.burn(fields.len() / 16)?;
                match fields.get(field) {
                    found if optional => Ok(self.optional(found)),
                    Some(Val::Null) if self.program.absence == Absence::Null => Err(not_there(field)),
                    Some(value) => Ok(value),
                    None => Err(not_there(field)),
                }
            }
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(of)) => self.select((*of).clone(), field, true),
            Val::Null if optional && self.program.absence != Absence::AsInCel => Ok(Val::Optional(None)),
            Val::Null if !optional => Err(not_there(field)),
            other => Err(no_fields(&other, field)),
        }
    }

    /// What was perhaps found. SQL's null is nothing.
    fn optional(&self, found: Option<Val<'v>>) -> Val<'v> {
        let is_nothing =
            |value: &Val<'v>| matches!(value, Val::Null) && self.program.absence == Absence::Null;
        Val::Optional(found.filter(|value| !is_nothing(value)).map(Rc::new))
    }

    fn has_field(&mut self, at: u32, of: &'v Node, field: &'v str) -> Result<bool, Stop<'v>> {
        let is_lenient = self.program.absence != Absence::AsInCel;
        let of = match self.eval(of) {
            Err(Stop::Missing(_)) if is_lenient => return Ok(false),
            other => other?,
        };
        match of {
            Val::Map(fields) => {
                self.fuel.burn(fields.len() / 16)?;
                Ok(match fields.get(field) {
                    Some(Val::Null) => self.program.absence != Absence::Null,
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

    fn index(&mut self, of: &Val<'v>, index: &Val<'v>, optional: bool) -> Outcome<'v> {
        let found = match (of, index) {
            (Val::List(list), _) => {
                let position = position(index).ok_or_else(|| {
                    Stop::error(format!(
                        "the entries of a list are numbered, and {} is no such number",
                        index.type_of().one()
                    ))
                })?;
                usize::try_from(position).ok().and_then(|position| list.get(position))
            }
            (Val::Map(fields), _) => compare::find(&mut self.fuel, fields, index)?,
            (Val::Optional(None), _) => return Ok(Val::Optional(None)),
            (Val::Optional(Some(of)), _) => return self.index(of, index, true),
            (Val::Null, _) => None,
            (other, _) => return Err(functions::unsuited("[]", &[(*other).clone(), index.clone()])),
        };
        if optional {
            return Ok(self.optional(found));
        }
        match found {
            Some(Val::Null) if self.program.absence == Absence::Null => Err(no_entry(of, index)),
            Some(value) => Ok(value),
            None => Err(no_entry(of, index)),
        }
    }

    /// Whether any is true, or whether all are. One that decides does so whatever the others are, missing or wrong.
    fn joined(&mut self, operands: &'v [Node], decisive: bool) -> Result<bool, Stop<'v>> {
        let mut stop: Option<Stop<'v>> = None;
        for operand in operands {
            match self.truth(operand, if decisive { "||" } else { "&&" }, operand.at) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(Stop::TooExpensive) => return Err(Stop::TooExpensive),
                Err(failed) => {
                    stop = Some(match stop {
                        Some(earlier) => earlier.or_worse(failed),
                        None => failed,
                    });
                }
            }
        }
        stop.map_or(Ok(!decisive), Err)
    }

    fn compare(&mut self, comparison: Comparison, left: &Val<'v>, right: &Val<'v>) -> Result<bool, Stop<'v>> {
        let wanted: fn(Ordering) -> bool = match comparison {
            Comparison::Equal => return equal(&mut self.fuel, left, right),
            Comparison::NotEqual => return equal(&mut self.fuel, left, right).map(|equal| !equal),
            Comparison::Less => Ordering::is_lt,
            Comparison::LessOrEqual => Ordering::is_le,
            Comparison::Greater => Ordering::is_gt,
            Comparison::GreaterOrEqual => Ordering::is_ge,
        };
        Ok(order(&mut self.fuel, left, right)?.is_some_and(wanted))
    }

    fn is_in(&mut self, what: &Val<'v>, within: &Val<'v>) -> Result<bool, Stop<'v>> {
        match within {
            Val::List(list) => {
                for entry in list.iter() {
                    self.fuel.burn(1)?;
                    if equal(&mut self.fuel, what, &entry)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Val::Map(fields) => Ok(compare::find(&mut self.fuel, fields, what)?.is_some()),
            other => Err(functions::unsuited("in", &[what.clone(), other.clone()])),
        }
    }

    fn is_null(&mut self, asked: &'v Node) -> Result<bool, Stop<'v>> {
        match self.eval(asked) {
            Ok(value) => Ok(matches!(value, Val::Null)),
            Err(Stop::Missing(_)) => Ok(true),
            Err(stop) => Err(stop),
        }
    }

    /// All fields of the first, but those that the others say.
    fn whole(&mut self, at: u32, paths: &'v [(Box<str>, usize)]) -> Outcome<'v> {
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

    fn list(&mut self, elements: &'v [Element]) -> Outcome<'v> {
        self.fuel.burn(elements.len())?;
        let mut entries = Vec::with_capacity(elements.len());
        for element in elements {
            match (element.optional, self.eval(&element.value)?) {
                (true, Val::Optional(None)) => {}
                (true, Val::Optional(Some(value))) => entries.push((*value).clone()),
                (true, other) => return Err(functions::unsuited("?", &[other]).at(element.value.at)),
                (false, value) => entries.push(value),
            }
        }
        Ok(Val::list(entries))
    }

    fn map(&mut self, at: u32, fields: &'v [Field]) -> Outcome<'v> {
        let mut made = Vec::with_capacity(fields.len());
        for field in fields {
            let key = self.eval(&field.key)?;
            let value = match (field.optional, self.eval(&field.value)?) {
                (true, Val::Optional(None)) => continue,
                (true, Val::Optional(Some(value))) => (*value).clone(),
                (true, other) => return Err(functions::unsuited("?", &[other]).at(field.value.at)),
                (false, value) => value,
            };
            self.add_field(&mut made, key, value).map_err(|stop| stop.at(at))?;
        }
        Ok(Val::map(made))
    }

    /// Adds a field to a map that is being made.
    pub(crate) fn add_field(
        &mut self,
        made: &mut Vec<(Val<'v>, Val<'v>)>,
        key: Val<'v>,
        value: Val<'v>,
    ) -> Result<(), Stop<'v>> {
        if !matches!(key, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Text(_)) {
            return Err(Stop::error(format!("{} cannot be the key of a map", key.type_of().one())));
        }
        self.fuel.burn(2 + made.len() / 4)?;
        for (own, _) in made.iter() {
            if equal(&mut self.fuel, own, &key)? {
                let key = functions::text_of(&key).unwrap_or_default();
                return Err(Stop::error(format!("the key `{key}` is given twice")));
            }
        }
        made.push((key, value));
        Ok(())
    }

    pub(crate) fn with_local(&mut self, value: Val<'v>, body: &'v Node) -> Outcome<'v> {
        self.locals.push(value);
        let result = self.eval(body);
        self.locals.pop();
        result
    }

    fn mapped(&mut self, at: u32, parts: &'v [Node; 2], flat: bool) -> Outcome<'v> {
        match self.eval(&parts[0])? {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(value)) => match self.with_local((*value).clone(), &parts[1])? {
                result @ Val::Optional(_) if flat => Ok(result),
                other if flat => Err(functions::unsuited("optFlatMap", &[other]).at(at)),
                result => Ok(Val::Optional(Some(Rc::new(result)))),
            },
            other => Err(functions::unsuited(if flat { "optFlatMap" } else { "optMap" }, &[other]).at(at)),
        }
    }
}

impl Constant {
    pub(crate) fn as_val(&self) -> Val<'_> {
        match self {
            Self::Value(value) => Val::from(value),
            Self::Uint(number) => Val::Uint(*number),
            Self::Bytes(bytes) => Val::Bytes(Rc::from(&**bytes)),
            Self::Type(one) => Val::Type(*one),
            Self::Timestamp(moment) => Val::Timestamp(*moment),
            Self::Duration(length) => Val::Duration(*length),
            Self::Quantity(quantity) => Val::Quantity(Rc::new(quantity.clone())),
        }
    }
}

/// The position that a number means: whole numbers, whatever their type.
fn position(index: &Val<'_>) -> Option<i64> {
    match index {
        Val::Int(number) => Some(*number),
        Val::Uint(number) => i64::try_from(*number).ok(),
        // Beyond 2^53 no double is exact, and no list is that long.
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
        Some(Step::Index(index)) => Stop::error(format!("{reached} is no list, so it has no entry {index}")),
        Some(Step::Field(name)) => Stop::error(format!("{reached} has no fields, so it has no `{name}`")),
        None => Stop::error(format!("{reached} cannot be read")),
    }
}

fn not_there(field: &str) -> Stop<'_> {
    Stop::Missing(Missing(What::Key(Text::Read(field))))
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
    Stop::error(format!("{} has no fields, so it has no `{field}`", of.type_of().one()))
}
