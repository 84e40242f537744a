//! The compiler: resolves names, checks types as far as they are known, and folds constants.

use crate::{
    check,
    compile_error::{ErrorAt, nearest},
    functions::{self, Function, MAX_ARGUMENTS, Style},
    hints,
    node::{Arithmetic, Comparison, Constant, Element, Field, Node, Op},
    operator::Operator,
    path::{Path, Step},
    paths::Paths,
    scope::{Absence, SELF, Scope, USUAL_FIELDS},
    stop::{Fuel, Stop},
    types::{Type, Types},
    value::Val,
};
use bellwether_model::Value;

use super::{
    parse::parse,
    syntax::{Expr, Kind, Literal},
};

/// Parses, checks and compiles an expression; returns its node, its paths and its types.
pub(crate) fn compile(text: &str, scope: &Scope) -> Result<(Node, Vec<Path>, Types), ErrorAt> {
    let expr = parse(text).map_err(|slip| match text.get(slip.at as usize..) {
        Some(rest) if rest.starts_with('$') => slip.hint(hints::for_root(rest, scope)),
        _ => slip,
    })?;
    let mut compiler = CelCompiler { scope, paths: Paths::default(), locals: Vec::new(), patterns: 0 };
    let (node, types) = compiler.expression(&expr)?;
    Ok((node, compiler.paths.into_vec(), types))
}

pub(super) struct CelCompiler<'a> {
    pub(super) scope: &'a Scope,
    pub(super) paths: Paths,
    /// The variables of the enclosing loops, the innermost last.
    pub(super) locals: Vec<(String, Types)>,
    patterns: usize,
}

/// The most regular expressions in one expression: each one costs time and memory to compile.
const MAX_PATTERNS: usize = 32;

/// A compiled expression and the types of its value.
pub(super) type Typed = (Node, Types);

