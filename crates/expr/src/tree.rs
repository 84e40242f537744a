//! Trees of operations: `{op: Equal, args: [...]}`.

use bellwether_model::Value;
use serde_json::{Map, Value as Json};

use crate::{
    check,
    compile_error::{CompileError, ErrorAt, Place, nearest},
    jsonpath,
    node::{Comparison, Constant, Node, Op},
    operator::Operator,
    path::{Path, Step},
    paths::Paths,
    scope::{ROW, Scope},
    types::{Type, Types},
};

/// The maximum nesting of operations.
const DEEPEST: usize = 100;

const OPERATIONS: &[&str] = &[
    "Path",
    "Literal",
    "Not",
    "And",
    "Or",
    "Equal",
    "NotEqual",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "In",
    "Exists",
];

pub(crate) struct Compiled {
    pub(crate) node: Node,
    pub(crate) paths: Vec<Path>,
    pub(crate) types: Types,
    /// The places of operations in the tree, by [`Node::at`].
    pub(crate) places: Vec<String>,
}

/// Checks and compiles a tree.
pub(crate) fn compile(tree: &Json, scope: &Scope) -> Result<Compiled, CompileError> {
    let mut compiler = TreeCompiler { scope, paths: Paths::default(), places: Vec::new() };
    let (node, types) = compiler.operation(tree, String::new(), 0)?;
    Ok(Compiled { node, paths: compiler.paths.into_vec(), types, places: compiler.places })
}

struct TreeCompiler<'a> {
    scope: &'a Scope,
    paths: Paths,
    places: Vec<String>,
}

