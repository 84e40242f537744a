//! Expressions of SQL as CEL.

use sqlparser::{
    ast::{
        BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned as _,
        UnaryOperator, Value, ValueWithSpan,
    },
    tokenizer::Location,
};

use crate::{
    cel::{Cel, Rank, quoted},
    columns::{aggregator, function_name},
    error::SqlError,
    path,
};

/// The expression in CEL.
pub(crate) fn translate(expression: &Expr) -> Result<Cel, SqlError> {
    if let Some(path) = path::of(expression) {
        return path;
    }
    let at = expression.span().start;
    match expression {
        Expr::Nested(inner) => translate(inner),
        Expr::Value(value) => literal(value),
        Expr::BinaryOp { left, op, right } => binary(left, op, right, at),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Ok(Cel::prefixed('!', &translate(expr)?)),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Ok(Cel::prefixed('-', &translate(expr)?)),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => translate(expr),
        Expr::IsNull(inner) | Expr::IsUnknown(inner) => Ok(compared_with_null(&translate(inner)?, "==")),
        Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => {
            Ok(compared_with_null(&translate(inner)?, "!="))
        }
        Expr::IsTrue(inner) => is(inner, "true"),
        Expr::IsNotTrue(inner) => Ok(is(inner, "true")?.negated_if(true)),
        Expr::IsFalse(inner) => is(inner, "false"),
        Expr::IsNotFalse(inner) => Ok(is(inner, "false")?.negated_if(true)),
        Expr::InList { expr, list, negated } => {
            let entries = list.iter().map(|entry| Ok(value(entry)?.text)).collect::<Result<Vec<_>, _>>()?;
            let list = Cel::primary(format!("[{}]", entries.join(", ")));
            Ok(Cel::relation(&translate(expr)?, "in", &list).negated_if(*negated))
        }
        Expr::Between { expr, negated, low, high } => {
            let expr = translate(expr)?;
            let least = Cel::relation(&expr, ">=", &value(low)?);
            let most = Cel::relation(&expr, "<=", &value(high)?);
            Ok(Cel::and(&least, &most).negated_if(*negated))
        }
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
            Ok(like(&translate(expr)?, &text(pattern)?, false).negated_if(*negated))
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
            Ok(like(&translate(expr)?, &text(pattern)?, true).negated_if(*negated))
        }
        Expr::Function(function) => call(function),
        other => Err(unsupported(other, at)),
    }
}

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr, at: Location) -> Result<Cel, SqlError> {
    let (operator, rank) = operator(op, at)?;
    let (left, right) = if rank == Rank::Relation {
        (value(left)?, value(right)?)
    } else {
        (translate(left)?, translate(right)?)
    };
    Ok(Cel::operation(&left, operator, &right, rank))
}

/// Apart from `binary`, which calls itself for each level of an expression and needs little stack.
fn operator(op: &BinaryOperator, at: Location) -> Result<(&'static str, Rank), SqlError> {
    Ok(match op {
        BinaryOperator::And => ("&&", Rank::And),
        BinaryOperator::Or => ("||", Rank::Or),
        BinaryOperator::Eq => ("==", Rank::Relation),
        BinaryOperator::NotEq => ("!=", Rank::Relation),
        BinaryOperator::Lt => ("<", Rank::Relation),
        BinaryOperator::LtEq => ("<=", Rank::Relation),
        BinaryOperator::Gt => (">", Rank::Relation),
        BinaryOperator::GtEq => (">=", Rank::Relation),
        BinaryOperator::Plus | BinaryOperator::StringConcat => ("+", Rank::Sum),
        BinaryOperator::Minus => ("-", Rank::Sum),
        BinaryOperator::Multiply => ("*", Rank::Product),
        BinaryOperator::Divide => ("/", Rank::Product),
        BinaryOperator::Modulo => ("%", Rank::Product),
        other => {
            return Err(SqlError::at(at, format!("unsupported operator {other}"))
                .hint("use =, <>, <, <=, >, >=, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL and arithmetic"));
        }
    })
}

/// An operand of a comparison. Nothing equals NULL, so that the user means something else.
fn value(expression: &Expr) -> Result<Cel, SqlError> {
    if let Expr::Value(ValueWithSpan { value: Value::Null, span }) = expression {
        return Err(SqlError::at(span.start, "a comparison with NULL is never true")
            .hint("write IS NULL or IS NOT NULL"));
    }
    translate(expression)
}

fn compared_with_null(operand: &Cel, operator: &str) -> Cel {
    Cel::relation(operand, operator, &Cel::primary("null"))
}

/// IS TRUE and IS FALSE are false where a comparison is null.
fn is(operand: &Expr, truth: &str) -> Result<Cel, SqlError> {
    let operand = translate(operand)?;
    let is_known = compared_with_null(&operand, "!=");
    Ok(Cel::and(&is_known, &Cel::relation(&operand, "==", &Cel::primary(truth))))
}

