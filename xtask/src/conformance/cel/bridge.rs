//! Evaluates a case, and converts values between the suite and `bellwether_expr`.

use bellwether_expr::{Absence, Fuel, Program, Scope, Text, Val, Variables};

use super::{case::CelCase, value::Tagged};

pub(super) fn evaluate(case: &CelCase) -> Result<Tagged, String> {
    let scope = Scope::variables(case.bindings.keys().map(String::as_str), Absence::AsInCel);
    let program = Program::cel(&case.expr, &scope).map_err(|error| format!("cannot compile: {error}"))?;
    let variables =
        Variables(case.bindings.values().map(|value| ours(value).map(Some)).collect::<Result<_, _>>()?);
    let mut fuel = Fuel::USUAL;
    let value = program.evaluate(&variables, &mut fuel);
    value.map(|value| theirs(&value)).map_err(|stop| program.describe(&stop))
}

fn ours(value: &Tagged) -> Result<Val<'_>, String> {
    Ok(match value {
        Tagged::Null => Val::Null,
        Tagged::Bool(truth) => Val::Bool(*truth),
        Tagged::Int(number) => Val::Int(*number),
        Tagged::Uint(number) => Val::Uint(*number),
        Tagged::Double(number) => Val::Double(*number),
        Tagged::String(text) => Val::Text(Text::Read(text)),
        Tagged::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
        Tagged::List(entries) => Val::list(entries.iter().map(ours).collect::<Result<Vec<_>, _>>()?),
        Tagged::Map(fields) => {
            let fields = fields.iter().map(|(key, value)| Ok((ours(key)?, ours(value)?)));
            Val::map(fields.collect::<Result<_, String>>()?)
        }
        Tagged::Timestamp(moment) => Val::Timestamp(*moment),
        Tagged::Duration(length) => Val::Duration(*length),
        Tagged::Type(_) | Tagged::Message(_) => {
            return Err(format!("{value} cannot be the value of a variable"));
        }
    })
}

fn theirs(value: &Val<'_>) -> Tagged {
    match value {
        Val::Null => Tagged::Null,
        Val::Bool(truth) => Tagged::Bool(*truth),
        Val::Int(number) => Tagged::Int(*number),
        Val::Uint(number) => Tagged::Uint(*number),
        Val::Double(number) => Tagged::Double(*number),
        Val::Text(text) => Tagged::String(text.to_string()),
        Val::Bytes(bytes) => Tagged::Bytes(bytes.to_vec()),
        Val::List(list) => Tagged::List(list.iter().map(|entry| theirs(&entry)).collect()),
        Val::Map(fields) => {
            Tagged::Map(fields.iter().map(|(key, value)| (theirs(&key), theirs(&value))).collect())
        }
        Val::Timestamp(moment) => Tagged::Timestamp(*moment),
        Val::Duration(length) => Tagged::Duration(*length),
        Val::Type(one) => Tagged::Type(one.name().to_owned()),
        Val::Quantity(_) | Val::Optional(_) => Tagged::Message(value.type_of().name().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;

    #[rstest]
    #[case(json!("null"))]
    #[case(json!({"bool": true}))]
    #[case(json!({"int": "-1"}))]
    #[case(json!({"uint": "18446744073709551615"}))]
    #[case(json!({"double": "NaN"}))]
    #[case(json!({"string": "a"}))]
    #[case(json!({"bytes": "YQD/"}))]
    #[case(json!({"list": [{"int": "1"}, {"list": []}]}))]
    #[case(json!({"map": [[{"uint": "1"}, {"double": "1.5"}], [{"string": "a"}, "null"]]}))]
    #[case(json!({"timestamp": "0001-01-01T00:00:00Z"}))]
    #[case(json!({"duration": "-0.500000000"}))]
    fn a_variable_has_the_value_of_its_binding(#[case] value: Json) {
        let case = |expr: &str| -> CelCase {
            let fields = json!({
                "file": "it", "section": "it", "name": "it", "expr": expr, "expect": "error", "bindings": {"x": value},
            });
            serde_json::from_value(fields).unwrap()
        };
        assert_eq!(evaluate(&case("x")), Ok(serde_json::from_value(value.clone()).unwrap()));
        assert!(evaluate(&case("y")).is_err());
    }

    #[rstest]
    #[case("type(1u)", "uint")]
    #[case("type(timestamp('2026-01-01T00:00:00Z'))", "google.protobuf.Timestamp")]
    fn a_type_is_compared_by_its_name(#[case] expr: &str, #[case] name: &str) {
        let fields = json!({"file": "it", "section": "it", "name": "it", "expr": expr, "expect": "error"});
        let case = serde_json::from_value(fields).unwrap();
        assert_eq!(evaluate(&case), Ok(Tagged::Type(name.to_owned())));
    }
}