impl TreeCompiler<'_> {
    fn operation(&mut self, tree: &Json, place: String, depth: usize) -> Result<(Node, Types), CompileError> {
        if depth == DEEPEST {
            return Err(compile_error(place, "the tree is nested too deeply here"));
        }
        let Json::Object(fields) = tree else {
            let hint = "write {op: Path, path: $.status.phase}, or use CEL for the whole expression";
            return Err(with_hint(
                compile_error(place, format!("an operation must be a map, not {}", kind_of(tree))),
                hint,
            ));
        };
        let op = match fields.get("op") {
            Some(Json::String(op)) => op.as_str(),
            Some(other) => {
                return Err(compile_error(
                    under(&place, "op"),
                    format!("must be a string, not {}", kind_of(other)),
                ));
            }
            None => {
                let hint = format!("write one of {}", OPERATIONS.join(", "));
                return Err(with_hint(compile_error(place, "op is required"), hint));
            }
        };
        let allowed: &[&str] = match op {
            "Path" => &["path"],
            "Literal" => &["value"],
            "Exists" => &["path", "args"],
            _ => &["args"],
        };
        Self::check_fields(fields, op, allowed, &place)?;
        let at = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push(place.clone());
        let (op, types) = match op {
            "Path" => (self.read(fields, &place)?, Types::ANY),
            "Literal" => literal(fields, &place)?,
            "Not" => {
                let [(operand, types)] = self.arguments(fields, op, &place, depth)?;
                self.check(check::is(operand.at, op, types, Types::BOOL))?;
                (Op::Not(Box::new(operand)), Types::BOOL)
            }
            "And" | "Or" => {
                let operands = self.several(fields, op, &place, depth)?;
                if operands.is_empty() {
                    let place = under(&place, "args");
                    return Err(compile_error(place, format!("{op} requires at least one argument")));
                }
                let mut nodes = Vec::with_capacity(operands.len());
                for (operand, types) in operands {
                    self.check(check::is(operand.at, op, types, Types::BOOL))?;
                    nodes.push(operand);
                }
                let nodes = nodes.into();
                (if op == "And" { Op::All(nodes) } else { Op::Any(nodes) }, Types::BOOL)
            }
            "Exists" => {
                let has_no_args = fields.get("args").is_none_or(|args| *args == Json::Array(Vec::new()));
                let asked = match fields.get("path") {
                    Some(_) if fields.contains_key("args") => {
                        return Err(compile_error(place, "Exists takes a path or one argument, not both"));
                    }
                    Some(_) => Node { at, op: self.read(fields, &place)? },
                    None if has_no_args => {
                        return Err(with_hint(
                            compile_error(place, "Exists requires a path"),
                            "write {op: Exists, path: $.status.phase}",
                        ));
                    }
                    None => {
                        let [(asked, _)] = self.arguments(fields, op, &place, depth)?;
                        asked
                    }
                };
                (Op::IsSomething(Box::new(asked)), Types::BOOL)
            }
            "In" => {
                let [(what, what_types), (within, within_types)] =
                    self.arguments(fields, op, &place, depth)?;
                self.check_no_null([&what, &within])?;
                self.check(check::of_operator(within.at, op, Operator::In, what_types, within_types))?;
                (Op::In(Box::new([what, within])), Types::BOOL)
            }
            other => {
                let Some((comparison, operator)) = comparison(other) else {
                    return Err(unknown(other, &place));
                };
                let [(left, left_types), (right, right_types)] = self.arguments(fields, op, &place, depth)?;
                self.check_no_null([&left, &right])?;
                self.check(check::of_operator(at, op, operator, left_types, right_types))?;
                (Op::Compare(comparison, Box::new([left, right])), Types::BOOL)
            }
        };
        Ok((Node { at, op }, types))
    }

    /// Refuses SQL's null in a comparison, which is then never true.
    fn check_no_null(&self, operands: [&Node; 2]) -> Result<(), CompileError> {
        let null = operands.into_iter().find(|operand| matches!(operand.op, Op::Nothing));
        null.map_or(Ok(()), |null| {
            let hint = "write {op: Exists, path: $.status.phase}, or Not with it";
            Err(with_hint(compile_error(self.place(null.at), "a comparison with null is never true"), hint))
        })
    }

    fn place(&self, at: u32) -> String {
        self.places.get(at as usize).cloned().unwrap_or_default()
    }

    /// Adds the place to a check that knows only its number.
    fn check<T>(&self, checked: Result<T, ErrorAt>) -> Result<T, CompileError> {
        checked.map_err(|slip| CompileError {
            place: Place::Tree(self.place(slip.at)),
            text: slip.text,
            // The hints are in CEL.
            hint: None,
        })
    }

    fn check_fields(
        fields: &Map<String, Json>,
        op: &str,
        allowed: &[&str],
        place: &str,
    ) -> Result<(), CompileError> {
        if !OPERATIONS.contains(&op) {
            return Err(unknown(op, place));
        }
        match fields.keys().find(|key| *key != "op" && !allowed.contains(&key.as_str())) {
            None => Ok(()),
            Some(stray) => {
                let hint = format!("{op} takes {}", allowed.join(" or "));
                Err(with_hint(compile_error(under(place, stray), format!("unknown field `{stray}`")), hint))
            }
        }
    }

    fn read(&mut self, fields: &Map<String, Json>, place: &str) -> Result<Op, CompileError> {
        let place = under(place, "path");
        let Some(Json::String(text)) = fields.get("path") else {
            return Err(with_hint(compile_error(place, "must be a string"), "write path: $.status.phase"));
        };
        let steps = jsonpath::steps(text).map_err(|slip| in_path(slip, &place))?;
        if steps.is_empty() && self.scope.open.is_none() {
            return self.whole().map_err(|text| compile_error(place, text));
        }
        let path = self.rooted(steps).map_err(|text| compile_error(place.clone(), text))?;
        let variable = &self.scope.variables[path.root];
        for (index, step) in path.steps.iter().enumerate() {
            check::step(0, variable, &path.steps[..index], step).map_err(|slip| in_path(slip, &place))?;
        }
        self.paths.keep(path).map(Op::Read).map_err(|text| compile_error(place, text))
    }

    /// The whole row as one object.
    fn whole(&mut self) -> Result<Op, String> {
        let parts = [
            ("", "obj", None),
            ("status", "returned", Some("status")),
            ("inventory", "inventory", None),
            ("propagation", "propagation", None),
        ];
        let paths = parts.into_iter().map(|(name, variable, field)| {
            let steps = field.map(|field| Step::Field(field.into())).into_iter().collect();
            let root = self.scope.position(variable).unwrap_or_default();
            Ok((name.into(), self.paths.keep(Path { root, name: Some(variable.into()), steps })?))
        });
        paths.collect::<Result<_, _>>().map(Op::Whole)
    }

    /// Resolves a path from `$`: the object as on the hub, but with the status that the cluster reported.
    /// `$.inventory` and `$.propagation` describe the cluster.
    fn rooted(&self, mut steps: Vec<Step>) -> Result<Path, String> {
        if let Some(root) = self.scope.open {
            return Ok(Path { root, name: None, steps: steps.into() });
        }
        let first = match steps.first() {
            Some(Step::Field(first)) => first.to_string(),
            _ => return Err("a path must start with a field, not with an index".to_owned()),
        };
        let variable = match first.as_str() {
            "inventory" | "propagation" => {
                steps.remove(0);
                first.as_str()
            }
            "status" => "returned",
            _ => "obj",
        };
        match self.scope.position(variable) {
            Some(root) => Ok(Path { root, name: Some(variable.into()), steps: steps.into() }),
            None => Err(format!("undeclared variable `{variable}`: a path needs `{}`", ROW.join("`, `"))),
        }
    }

    /// Exactly `N` arguments.
    fn arguments<const N: usize>(
        &mut self,
        fields: &Map<String, Json>,
        op: &str,
        place: &str,
        depth: usize,
    ) -> Result<[(Node, Types); N], CompileError> {
        let arguments = self.several(fields, op, place, depth)?;
        let given = arguments.len();
        arguments.try_into().map_err(|_| {
            let wanted = if N == 1 { "1 argument".to_owned() } else { format!("{N} arguments") };
            compile_error(under(place, "args"), format!("{op} takes {wanted}, found {given}"))
        })
    }

    fn several(
        &mut self,
        fields: &Map<String, Json>,
        op: &str,
        place: &str,
        depth: usize,
    ) -> Result<Vec<(Node, Types)>, CompileError> {
        let place = under(place, "args");
        let Some(Json::Array(arguments)) = fields.get("args") else {
            return Err(compile_error(place, format!("{op} requires args, a list of operations")));
        };
        let operations = arguments.iter().enumerate();
        operations
            .map(|(index, argument)| self.operation(argument, format!("{place}[{index}]"), depth + 1))
            .collect()
    }
}

