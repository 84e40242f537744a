//! Type checks at compile time.

use crate::{
    compile_error::{ErrorAt, nearest},
    functions::{self, Function, Style},
    hints,
    operator::Operator,
    path::Step,
    scope::Variable,
    types::{Type, Types},
};

/// Checks the type of an operand.
pub(crate) fn is(at: u32, sign: &str, types: Types, wanted: Types) -> Result<(), ErrorAt> {
    if types.meets(wanted) {
        return Ok(());
    }
    let hint = (wanted == Types::BOOL).then(|| "write a comparison: x == 'value'".to_owned());
    Err(ErrorAt::new(at, format!("`{sign}` expects {wanted}, found {types}")).maybe_hint(hint))
}

/// Checks that the value of a variable can have this field or entry after the steps `before`.
pub(crate) fn step(at: u32, variable: &Variable, before: &[Step], step: &Step) -> Result<(), ErrorAt> {
    let Some(fields) = variable.fields else { return Ok(()) };
    let types_of = |name: &str| fields.iter().find(|(own, _)| *own == name).map(|(_, types)| *types);
    let unknown = match (before, step) {
        ([], Step::Field(name)) if types_of(name).is_none() => name.to_string(),
        ([], Step::Index(index)) => index.to_string(),
        ([Step::Field(name)], step) => {
            let types = types_of(name).unwrap_or(Types::ANY);
            return match step {
                Step::Field(_) => has_fields(at, types),
                Step::Index(_) => has_entries(at, types, Types::INT),
            };
        }
        _ => return Ok(()),
    };
    let names = || fields.iter().map(|(name, _)| *name);
    let hint = match nearest(&unknown, names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known fields: `{}`", names().collect::<Vec<_>>().join("`, `")),
    };
    Err(ErrorAt::new(at, format!("unknown field `{unknown}` of `{}`", variable.name)).hint(hint))
}

/// Checks that values of these types have fields.
pub(crate) fn has_fields(at: u32, types: Types) -> Result<(), ErrorAt> {
    if types.meets(Types::MAP.or(Types::OPTIONAL)) {
        return Ok(());
    }
    Err(ErrorAt::new(at, format!("{types} does not support field selection")))
}

/// Checks that values of these types can be indexed.
pub(crate) fn has_entries(at: u32, types: Types, index: Types) -> Result<(), ErrorAt> {
    if !types.meets(Types::MAP.or(Types::LIST).or(Types::OPTIONAL)) {
        return Err(ErrorAt::new(at, format!("{types} does not support indexing")));
    }
    let is_list = types == Types::LIST;
    if is_list && !index.meets(Types::NUMBER) {
        return Err(ErrorAt::new(at, format!("invalid list index: expected int, found {index}")));
    }
    Ok(())
}

/// Checks the key of a map literal.
pub(crate) fn is_key(at: u32, types: Types) -> Result<(), ErrorAt> {
    let keys = Types::BOOL.or(Types::INT).or(Types::UINT).or(Types::TEXT);
    if types.meets(keys) {
        return Ok(());
    }
    Err(ErrorAt::new(at, format!("invalid map key: expected {keys}, found {types}")))
}

/// Returns the type of a binary operation, or an error with a hint.
pub(crate) fn binary(at: u32, operator: Operator, left: Types, right: Types) -> Result<Types, ErrorAt> {
    of_operator(at, operator.sign(), operator, left, right)
        .map_err(|slip| slip.maybe_hint(hint_for(operator, left, right)))
}

/// The same for an operator under another name, as trees have them.
pub(crate) fn of_operator(
    at: u32,
    name: &str,
    operator: Operator,
    left: Types,
    right: Types,
) -> Result<Types, ErrorAt> {
    let mut gives: Option<Types> = None;
    for one in left.members() {
        for other in right.members() {
            if let Some(result) = result_of(operator, one, other) {
                gives = Some(gives.map_or(result, |gives| gives.or(result)));
            }
        }
    }
    gives.ok_or_else(|| {
        let text = match operator {
            Operator::In if !right.meets(Types::LIST.or(Types::MAP)) => {
                format!("`{name}` expects list or map, found {right}")
            }
            _ if name == operator.sign() => format!("no such overload: {left} {name} {right}"),
            _ => format!("no such overload: {name}({left}, {right})"),
        };
        ErrorAt::new(at, text)
    })
}

