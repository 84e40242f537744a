//! Hostile expressions. Each one ends with a compile error, a value, or an exceeded cost limit, on a small
//! stack and with little memory. Run with `--nocapture` to see the costs.

use std::{thread, time::Instant};

use bellwether_expr::{Absence, Fuel, Program, Scope, Stop, Variables};
use bellwether_model::{Object, Plan};
use rstest::rstest;
use serde_json::{Value as Json, json};

/// The default stack of a thread.
const STACK: usize = 2 << 20;

/// The limit for one evaluation, in bytes.
const MAX_MEMORY: u64 = 64 << 20;

/// Compiles and evaluates an expression on a small stack, and describes the outcome.
fn defused(text: &str, json: &str) -> String {
    let (text, json) = (text.to_owned(), json.to_owned());
    on_a_small_stack(move || {
        let object = Object::from_json(json.as_bytes(), &Plan::whole()).expect("the object of the test");
        let mut outcome = String::new();
        let begin = Instant::now();
        let memory = allocation_counter::measure(|| {
            outcome = match Program::cel(&text, &Scope::object(Absence::AsInCel)) {
                Err(compile_error) => format!("mistake: {compile_error}"),
                Ok(program) => evaluate(&program, &object),
            };
        });
        let start: String = text.chars().take(60).collect();
        println!("{start}: {outcome}; {:?}, {} kB", begin.elapsed(), memory.bytes_max / 1024);
        assert!(memory.bytes_max < MAX_MEMORY, "{start}: {} bytes", memory.bytes_max);
        outcome
    })
}

fn evaluate(program: &Program, object: &Object<'_>) -> String {
    let mut fuel = Fuel::USUAL;
    let outcome = match program.evaluate(object, &mut fuel) {
        Ok(value) => format!("a {}", value.type_of()),
        Err(stop) => program.describe(&stop),
    };
    println!("fuel: {}", Fuel::USUAL.left() - fuel.left());
    outcome
}

fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let worker = thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread");
    worker.join().expect("no panic")
}

const TOO_EXPENSIVE: &str = "expression exceeded its cost limit";
const TOO_DEEP: &str = "nested too deeply here";
const TOO_LONG: &str = "the limit is 65536";

#[rstest]
#[case::loops("lists.range(900).all(i, lists.range(900).all(j, lists.range(900).all(k, true)))")]
#[case::maps("lists.range(900).map(i, lists.range(900).map(j, i * j))")]
#[case::flat("lists.range(900).map(i, lists.range(900)).flatten()")]
#[case::range("lists.range(9223372036854775807)")]
#[case::distinct("lists.range(400000).distinct()")]
#[case::distinct_maps("lists.range(40000).map(i, {'a': i}).distinct()")]
#[case::sorted("lists.range(200000).sortBy(i, -i)")]
#[case::one_map("lists.range(100000).transformMap(i, v, v)")]
#[case::sets("sets.equivalent(lists.range(90000), lists.range(90000).reverse())")]
#[case::precision("'%.999999999f'.format([1.0])")]
#[case::precisions("lists.range(100000).map(i, '%.1000f'.format([1.0]))")]
#[case::replacing(
    "lists.range(1000).map(i, '%.30000f'.format([1.0]).replace('0', '%.30000f'.format([1.0])))"
)]
#[case::joining("lists.range(1000).map(i, lists.range(1000).map(j, 'abcdefgh').join('-')).join('+')")]
#[case::splitting("lists.range(1000).map(i, '%.30000f'.format([1.0]).split(''))")]
#[case::hexadecimal("lists.range(1000).map(i, '%x'.format(['%.30000f'.format([1.0])]))")]
#[case::copies("cel.bind(t, '%.1000000f'.format([1.0]), lists.range(1000).map(i, t.lowerAscii()))")]
#[case::base64("cel.bind(b, bytes('%.1000000f'.format([1.0])), lists.range(1000).map(i, base64.encode(b)))")]
#[case::a_heavy_pattern(
    "cel.bind(t, '%.2000f'.format([1.0]), lists.range(9000).map(i, t.matches('(.{1,30}){1,30}z')))"
)]
#[case::patterns("lists.range(100000).exists(i, 'a'.matches('\\\\w{30}' + string(i)))")]
fn runs_out_of_fuel(#[case] text: &str) {
    assert_eq!(defused(text, "{}"), TOO_EXPENSIVE);
}

