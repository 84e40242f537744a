//! Compile errors of CEL: place, cause and hint.

use bellwether_expr::{Absence, CompileError, Program, Scope};
use rstest::rstest;

pub(crate) fn message(program: Result<Program, CompileError>) -> String {
    program.map_or_else(|compile_error| compile_error.to_string(), |_| "valid".to_owned())
}

fn of_object(text: &str) -> String {
    message(Program::cel(text, &Scope::object(Absence::NotYet)))
}

fn of_row(text: &str) -> String {
    message(Program::cel(text, &Scope::row()))
}

#[rstest]
#[case("status.phase = 'Up'", "line 1, column 14: unexpected `=`; to compare, write ==")]
#[case("status.phase === 'Up'", "line 1, column 16: unexpected `=`; to compare, write ==")]
#[case(
    "status.phase =~ 'U.*'",
    "line 1, column 14: unexpected `=`; to compare with a regular expression, write x.matches('...')"
)]
#[case("status.phase <> 'Up'", "line 1, column 15: expected a value, found `>`; write !=")]
#[case("status.phase ≠ 'Up'", "line 1, column 14: unexpected `≠`; write !=")]
#[case("spec.replicas ≤ 3", "line 1, column 15: unexpected `≤`; write <=")]
#[case("spec.replicas ≥ 3", "line 1, column 15: unexpected `≥`; write >=")]
#[case("spec.replicas – 1", "line 1, column 15: unexpected `–`; write - for minus")]
#[case("a & b", "line 1, column 3: unexpected `&`; write && for and")]
#[case("a | b", "line 1, column 3: unexpected `|`; write || for or")]
#[case("status.phase == 'Up';", "line 1, column 21: unexpected `;`; remove this character")]
#[case("# phase", "line 1, column 1: unexpected `#`; write // for a comment")]
#[case("$.status.phase == 'Up'", "line 1, column 1: unexpected `$`; write the path without $: status.phase")]
#[case(
    "true && $.spec.list['a b'][0].c-1",
    "line 1, column 9: unexpected `$`; write the path without $: spec.list['a b'][0].c"
)]
#[case("$", "line 1, column 1: unexpected `$`; write the path without $: status.phase")]
#[case("@status", "line 1, column 1: unexpected `@`; remove this character")]
#[case("status.phase == ‘Up’", r#"line 1, column 17: unexpected `‘`; write straight quotes: ' or ""#)]
#[case("status.phase == “Up”", r#"line 1, column 17: unexpected `“`; write straight quotes: ' or ""#)]
fn signs_of_other_languages(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("a and b", "line 1, column 3: expected an operator or end of expression, found `and`; write &&")]
#[case("a or b", "line 1, column 3: expected an operator or end of expression, found `or`; write ||")]
#[case(
    "status.phase is 'Up'",
    "line 1, column 14: expected an operator or end of expression, found `is`; to compare, write =="
)]
#[case(
    "status.phase not in ['Up']",
    "line 1, column 14: expected an operator or end of expression, found `not`; write !x, or !(x in list)"
)]
#[case(
    "status.phase eq 'Up'",
    "line 1, column 14: expected an operator or end of expression, found `eq`; to compare, write =="
)]
#[case(
    "status.phase contains 'U'",
    "line 1, column 14: expected an operator or end of expression, found `contains`; write text.contains('part')"
)]
#[case(
    "if status.phase == 'Up' then 1 else 2",
    "line 1, column 1: reserved identifier `if`; write condition ? a : b"
)]
#[case(
    "status.phase == 'Up' if true else false",
    "line 1, column 22: expected an operator or end of expression, found `if`; write condition ? a : b"
)]
#[case(
    "for x in list",
    "line 1, column 1: reserved identifier `for`; to iterate over a list, write list.all(x, ...), list.exists(x, ...) or list.map(x, ...)"
)]
#[case(
    "return true",
    "line 1, column 1: reserved identifier `return`; remove return: the value of the expression is the result"
)]
#[case(
    "namespace == 'shop'",
    "line 1, column 1: reserved identifier `namespace`; write metadata.namespace for the namespace of an object"
)]
#[case("self.status.phase == True", "line 1, column 22: undeclared reference to `True`; write true")]
#[case("status.ready == None", "line 1, column 17: undeclared reference to `None`; write null")]
#[case("status.ready == nil", "line 1, column 17: undeclared reference to `nil`; write null")]
#[case(
    "this.status.phase",
    "line 1, column 1: undeclared reference to `this`; write self for the whole object"
)]
#[case(
    "object.spec.replicas",
    "line 1, column 1: undeclared reference to `object`; write self for the whole object"
)]
#[case(
    "now()",
    "line 1, column 1: undeclared reference to function `now`; expressions cannot read the clock"
)]
#[case("len(status.conditions)", "line 1, column 1: undeclared reference to function `len`; write size(x)")]
#[case(
    "status.phase.toLowerCase()",
    "line 1, column 13: undeclared reference to function `toLowerCase`; write x.lowerAscii()"
)]
#[case(
    "status.phase.startswith('U')",
    "line 1, column 13: undeclared reference to function `startswith`; write x.startsWith('...')"
)]
#[case(
    "status.conditions.any(c, c.type == 'Ready')",
    "line 1, column 18: undeclared reference to function `any`; write list.exists(x, ...)"
)]
fn words_of_other_languages(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("stauts.phase == 'Up'", "line 1, column 1: undeclared reference to `stauts`; did you mean `status`?")]
#[case("Status.phase == 'Up'", "line 1, column 1: undeclared reference to `Status`; did you mean `status`?")]
#[case("sizee([1])", "line 1, column 1: undeclared reference to function `sizee`; did you mean `size`?")]
#[case("status.phase()", "line 1, column 7: undeclared reference to function `phase`")]
fn undeclared_names(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("status.phase == 'Up", "line 1, column 17: unterminated string; close it with '")]
#[case(r#"status.phase == "Up'"#, r#"line 1, column 17: unterminated string; close it with ""#)]
#[case("status.phase == 'it's'", "line 1, column 22: unterminated string; close it with '")]
#[case(r#"status["phase]"#, r#"line 1, column 8: unterminated string; close it with ""#)]
#[case("status.phase == 'Up' &&", "line 1, column 24: expected a value, found end of expression")]
#[case("status.phase ==", "line 1, column 16: expected a value, found end of expression")]
#[case("== 'Up'", "line 1, column 1: expected a value, found `==`")]
#[case("(status.phase == 'Up'", "line 1, column 22: expected an operator or `)`, found end of expression")]
#[case("status.phase == 'Up')", "line 1, column 21: expected an operator or end of expression, found `)`")]
#[case("[1, 2", "line 1, column 6: expected an operator, `,` or `]`, found end of expression")]
#[case("{'a' 1}", "line 1, column 6: expected `:` and a value, found `1`")]
#[case("{'a': 1", "line 1, column 8: expected an operator, `,` or `}`, found end of expression")]
#[case("status.conditions[0", "line 1, column 20: expected `]`, found end of expression")]
#[case("status.conditions[]", "line 1, column 19: expected a value, found `]`")]
#[case("status.", "line 1, column 8: expected a field name, found end of expression")]
#[case("status..phase", "line 1, column 8: expected a field name, found `.`")]
#[case(
    r#"status.phase.startsWith("U""#,
    "line 1, column 28: expected an operator, `,` or `)`, found end of expression"
)]
#[case("true ? 1", "line 1, column 9: expected `:` and a value, found end of expression")]
#[case("true ? 1 :", "line 1, column 11: expected a value, found end of expression")]
#[case("a || || b", "line 1, column 6: expected a value, found `||`")]
#[case(
    "a b",
    "line 1, column 3: expected an operator or end of expression, found `b`; plain text needs inner quotes: \"'a b'\""
)]
#[case("a 'b'", "line 1, column 3: expected an operator or end of expression, found `'b'`")]
#[case("a, b", "line 1, column 2: expected an operator or end of expression, found `,`")]
#[case("f(a,)", "line 1, column 5: expected a value, found `)`")]
#[case("''''", "line 1, column 1: unterminated string; close it with '''")]
#[case("a.`", "line 1, column 3: unterminated field name; close it with `")]
fn incomplete_expressions(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case(
    "spec.timeout > 5m",
    "line 1, column 16: `5m` is not a number; write quantity('5m') for a quantity, or duration('5m') for a duration"
)]
#[case("99999999999999999999", "line 1, column 1: 99999999999999999999 is out of range for an int")]
#[case(
    "9223372036854775808",
    "line 1, column 1: 9223372036854775808 is out of range for an int; write 9223372036854775808u for a uint"
)]
#[case("-9223372036854775809", "line 1, column 1: -9223372036854775809 is out of range for an int")]
#[case("18446744073709551616u", "line 1, column 1: 18446744073709551616 is out of range for a uint")]
#[case("1e999", "line 1, column 1: 1e999 is out of range for a double")]
#[case(
    r"'\d+'",
    r"line 1, column 2: invalid escape \d; write \\ for a backslash, or r'...' for a raw string"
)]
#[case(
    r"'a\qb'",
    r"line 1, column 3: invalid escape \q; write \\ for a backslash, or r'...' for a raw string"
)]
fn numbers_and_escapes(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("1 + 'a'", "line 1, column 3: no such overload: int + string; convert it: string(x)")]
#[case("'a' + 1", "line 1, column 5: no such overload: string + int; convert it: string(x)")]
#[case(
    "'1' == 1",
    "line 1, column 5: no such overload: string == int; convert the string: int(x) or quantity(x)"
)]
#[case(
    "'True' == true",
    "line 1, column 8: no such overload: string == bool; 'True' is a string, true is a bool"
)]
#[case("1 + 1u", "line 1, column 3: no such overload: int + uint; convert one: int(x), uint(x) or double(x)")]
#[case(
    "1 + 1.0",
    "line 1, column 3: no such overload: int + double; convert one: int(x), uint(x) or double(x)"
)]
#[case("'a' in 'abc'", "line 1, column 5: `in` expects list or map, found string; write text.contains(part)")]
#[case("1 in 1", "line 1, column 3: `in` expects list or map, found int")]
#[case(
    "1 < 'a'",
    "line 1, column 3: no such overload: int < string; convert the string: int(x) or quantity(x)"
)]
#[case("!'a'", "line 1, column 1: `!` expects bool, found string; write a comparison: x == 'value'")]
#[case("-'a'", "line 1, column 1: `-` expects int or double or duration, found string")]
#[case("1 && true", "line 1, column 1: `&&` expects bool, found int; write a comparison: x == 'value'")]
#[case("1 ? 2 : 3", "line 1, column 3: `?` expects bool, found int; write a comparison: x == 'value'")]
#[case("'a'.b", "line 1, column 4: string does not support field selection")]
#[case("'a'[0]", "line 1, column 4: string does not support indexing")]
#[case("1[0]", "line 1, column 2: int does not support indexing")]
#[case("[1]['a']", "line 1, column 4: invalid list index: expected int, found string")]
#[case("[1, 2].first", "line 1, column 7: list does not support field selection")]
#[case("null + 1", "line 1, column 6: no such overload: null + int")]
#[case("{1.5: 1}", "line 1, column 2: invalid map key: expected bool or int or uint or string, found double")]
#[case(
    "Widget{name: 'x'}",
    "line 1, column 1: messages such as `Widget{...}` are not supported; write a map: {'field': value}"
)]
fn type_errors(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case(
    "status.conditions.exists(c.type == 'Ready')",
    "line 1, column 18: `exists` takes a variable and a predicate; write list.exists(x, x > 0)"
)]
#[case(
    "status.conditions.exists('c', true)",
    "line 1, column 26: the variable must be a simple name; write list.all(x, x > 0)"
)]
#[case(
    "exists(status.conditions, c, true)",
    "line 1, column 1: undeclared reference to function `exists`; call it on a list: list.exists(x, x == 1)"
)]
#[case("[1].all(x, x, true)", "line 1, column 12: duplicate variable `x`")]
#[case(
    "[1].all(a.b, true)",
    "line 1, column 10: the variable must be a simple name; write list.all(x, x > 0)"
)]
#[case("cel.bind(x, 1)", "line 1, column 4: cel.bind() takes a variable, its value and an expression")]
#[case("has('status.phase')", "line 1, column 5: invalid argument to has() macro; write has(status.phase)")]
#[case("has()", "line 1, column 1: has() takes 1 argument; write has(status.phase)")]
#[case(
    "has(status.phase == 'Up')",
    "line 1, column 18: invalid argument to has() macro; write has(status.phase)"
)]
#[case(
    "startsWith(status.phase, 'U')",
    "line 1, column 1: `startsWith` is a method; write x.startsWith(...)"
)]
#[case("status.phase.int()", "line 1, column 13: `int` is not a method; write int(x)")]
#[case("timestamp('yesterday')", "line 1, column 1: 'yesterday' is not a timestamp (2006-01-02T15:04:05Z)")]
#[case("duration('5 minutes')", "line 1, column 1: '5 minutes' is not a duration (1h30m5s)")]
#[case(
    "quantity('5Q')",
    "line 1, column 1: '5Q' is not a quantity: the unit must be one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"
)]
fn macros_and_functions(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("\t\tstatus.phase = 'Up'", "line 1, column 16: unexpected `=`; to compare, write ==")]
#[case(
    "status.phase == 'Up' &&\n  spec.replicas = 3",
    "line 2, column 17: unexpected `=`; to compare, write =="
)]
#[case("'é🎡' = 1", "line 1, column 6: unexpected `=`; to compare, write ==")]
#[case("// 🎡\n\té = 1", "line 2, column 2: unexpected `é`")]
#[case("\n\n  )", "line 3, column 3: expected a value, found `)`")]
#[case("x = 1\n&& y", "line 1, column 3: unexpected `=`; to compare, write ==")]
fn places(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case(
    "status.phase == 'Up'",
    "line 1, column 1: undeclared reference to `status`; did you mean `returned.status`?"
)]
#[case("1 < spec.replicas", "line 1, column 5: undeclared reference to `spec`; did you mean `obj.spec`?")]
#[case("metadata.name", "line 1, column 1: undeclared reference to `metadata`; did you mean `obj.metadata`?")]
#[case("stauts", "line 1, column 1: undeclared reference to `stauts`; did you mean `returned.status`?")]
#[case(
    "self.status",
    "line 1, column 1: undeclared reference to `self`; declared variables: `inventory`, `obj`, `returned`, `propagation`"
)]
#[case(
    "$.status.phase == 'Up'",
    "line 1, column 1: unexpected `$`; write the path without $: returned.status.phase"
)]
#[case(
    "size($.metadata.labels['a/b'])",
    "line 1, column 6: unexpected `$`; write the path without $: obj.metadata.labels['a/b']"
)]
#[case("$.inventory.name", "line 1, column 1: unexpected `$`; write the path without $: inventory.name")]
#[case("$.obj.kind", "line 1, column 1: unexpected `$`; write the path without $: obj.kind")]
#[case("$[0]", "line 1, column 1: unexpected `$`; write the path without $: returned.status.phase")]
#[case("inventroy.name", "line 1, column 1: undeclared reference to `inventroy`; did you mean `inventory`?")]
#[case(
    "x",
    "line 1, column 1: undeclared reference to `x`; declared variables: `inventory`, `obj`, `returned`, `propagation`"
)]
fn variables_of_a_row(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_row(text), expected);
}

