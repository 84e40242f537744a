//! The language: every literal, operator and macro of CEL.

use bellwether_expr::Absence;
use rstest::rstest;

use crate::sample::of_widget;

#[track_caller]
fn gives(text: &str, expected: &str) {
    assert_eq!(of_widget(text, Absence::AsInCel), expected, "{text}");
}

#[rstest]
#[case("42", "42")]
#[case("-42", "-42")]
#[case("0x2A", "42")]
#[case("0XfF", "255")]
#[case("-0x2A", "-42")]
#[case("42u", "42u")]
#[case("0x2AU", "42u")]
#[case("9223372036854775807", "9223372036854775807")]
#[case("-9223372036854775808", "-9223372036854775808")]
#[case("18446744073709551615u", "18446744073709551615u")]
#[case("1.5", "1.5")]
#[case(".5", "0.5")]
#[case("-.5", "-0.5")]
#[case("1e3", "1000.0")]
#[case("1E+3", "1000.0")]
#[case("2.5e-1", "0.25")]
#[case("true", "true")]
#[case("false", "false")]
#[case("null", "null")]
#[case("[]", "[]")]
#[case("[1, 'a', [true]]", r#"[1, "a", [true]]"#)]
#[case("[1, 2,]", "[1, 2]")]
#[case("{}", "{}")]
#[case("{'a': 1, 2: 'b', true: null, 3u: 4,}", r#"{"a": 1, 2: "b", true: null, 3u: 4}"#)]
fn numbers_and_collections(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("'one' ", "one")]
#[case(r#""two""#, "two")]
#[case(r#"'say "it"'"#, "say \"it\"")]
#[case(r#""don't""#, "don't")]
#[case(r"'\a\b\f\n\r\t\v'", "\u{7}\u{8}\u{c}\n\r\t\u{b}")]
#[case(r#"'\\ \? \" \' \`'"#, "\\ ? \" ' `")]
#[case(r"'\x41\X42'", "AB")]
#[case(r"'\u00e9\U0001F3A1'", "é🎡")]
#[case(r"'\101\060'", "A0")]
#[case(r"'\377'", "ÿ")]
#[case(r"r'\n\'", r"\n\")]
#[case(r#"R"a\d+""#, r"a\d+")]
#[case("'''one\n'two'\n'''", "one\n'two'\n")]
#[case(r#""""say "it" twice""""#, "say \"it\" twice")]
#[case(r"r'''\t'''", r"\t")]
#[case("'größe 🎡'", "größe 🎡")]
#[case("''", "")]
#[case("''''''", "")]
fn texts(#[case] text: &str, #[case] expected: &str) {
    gives(text, &format!("{expected:?}"));
}

#[rstest]
#[case("b'abc'", "abc")]
#[case("B\"é\"", r"\\xc3\\xa9")]
#[case(r"b'\xff\000'", r"\\xff\\x00")]
#[case(r"b'\377\n'", r"\\xff\\n")]
#[case(r"br'\x41'", r"\\\\x41")]
#[case(r"rb'\x41'", r"\\\\x41")]
#[case("b'''a\nb'''", r"a\\nb")]
fn bytes(#[case] text: &str, #[case] expected: &str) {
    gives(text, &format!("b\"{expected}\""));
}