/// These use nearly all fuel, and so show the largest lists that it allows.
#[rstest]
#[case("lists.range(999000)")]
#[case("lists.range(499000).reverse()")]
#[case("cel.bind(r, lists.range(330000), r + r)")]
#[case("cel.bind(r, lists.range(50000), [r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r].flatten())")]
#[case("lists.range(240000).map(i, i)")]
#[case("lists.range(140000).map(i, [i])")]
#[case("lists.range(120000).map(i, {})")]
#[case("lists.range(150000).map(i, string(i))")]
#[case("lists.range(150000).map(i, optional.of(i))")]
fn makes_a_long_list(#[case] text: &str) {
    assert_eq!(defused(text, "{}"), "a list");
}

#[rstest]
#[case("'%.15000000f'.format([1.0])")]
#[case("'%.3000f'.format([1.0]).replace('0', '%.3000f'.format([1.0]))")]
#[case("strings.quote('%.4000000f'.format([1.0]))")]
#[case("'%s'.format([{'a': {'b': '%.2000000f'.format([1.0])}}])")]
fn makes_a_long_text(#[case] text: &str) {
    assert_eq!(defused(text, "{}"), "a string");
}

/// Each round doubles the size of the value.
#[rstest]
#[case::text("'0123456789abcdef'", "a + a")]
#[case::bytes("b'0123456789abcdef'", "a + a")]
#[case::list("[1, 2, 3, 4]", "a + a")]
#[case::joined("'0123456789abcdef'", "[a, a].join('')")]
#[case::formatted("'0123456789abcdef'", "'%s%s'.format([a, a])")]
#[case::replaced("'0123456789abcdef'", "a.replace('0', a)")]
#[case::mapped("[1, 2, 3, 4]", "a.map(x, [x, x]).flatten()")]
#[case::nested("[1]", "[a, a].flatten()")]
fn doubling(#[case] first: &str, #[case] twice: &str) {
    let text = (0..40).fold(first.to_owned(), |text, _| format!("cel.bind(a, {text}, {twice})"));
    assert_eq!(defused(&text, "{}"), TOO_EXPENSIVE);
}

/// The value is small because its parts are shared. Walking it is expensive.
#[rstest]
#[case::compared("a == a")]
#[case::written("'%s'.format([a])")]
#[case::flat("a.flatten(100)")]
fn shared_parts(#[case] then: &str) {
    let small = (0..30).fold("[1]".to_owned(), |text, _| format!("cel.bind(a, {text}, [a, a])"));
    assert_eq!(defused(&format!("cel.bind(a, {small}, {then})"), "{}"), TOO_EXPENSIVE);
}