fn literal(value: &ValueWithSpan) -> Result<Cel, SqlError> {
    match &value.value {
        Value::Number(number, _) => Ok(Cel::number(number)),
        Value::SingleQuotedString(text) => Ok(Cel::string(text)),
        Value::Boolean(truth) => Ok(Cel::primary(truth.to_string())),
        Value::Null => Ok(Cel::primary("null")),
        other => Err(SqlError::at(value.span.start, format!("unsupported literal {other}"))
            .hint("write a number, 'text', TRUE, FALSE or NULL")),
    }
}

fn text(pattern: &Expr) -> Result<String, SqlError> {
    match pattern {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Ok(text.clone()),
        other => Err(SqlError::at(other.span().start, "the pattern of LIKE must be a text in single quotes")),
    }
}

/// `%` is any text, `_` any character.
fn like(operand: &Cel, pattern: &str, ignores_case: bool) -> Cel {
    let inner = pattern.trim_matches('%');
    if !ignores_case && !inner.contains(['%', '_']) {
        let argument = quoted(inner);
        match (pattern.starts_with('%'), pattern.ends_with('%')) {
            (false, false) => return Cel::relation(operand, "==", &Cel::string(inner)),
            (false, true) => return operand.method("startsWith", &argument),
            (true, false) => return operand.method("endsWith", &argument),
            (true, true) => return operand.method("contains", &argument),
        }
    }
    let mut regex = String::from(if ignores_case { "(?is)^" } else { "(?s)^" });
    for char in pattern.chars() {
        match char {
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            char if char.is_alphanumeric() || char == ' ' || !char.is_ascii() => regex.push(char),
            char => regex.extend(['\\', char]),
        }
    }
    regex.push('$');
    operand.method("matches", &quoted(&regex))
}

fn call(function: &Function) -> Result<Cel, SqlError> {
    let name = function_name(function);
    let at = function.span().start;
    if aggregator(&name).is_some() {
        return Err(SqlError::at(at, format!("{name}() must stand alone as a column in SELECT"))
            .hint("a StatusCollector cannot compute with aggregates"));
    }
    let arguments = arguments(function).ok_or_else(|| {
        SqlError::at(at, format!("unsupported form of {name}()"))
            .hint("write expressions, separated by commas")
    })?;
    match (name.as_str(), &*arguments) {
        ("COALESCE", [others @ .., last]) => {
            let last = translate(last)?;
            others.iter().rev().try_fold(last, |otherwise, value| {
                let value = translate(value)?;
                Ok(Cel::conditional(&compared_with_null(&value, "!="), &value, &otherwise))
            })
        }
        ("LOWER", [one]) => Ok(translate(one)?.method("lowerAscii", "")),
        ("UPPER", [one]) => Ok(translate(one)?.method("upperAscii", "")),
        ("LENGTH", [one]) => Ok(Cel::primary(format!("size({})", translate(one)?.text))),
        ("COALESCE" | "LOWER" | "UPPER" | "LENGTH", _) => {
            Err(SqlError::at(at, format!("wrong number of arguments for {name}()")))
        }
        _ => Err(SqlError::at(at, format!("unknown function {name}()")).hint(
            "use COUNT, SUM, AVG, MIN, MAX, COALESCE, LOWER, UPPER or LENGTH, or write a collector in CEL",
        )),
    }
}

/// None if there is more than expressions in the parentheses or after them.
pub(crate) fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_plain = function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty();
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expression)) => Some(expression),
        _ => None,
    };
    list.args.iter().map(argument).collect::<Option<Vec<_>>>().filter(|_| is_plain)
}

fn unsupported(expression: &Expr, at: Location) -> SqlError {
    let what = match expression {
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => "subqueries are not supported",
        Expr::Case { .. } => "CASE is not supported",
        Expr::Cast { .. } | Expr::Convert { .. } => "casts are not supported",
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => "IS DISTINCT FROM is not supported",
        Expr::Like { .. } | Expr::ILike { .. } => "LIKE with ANY or ESCAPE is not supported",
        Expr::JsonAccess { .. } => "JSON operators are not supported",
        Expr::Interval(_) | Expr::TypedString(_) | Expr::AtTimeZone { .. } => {
            "dates and intervals are not supported"
        }
        _ => "this expression is not supported",
    };
    let error = SqlError::at(at, what);
    match expression {
        Expr::Case { .. } => error.hint("use COALESCE, or write a collector in CEL with a ? b : c"),
        Expr::JsonAccess { .. } => error.hint("write the path: status.conditions[0].type"),
        _ => error.hint("write a collector in CEL if you need it"),
    }
}
