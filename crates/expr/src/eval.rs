//! The evaluator: walks the nodes of a program and pays for each step.

use std::{cmp::Ordering, rc::Rc};

use crate::{
    compare::{self, equal, order},
    functions::{self, Function, MAX_ARGUMENTS, maths},
    input::Input,
    node::{Arithmetic, Comparison, Constant, Node, Op},
    path::Path,
    scope::Absence,
    stop::{Fuel, Outcome, Stop},
    value::Val,
};

/// The maximum nesting of values that an expression creates.
const DEEPEST: usize = 200;

/// The state of one evaluation.
pub(crate) struct Run<'v> {
    pub(crate) paths: &'v [Path],
    pub(crate) absence: Absence,
    pub(crate) input: &'v dyn Input,
    pub(crate) fuel: Fuel,
    /// The variables of the enclosing loops, the innermost last.
    pub(crate) locals: Vec<Val<'v>>,
}

impl<'v> Run<'v> {
    pub(crate) fn eval(&mut self, node: &'v Node) -> Outcome<'v> {
        self.fuel.burn(1)?;
        // Constants and reads are the operands of most comparisons, so they come first.
        match &node.op {
            Op::Constant(Constant::Value(value)) => Ok(Val::from(value)),
            Op::Read(path) => self.read(node.at, *path),
            _ if node.is_predicate() => self.predicate(node).map(Val::Bool),
            _ => {
                let value = self.compute(node)?;
                // Comparing and dropping a value recurses once per level.
                if value.depth() > DEEPEST { Err(Stop::TooExpensive) } else { Ok(value) }
            }
        }
    }

    /// The operand of a comparison. Constants and reads, the most frequent operands, need no further call.
    #[expect(
        clippy::inline_always,
        reason = "most evaluations compare two operands that need no further call"
    )]
    #[inline(always)]
    fn side(&mut self, node: &'v Node) -> Outcome<'v> {
        match &node.op {
            Op::Constant(Constant::Value(value)) => {
                self.fuel.burn(1)?;
                Ok(Val::from(value))
            }
            Op::Read(path) => {
                self.fuel.burn(1)?;
                self.read(node.at, *path)
            }
            _ => self.eval(node),
        }
    }

    /// The value of a condition. `of` names the operation in errors, `at` is its place.
    pub(crate) fn truth(&mut self, node: &'v Node, of: &str, at: u32) -> Result<bool, Stop<'v>> {
        if node.is_predicate() {
            self.fuel.burn(1)?;
            return self.predicate(node);
        }
        match self.eval(node)? {
            Val::Bool(truth) => Ok(truth),
            other => Err(functions::no_such_overload(of, &[other]).at(at)),
        }
    }

    /// Evaluates a predicate. The caller has paid for the step.
    fn predicate(&mut self, node: &'v Node) -> Result<bool, Stop<'v>> {
        match &node.op {
            Op::Compare(comparison, operands) => {
                let left = self.side(&operands[0])?;
                let right = self.side(&operands[1])?;
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
                other => Err(functions::no_such_overload("matches", &[other]).at(node.at)),
            },
            // `is_predicate` excludes all others.
            _ => Ok(false),
        }
    }

    /// Evaluates anything but a predicate. The caller has paid for the step.
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
                Some(Val::Null) | None if self.absence == Absence::Null => Err(Stop::not_there("null")),
                // The compiler assigned the slot, so it exists.
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
            Op::Loop(the_loop) => self.iterate(node.at, the_loop),
            Op::Bind(parts) => {
                let value = self.eval(&parts[0])?;
                self.with_local(value, &parts[1])
            }
            Op::Mapped { parts, flat } => self.mapped(node.at, parts, *flat),
            Op::Call(candidates, arguments) => {
                self.call(candidates, arguments).map_err(|stop| stop.at(node.at))
            }
            // `Op::Nothing`, SQL's null. The other operations are evaluated elsewhere.
            _ => Err(Stop::not_there("null")),
        }
    }

    fn call(&mut self, candidates: &[&'static Function], arguments: &'v [Node]) -> Outcome<'v> {
        let mut values: [Val<'v>; MAX_ARGUMENTS] = Default::default();
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.eval(argument)?;
        }
        let values = &values[..arguments.len().min(MAX_ARGUMENTS)];
        match functions::find_overload(candidates, values) {
            Some(function) => (function.run)(&mut self.fuel, values),
            None => Err(functions::no_such_overload(candidates[0].name, values)),
        }
    }

    /// Logical or (`decisive` is true) and logical and (false). A decisive operand wins over missing fields
    /// and errors of the others, as in CEL.
    fn joined(&mut self, operands: &'v [Node], decisive: bool) -> Result<bool, Stop<'v>> {
        let mut stop: Option<Stop<'v>> = None;
        for operand in operands {
            match self.truth(operand, if decisive { "||" } else { "&&" }, operand.at) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(Stop::TooExpensive) => return Err(Stop::TooExpensive),
                Err(failed) => stop = Some(failed.or_worse(stop)),
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
            other => Err(functions::no_such_overload("in", &[what.clone(), other.clone()])),
        }
    }

    fn is_null(&mut self, asked: &'v Node) -> Result<bool, Stop<'v>> {
        match self.eval(asked) {
            Ok(value) => Ok(matches!(value, Val::Null)),
            Err(Stop::Missing(_)) => Ok(true),
            Err(stop) => Err(stop),
        }
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
                other if flat => Err(functions::no_such_overload("optFlatMap", &[other]).at(at)),
                result => Ok(Val::Optional(Some(Rc::new(result)))),
            },
            other => {
                Err(functions::no_such_overload(if flat { "optFlatMap" } else { "optMap" }, &[other]).at(at))
            }
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