/// Where all fields are known, a typo is not null.
#[rstest]
#[case(
    "propagation.helth == 'Ready'",
    "line 1, column 13: unknown field `helth` of `propagation`; did you mean `health`?"
)]
#[case(
    "obj.a == 1 &&\n  has(propagation.helth)",
    "line 2, column 19: unknown field `helth` of `propagation`; did you mean `health`?"
)]
#[case(
    "inventory . lables.x",
    "line 1, column 13: unknown field `lables` of `inventory`; did you mean `labels`?"
)]
#[case(
    "inventory['nam'] == ''",
    "line 1, column 11: unknown field `nam` of `inventory`; did you mean `name`?"
)]
#[case(
    "returned.stats.x.startsWith('a')",
    "line 1, column 10: unknown field `stats` of `returned`; did you mean `status`?"
)]
#[case(
    "[1].all(x, x < returned.phase)",
    "line 1, column 25: unknown field `phase` of `returned`; known fields: `metadata`, `spec`, `status`"
)]
#[case(
    "propagation.lastGeneration",
    "line 1, column 13: unknown field `lastGeneration` of `propagation`; known fields: `found`, `stale`, `health`, `progress`, `observedGeneration`, `lastReturnedUpdateTimestamp`"
)]
#[case(
    "returned.?stats.?x.orValue(1)",
    "line 1, column 11: unknown field `stats` of `returned`; did you mean `status`?"
)]
#[case(
    "returned[?'stats'].hasValue()",
    "line 1, column 11: unknown field `stats` of `returned`; did you mean `status`?"
)]
#[case(
    "propagation[0]",
    "line 1, column 13: unknown field `0` of `propagation`; known fields: `found`, `stale`, `health`, `progress`, `observedGeneration`, `lastReturnedUpdateTimestamp`"
)]
#[case("inventory.name.foo", "line 1, column 16: string does not support field selection")]
#[case("has(propagation.stale.x)", "line 1, column 23: bool does not support field selection")]
#[case("propagation.progress[0]", "line 1, column 22: int does not support indexing")]
fn unknown_fields_of_a_row(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_row(text), expected);
}

