//! Field access as in the Go libraries of Kubernetes, with their error messages.
//!
//! Both projects show these errors to users, so the texts are reproduced exactly.

use std::fmt;

use bellwether_model::{Object, Value};

pub(super) type Result<T> = std::result::Result<T, String>;

/// `NestedFieldNoCopy`. A parent that is not a map is an error.
pub(super) fn nested<'o>(object: &'o Object<'_>, path: &str) -> Result<Option<&'o Value<'o>>> {
    let mut value = object.fields();
    let mut passed = String::new();
    for field in path.split('.') {
        passed.push('.');
        passed.push_str(field);
        match value {
            Value::Null => return Ok(None),
            Value::Map(map) => match map.get(field) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            other => return Err(wrong_type(&passed, other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

/// `NestedString`. Any other type, also null, is an error.
pub(super) fn nested_text<'o>(object: &'o Object<'_>, path: &str) -> Result<Option<&'o str>> {
    match nested(object, path)? {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(&format!(".{path}"), other, "string")),
    }
}

/// `NestedInt64`. Any other type, also null, is an error.
pub(super) fn nested_int(object: &Object<'_>, path: &str) -> Result<Option<i64>> {
    match nested(object, path)? {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(*number)),
        Some(other) => Err(wrong_type(&format!(".{path}"), other, "int64")),
    }
}

/// `NestedSlice`, empty if absent. Any other type, also null, is an error.
pub(super) fn nested_list<'o>(object: &'o Object<'_>, path: &str) -> Result<&'o [Value<'o>]> {
    match nested(object, path)? {
        None => Ok(&[]),
        Some(Value::List(list)) => Ok(list),
        Some(other) => Err(wrong_type(&format!(".{path}"), other, "[]interface{}")),
    }
}

fn wrong_type(path: &str, value: &Value<'_>, expected: &str) -> String {
    format!(
        "{path} accessor error: {} is of the type {}, expected {expected}",
        Verbatim(value),
        type_of(value)
    )
}

/// A position in an object that Go decodes into a type: null counts as absent, a wrong type is an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typed<'o>(Option<&'o Value<'o>>);

impl<'o> Typed<'o> {
    pub(super) fn new(object: &'o Object<'_>) -> Self {
        Self::of(Some(object.fields()))
    }

    fn of(value: Option<&'o Value<'o>>) -> Self {
        Self(value.filter(|value| !matches!(value, Value::Null)))
    }

    pub(super) fn at(self, path: &str) -> Result<Self> {
        path.split('.').try_fold(self, Self::field)
    }

    fn field(self, name: &str) -> Result<Self> {
        match self.0 {
            None => Ok(self),
            Some(Value::Map(map)) => Ok(Self::of(map.get(name))),
            Some(other) => Err(format!("cannot restore struct from: {}", kind_of(other))),
        }
    }

    /// Whether the value is a map. Any other type is an error.
    pub(super) fn exists(self) -> Result<bool> {
        // Fails for any value that is not a map. No field has this name.
        self.field("")?;
        Ok(self.0.is_some())
    }

    /// Empty if absent.
    pub(super) fn text(self, path: &str) -> Result<&'o str> {
        self.text_of_type(path, "string")
    }

    /// The text of a field with a named string type in Go.
    pub(super) fn text_of_type(self, path: &str, go_type: &str) -> Result<&'o str> {
        self.at(path)?.own_text(go_type)
    }

    /// An entry of a map of strings, such as annotations.
    pub(super) fn entry(self, name: &str) -> Result<Option<&'o str>> {
        match self.0 {
            None => Ok(None),
            Some(Value::Map(map)) => {
                map.get(name).map(|text| Self::of(Some(text)).own_text("string")).transpose()
            }
            Some(other) => Err(format!("cannot restore map from {}", kind_of(other))),
        }
    }

    /// Fails if any value of the map is not a string.
    pub(super) fn all_text(self) -> Result<()> {
        match self.0 {
            Some(Value::Map(map)) => map.iter().try_for_each(|(name, _)| self.entry(name).map(drop)),
            _ => self.entry("").map(drop),
        }
    }

    /// The text of this value, with a named string type in Go.
    fn own_text(self, go_type: &str) -> Result<&'o str> {
        match self.0 {
            None => Ok(""),
            Some(Value::Text(text)) => Ok(text),
            // In Go, an integer is convertible to a string, so the error differs.
            Some(Value::Int(_)) => Err(format!("cannot convert int64 to {go_type}")),
            Some(_) => Err("unrecognized type: string".to_owned()),
        }
    }

    /// An int64 field.
    pub(super) fn int(self, path: &str) -> Result<Option<i64>> {
        match self.at(path)?.0 {
            None => Ok(None),
            Some(Value::Int(number)) => Ok(Some(*number)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "beyond 64 bits the result in Go is undefined too"
            )]
            Some(Value::Float(number)) if number.fract() == 0.0 => Ok(Some(*number as i64)),
            Some(Value::Float(_)) => Err("cannot convert float64 to int64".to_owned()),
            Some(_) => Err("unrecognized type: int64".to_owned()),
        }
    }

    /// An int32 field. Go truncates larger numbers.
    #[expect(clippy::cast_possible_truncation, reason = "as Go converts it")]
    pub(super) fn count(self, path: &str) -> Result<Option<i32>> {
        let number = self.int(path).map_err(|error| error.replace("int64", "int32"))?;
        Ok(number.map(|number| number as i32))
    }

    /// False if absent.
    pub(super) fn flag(self, path: &str) -> Result<bool> {
        match self.at(path)?.0 {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(*truth),
            Some(_) => Err("unrecognized type: bool".to_owned()),
        }
    }

    /// The entries of a list; none if absent.
    pub(super) fn list(self, path: &str) -> Result<impl Iterator<Item = Self> + use<'o>> {
        let entries: &[Value<'o>] = match self.at(path)?.0 {
            None => &[],
            Some(Value::List(list)) => list,
            Some(other) => return Err(format!("cannot restore slice from {}", kind_of(other))),
        };
        Ok(entries.iter().map(|entry| Self::of(Some(entry))))
    }
}