#[rstest]
#[case("1 + 2 * 3", "7")]
#[case("(1 + 2) * 3", "9")]
#[case("10 - 4 - 3", "3")]
#[case("100 / 10 / 5", "2")]
#[case("7 / 2", "3")]
#[case("-7 / 2", "-3")]
#[case("7 % 3", "1")]
#[case("-7 % 3", "-1")]
#[case("7.0 / 2.0", "3.5")]
#[case("1.0 / 0.0", "inf")]
#[case("2 - -3", "5")]
#[case("- (2 + 3)", "-5")]
#[case("--5", "5")]
#[case("---5", "-5")]
#[case("!true || true", "true")]
#[case("!(true || true)", "false")]
#[case("!!true", "true")]
#[case("true || false && false", "true")]
#[case("(true || false) && false", "false")]
#[case("1 + 1 == 2 && 3 < 4", "true")]
#[case("1 < 2 == true", "true")]
#[case("1 in [1] == true", "true")]
#[case("-spec.replicas + 1", "-4")]
#[case("!spec.paused && status.ready == 5", "true")]
#[case("true ? 1 : false ? 2 : 3", "1")]
#[case("false ? 1 : false ? 2 : 3", "3")]
#[case("false || true ? 1 + 1 : 2 + 2", "2")]
#[case("(true ? false : true) ? 1 : 2", "2")]
#[case("'a' + 'b' + 'c'", r#""abc""#)]
#[case("b'a' + b'b'", r#"b"ab""#)]
#[case("[1] + [2, 3]", "[1, 2, 3]")]
#[case("[[1, 2], [3]][0][1]", "2")]
#[case("{'a': {'b': 7}}.a.b", "7")]
#[case("{'a': {'b': 7}}['a']['b']", "7")]
#[case("{1: 'a', 2u: 'b'}[2]", r#""b""#)]
#[case("[5, 6][1u]", "6")]
#[case("[5, 6][1.0]", "6")]
fn operators_bind_as_they_should(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("1 == 1.0", "true")]
#[case("1u == 1", "true")]
#[case("1u < 1.5", "true")]
#[case("-1 < 1u", "true")]
#[case("9007199254740993 == 9007199254740992.0", "false")]
#[case("9007199254740993 > 9007199254740992.0", "true")]
#[case("[1, 2.0] == [1u, 2]", "true")]
#[case("{'a': 1} == {'a': 1.0}", "true")]
#[case("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "true")]
#[case("{'a': 1} != {'a': 2}", "true")]
#[case("[1] == [1, 2]", "false")]
#[case("0.0 == -0.0", "true")]
#[case("double('NaN') == double('NaN')", "false")]
#[case("double('NaN') != 1.0", "true")]
#[case("double('NaN') < 1", "false")]
#[case("'a' < 'b' && 'B' < 'a'", "true")]
#[case("false < true", "true")]
#[case("b'a' <= b'a'", "true")]
#[case("null == null", "true")]
#[case("status.phase == null", "false")]
#[case("dyn(1) == 'a'", "false")]
#[case("status.phase == 1", "false")]
#[case("type(1) == int && type(1u) != int", "true")]
#[case("type(status.conditions) == list", "true")]
#[case("2.0 in [1, 2]", "true")]
#[case("'hub' in spec.parts", "true")]
#[case("'axle' in spec.parts", "false")]
#[case("'tier' in metadata.labels", "true")]
#[case("'gold' in metadata.labels", "false")]
#[case("1 in {1.0 == 1 ? 1 : 2: true}", "true")]
#[case("'Ready' in status.conditions.map(c, c.type)", "true")]
fn comparisons(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

/// Every integer in an object is an `int`, as in Kubernetes.
#[rstest]
#[case("spec.replicas", "5")]
#[case("spec.replicas / 2", "2")]
#[case("spec.replicas + 1", "6")]
#[case("spec.replicas % 2", "1")]
#[case("type(spec.replicas) == int", "true")]
#[case("spec.ratio * 2.0", "1.0")]
#[case("spec.replicas * spec.ratio", "error: line 1, column 15: no such overload: int * double")]
#[case("double(spec.replicas) * spec.ratio", "2.5")]
#[case("status.largest", "9223372036854775807")]
#[case("status.beyond", "1.8446744073709552e19")]
#[case("int(status.observed) == metadata.generation", "true")]
#[case("status.observed == metadata.generation", "false")]
#[case("status.ready >= spec.replicas", "true")]
fn numbers_of_objects(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("status.largest + 1", "error: line 1, column 16: integer overflow")]
#[case("-status.largest - 2", "error: line 1, column 17: integer overflow")]
#[case("status.largest * 2", "error: line 1, column 16: integer overflow")]
#[case("-(-9223372036854775807 - 1)", "error: line 1, column 1: integer overflow")]
#[case("(-9223372036854775807 - 1) / -1", "error: line 1, column 28: integer overflow")]
#[case("18446744073709551615u + 1u", "error: line 1, column 23: unsigned integer overflow")]
#[case("0u - 1u", "error: line 1, column 4: unsigned integer overflow")]
#[case("1 / 0", "error: line 1, column 3: division by zero")]
#[case("1 % 0", "error: line 1, column 3: modulus by zero")]
#[case("status.phase + 1", "error: line 1, column 14: no such overload: string + int")]
#[case("status.phase < 1", "error: line 1, column 14: cannot order string and int")]
#[case("!status.phase", "error: line 1, column 1: no such overload: !(string)")]
#[case("status.phase && true", "error: line 1, column 7: no such overload: &&(string)")]
#[case("status.phase ? 1 : 2", "error: line 1, column 14: no such overload: ?:(string)")]
#[case(
    "status.phase.length",
    "error: line 1, column 13: cannot read field `length`: status.phase is not a map"
)]
#[case("spec.parts['hub']", "error: line 1, column 11: cannot read field `hub`: spec.parts is not a map")]
#[case("{'a': 1, 'a': 2}", "error: line 1, column 1: duplicate map key `a`")]
#[case("{spec.ratio: 1}", "error: line 1, column 1: invalid map key: a double")]
#[case("1 in status.phase", "error: line 1, column 3: no such overload: in(int, string)")]
fn errors(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("1 // one\n+ 2 // two", "3")]
#[case("// first\n'// not a comment' // last", r#""// not a comment""#)]
#[case("\t1\r\n\u{c}+\n1", "2")]
#[case("8 / // half\n 4", "2")]
fn blanks_and_comments(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("metadata.labels['tier']", r#""gold""#)]
#[case("metadata.labels['app.kubernetes.io/name']", r#""wheel""#)]
#[case("metadata.labels.`app.kubernetes.io/name`", r#""wheel""#)]
#[case("self.metadata.name", r#""wheel""#)]
#[case("self['spec']['sizes'][2]", "2")]
#[case(".status.phase", r#""Up""#)]
#[case("status.conditions[1].reason", r#""Fine""#)]
#[case("status.conditions[spec.sizes[1]].reason", r#""Fine""#)]
#[case("status.conditions[5]", "missing: index out of bounds: 5")]
#[case("status.conditions[-1]", "missing: index out of bounds: -1")]
#[case("status.conditions[0].reason", "missing: no such key: reason")]
#[case("size(self) == 5", "true")]
#[case("{'self': 1}.self", "1")]
#[case("[{'if': 1}][0].if", "1")]
fn selecting(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("has(status.phase)", "true")]
#[case("has(status.absent)", "false")]
#[case("has(metadata.labels.`app.kubernetes.io/name`)", "true")]
#[case("has(spec.nothing)", "true")]
#[case("has({'a': 1}.a)", "true")]
#[case("has({'a': 1}.b)", "false")]
#[case("has(status.conditions[1].reason) && !has(status.conditions[0].reason)", "true")]
#[case("status.conditions.filter(c, has(c.reason)).map(c, c.type)", r#"["Stalled"]"#)]
fn presence(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("spec.sizes.all(x, x > 0)", "true")]
#[case("spec.sizes.exists(x, x == 2)", "true")]
#[case("spec.sizes.exists_one(x, x > 1)", "false")]
#[case("spec.sizes.existsOne(x, x > 2)", "true")]
#[case("spec.sizes.map(x, x * 2)", "[6, 2, 4]")]
#[case("spec.sizes.map(x, x > 1, x * 2)", "[6, 4]")]
#[case("spec.sizes.filter(x, x > 1)", "[3, 2]")]
#[case("spec.sizes.sortBy(x, -x)", "[3, 2, 1]")]
#[case("status.conditions.sortBy(c, c.status).map(c, c.type)", r#"["Stalled", "Ready"]"#)]
#[case("metadata.labels.all(k, k.size() > 0)", "true")]
#[case("metadata.labels.map(k, metadata.labels[k])", r#"["wheel", "gold"]"#)]
#[case("metadata.labels.filter(k, k == 'tier')", r#"["tier"]"#)]
#[case("spec.none.all(x, false) && !spec.none.exists(x, true)", "true")]
#[case("spec.parts.all(i, part, i < 3 && part != '')", "true")]
#[case("spec.parts.exists(i, part, i == 1 && part == 'rim')", "true")]
#[case("spec.parts.existsOne(i, part, part != 'rim' && i > 0)", "true")]
#[case("metadata.labels.exists(k, v, k == 'tier' && v == 'gold')", "true")]
#[case("spec.parts.transformList(i, part, part + string(i))", r#"["hub0", "rim1", "spoke2"]"#)]
#[case("spec.parts.transformList(i, part, i > 0, part)", r#"["rim", "spoke"]"#)]
#[case("spec.limits.transformMap(k, v, k + v)", r#"{"memory": "memory250Mi", "cpu": "cpu100m"}"#)]
#[case("spec.limits.transformMap(k, v, k == 'cpu', v)", r#"{"cpu": "100m"}"#)]
#[case("spec.parts.transformMap(i, part, part)", r#"{0: "hub", 1: "rim", 2: "spoke"}"#)]
#[case("spec.limits.transformMapEntry(k, v, {v: k})", r#"{"250Mi": "memory", "100m": "cpu"}"#)]
#[case("[1, 1].transformMapEntry(i, v, {v: i})", "error: line 1, column 7: duplicate map key `1`")]
#[case("spec.sizes.map(x, spec.sizes.map(y, x * y))", "[[9, 3, 6], [3, 1, 2], [6, 2, 4]]")]
#[case("spec.sizes.map(x, [x].map(x, x + 1))", "[[4], [2], [3]]")]
#[case("[1].map(spec, spec)", "[1]")]
#[case("[1].map(spec, .spec.replicas + spec)", "[6]")]
#[case("cel.bind(n, spec.replicas, n * n)", "25")]
#[case("cel.bind(n, 1, cel.bind(n, n + 1, n * 10))", "20")]
#[case("cel.bind(n, 1 / 0, 5)", "error: line 1, column 15: division by zero")]
fn macros(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

#[rstest]
#[case("status.?phase", r#"some("Up")"#)]
#[case("status.?absent", "none")]
#[case("status.?absent.deeper.still", "none")]
#[case("status.?absent.orValue('not')", r#""not""#)]
#[case("status.?phase.orValue('not')", r#""Up""#)]
#[case("status.conditions[?0].type", r#"some("Ready")"#)]
#[case("status.conditions[?7].type", "none")]
#[case("metadata.labels[?'tier'].value()", r#""gold""#)]
#[case("status.?absent.value()", "error: line 1, column 15: optional.none() dereference")]
#[case("status.?absent.hasValue()", "false")]
#[case("has(status.?absent.deeper)", "false")]
#[case("status.?phase.optMap(p, p + '!')", r#"some("Up!")"#)]
#[case("status.?absent.optMap(p, p + '!').orValue('?')", r#""?""#)]
#[case("status.?phase.optFlatMap(p, optional.none())", "none")]
#[case("optional.of(1).or(optional.of(2))", "some(1)")]
#[case("optional.none().or(optional.of(2))", "some(2)")]
#[case("[?status.?absent, ?status.?phase, 1]", r#"["Up", 1]"#)]
#[case("{?'a': status.?absent, ?'b': status.?phase}", r#"{"b": "Up"}"#)]
#[case("optional.ofNonZeroValue('')", "none")]
fn optionals(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}

/// A decisive operand wins over a missing field or an error of the other, as in CEL.
#[rstest]
#[case("true || 1 / 0 == 1", "true")]
#[case("1 / 0 == 1 || true", "true")]
#[case("false && status.absent", "false")]
#[case("status.absent && false", "false")]
#[case("status.absent || true", "true")]
#[case("status.phase || true", "true")]
#[case("status.phase && false", "false")]
#[case("1 / 0 == 1 || false", "error: line 1, column 3: division by zero")]
#[case("true && status.absent", "missing: no such key: absent")]
#[case("status.absent && 1 / 0 == 1", "error: line 1, column 20: division by zero")]
#[case("1 / 0 == 1 && status.absent", "error: line 1, column 3: division by zero")]
#[case("[0, 1].exists(x, 1 / x == 1)", "true")]
#[case("[0, 2].exists(x, 1 / x == 1)", "error: line 1, column 20: division by zero")]
#[case("[0, 2].all(x, 1 / x == 1)", "false")]
#[case("[0, 1].all(x, 1 / x == 1)", "error: line 1, column 17: division by zero")]
#[case("[0, 1].exists_one(x, 1 / x == 1)", "error: line 1, column 24: division by zero")]
#[case("true ? 1 : 1 / 0", "1")]
#[case("false ? 1 / 0 : 1", "1")]
#[case("1 / 0 == 1 ? 1 : 1", "error: line 1, column 3: division by zero")]
fn decisive_operands_win_over_errors(#[case] text: &str, #[case] expected: &str) {
    gives(text, expected);
}
