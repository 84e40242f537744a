//! What a person reads who made a slip: where it is, what is wrong, and the way out.

use bellwether_expr::{Absence, Mistake, Program, Scope};
use rstest::rstest;

pub(crate) fn told(program: Result<Program, Mistake>) -> String {
    program.map_or_else(|mistake| mistake.to_string(), |_| "nothing is wrong with it".to_owned())
}

fn of_object(text: &str) -> String {
    told(Program::cel(text, &Scope::object(Absence::NotYet)))
}

fn of_row(text: &str) -> String {
    told(Program::cel(text, &Scope::row()))
}

#[rstest]
#[case("status.phase = 'Up'", "line 1, column 14: `=` means nothing here; to compare, write ==")]
#[case("status.phase === 'Up'", "line 1, column 16: `=` means nothing here; to compare, write ==")]
#[case(
    "status.phase =~ 'U.*'",
    "line 1, column 14: `=` means nothing here; to compare with a regular expression, write x.matches('...')"
)]
#[case("status.phase <> 'Up'", "line 1, column 15: expected a value, found `>`; write != for not equal")]
#[case("status.phase ≠ 'Up'", "line 1, column 14: `≠` means nothing here; write !=")]
#[case("spec.replicas ≤ 3", "line 1, column 15: `≤` means nothing here; write <=")]
#[case("spec.replicas ≥ 3", "line 1, column 15: `≥` means nothing here; write >=")]
#[case("spec.replicas – 1", "line 1, column 15: `–` means nothing here; this is a dash: write -")]
#[case("a & b", "line 1, column 3: `&` means nothing here; write && for both")]
#[case("a | b", "line 1, column 3: `|` means nothing here; write || for either")]
#[case(
    "status.phase == 'Up';",
    "line 1, column 21: `;` means nothing here; an expression has no ; at its end"
)]
#[case("# phase", "line 1, column 1: `#` means nothing here; a comment begins with //")]
#[case(
    "$.status.phase == 'Up'",
    "line 1, column 1: `$` means nothing here; a path begins with its first field: status.phase"
)]
#[case("@status", "line 1, column 1: `@` means nothing here; no name begins with @")]
#[case(
    "status.phase == ‘Up’",
    r#"line 1, column 17: `‘` means nothing here; these quotes are typographic: write ' or ""#
)]
#[case(
    "status.phase == “Up”",
    r#"line 1, column 17: `“` means nothing here; these quotes are typographic: write ' or ""#
)]
fn signs_of_other_languages(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("a and b", "line 1, column 3: expected an operator or the end, found `and`; write && for both")]
#[case("a or b", "line 1, column 3: expected an operator or the end, found `or`; write || for either")]
#[case(
    "status.phase is 'Up'",
    "line 1, column 14: expected an operator or the end, found `is`; to compare, write =="
)]
#[case(
    "status.phase not in ['Up']",
    "line 1, column 14: expected an operator or the end, found `not`; write ! before what is not so, and !(x in list) for what is in no list"
)]
#[case(
    "status.phase eq 'Up'",
    "line 1, column 14: expected an operator or the end, found `eq`; to compare, write =="
)]
#[case(
    "status.phase contains 'U'",
    "line 1, column 14: expected an operator or the end, found `contains`; call it: text.contains('part')"
)]
#[case(
    "if status.phase == 'Up' then 1 else 2",
    "line 1, column 1: `if` is a reserved word; to choose, write condition ? one : other"
)]
#[case(
    "status.phase == 'Up' if true else false",
    "line 1, column 22: expected an operator or the end, found `if`; to choose, write condition ? one : other"
)]
#[case(
    "for x in list",
    "line 1, column 1: `for` is a reserved word; to go through a list, write list.all(x, ...), list.exists(x, ...) or list.map(x, ...)"
)]
#[case(
    "return true",
    "line 1, column 1: `return` is a reserved word; an expression is its value: nothing is returned"
)]
#[case(
    "namespace == 'shop'",
    "line 1, column 1: `namespace` is a reserved word; the namespace of an object is metadata.namespace"
)]
#[case("self.status.phase == True", "line 1, column 22: there is no `True`; write true")]
#[case("status.ready == None", "line 1, column 17: there is no `None`; write null")]
#[case("status.ready == nil", "line 1, column 17: there is no `nil`; write null")]
#[case("this.status.phase", "line 1, column 1: there is no `this`; the whole object is self")]
#[case("object.spec.replicas", "line 1, column 1: there is no `object`; the whole object is self")]
#[case(
    "now()",
    "line 1, column 1: there is no function `now`; expressions have no clock: the same object always gives the same answer"
)]
#[case("len(status.conditions)", "line 1, column 1: there is no function `len`; write size(x)")]
#[case(
    "status.phase.toLowerCase()",
    "line 1, column 13: there is no function `toLowerCase`; write x.lowerAscii()"
)]
#[case(
    "status.phase.startswith('U')",
    "line 1, column 13: there is no function `startswith`; write x.startsWith('...')"
)]
#[case(
    "status.conditions.any(c, c.type == 'Ready')",
    "line 1, column 18: there is no function `any`; write list.exists(x, ...)"
)]
fn words_of_other_languages(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("stauts.phase == 'Up'", "line 1, column 1: there is no `stauts`; did you mean `status`?")]
#[case("Status.phase == 'Up'", "line 1, column 1: there is no `Status`; did you mean `status`?")]
#[case("sizee([1])", "line 1, column 1: there is no function `sizee`; did you mean `size`?")]
#[case("status.phase()", "line 1, column 7: there is no function `phase`")]
fn names_that_nobody_knows(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("status.phase == 'Up", "line 1, column 17: the text that begins here has no end; close it with '")]
#[case(
    r#"status.phase == "Up'"#,
    r#"line 1, column 17: the text that begins here has no end; close it with ""#
)]
#[case("status.phase == 'it's'", "line 1, column 22: the text that begins here has no end; close it with '")]
#[case(r#"status["phase]"#, r#"line 1, column 8: the text that begins here has no end; close it with ""#)]
#[case("status.phase == 'Up' &&", "line 1, column 24: expected a value, found the end")]
#[case("status.phase ==", "line 1, column 16: expected a value, found the end")]
#[case("== 'Up'", "line 1, column 1: expected a value, found `==`")]
#[case("(status.phase == 'Up'", "line 1, column 22: expected an operator or `)`, found the end")]
#[case("status.phase == 'Up')", "line 1, column 21: expected an operator or the end, found `)`")]
#[case("[1, 2", "line 1, column 6: expected an operator, `,` or `]`, found the end")]
#[case("{'a' 1}", "line 1, column 6: expected `:` and a value, found `1`")]
#[case("{'a': 1", "line 1, column 8: expected an operator, `,` or `}`, found the end")]
#[case("status.conditions[0", "line 1, column 20: expected `]`, found the end")]
#[case("status.conditions[]", "line 1, column 19: expected a value, found `]`")]
#[case("status.", "line 1, column 8: expected the name of a field, found the end")]
#[case("status..phase", "line 1, column 8: expected the name of a field, found `.`")]
#[case(
    r#"status.phase.startsWith("U""#,
    "line 1, column 28: expected an operator, `,` or `)`, found the end"
)]
#[case("true ? 1", "line 1, column 9: expected `:` and what it is otherwise, found the end")]
#[case("true ? 1 :", "line 1, column 11: expected a value, found the end")]
#[case("a || || b", "line 1, column 6: expected a value, found `||`")]
#[case("a b", "line 1, column 3: expected an operator or the end, found `b`")]
#[case("a 'b'", "line 1, column 3: expected an operator or the end, found `'b'`")]
#[case("a, b", "line 1, column 2: expected an operator or the end, found `,`")]
#[case("f(a,)", "line 1, column 5: expected a value, found `)`")]
#[case("''''", "line 1, column 1: the text that begins here has no end; close it with '''")]
#[case("a.`", "line 1, column 3: the field name that begins here has no end; close it with `")]
fn what_is_not_finished(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case(
    "spec.timeout > 5m",
    "line 1, column 16: `5m` is no number; write quantity('5m') for a quantity, duration('5m') for a length of time"
)]
#[case("99999999999999999999", "line 1, column 1: 99999999999999999999 is too large for a whole number")]
#[case(
    "9223372036854775808",
    "line 1, column 1: 9223372036854775808 is too large for a whole number; write it with a u at its end"
)]
#[case("-9223372036854775809", "line 1, column 1: -9223372036854775809 is too small for a whole number")]
#[case("18446744073709551616u", "line 1, column 1: 18446744073709551616 is too large for a whole number")]
#[case("1e999", "line 1, column 1: 1e999 is too large for a number")]
#[case(
    r"'\d+'",
    r"line 1, column 2: \d is no escape; write \\ for a backslash, or r'...' for text without escapes"
)]
#[case(
    r"'a\qb'",
    r"line 1, column 3: \q is no escape; write \\ for a backslash, or r'...' for text without escapes"
)]
fn numbers_and_escapes(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("1 + 'a'", "line 1, column 3: `+` does not go with int and string; make text of it: string(x)")]
#[case("'a' + 1", "line 1, column 5: `+` does not go with string and int; make text of it: string(x)")]
#[case(
    "'1' == 1",
    "line 1, column 5: string and int are never equal; write int(x) or quantity(x) for a number in a text"
)]
#[case(
    "'True' == true",
    "line 1, column 8: string and bool are never equal; 'True' is text, and true is not"
)]
#[case("1 + 1u", "line 1, column 3: `+` does not go with int and uint; write int(x), uint(x) or double(x)")]
#[case(
    "1 + 1.0",
    "line 1, column 3: `+` does not go with int and double; write int(x), uint(x) or double(x)"
)]
#[case(
    "'a' in 'abc'",
    "line 1, column 5: `in` looks into a list or a map, not into string; write text.contains(part)"
)]
#[case("1 in 1", "line 1, column 3: `in` looks into a list or a map, not into int")]
#[case(
    "1 < 'a'",
    "line 1, column 3: `<` does not go with int and string; write int(x) or quantity(x) for a number in a text"
)]
#[case("!'a'", "line 1, column 1: `!` takes bool, not string; compare it with something: x == 'value'")]
#[case("-'a'", "line 1, column 1: `-` takes int or double or duration, not string")]
#[case("1 && true", "line 1, column 1: `&&` takes bool, not int; compare it with something: x == 'value'")]
#[case("1 ? 2 : 3", "line 1, column 3: `?` takes bool, not int; compare it with something: x == 'value'")]
#[case("'a'.b", "line 1, column 4: string has no fields")]
#[case("'a'[0]", "line 1, column 4: string has no entries")]
#[case("1[0]", "line 1, column 2: int has no entries")]
#[case("[1]['a']", "line 1, column 4: the entries of a list are numbered: string is none of them")]
#[case("[1, 2].first", "line 1, column 7: list has no fields")]
#[case("null + 1", "line 1, column 6: `+` does not go with null and int")]
#[case("{1.5: 1}", "line 1, column 2: the key of a map is bool or int or uint or string, not double")]
#[case(
    "Widget{name: 'x'}",
    "line 1, column 1: `Widget{...}` makes a message, and there are none here; write a map: {'field': value}"
)]
fn types_that_do_not_go_together(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case(
    "status.conditions.exists(c.type == 'Ready')",
    "line 1, column 18: `exists` takes a variable and a question; write list.exists(x, x > 0)"
)]
#[case(
    "status.conditions.exists('c', true)",
    "line 1, column 26: the first argument is the name of a variable; write list.all(x, x > 0)"
)]
#[case(
    "exists(status.conditions, c, true)",
    "line 1, column 1: there is no function `exists`; it is called on a list: list.exists(x, x == 1)"
)]
#[case("[1].all(x, x, true)", "line 1, column 12: both variables are called `x`")]
#[case(
    "[1].all(a.b, true)",
    "line 1, column 10: the first argument is the name of a variable; write list.all(x, x > 0)"
)]
#[case("cel.bind(x, 1)", "line 1, column 4: cel.bind() takes a name, its value and an expression")]
#[case("has('status.phase')", "line 1, column 5: has() asks for a field; write has(status.phase)")]
#[case("has()", "line 1, column 1: has() takes one field; write has(status.phase)")]
#[case("has(status.phase == 'Up')", "line 1, column 18: has() asks for a field; write has(status.phase)")]
#[case(
    "startsWith(status.phase, 'U')",
    "line 1, column 1: `startsWith` is not called like this; it is called on a value: x.startsWith(...)"
)]
#[case(
    "status.phase.int()",
    "line 1, column 13: `int` is not called like this; it is called on nothing: int(x)"
)]
#[case("timestamp('yesterday')", "line 1, column 1: 'yesterday' is not a timestamp (2006-01-02T15:04:05Z)")]
#[case("duration('5 minutes')", "line 1, column 1: '5 minutes' is not a duration (1h30m5s)")]
#[case(
    "quantity('5Q')",
    "line 1, column 1: '5Q' is not a quantity: the unit is one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"
)]
fn macros_and_functions(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case("\t\tstatus.phase = 'Up'", "line 1, column 16: `=` means nothing here; to compare, write ==")]
#[case(
    "status.phase == 'Up' &&\n  spec.replicas = 3",
    "line 2, column 17: `=` means nothing here; to compare, write =="
)]
#[case("'é🎡' = 1", "line 1, column 6: `=` means nothing here; to compare, write ==")]
#[case("// 🎡\n\té = 1", "line 2, column 2: `é` means nothing here")]
#[case("\n\n  )", "line 3, column 3: expected a value, found `)`")]
#[case("x = 1\n&& y", "line 1, column 3: `=` means nothing here; to compare, write ==")]
fn places(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_object(text), expected);
}

