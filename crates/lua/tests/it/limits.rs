//! The limits.

use bellwether_lua::{Budget, Failure, Resource, Script};
use bellwether_model::Value;
use rstest::rstest;

use super::now;

fn run(source: &str, object: &Value<'_>, budget: Budget) -> Result<String, Failure> {
    Script::compile(source).expect("valid Lua").run(object, now(), budget).map(|outcome| outcome.message)
}

fn is_out_of(result: &Result<String, Failure>, resource: Resource) -> bool {
    matches!(result, Err(Failure::TooExpensive { of, .. }) if *of == resource)
}

#[test]
fn a_large_object_fits_and_a_larger_one_does_not() {
    let entry = |index: usize| Value::Text(format!("{index:0100}").into());
    let object = |entries: usize| Value::List((0..entries).map(entry).collect());
    let source = "return {message = tostring(#obj)}";
    assert_eq!(run(source, &object(50_000), Budget::default()), Ok("50000".to_owned()));
    assert!(is_out_of(&run(source, &object(300_000), Budget::default()), Resource::Memory));
}

/// At every limit, there is an outcome or a failure, and nothing else.
#[rstest]
#[case::texts("local s = '' for i = 1, 60 do s = s .. tostring({}) end return {message = s}")]
#[case::tables(
    "local t = {} for i = 1, 200 do t[i] = setmetatable({}, {__tostring = function() return 'x' end}) end return {message = tostring(t[9])}"
)]
#[case::patterns("return {message = ('abc'):rep(99):gsub('(%w)(%w)', function(a, b) return b .. a end)}")]
#[case::caught(
    "local n = 0 for i = 1, 99 do if pcall(string.rep, 'x', i * 9) then n = n + 1 end end return {message = tostring(n)}"
)]
#[case::sorted(
    "local t = {} for i = 1, 300 do t[i] = tostring(-i) end table.sort(t) return {message = table.concat(t)}"
)]
#[case::walked(
    "local t = {} for i = 1, 100 do t['k' .. i] = i end for k in pairs(t) do t[k] = {k} end return {message = next(t)}"
)]
fn memory_at_every_size(#[case] source: &str) {
    let mut fitted = false;
    for memory in (0..160 << 10).step_by(2_039) {
        let budget = Budget { memory, ..Budget::default() };
        match run(source, &Value::Null, budget) {
            Ok(_) => fitted = true,
            failed => assert!(is_out_of(&failed, Resource::Memory) && !fitted, "{failed:?} with {memory}"),
        }
    }
    assert!(fitted);
}

#[test]
fn instructions_at_the_limit() {
    let source = "for i = 1, 100000 do end return {message = 'done'}";
    let run_with = |instructions| run(source, &Value::Null, Budget { instructions, ..Budget::default() });
    assert!(is_out_of(&run_with(90_000), Resource::Instructions));
    assert_eq!(run_with(150_000), Ok("done".to_owned()));
}

/// An instruction on a large string costs more than one on a small string.
#[test]
fn a_large_text_costs_more() {
    let source = "for i = 1, 10000 do local same = obj.a == obj.b end return {message = 'done'}";
    let object = |length: usize| {
        let text = || Value::Text("x".repeat(length).into());
        Value::Map([("a".into(), text()), ("b".into(), text())].into_iter().collect())
    };
    assert_eq!(run(source, &object(100), Budget::default()), Ok("done".to_owned()));
    assert!(is_out_of(&run(source, &object(1 << 20), Budget::default()), Resource::Instructions));
}

#[test]
fn a_large_map_costs_more() {
    let fields = (0..(1 << 17) - 1).map(|index| (format!("k{index}").into(), Value::Bool(true)));
    let object = Value::Map(fields.collect());
    let source = "local i = 0 while true do obj['x' .. i] = true obj['x' .. i] = nil i = i + 1 end";
    assert!(is_out_of(&run(source, &object, Budget::default()), Resource::Instructions));
}