fn comparison(op: &str) -> Option<(Comparison, Operator)> {
    Some(match op {
        "Equal" => (Comparison::Equal, Operator::Equal),
        "NotEqual" => (Comparison::NotEqual, Operator::NotEqual),
        "Less" => (Comparison::Less, Operator::Less),
        "LessOrEqual" => (Comparison::LessOrEqual, Operator::LessOrEqual),
        "Greater" => (Comparison::Greater, Operator::Greater),
        "GreaterOrEqual" => (Comparison::GreaterOrEqual, Operator::GreaterOrEqual),
        _ => return None,
    })
}

/// A literal. `null` is SQL's.
fn literal(fields: &Map<String, Json>, place: &str) -> Result<(Op, Types), CompileError> {
    let Some(value) = fields.get("value") else {
        return Err(compile_error(place.to_owned(), "Literal requires a value"));
    };
    let value = kept(value, 0)
        .ok_or_else(|| compile_error(under(place, "value"), "the value is nested too deeply"))?;
    let one = match &value {
        Value::Null => return Ok((Op::Nothing, Types::of(Type::Null))),
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Float(_) => Type::Double,
        Value::Text(_) => Type::Text,
        Value::List(_) => Type::List,
        Value::Map(_) => Type::Map,
    };
    Ok((Op::Constant(Constant::Value(value)), Types::of(one)))
}

/// Converts a literal; `None` if it is nested too deeply.
fn kept(json: &Json, depth: usize) -> Option<Value<'static>> {
    if depth == DEEPEST {
        return None;
    }
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text.clone().into()),
        Json::Array(entries) => {
            Value::List(entries.iter().map(|entry| kept(entry, depth + 1)).collect::<Option<_>>()?)
        }
        Json::Object(fields) => Value::Map(
            fields
                .iter()
                .map(|(key, value)| Some((key.clone().into(), kept(value, depth + 1)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

fn unknown(op: &str, place: &str) -> CompileError {
    let synonym = match op.to_ascii_lowercase().as_str() {
        "=" | "==" | "eq" | "equals" => Some("Equal"),
        "!=" | "<>" | "ne" | "notequals" => Some("NotEqual"),
        "<" | "lt" => Some("Less"),
        "<=" | "le" | "lte" => Some("LessOrEqual"),
        ">" | "gt" => Some("Greater"),
        ">=" | "ge" | "gte" => Some("GreaterOrEqual"),
        "&&" | "all" => Some("And"),
        "||" | "any" => Some("Or"),
        "!" => Some("Not"),
        "value" | "const" | "constant" => Some("Literal"),
        "has" => Some("Exists"),
        _ => None,
    };
    let hint = match synonym.or_else(|| nearest(op, OPERATIONS.iter().copied())) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("write one of {}", OPERATIONS.join(", ")),
    };
    with_hint(compile_error(under(place, "op"), format!("unknown operation `{op}`")), hint)
}

fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a bool",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a map",
    }
}

fn under(place: &str, field: &str) -> String {
    if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") }
}

fn compile_error(place: String, text: impl Into<String>) -> CompileError {
    CompileError { place: Place::Tree(place), text: text.into(), hint: None }
}

fn in_path(slip: ErrorAt, place: &str) -> CompileError {
    CompileError { place: Place::Tree(place.to_owned()), text: slip.text, hint: slip.hint }
}

fn with_hint(mut compile_error: CompileError, hint: impl Into<String>) -> CompileError {
    compile_error.hint = Some(hint.into());
    compile_error
}