fn hint_for(operator: Operator, left: Types, right: Types) -> Option<String> {
    let hint = match operator {
        Operator::In if right == Types::TEXT => "write text.contains(part)",
        Operator::Add if left.meets(Types::TEXT) || right.meets(Types::TEXT) => "convert it: string(x)",
        Operator::In => return None,
        _ if left.meets(Types::TEXT) && right.meets(Types::NUMBER) => {
            "convert the string: int(x) or quantity(x)"
        }
        _ if right.meets(Types::TEXT) && left.meets(Types::NUMBER) => {
            "convert the string: int(x) or quantity(x)"
        }
        _ if left.meets(Types::NUMBER) && right.meets(Types::NUMBER) => {
            "convert one: int(x), uint(x) or double(x)"
        }
        _ if left.meets(Types::TEXT) && right.meets(Types::TIMESTAMP) => "convert the string: timestamp(x)",
        _ if left.meets(Types::TEXT) && right.meets(Types::BOOL) => "'True' is a string, true is a bool",
        _ if left.meets(Types::BOOL) && right.meets(Types::TEXT) => "'True' is a string, true is a bool",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The result type for two operand types; `None` if there is no such overload.
fn result_of(operator: Operator, left: Type, right: Type) -> Option<Types> {
    use Type::{Bytes, Double, Duration, Int, List, Map, Null, Optional, Quantity, Text, Timestamp, Uint};
    let is_number = |one| matches!(one, Int | Uint | Double);
    let both_numbers = is_number(left) && is_number(right);
    match operator {
        Operator::Equal | Operator::NotEqual => {
            let comparable = left == right || both_numbers || left == Null || right == Null;
            comparable.then_some(Types::BOOL)
        }
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            let ordered = !matches!(left, Null | List | Map | Type::Type | Optional);
            (both_numbers || (left == right && ordered)).then_some(Types::BOOL)
        }
        Operator::In => matches!(right, List | Map).then_some(Types::BOOL),
        Operator::Add => match (left, right) {
            (Int | Uint | Double | Text | Bytes | List | Duration, _) if left == right => {
                Some(Types::of(left))
            }
            (Timestamp, Duration) | (Duration, Timestamp) => Some(Types::TIMESTAMP),
            _ => None,
        },
        Operator::Subtract => match (left, right) {
            (Int | Uint | Double | Duration, _) if left == right => Some(Types::of(left)),
            (Timestamp, Timestamp) => Some(Types::DURATION),
            (Timestamp, Duration) => Some(Types::TIMESTAMP),
            _ => None,
        },
        Operator::Multiply | Operator::Divide => {
            (left == right && is_number(left) && left != Quantity).then_some(Types::of(left))
        }
        Operator::Modulo => (left == right && matches!(left, Int | Uint)).then_some(Types::of(left)),
    }
}

/// The overloads that a call may select at run time.
pub(crate) fn function(
    at: u32,
    name: &str,
    style: Style,
    arguments: &[Types],
) -> Result<Vec<&'static Function>, ErrorAt> {
    let named: Vec<_> = functions::all().filter(|function| function.name == name).collect();
    if named.is_empty() {
        let near = || {
            let all =
                functions::all().filter(|function| function.style == style).map(|function| function.name);
            nearest(name, all).map(|meant| format!("did you mean `{meant}`?"))
        };
        let hint = hints::for_function(name).map(str::to_owned).or_else(near);
        return Err(ErrorAt::new(at, format!("undeclared reference to function `{name}`")).maybe_hint(hint));
    }
    let styled: Vec<_> = named.iter().copied().filter(|function| function.style == style).collect();
    if styled.is_empty() {
        let (text, hint) = match style {
            Style::Global => (format!("`{name}` is a method"), format!("write x.{name}(...)")),
            Style::Method => (format!("`{name}` is not a method"), format!("write {name}(x)")),
        };
        return Err(ErrorAt::new(at, text).hint(hint));
    }
    let counted: Vec<_> =
        styled.iter().copied().filter(|function| function.takes.len() == arguments.len()).collect();
    let called_on = usize::from(style == Style::Method);
    if counted.is_empty() {
        let mut counts: Vec<_> = styled.iter().map(|function| function.takes.len() - called_on).collect();
        counts.sort_unstable();
        counts.dedup();
        let counts: Vec<_> = counts.iter().map(usize::to_string).collect();
        let arguments_word = if counts == ["1"] { "argument" } else { "arguments" };
        let text = format!(
            "`{name}` takes {} {arguments_word}, found {}",
            counts.join(" or "),
            arguments.len() - called_on
        );
        return Err(ErrorAt::new(at, text));
    }
    let fitting: Vec<_> = counted
        .iter()
        .copied()
        .filter(|function| function.takes.iter().zip(arguments).all(|(takes, types)| takes.meets(*types)))
        .collect();
    if fitting.is_empty() {
        let takes: Vec<_> = counted.iter().map(|function| list_of(function.takes)).collect();
        let text =
            format!("no such overload: {name}({}), expected ({})", list_of(arguments), takes.join(") or ("));
        return Err(ErrorAt::new(at, text));
    }
    Ok(fitting)
}

fn list_of(types: &[Types]) -> String {
    let names: Vec<_> = types.iter().map(ToString::to_string).collect();
    names.join(", ")
}
