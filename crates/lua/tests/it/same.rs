//! The same script on the same object at the same time has the same outcome, whatever ran before.

use bellwether_lua::{Budget, Script};
use bellwether_model::Value;
use proptest::prelude::*;
use rstest::rstest;

use super::{now, output, run_json};

#[rstest]
#[case::lists_first_then_the_rest_sorted(
    "local words = {}
     for k in pairs({'x', 'y', b = 1, a = 1, [10] = 1, [-1] = 1, [0.5] = 1, [true] = 1, c = 1}) do words[#words + 1] = tostring(k) end
     return table.concat(words, ' ')",
    "1 2 -1 0.5 10 a b c true"
)]
#[case::next_has_the_same_order("local t = {b = 1, a = 2} local k = next(t) return k, next(t, k)", "a b 1")]
#[case::changes_on_the_way(
    "local t, words = {a = 1, b = 2, c = 3, d = 4}, {}
     for k, v in pairs(t) do words[#words + 1] = k .. v t.c = nil t.b = 20 end
     return table.concat(words, ' ')",
    "a1 b20 d4"
)]
#[case::walks_within_walks(
    "local t, words = {a = 1, b = 2}, {}
     for k in pairs(t) do for l in pairs(t) do words[#words + 1] = k .. l end end
     return table.concat(words, ' ')",
    "aa ab ba bb"
)]
#[case::one_key_without_order(
    "local t = {} t[print] = 1 t.a = 2 local n = 0 for k in pairs(t) do n = n + 1 end return n",
    "2"
)]
#[case::several_keys_without_order(
    "return (select(2, pcall(next, {[print] = 1, [pairs] = 2})))",
    "cannot iterate over a table with several table or function keys: their order is undefined"
)]
#[case::unknown_key("return pcall(next, {a = 1}, 'b')", "false invalid key to 'next'")]
#[case::addresses(
    "local t, u = {}, {} return tostring(t), tostring(u), tostring(t), tostring(print)",
    "table: 0x00000001 table: 0x00000002 table: 0x00000001 function: 0x00000003"
)]
fn order(#[case] chunk: &str, #[case] expected: &str) {
    for _ in 0..20 {
        assert_eq!(output(chunk), expected);
    }
}

#[rstest]
#[case::globals("local seen = leak leak = 'leaked' return {message = tostring(seen)}")]
#[case::library("local seen = string.leak string.leak = 'leaked' return {message = tostring(seen)}")]
#[case::methods("local seen = ('').leak string.leak = 'leaked' return {message = tostring(seen)}")]
#[case::object("local seen = obj.leak obj.leak = 'leaked' return {message = tostring(seen)}")]
#[case::tables("local seen = _G.leak _G.leak = 'leaked' return {message = tostring(seen)}")]
fn runs_share_no_state(#[case] source: &str) {
    for _ in 0..3 {
        assert_eq!(run_json(source, "{}").expect("the script runs").message, "nil");
    }
}

#[test]
fn a_script_can_be_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Script>();
}

fn object() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        ".{0,10}".prop_map(|text| Value::Text(text.into())),
    ];
    leaf.prop_recursive(3, 30, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec(("[a-e]{1,2}", inner), 0..6).prop_map(|fields| {
                Value::Map(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
            }),
        ]
    })
}

/// Scripts of random statements and tokens, some of them valid.
fn source() -> impl Strategy<Value = String> {
    let words = "local function end if then else elseif for in do while repeat until return goto break not and or nil true \
        x y obj ... ( ) { } [ ] = == ~= < > <= .. . : , ; + - * / % ^ # :: 0 1 -1 1e300 'a' '%d' '[' '' \
        pairs(obj) ipairs(obj) next(obj) pcall( xpcall( error( select( unpack( tostring( tonumber( setmetatable( \
        getmetatable( string.format( string.rep( string.find( string.gsub( string.byte( table.concat( table.insert( \
        table.remove( table.sort( table.unpack( os.time( os.date( math.floor( math.max( print type __index __close";
    let words: Vec<_> = words.split_whitespace().collect();
    let statement = prop::sample::select(vec![
        "local x = obj",
        "for k, v in pairs(x) do y = v end",
        "if x == y then x = 1 end",
        "x = tostring(x) .. 'a'",
        "local x <close> = y",
        "y = setmetatable({}, {__close = pairs, __index = obj})",
        "x = pcall(pairs, y)",
        "return { status = x, message = y }",
        "table.sort(x)",
        "x = ('a'):rep(y)",
        "goto over",
        "::over::",
        "function x(...) return x(...) end",
        "x(y)",
        "x = #y",
        "x = x.a",
        "y = {x, y}",
        "x = -y",
        "x = x < y",
        "x = string.format(y, x, y)",
        "x = string.gsub(x, y, x)",
        "while x do y = x end",
    ]);
    let token = prop_oneof![3 => statement, 1 => prop::sample::select(words)];
    prop::collection::vec(token, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_panics_and_runs_are_reproducible(source in source(), object in object()) {
        if let Ok(script) = Script::compile(&source) {
            let budget = Budget { instructions: 20_000, memory: 1 << 20 };
            let first = script.run(&object, now(), budget);
            prop_assert_eq!(&first, &script.run(&object, now(), budget));
        }
    }

    #[test]
    fn any_text_compiles_or_has_an_error(source in "(?s).{0,60}") {
        if let Err(compile_error) = Script::compile(&source) {
            prop_assert!(compile_error.line >= 1 && !compile_error.text.is_empty());
        }
    }
}
