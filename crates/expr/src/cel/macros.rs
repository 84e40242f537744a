//! The macros: `has()`, and those with a variable.

use crate::{
    check,
    compile_error::ErrorAt,
    node::{Loop, LoopKind, Node, Op},
    types::Types,
};

use super::{
    compile::{CelCompiler, Typed, spelled},
    syntax::{Expr, Kind},
};

impl CelCompiler<'_> {
    /// Expands a macro; `None` if the call is an ordinary one.
    pub(super) fn expand(
        &mut self,
        at: u32,
        on: Option<&Expr>,
        name: &str,
        arguments: &[Expr],
    ) -> Result<Option<Typed>, ErrorAt> {
        let Some(on) = on else {
            return match (name, arguments) {
                ("has", [field]) => self.has(at, field).map(Some),
                ("has", _) => Err(ErrorAt::new(at, "has() takes 1 argument").hint("write has(status.phase)")),
                _ => Ok(None),
            };
        };
        if name == "bind" && spelled(on).is_some_and(|library| library == ["cel"]) {
            return self.bind(at, arguments).map(Some);
        }
        let (kind, pairs, filter, body) = match (name, arguments) {
            ("all", [_, body]) => (LoopKind::All, false, None, body),
            ("all", [_, _, body]) => (LoopKind::All, true, None, body),
            ("exists", [_, body]) => (LoopKind::Exists, false, None, body),
            ("exists", [_, _, body]) => (LoopKind::Exists, true, None, body),
            ("exists_one" | "existsOne", [_, body]) => (LoopKind::ExistsOne, false, None, body),
            ("exists_one" | "existsOne", [_, _, body]) => (LoopKind::ExistsOne, true, None, body),
            ("filter", [_, body]) => (LoopKind::Filter, false, None, body),
            ("map", [_, body]) => (LoopKind::List, false, None, body),
            ("map", [_, filter, body]) => (LoopKind::List, false, Some(filter), body),
            ("transformList", [_, _, body]) => (LoopKind::List, true, None, body),
            ("transformList", [_, _, filter, body]) => (LoopKind::List, true, Some(filter), body),
            ("transformMap", [_, _, body]) => (LoopKind::Map, true, None, body),
            ("transformMap", [_, _, filter, body]) => (LoopKind::Map, true, Some(filter), body),
            ("transformMapEntry", [_, _, body]) => (LoopKind::MapEntries, true, None, body),
            ("transformMapEntry", [_, _, filter, body]) => (LoopKind::MapEntries, true, Some(filter), body),
            ("sortBy", [_, body]) => (LoopKind::Sort, false, None, body),
            ("optMap" | "optFlatMap", [variable, body]) => {
                return self.mapped(at, on, variable, body, name == "optFlatMap").map(Some);
            }
            ("all" | "exists" | "exists_one" | "existsOne" | "filter", _) => {
                return Err(ErrorAt::new(at, format!("`{name}` takes a variable and a predicate"))
                    .hint(format!("write list.{name}(x, x > 0)")));
            }
            ("map" | "sortBy" | "optMap" | "optFlatMap", _) => {
                return Err(ErrorAt::new(at, format!("`{name}` takes a variable and an expression"))
                    .hint(format!("write list.{name}(x, x.name)")));
            }
            ("transformList" | "transformMap" | "transformMapEntry", _) => {
                return Err(ErrorAt::new(at, format!("`{name}` takes two variables and an expression"))
                    .hint(format!("write list.{name}(index, entry, entry.name)")));
            }
            _ => return Ok(None),
        };
        let variables = &arguments[..if pairs { 2 } else { 1 }];
        self.loop_over(at, on, (name, kind), variables, filter, body).map(Some)
    }

    fn has(&mut self, at: u32, field: &Expr) -> Result<Typed, ErrorAt> {
        if let Some(path) = self.path(field)?
            && !path.steps.is_empty()
        {
            return Ok((Node { at, op: Op::Has(self.keep(field.at, path)?) }, Types::BOOL));
        }
        match &field.kind {
            Kind::Select { of, field: name, optional: false, .. } => {
                let (of, types) = self.expression(of)?;
                check::has_fields(field.at, types)?;
                Ok((
                    Node { at, op: Op::HasField { of: Box::new(of), field: name.as_str().into() } },
                    Types::BOOL,
                ))
            }
            Kind::Index { .. } => Err(ErrorAt::new(field.at, "invalid argument to has() macro: an index")
                .hint("write key in map, or size(list) > index")),
            _ => {
                Err(ErrorAt::new(field.at, "invalid argument to has() macro").hint("write has(status.phase)"))
            }
        }
    }

    fn loop_over(
        &mut self,
        at: u32,
        range: &Expr,
        (name, kind): (&str, LoopKind),
        variables: &[Expr],
        filter: Option<&Expr>,
        body: &Expr,
    ) -> Result<Typed, ErrorAt> {
        let (range, types) = self.expression(range)?;
        if !types.meets(Types::LIST.or(Types::MAP)) {
            return Err(ErrorAt::new(at, format!("cannot iterate over {types}")));
        }
        let pairs = variables.len() == 2;
        let names = variables.iter().map(variable).collect::<Result<Vec<_>, _>>()?;
        if let [first, second] = &names[..]
            && first == second
        {
            return Err(ErrorAt::new(variables[1].at, format!("duplicate variable `{first}`")));
        }
        let outside = self.locals.len();
        for name in names {
            self.locals.push((name, Types::ANY));
        }
        let is_truth =
            matches!(kind, LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne | LoopKind::Filter);
        let inside = filter
            .map(|filter| {
                let (node, types) = self.expression(filter)?;
                check::is(filter.at, name, types, Types::BOOL)?;
                Ok(node)
            })
            .transpose()
            .and_then(|filter| {
                let (node, types) = self.expression(body)?;
                if is_truth {
                    check::is(body.at, name, types, Types::BOOL)?;
                }
                Ok((filter, node))
            });
        self.locals.truncate(outside);
        let (filter, body) = inside?;
        let gives = match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Types::BOOL,
            LoopKind::List | LoopKind::Filter | LoopKind::Sort => Types::LIST,
            LoopKind::Map | LoopKind::MapEntries => Types::MAP,
        };
        Ok((Node { at, op: Op::Loop(Box::new(Loop { kind, range, pairs, filter, body })) }, gives))
    }

    fn bind(&mut self, at: u32, arguments: &[Expr]) -> Result<Typed, ErrorAt> {
        let [name, value, body] = arguments else {
            return Err(ErrorAt::new(at, "cel.bind() takes a variable, its value and an expression"));
        };
        let name = variable(name)?;
        let (value, types) = self.expression(value)?;
        let (body, gives) = self.with_local(name, types, body)?;
        Ok((Node { at, op: Op::Bind(Box::new([value, body])) }, gives))
    }

    fn mapped(&mut self, at: u32, on: &Expr, name: &Expr, body: &Expr, flat: bool) -> Result<Typed, ErrorAt> {
        let name = variable(name)?;
        let (on, types) = self.expression(on)?;
        check::is(at, if flat { "optFlatMap" } else { "optMap" }, types, Types::OPTIONAL)?;
        let (body, _) = self.with_local(name, Types::ANY, body)?;
        Ok((Node { at, op: Op::Mapped { parts: Box::new([on, body]), flat } }, Types::OPTIONAL))
    }

    fn with_local(&mut self, name: String, types: Types, body: &Expr) -> Result<Typed, ErrorAt> {
        self.locals.push((name, types));
        let body = self.expression(body);
        self.locals.pop();
        body
    }
}

fn variable(expr: &Expr) -> Result<String, ErrorAt> {
    match &expr.kind {
        Kind::Name { name, absolute: false } => Ok(name.clone()),
        _ => {
            Err(ErrorAt::new(expr.at, "the variable must be a simple name").hint("write list.all(x, x > 0)"))
        }
    }
}
