//! Our patterns against Lua's own.

use bellwether_lua::{Budget, Failure, Script};
use bellwether_model::Value;
use mlua::{Lua, MultiValue};
use proptest::prelude::*;

use super::now;

/// Prints the results of all functions with patterns.
const SCRIPT: &str = "
  local function join(ok, ...)
    local words = { tostring(ok) }
    for i = 1, select('#', ...) do words[i + 1] = type((select(i, ...))) .. ' ' .. tostring((select(i, ...))) end
    return table.concat(words, '|')
  end
  local function all(text, pattern)
    local found = {}
    for a, b in string.gmatch(text, pattern) do found[#found + 1] = tostring(a) .. ',' .. tostring(b) end
    return table.concat(found, ';')
  end
  local t, p, r = text, pattern, replacement
  return join(pcall(string.find, t, p)) .. '\\n' .. join(pcall(string.match, t, p, 2)) .. '\\n'
    .. join(pcall(all, t, p)) .. '\\n' .. join(pcall(string.gsub, t, p, r)) .. '\\n'
    .. join(pcall(string.gsub, t, p, function(a) return a ~= 'a' and '<' .. a .. '>' end, 3)) .. '\\n'
    .. join(pcall(string.find, t, p, -3, true))
";

fn ours(text: &str, pattern: &str, replacement: &str) -> Result<String, Failure> {
    let object = Value::Map(
        [("text", text), ("pattern", pattern), ("replacement", replacement)]
            .into_iter()
            .map(|(key, value)| (key.into(), Value::Text(value.into())))
            .collect(),
    );
    let source = format!(
        "local text, pattern, replacement = obj.text, obj.pattern, obj.replacement
         local function chunk() {SCRIPT} end return {{ message = chunk() }}"
    );
    let script = Script::compile(&source).expect("valid Lua");
    script.run(&object, now(), Budget::default()).map(|outcome| outcome.message)
}

fn lua(text: &str, pattern: &str, replacement: &str) -> String {
    let lua = Lua::new();
    let globals = lua.globals();
    globals.set("text", text).expect("enough memory");
    globals.set("pattern", pattern).expect("enough memory");
    globals.set("replacement", replacement).expect("enough memory");
    let output: MultiValue =
        lua.load(format!("\n{SCRIPT}")).set_name("=script").eval().expect("the script runs");
    output[0].as_string().expect("a string").to_string_lossy()
}

fn piece() -> impl Strategy<Value = String> {
    let class = prop::sample::select("acdglpsuwxzACDGLPSUWX.%-[]()$^".chars().collect::<Vec<_>>());
    let letter = prop::sample::select("abcxy01 .-_]^$%()[".chars().collect::<Vec<_>>());
    prop_oneof![
        6 => prop::sample::select("abcxy01 .-".chars().collect::<Vec<_>>()).prop_map(String::from),
        3 => class.prop_map(|class| format!("%{class}")),
        3 => prop::collection::vec(letter, 0..5).prop_map(|set| format!("[{}]", String::from_iter(set))),
        2 => prop::sample::select(vec!["[a-c]", "[^a-c]", "[%d_]", "[^%s]", "[]a]", "[a-]", "[%a-z]", "[^]]", "[a", "[%"]).prop_map(String::from),
        2 => prop::sample::select(vec!["*", "+", "-", "?", "^", "$", ".", "(", ")", "()", "%"]).prop_map(String::from),
        1 => prop::sample::select(vec!["%b()", "%bxy", "%b", "%bx", "%f[%w]", "%f[^%w]", "%f", "%1", "%2", "%0"]).prop_map(String::from),
    ]
}

/// Pieces, each with or without a repetition.
fn sequence() -> impl Strategy<Value = String> {
    let many = prop::sample::select(vec!["", "", "", "*", "+", "-", "?"]);
    prop::collection::vec((piece(), many), 0..5)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, many)| piece + many).collect())
}

fn pattern() -> impl Strategy<Value = String> {
    let group = |(part, captured): (String, bool)| if captured { format!("({part})") } else { part };
    let captured = prop::collection::vec((sequence(), any::<bool>()), 0..4)
        .prop_map(move |parts| parts.into_iter().map(group).collect());
    let (start, end) = (prop::sample::select(vec!["", "", "", "^"]), prop::sample::select(vec!["", "", "$"]));
    (start, prop_oneof![sequence(), captured], end)
        .prop_map(|(start, middle, end)| format!("{start}{middle}{end}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn same_results_as_lua(
        text in "[abcxy01 ().\\-_A\\]]{0,12}",
        pattern in pattern(),
        replacement in prop_oneof![Just("<%0>"), Just("%1"), Just("%2-%1"), Just("x"), Just("%%"), Just("%"), Just("%y")],
    ) {
        match ours(&text, &pattern, replacement) {
            Ok(output) => prop_assert_eq!(output, lua(&text, &pattern, replacement), "{:?} in {:?}", pattern, text),
            // Lua has no limit.
            Err(failure) => prop_assert!(matches!(failure, Failure::TooExpensive { .. }), "{}", failure),
        }
    }

    #[test]
    fn any_text_is_a_pattern(text in ".{0,20}", pattern in ".{0,20}", replacement in ".{0,5}") {
        match ours(&text, &pattern, &replacement) {
            Ok(output) => prop_assert_eq!(output, lua(&text, &pattern, &replacement)),
            Err(failure) => prop_assert!(matches!(failure, Failure::TooExpensive { .. }), "{}", failure),
        }
    }
}