#[rstest]
#[case::parentheses("(", "1", ")")]
#[case::lists("[", "1", "]")]
#[case::maps("{1: ", "1", "}")]
#[case::indexes("a[", "1", "]")]
#[case::calls("size(", "'a'", ")")]
#[case::methods("'a'.contains(", "'a'", ")")]
#[case::has("has(", "a.b", ")")]
#[case::binds("cel.bind(a, 1, ", "a", ")")]
#[case::bound("cel.bind(a, ", "1", ", a)")]
#[case::loops("[1].all(x, ", "true", ")")]
#[case::ranges("[", "1", "].map(x, x)")]
#[case::mixed_signs("!-", "1", "")]
#[case::negated_parentheses("!(", "true", ")")]
#[case::otherwise("a ? b : ", "c", "")]
#[case::conditions("(a ? b : c) ? d : ", "e", "")]
#[case::messages("A{", "a", "}")]
#[case::right("1 + (", "1", ")")]
#[case::optionals("[?", "1", "]")]
fn deep_in_brackets(#[case] open: &str, #[case] inner: &str, #[case] close: &str) {
    for times in [10, 46, 200, 2_000, 100_000 / (open.len() + close.len())] {
        let text = format!("{}{inner}{}", open.repeat(times), close.repeat(times));
        let outcome = defused(&text, r#"{"a": true}"#);
        assert!(times <= 46 || outcome.contains("mistake: "), "{times} times: {outcome}");
    }
}

#[rstest]
#[case::fields(".a")]
#[case::optional_fields(".?a")]
#[case::entries("[0]")]
#[case::computed_entries("[x]")]
#[case::optional_entries("[?0]")]
#[case::calls(".size()")]
#[case::trims(".trim()")]
#[case::sums(" + 1")]
#[case::products(" * 1")]
#[case::comparisons(" == a")]
#[case::orders(" < a")]
#[case::members(" in a")]
#[case::both(" && a")]
#[case::either(" || a")]
#[case::mixed(" || a && a")]
#[case::blanks("  ")]
#[case::comments("//\n")]
#[case::literals(" + 'a'")]
fn long_chains(#[case] link: &str) {
    for times in [10, 150, 2_000, 100_000 / link.len()] {
        let outcome = defused(&format!("a{}", link.repeat(times)), r#"{"a": 1, "x": 0}"#);
        let is_over = outcome.contains(TOO_DEEP) || outcome.contains(TOO_LONG);
        assert!(is_over || times <= 2_000 || link.trim().is_empty(), "{times} times: {outcome}");
    }
}

#[rstest]
#[case::not("!")]
#[case::minus("-")]
fn long_rows_of_signs(#[case] sign: &str) {
    for times in [10, 1_001, 60_000, 100_000] {
        defused(&format!("{}a", sign.repeat(times)), r#"{"a": 1}"#);
    }
}

#[rstest]
#[case(".map(x, x)")]
#[case(".filter(x, true)")]
#[case(".transformList(i, x, x)")]
fn long_chains_of_loops(#[case] link: &str) {
    let chain = |times| defused(&format!("a{}", link.repeat(times)), r#"{"a": [1]}"#);
    assert_eq!(chain(90), "a list");
    assert!(chain(150).contains("nested too deeply"));
}

/// A value may be nested far deeper than its expression: each loop wraps it into more lists.
fn deep_value(times: usize) -> String {
    let inner = format!("{}x{}", "[".repeat(45), "]".repeat(45));
    format!("[1]{}", format!(".map(x, {inner})").repeat(times))
}

#[rstest]
#[case::made(10, "@")]
#[case::compared(10, "cel.bind(a, @, a == a)")]
#[case::written(10, "'%s'.format([@])")]
#[case::flat(10, "@.flatten(1000000)")]
#[case::deeper(100, "@")]
#[case::deeper_compared(100, "cel.bind(a, @, a == a)")]
#[case::deeper_written(100, "'%s'.format([@])")]
#[case::deeper_flat(100, "@.flatten(1000000)")]
fn values_in_values(#[case] times: usize, #[case] then: &str) {
    defused(&then.replace('@', &deep_value(times)), "{}");
}

#[test]
fn megabytes_of_text() {
    let megabyte = "a".repeat(1 << 20);
    assert!(defused(&megabyte, "{}").contains(TOO_LONG));
    assert!(defused(&format!("'{megabyte}'"), "{}").contains(TOO_LONG));
    let long_name = "a".repeat(65_000);
    assert_eq!(defused(&format!("has(status.{long_name})"), r#"{"status": {}}"#), "a bool");
    assert!(defused(&"é".repeat(30_000), "{}").starts_with("mistake: line 1, column 1: "));
    assert!(defused(&"(".repeat(65_000), "{}").contains(TOO_DEEP));
}

#[test]
fn many_operands() {
    let paths: Vec<_> = (0..1_000).map(|number| format!("s.a{number}")).collect();
    assert_eq!(defused(&paths.join(" || "), r#"{"s": {}}"#), "no such key: a0");
    let numbers: Vec<_> = (0..10_000).map(|number| number.to_string()).collect();
    assert_eq!(defused(&format!("[{}]", numbers.join(",")), "{}"), "a list");
    let fields: Vec<_> = (0..4_000).map(|number| format!("{number}:0")).collect();
    assert_eq!(defused(&format!("{{{}}}", fields.join(",")), "{}"), TOO_EXPENSIVE);
}

#[rstest]
#[case::alternatives("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a|aa)+$')")]
#[case::nested_stars("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a*)*$')")]
#[case::repetitions("'a'.matches('((((a{1000}){1000}){1000}){1000}){1000}')")]
#[case::one_repetition("'a'.matches('a{1000000000}')")]
#[case::classes("'a'.matches('\\\\pL{1000}\\\\w{1000}')")]
#[case::stars("'a'.matches('(x+x+)+(y+y+)+(x+x+)+(y+y+)+(x+x+)+(y+y+)+z')")]
fn regular_expressions(#[case] text: &str) {
    let outcome = defused(text, "{}");
    assert!(outcome == "a bool" || outcome.starts_with("mistake: "), "{outcome}");
}

#[test]
fn a_pattern_that_is_deep() {
    for times in [100, 5_000] {
        defused(&format!("'a'.matches('{}a{}')", "(".repeat(times), ")".repeat(times)), "{}");
        defused(&format!("'a'.matches('{}')", "a*".repeat(times)), "{}");
    }
}

#[test]
fn many_patterns() {
    defused(&vec!["a.matches('a{900}')"; 2_500].join("||"), r#"{"a": "a"}"#);
}

#[test]
fn a_long_text_and_a_slow_pattern() {
    let object = format!(r#"{{"data": {{"t": "{}"}}}}"#, "ab".repeat(20_000));
    defused("lists.range(5).all(i, !data.t.matches('[ab]*a[ab]{400}c'))", &object);
    defused("data.t.findAll('.*[^a-z]|[a-z]')", &object);
}

#[rstest]
#[case::itself("data == data")]
#[case::sorted("data.list.map(x, x.name).sort() == data.list.map(x, x.name)")]
#[case::distinct("data.list.distinct().size() > 0")]
#[case::texts("data.list.map(x, x.name).distinct().size() > 0")]
#[case::members("data.list.all(x, x in data.list)")]
#[case::pairs("data.list.all(x, data.list.exists(y, x != y))")]
#[case::written("'%s'.format([data]) == ''")]
#[case::keys("data.map.all(k, k in data.map)")]
fn large_objects(#[case] text: &str) {
    let entries: Vec<_> =
        (0..1_500).map(|number| format!(r#"{{"name": "entry-{number}", "sizes": [1, 2, 3]}}"#)).collect();
    let fields: Vec<_> = (0..1_500).map(|number| format!(r#""key-{number}": {number}"#)).collect();
    let object =
        format!(r#"{{"data": {{"list": [{}], "map": {{{}}}}}}}"#, entries.join(","), fields.join(","));
    let outcome = defused(text, &object);
    assert!(outcome == "a bool" || outcome == TOO_EXPENSIVE, "{outcome}");
}

/// A lookup pays for the fields that it searches.
#[rstest]
#[case("lists.range(100).all(i, !has(data.absent))")]
#[case("lists.range(100).all(i, data.key0 == 1)")]
#[case("lists.range(100).all(i, !('absent' in data))")]
fn lookups_pay_for_the_fields_they_search(#[case] text: &str) {
    let fields: Vec<_> = (0..5_000).map(|number| format!(r#""key{number}": 1"#)).collect();
    let json = format!(r#"{{"data": {{{}}}}}"#, fields.join(","));
    let object = Object::from_json(json.as_bytes(), &Plan::whole()).expect("the object of the test");
    let program = Program::cel(text, &Scope::object(Absence::NotYet)).expect(text);
    assert!(matches!(program.evaluate(&object, &mut Fuel::new(10_000)), Err(Stop::TooExpensive)), "{text}");
}

#[test]
fn copies_of_bytes_are_paid_for() {
    defused(&format!("lists.range(20000).map(i, b'{}')", "x".repeat(5_000)), "{}");
}

#[test]
fn characters_of_a_text() {
    defused("data.t.lowerAscii().split('')", &format!(r#"{{"data": {{"t": "{}"}}}}"#, "a".repeat(840_000)));
}

fn deep_tree(op: &str, times: usize) -> Json {
    (0..times).fold(json!({"op": "Literal", "value": true}), |tree, _| {
        let mut fields = serde_json::Map::new();
        fields.insert("op".to_owned(), op.into());
        fields.insert("args".to_owned(), Json::Array(vec![tree]));
        Json::Object(fields)
    })
}

/// Drops a tree level by level: dropping it at once would recurse as deep as it is nested.
fn dismantle(mut tree: Json) {
    loop {
        let inner = match &mut tree {
            Json::Array(entries) => entries.get_mut(0).map(Json::take),
            Json::Object(fields) => fields.get_mut("args").and_then(|args| args.get_mut(0)).map(Json::take),
            _ => None,
        };
        match inner {
            Some(inner) => tree = inner,
            None => return,
        }
    }
}

#[rstest]
#[case("Not")]
#[case("And")]
#[case("Or")]
#[case("Exists")]
fn deep_trees(#[case] op: &'static str) {
    for times in [90, 1_000, 100_000] {
        on_a_small_stack(move || {
            let tree = deep_tree(op, times);
            let outcome =
                Program::tree(&tree, &Scope::row()).map(|_| ()).map_err(|compile_error| compile_error.text);
            dismantle(tree);
            let expected =
                if times > 100 { Err("the tree is nested too deeply here".to_owned()) } else { Ok(()) };
            assert_eq!(outcome, expected, "{op}");
        });
    }
}

#[test]
fn a_deep_literal() {
    on_a_small_stack(|| {
        let value = (0..100_000).fold(Json::Null, |value, _| Json::Array(vec![value]));
        let mut tree = json!({"op": "Literal"});
        tree["value"] = value;
        let refused = Program::tree(&tree, &Scope::row()).is_err();
        dismantle(tree["value"].take());
        assert!(refused);
    });
}

#[test]
fn wide_trees() {
    on_a_small_stack(|| {
        let operands = vec![json!({"op": "Literal", "value": true}); 100_000];
        let program = Program::tree(&json!({"op": "And", "args": operands}), &Scope::row()).expect("a tree");
        let nothing = Variables(Vec::new());
        assert!(program.evaluate(&nothing, &mut Fuel::default()).is_ok());
        assert!(program.evaluate(&nothing, &mut Fuel::new(1_000)).is_err());
    });
}