impl CelCompiler<'_> {
    pub(super) fn expression(&mut self, expr: &Expr) -> Result<Typed, ErrorAt> {
        if let Some(typed) = self.known_name(expr)? {
            return Ok(typed);
        }
        let at = expr.at;
        let (op, types) = match &expr.kind {
            Kind::Literal(literal) => constant(literal),
            Kind::Name { name, .. } => return Err(self.unknown_name(at, name)),
            Kind::Select { of, field, field_at, optional } => {
                if *optional {
                    self.check_field(of, field, *field_at)?;
                }
                let (of, types) = self.expression(of)?;
                check::has_fields(at, types)?;
                let gives = if *optional || types == Types::OPTIONAL { Types::OPTIONAL } else { Types::ANY };
                (Op::Select { of: Box::new(of), field: field.as_str().into(), optional: *optional }, gives)
            }
            Kind::Index { of, index, optional } => {
                if *optional && let Kind::Literal(Literal::Text(field)) = &index.kind {
                    self.check_field(of, field, index.at)?;
                }
                let (of, types) = self.expression(of)?;
                let (index, index_types) = self.expression(index)?;
                check::has_entries(at, types, index_types)?;
                let gives = if *optional || types == Types::OPTIONAL { Types::OPTIONAL } else { Types::ANY };
                (Op::Index { of: Box::new(of), index: Box::new(index), optional: *optional }, gives)
            }
            Kind::Call { on, name, arguments } => return self.call(at, on.as_deref(), name, arguments),
            Kind::Not(operand) => {
                let (node, types) = self.expression(operand)?;
                check::is(at, "!", types, Types::BOOL)?;
                (Op::Not(Box::new(node)), Types::BOOL)
            }
            Kind::Negate(operand) => {
                let (node, types) = self.expression(operand)?;
                check::is(at, "-", types, Types::INT.or(Types::DOUBLE).or(Types::DURATION))?;
                (Op::Negate(Box::new(node)), types)
            }
            Kind::Binary { operator, operands } => self.binary(at, *operator, operands)?,
            Kind::All(operands) => (Op::All(self.truths("&&", operands)?), Types::BOOL),
            Kind::Any(operands) => (Op::Any(self.truths("||", operands)?), Types::BOOL),
            Kind::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let (condition, types) = self.expression(condition)?;
                check::is(at, "?", types, Types::BOOL)?;
                let (then, one) = self.expression(then)?;
                let (otherwise, other) = self.expression(otherwise)?;
                (Op::Conditional(Box::new([condition, then, otherwise])), one.or(other))
            }
            Kind::List(elements) => {
                let elements = elements
                    .iter()
                    .map(|element| {
                        let value = self.expression(&element.value)?.0;
                        Ok(Element { value, optional: element.optional })
                    })
                    .collect::<Result<Box<[_]>, _>>()?;
                (list(elements), Types::LIST)
            }
            Kind::Map(fields) => {
                let fields = fields
                    .iter()
                    .map(|field| {
                        let (key, types) = self.expression(&field.key)?;
                        check::is_key(field.key.at, types)?;
                        let value = self.expression(&field.value)?.0;
                        Ok(Field { key, value, optional: field.optional })
                    })
                    .collect::<Result<Box<[_]>, _>>()?;
                (Op::Map(fields), Types::MAP)
            }
            Kind::Message { name } => {
                return Err(ErrorAt::new(at, format!("messages such as `{name}{{...}}` are not supported"))
                    .hint("write a map: {'field': value}"));
            }
        };
        Ok((Node { at, op }, types))
    }

    fn truths(&mut self, sign: &str, operands: &[Expr]) -> Result<Box<[Node]>, ErrorAt> {
        operands
            .iter()
            .map(|operand| {
                let (node, types) = self.expression(operand)?;
                check::is(operand.at, sign, types, Types::BOOL)?;
                Ok(node)
            })
            .collect()
    }

    fn binary(&mut self, at: u32, operator: Operator, operands: &[Expr; 2]) -> Result<(Op, Types), ErrorAt> {
        let [left, right] = operands;
        if self.scope.absence == Absence::Null
            && let Some((asked, is_equal)) = null_question(operator, left, right)
        {
            let asked = Box::new(self.expression(asked)?.0);
            return Ok((if is_equal { Op::IsNull(asked) } else { Op::IsSomething(asked) }, Types::BOOL));
        }
        let (left, left_types) = self.expression(left)?;
        let (right, right_types) = self.expression(right)?;
        let gives = check::binary(at, operator, left_types, right_types)?;
        let operands = Box::new([left, right]);
        let op = match operator {
            Operator::Equal => Op::Compare(Comparison::Equal, operands),
            Operator::NotEqual => Op::Compare(Comparison::NotEqual, operands),
            Operator::Less => Op::Compare(Comparison::Less, operands),
            Operator::LessOrEqual => Op::Compare(Comparison::LessOrEqual, operands),
            Operator::Greater => Op::Compare(Comparison::Greater, operands),
            Operator::GreaterOrEqual => Op::Compare(Comparison::GreaterOrEqual, operands),
            Operator::In => Op::In(operands),
            Operator::Add => Op::Arithmetic(Arithmetic::Add, operands),
            Operator::Subtract => Op::Arithmetic(Arithmetic::Subtract, operands),
            Operator::Multiply => Op::Arithmetic(Arithmetic::Multiply, operands),
            Operator::Divide => Op::Arithmetic(Arithmetic::Divide, operands),
            Operator::Modulo => Op::Arithmetic(Arithmetic::Modulo, operands),
        };
        Ok((op, gives))
    }

    /// A variable, a path into one, or the name of a type.
    fn known_name(&mut self, expr: &Expr) -> Result<Option<Typed>, ErrorAt> {
        if let Kind::Name { name, absolute: false } = &expr.kind
            && let Some(slot) = self.locals.iter().rposition(|(own, _)| own == name)
        {
            return Ok(Some((Node { at: expr.at, op: Op::Local(slot) }, self.locals[slot].1)));
        }
        if let Some(one) = spelled(expr).and_then(|name| Type::named(&name.join(".")))
            && self.scope.position(one.name()).is_none()
        {
            return Ok(Some((Node { at: expr.at, op: Op::Constant(Constant::Type(one)) }, Types::TYPE)));
        }
        let Some(path) = self.path(expr)? else { return Ok(None) };
        let read = self.keep(expr.at, path)?;
        Ok(Some((Node { at: expr.at, op: Op::Read(read) }, Types::ANY)))
    }

    pub(super) fn keep(&mut self, at: u32, path: Path) -> Result<usize, ErrorAt> {
        self.paths.keep(path).map_err(|text| ErrorAt::new(at, text))
    }

    /// The path that an expression denotes: a variable, followed by constant fields and indexes. `None` for
    /// any other expression.
    pub(super) fn path(&self, expr: &Expr) -> Result<Option<Path>, ErrorAt> {
        let (mut steps, mut places) = (Vec::new(), Vec::new());
        let mut rest = expr;
        let (name, absolute) = loop {
            rest = match &rest.kind {
                Kind::Name { name, absolute } => break (name, *absolute),
                Kind::Select { of, field, field_at, optional: false } => {
                    steps.push(Step::Field(field.as_str().into()));
                    places.push(*field_at);
                    of
                }
                Kind::Index { of, index, optional: false } => {
                    match &index.kind {
                        Kind::Literal(Literal::Text(field)) => steps.push(Step::Field(field.as_str().into())),
                        Kind::Literal(Literal::Int(index)) if let Ok(index) = usize::try_from(*index) => {
                            steps.push(Step::Index(index));
                        }
                        _ => return Ok(None),
                    }
                    places.push(index.at);
                    of
                }
                _ => return Ok(None),
            };
        };
        if !absolute && self.locals.iter().any(|(own, _)| own == name) {
            return Ok(None);
        }
        steps.reverse();
        places.reverse();
        if let Some((root, taken)) = self.declared(name, &steps) {
            let variable = &self.scope.variables[root];
            let steps: Box<[_]> = steps.split_off(taken).into();
            for (index, (step, at)) in steps.iter().zip(&places[taken..]).enumerate() {
                check::step(*at, variable, &steps[..index], step)?;
            }
            let name =
                Some(variable.name.clone()).filter(|name| self.scope.open.is_none() || **name != *SELF);
            return Ok(Some(Path { root, name, steps }));
        }
        let Some(root) = self.scope.open else { return Ok(None) };
        Self::check_top_field(rest.at, name)?;
        steps.insert(0, Step::Field(name.as_str().into()));
        Ok(Some(Path { root, name: None, steps: steps.into() }))
    }

    /// Checks an optional field, which is not part of a path.
    fn check_field(&self, of: &Expr, field: &str, at: u32) -> Result<(), ErrorAt> {
        let Some(Path { root, steps, .. }) = self.path(of)? else { return Ok(()) };
        check::step(at, &self.scope.variables[root], &steps, &Step::Field(field.into()))
    }

    /// The variable with this name, or with the longest dotted name that the fields continue. Returns its
    /// index in the scope and the number of fields that belong to the name.
    fn declared(&self, name: &str, steps: &[Step]) -> Option<(usize, usize)> {
        let mut whole = name.to_owned();
        let mut longest = self.scope.position(name).map(|root| (root, 0));
        for (index, step) in steps.iter().enumerate() {
            let Step::Field(field) = step else { break };
            whole = format!("{whole}.{field}");
            longest = self.scope.position(&whole).map(|root| (root, index + 1)).or(longest);
        }
        longest
    }

    /// Objects may have any field at the top, so only a probable typo such as `stauts` is an error.
    fn check_top_field(at: u32, name: &str) -> Result<(), ErrorAt> {
        if USUAL_FIELDS.contains(&name) {
            return Ok(());
        }
        let hint = hints::for_name(name).map(str::to_owned);
        match hint.or_else(|| {
            nearest(name, USUAL_FIELDS.iter().copied()).map(|meant| format!("did you mean `{meant}`?"))
        }) {
            Some(hint) => Err(ErrorAt::new(at, undeclared(name)).hint(hint)),
            None => Ok(()),
        }
    }

    fn unknown_name(&self, at: u32, name: &str) -> ErrorAt {
        let locals = self.locals.iter().map(|(name, _)| name.as_str());
        let variables = self.scope.variables.iter().map(|variable| &*variable.name);
        let declared = || {
            let variables = self.scope.variables.iter();
            let names: Vec<_> = variables.map(|variable| format!("`{}`", variable.name)).collect();
            (!names.is_empty()).then(|| format!("declared variables: {}", names.join(", ")))
        };
        // Only the scope of a single object declares `self`.
        let hint = hints::for_name(name)
            .filter(|hint| self.scope.open.is_some() || !hint.contains(SELF))
            .map(str::to_owned)
            .or_else(|| {
                nearest(name, locals.chain(variables)).map(|meant| format!("did you mean `{meant}`?"))
            })
            .or_else(|| hints::for_field_of_object(name, self.scope))
            .or_else(declared);
        ErrorAt::new(at, undeclared(name)).maybe_hint(hint)
    }

    fn call(&mut self, at: u32, on: Option<&Expr>, name: &str, arguments: &[Expr]) -> Result<Typed, ErrorAt> {
        if let Some(typed) = self.expand(at, on, name, arguments)? {
            return Ok(typed);
        }
        let library = on.and_then(spelled).filter(|library| {
            let is_variable = self.locals.iter().any(|(own, _)| own == library[0])
                || self.declared(library[0], &[]).is_some();
            !is_variable
                && functions::all()
                    .any(|function| function.name.starts_with(&format!("{}.", library.join("."))))
        });
        let (style, full_name, mut typed) = match (library, on) {
            (Some(library), _) => (Style::Global, format!("{}.{name}", library.join(".")), Vec::new()),
            (None, Some(on)) => (Style::Method, name.to_owned(), vec![self.expression(on)?]),
            (None, None) => (Style::Global, name.to_owned(), Vec::new()),
        };
        for argument in arguments {
            typed.push(self.expression(argument)?);
        }
        if matches!(full_name.as_str(), "math.greatest" | "math.least") && typed.len() > 1 {
            let elements = typed.into_iter().map(|(value, _)| Element { value, optional: false }).collect();
            typed = vec![(Node { at, op: list(elements) }, Types::LIST)];
        }
        let (nodes, known): (Vec<_>, Vec<_>) = typed.into_iter().unzip();
        let candidates = check::function(at, &full_name, style, &known)?;
        let gives = candidates.iter().map(|function| function.gives).fold(candidates[0].gives, Types::or);
        self.called(at, &candidates, nodes).map(|node| (node, gives))
    }

    /// A call, or its value if the arguments are constants.
    fn called(
        &mut self,
        at: u32,
        candidates: &[&'static Function],
        mut nodes: Vec<Node>,
    ) -> Result<Node, ErrorAt> {
        let name = candidates[0].name;
        if name == "dyn" && nodes.len() == 1 {
            return Ok(nodes.remove(0));
        }
        if name == "matches"
            && let [_, Node { op: Op::Constant(Constant::Value(Value::Text(text))), at: pattern_at }] =
                &*nodes
        {
            self.patterns += 1;
            if self.patterns > MAX_PATTERNS {
                return Err(ErrorAt::new(
                    *pattern_at,
                    format!("the expression has more than {MAX_PATTERNS} regular expressions"),
                ));
            }
            let regex = functions::Pattern::new(text).map_err(|why| ErrorAt::new(*pattern_at, why))?;
            return Ok(Node { at, op: Op::Matches(Box::new(nodes.swap_remove(0)), Box::new(regex)) });
        }
        if matches!(name, "timestamp" | "duration" | "quantity")
            && let [Node { op: Op::Constant(constant), .. }] = &*nodes
            && nodes.len() <= MAX_ARGUMENTS
        {
            let argument = [constant.as_val()];
            match functions::find_overload(candidates, &argument)
                .map(|function| (function.run)(&mut Fuel::default(), &argument))
            {
                Some(Ok(Val::Timestamp(moment))) => {
                    return Ok(Node { at, op: Op::Constant(Constant::Timestamp(moment)) });
                }
                Some(Ok(Val::Duration(length))) => {
                    return Ok(Node { at, op: Op::Constant(Constant::Duration(length)) });
                }
                Some(Ok(Val::Quantity(quantity))) => {
                    return Ok(Node { at, op: Op::Constant(Constant::Quantity((*quantity).clone())) });
                }
                Some(Err(Stop::Error(error))) => return Err(ErrorAt::new(at, error.text)),
                _ => {}
            }
        }
        Ok(Node { at, op: Op::Call(candidates.into(), nodes.into()) })
    }
}

