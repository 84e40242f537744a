//! Syntax errors and run-time errors.

use bellwether_lua::Script;
use rstest::rstest;

use super::run_json;

#[rstest]
#[case::not_equal(
    "local a = 1\nif a != 2 then end",
    "line 2: 'then' expected near '!' (write `~=` for not equal)"
)]
#[case::and("if a && b then end", "line 1: unexpected symbol near '&' (write `and` for `&&`)")]
#[case::or("if a || b then end", "line 1: unexpected symbol near '|' (write `or` for `||`)")]
#[case::not("if !a then end", "line 1: unexpected symbol near '!' (write `not` for `!`)")]
#[case::assignment(
    "if a = 1 then end",
    "line 1: 'then' expected near '=' (`=` assigns; to compare, write `==`)"
)]
#[case::increment("a += 1", "line 1: syntax error near '+' (write `x = x + 1`)")]
#[case::braces(
    "if a then {",
    "line 1: unexpected symbol near '{' (open blocks with `then` or `do` and close them with `end`)"
)]
#[case::comment("# a comment", "line 1: unexpected symbol near '#' (write `--` for a comment)")]
#[case::slashes("// a comment", "line 1: unexpected symbol near '//' (write `--` for a comment)")]
#[case::declaration("let a = 1", "line 1: syntax error near 'a' (declare variables with `local`)")]
#[case::elif("if a then\nelif b then\nend", "line 2: syntax error near 'b' (write `elseif`)")]
#[case::missing_end(
    "if a then\n  b()\n",
    "line 3: 'end' expected (to close 'if' at line 1) near <eof> (close every `if`, `for`, `while`, `do` and `function` with its own `end`)"
)]
#[case::else_if(
    "if a then\n  b()\nelse if c then\n  d()\nend\n",
    "line 6: 'end' expected (to close 'if' at line 1) near <eof> (write `elseif`: `else if` opens a second `if` that needs its own `end`)"
)]
#[case::one_end_too_many(
    "if a then end\nend",
    "line 2: <eof> expected near 'end' (remove the extra `end`, or what follows `return`)"
)]
#[case::unfinished_text("local a = 'x", "line 1: unfinished string near <eof>")]
#[case::binary("\u{1b}Lua", "line 1: the script is not Lua source: binary chunks are not supported")]
#[case::signs_in_texts("local a = 'x != y' b", "line 1: syntax error near <eof>")]
fn compiling(#[case] source: &str, #[case] expected: &str) {
    assert_eq!(Script::compile(source).expect_err("a syntax error").to_string(), expected);
}

#[test]
fn a_script_can_be_too_long() {
    let source = format!("return '{}'", "x".repeat(256 << 10));
    let compile_error = Script::compile(&source).expect_err("too long");
    assert_eq!(compile_error.text, "the script is longer than 256 KiB");
}

#[rstest]
#[case::index_nil(
    "local n = 0\n\nfor i = 1, #obj.status.conditions do end",
    "line 3: attempt to get length of a nil value (field 'conditions')"
)]
#[case::index_deeper("return obj.status.a.b", "line 1: attempt to index a nil value (field 'a')")]
#[case::call_nil("\nfoo()", "line 2: attempt to call a nil value (global 'foo')")]
#[case::pairs_of_nil(
    "\n\nfor k in pairs(obj.none) do end",
    "line 3: bad argument #1 to 'pairs' (table expected, got nil)"
)]
#[case::ipairs_of_nil(
    "for k in ipairs(obj.none) do end",
    "line 1: bad argument #1 to 'ipairs' (table expected, got nil)"
)]
#[case::getn_of_nil(
    "return table.getn(obj.none)",
    "line 1: bad argument #1 to 'getn' (table expected, got nil)"
)]
#[case::join("return 'a' .. obj.none", "line 1: attempt to concatenate a nil value (field 'none')")]
#[case::plus(
    "\nreturn 'a' + 'b'",
    "line 2: attempt to perform arithmetic on a string value (write `..` to join strings)"
)]
#[case::null("return null.x", "line 1: attempt to index a nil value (global 'null') (write `nil`)")]
#[case::compare("return 1 < 'x'", "line 1: attempt to compare number with string")]
#[case::own_error("error('my words')", "line 1: my words")]
#[case::own_error_without_line("error('my words', 0)", "my words")]
#[case::through_gsub("return ('x'):gsub('x', function()\n error('inner') end)", "line 2: inner")]
#[case::through_sort(
    "table.sort({1, 2}, function(a, b)\n\n return a.x < b.x end)",
    "line 3: attempt to index a number value (local 'a')"
)]
#[case::caught_and_raised(
    "local ok, text = pcall(string.rep)\nerror(text, 0)",
    "bad argument #1 to 'rep' (string expected, got no value)"
)]
#[case::pattern("return ('x'):find('[')", "line 1: malformed pattern (missing ']')")]
#[case::too_deep(
    "local function f() return (('x'):gsub('x', f)) end return f()",
    "line 1: stack overflow: calls are nested too deeply"
)]
#[case::returns_text(
    "return 'Healthy'",
    "the script must return a table with status and message, not a string"
)]
#[case::returns_number("return {status = 1}", "status in the returned table must be a string, not a number")]
fn running(#[case] source: &str, #[case] expected: &str) {
    let failure = run_json(source, r#"{"status":{}}"#).expect_err("a run-time error");
    assert_eq!(failure.to_string(), expected);
}
