//! Conversion of the object into Lua.

use bellwether_model::{Map, Value};
use mlua::{Lua, Result, Value as Lua5};

/// The size of a list entry in Lua, in bytes.
const SLOT: usize = 16;

/// The size of a map field in Lua, in bytes.
const FIELD: usize = 40;

/// Converts the object. Also returns the size of its largest single part in bytes: the most that one
/// instruction of the script can walk over.
pub(crate) fn load(lua: &Lua, object: &Value<'_>) -> Result<(Lua5, usize)> {
    let mut reach = 0;
    let value = convert(lua, object, &mut reach)?;
    Ok((value, reach))
}

fn convert(lua: &Lua, value: &Value<'_>, reach: &mut usize) -> Result<Lua5> {
    Ok(match value {
        Value::Null => Lua5::Nil,
        Value::Bool(truth) => Lua5::Boolean(*truth),
        Value::Int(number) => Lua5::Integer(*number),
        Value::Float(number) => number_of(*number),
        Value::Text(text) => {
            *reach = (*reach).max(text.len());
            Lua5::String(lua.create_string(text.as_bytes())?)
        }
        Value::List(list) => {
            *reach = (*reach).max(list.len() * SLOT);
            let table = lua.create_table_with_capacity(list.len(), 0)?;
            for (index, entry) in list.iter().enumerate() {
                // A null leaves a hole, so the other entries keep their index.
                table.raw_set(index + 1, convert(lua, entry, reach)?)?;
            }
            Lua5::Table(table)
        }
        Value::Map(map) => convert_map(lua, map, reach)?,
    })
}

fn convert_map(lua: &Lua, map: &Map<'_>, reach: &mut usize) -> Result<Lua5> {
    *reach = (*reach).max(map.len() * FIELD);
    let table = lua.create_table_with_capacity(0, map.len())?;
    for (key, value) in map.iter() {
        *reach = (*reach).max(key.len());
        table.raw_set(key, convert(lua, value, reach)?)?;
    }
    Ok(Lua5::Table(table))
}

/// An integer, if the float is integral: `1.0` prints as 1 in a message.
pub(crate) fn number_of(number: f64) -> Lua5 {
    whole(number).map_or(Lua5::Number(number), Lua5::Integer)
}

/// The integer value of a float, within the range where floats are exact.
#[expect(clippy::cast_possible_truncation, reason = "all such numbers fit an i64")]
pub(crate) fn whole(number: f64) -> Option<i64> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= LARGEST).then_some(number as i64)
}

/// Lua's name for the type of a value.
pub(crate) fn type_name(value: &Lua5) -> &'static str {
    match value {
        Lua5::Integer(_) => "number",
        Lua5::Error(_) => "userdata",
        value => value.type_name(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::whole;

    #[rstest]
    #[case(1.0, Some(1))]
    #[case(-0.0, Some(0))]
    #[case(9_007_199_254_740_992.0, Some(9_007_199_254_740_992))]
    #[case(1e300, None)]
    #[case(0.5, None)]
    #[case(f64::INFINITY, None)]
    #[case(f64::NAN, None)]
    fn whole_numbers(#[case] number: f64, #[case] expected: Option<i64>) {
        assert_eq!(whole(number), expected);
    }
}