#[rstest]
#[case(
    "status.phase == 'Up'",
    "line 1, column 1: there is no `status`; there is `inventory`, `obj`, `returned`, `propagation`"
)]
#[case("inventroy.name", "line 1, column 1: there is no `inventroy`; did you mean `inventory`?")]
#[case("x", "line 1, column 1: there is no `x`; there is `inventory`, `obj`, `returned`, `propagation`")]
fn variables_of_a_row(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(of_row(text), expected);
}

/// A hint must be a way out: what it says has to be true here.
#[rstest]
#[case("object.spec.replicas == 1")]
#[case("this.spec.replicas == 1")]
fn hints_of_a_row_name_what_a_row_has(#[case] text: &str) {
    let told = of_row(text);
    assert!(told.contains("`obj`") && !told.contains("self"), "{told}");
}

#[rstest]
#[case("0x", "no number")]
#[case("spec.replicas => 3", "write >=")]
#[case("[1].transformList(x, x)", "`transformList` takes")]
#[case("a.`b:c`", "`b:c` cannot stand between backticks")]
#[case("not a", "write !")]
#[case("not(a)", "write !")]
#[case(r"'\u12'", "it takes 4 hexadecimal digits")]
#[case("size()", "takes 1 argument,")]
fn clear_words(#[case] text: &str, #[case] expected: &str) {
    let told = of_object(text);
    assert!(told.contains(expected), "{told}");
}