/// The parts of a dotted name: `a.b.c`.
pub(super) fn spelled(expr: &Expr) -> Option<Vec<&str>> {
    match &expr.kind {
        Kind::Name { name, .. } => Some(vec![name]),
        Kind::Select { of, field, optional: false, .. } => {
            let mut name = spelled(of)?;
            name.push(field);
            Some(name)
        }
        _ => None,
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to `{name}`")
}

/// `x == null` and `x != null`, with `null` on either side.
fn null_question<'e>(operator: Operator, left: &'e Expr, right: &'e Expr) -> Option<(&'e Expr, bool)> {
    let is_equal = match operator {
        Operator::Equal => true,
        Operator::NotEqual => false,
        _ => return None,
    };
    let is_null = |expr: &Expr| matches!(expr.kind, Kind::Literal(Literal::Null));
    match (is_null(left), is_null(right)) {
        (false, true) => Some((left, is_equal)),
        (true, false) => Some((right, is_equal)),
        _ => None,
    }
}

fn constant(literal: &Literal) -> (Op, Types) {
    let (constant, one) = match literal {
        Literal::Null => (Constant::Value(Value::Null), Type::Null),
        Literal::Bool(truth) => (Constant::Value(Value::Bool(*truth)), Type::Bool),
        Literal::Int(number) => (Constant::Value(Value::Int(*number)), Type::Int),
        Literal::Uint(number) => (Constant::Uint(*number), Type::Uint),
        Literal::Double(number) => (Constant::Value(Value::Float(*number)), Type::Double),
        Literal::Text(text) => (Constant::Value(Value::Text(text.clone().into())), Type::Text),
        Literal::Bytes(bytes) => (Constant::Bytes(bytes.as_slice().into()), Type::Bytes),
    };
    (Op::Constant(constant), Types::of(one))
}

/// A list. One of constants is created once, at compile time.
fn list(elements: Box<[Element]>) -> Op {
    let known = elements
        .iter()
        .all(|element| !element.optional && matches!(element.value.op, Op::Constant(Constant::Value(_))));
    if !known {
        return Op::List(elements);
    }
    let values = elements.into_iter().filter_map(|element| match element.value.op {
        Op::Constant(Constant::Value(value)) => Some(value),
        _ => None,
    });
    Op::Constant(Constant::Value(Value::List(values.collect())))
}