#[rstest]
#[case("inventory.labels.any")]
#[case("inventory.labels['example.com/any']")]
#[case("inventory.annotations[?'any'].hasValue()")]
#[case("has(returned.status.any.deeper)")]
#[case("returned.metadata.labels.any")]
#[case("obj.any.deeper[0]")]
#[case("propagation['a' + 'b']")]
#[case("'any' in propagation")]
#[case("[{'helth': 1}].all(propagation, propagation.helth == 1)")]
#[case("inventory.name.size() + propagation.health.size()")]
fn fields_that_a_row_can_have(#[case] text: &str) {
    assert_eq!(of_row(text), "valid");
}

/// A message without inner quotes is prose, not CEL.
#[rstest]
#[case("it is broken", Some("it is broken"))]
#[case("It is broken.\n", Some("It is broken."))]
#[case("waiting for 3 replicas", Some("waiting for 3 replicas"))]
#[case("it is not ready: see the log", Some("it is not ready: see the log"))]
#[case("see \"log\"", None)]
#[case("look at \"log\"", Some("..."))]
#[case("phase is 'Up'", None)]
#[case("ready is true", None)]
#[case("a and b", None)]
#[case("status.phase up", None)]
#[case("(it is broken)", None)]
fn plain_text(#[case] text: &str, #[case] shown: Option<&str>) {
    let error = of_object(text);
    match shown {
        Some(shown) => {
            assert!(error.ends_with(&format!("; plain text needs inner quotes: \"'{shown}'\"")), "{error}");
        }
        None => assert!(!error.contains("plain text"), "{error}"),
    }
}

/// A hint must apply to the scope of the expression.
#[rstest]
#[case("object.spec.replicas == 1")]
#[case("this.spec.replicas == 1")]
fn hints_of_a_row_name_its_variables(#[case] text: &str) {
    let error = of_row(text);
    assert!(error.contains("`obj`") && !error.contains("self"), "{error}");
}

#[rstest]
#[case("0x", "not a number")]
#[case("spec.replicas => 3", "write >=")]
#[case("[1].transformList(x, x)", "`transformList` takes")]
#[case("a.`b:c`", "invalid field name `b:c` in backticks")]
#[case("not a", "write !")]
#[case("not(a)", "write !")]
#[case(r"'\u12'", "write 4 hexadecimal digits")]
#[case("size()", "takes 1 argument,")]
fn parts_of_errors(#[case] text: &str, #[case] expected: &str) {
    let error = of_object(text);
    assert!(error.contains(expected), "{error}");
}