/// The fields that all condition types in Go have.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoCondition<'o> {
    pub(super) kind: &'o str,
    pub(super) status: &'o str,
    pub(super) reason: &'o str,
    pub(super) message: &'o str,
}

impl GoCondition<'_> {
    pub(super) fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub(super) fn is_false(&self) -> bool {
        self.status == "False"
    }
}

/// The conditions in `status.conditions`. One malformed condition is an error for all.
pub(super) fn conditions<'o>(object: Typed<'o>) -> Result<Vec<GoCondition<'o>>> {
    let read = |condition: Typed<'o>| {
        Ok(GoCondition {
            kind: condition.text("type")?,
            status: condition.text_of_type("status", "v1.ConditionStatus")?,
            reason: condition.text("reason")?,
            message: condition.text("message")?,
        })
    };
    object.list("status.conditions")?.map(read).collect()
}

/// The Go type of a value, as `%T` prints it.
fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Text(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
    }
}

/// The Go kind of a value.
fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        other => type_of(other),
    }
}

/// A value as `%v` prints it.
struct Verbatim<'v>(&'v Value<'v>);

impl fmt::Display for Verbatim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => float(f, *number),
            Value::Text(text) => f.write_str(text),
            Value::List(list) => {
                f.write_str("[")?;
                for (index, entry) in list.iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    write!(f, "{gap}{}", Verbatim(entry))?;
                }
                f.write_str("]")
            }
            Value::Map(map) => {
                let mut fields: Vec<_> = map.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                f.write_str("map[")?;
                for (index, (key, value)) in fields.into_iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    write!(f, "{gap}{key}:{}", Verbatim(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Go prints very large and very small numbers with a signed exponent of at least two digits.
fn float(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    if number == 0.0 || (1e-4..1e21).contains(&number.abs()) {
        return write!(f, "{number}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => write!(f, "{digits}e-{exponent:0>2}"),
            None => write!(f, "{digits}e+{exponent:0>2}"),
        },
        None => f.write_str(&text),
    }
}
