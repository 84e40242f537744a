//! Hostile scripts. All of them must end, and none may hide that it exceeded its budget.

use std::time::Instant;

use bellwether_lua::{Budget, Failure, Resource, Script};
use bellwether_model::Value;
use rstest::rstest;

use super::now;

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Instructions,
    Memory,
    /// Instructions or memory.
    Budget,
    /// An ordinary error, or an outcome.
    Harmless,
}
use End::{Harmless, Instructions, Memory};

fn explode(source: &str, object: &Value<'_>, budget: Budget) -> End {
    let script = Script::compile(source).expect("valid Lua");
    let started = Instant::now();
    let result = script.run(object, now(), budget);
    println!("{:>8.1?} {:.100}", started.elapsed(), source.trim().replace('\n', " "));
    match result {
        Err(Failure::TooExpensive { of: Resource::Instructions, .. }) => Instructions,
        Err(Failure::TooExpensive { of: Resource::Memory, .. }) => Memory,
        Err(Failure::Error { text, .. }) => {
            assert!(text.len() < 4_096, "an error of {} bytes", text.len());
            println!("         {text:.100}");
            Harmless
        }
        Ok(_) => Harmless,
    }
}

fn agree(found: End, expected: End) -> bool {
    found == expected || expected == End::Budget && found != Harmless
}

/// Endless loops.
#[rstest]
#[case::empty_loop("while true do end")]
#[case::empty_goto("::again:: goto again")]
#[case::repeat_until("repeat until false")]
#[case::for_ever("for i = 1, math.huge do end")]
#[case::coroutine_is_absent_but_recursion_is_not("local function f() return f() end return f()")]
#[case::caught("while true do pcall(function() while true do end end) end")]
#[case::caught_deeply("local function f() pcall(f) while true do end end f()")]
#[case::caught_with_handler(
    "while true do xpcall(function() while true do end end, function() while true do end end) end"
)]
#[case::handler_alone("xpcall(error, function() while true do end end)")]
#[case::sort_comparator("table.sort({3, 2, 1}, function() while true do end end)")]
#[case::sort_caught(
    "pcall(table.sort, {3, 2, 1}, function() while true do end end) return {status = 'Healthy'}"
)]
#[case::gsub_callback("('x'):gsub('x', function() while true do end end)")]
#[case::gsub_caught(
    "pcall(string.gsub, 'x', 'x', function() while true do end end) return {status = 'Healthy'}"
)]
#[case::index("local t = setmetatable({}, {__index = function() while true do end end}) return t.x")]
#[case::close(
    "local x <close> = setmetatable({}, {__close = function() while true do end end}) while true do end"
)]
#[case::close_caught(
    "pcall(function() local x <close> = setmetatable({}, {__close = function() while true do end end}) while true do end end) return {status = 'Healthy'}"
)]
#[case::tostring_method("tostring(setmetatable({}, {__tostring = function() while true do end end}))")]
#[case::tostring_in_format(
    "string.format('%s', setmetatable({}, {__tostring = function() while true do end end}))"
)]
#[case::order("local t = setmetatable({}, {__lt = function() while true do end end}) table.sort({t, t})")]
#[case::equality(
    "local m = {__eq = function() while true do end end} return setmetatable({}, m) == setmetatable({}, m)"
)]
#[case::iterator("for _ in function() return 1 end do end")]
#[case::errors("while true do pcall(error, 'x') end")]
#[case::errors_of_ours("while true do pcall(string.rep) end")]
#[case::errors_that_are_tables("while true do pcall(error, {}) end")]
fn loops(#[case] source: &str) {
    assert_eq!(explode(source, &Value::Null, Budget::default()), Instructions);
}

/// Work that Lua's instruction count does not cover.
#[rstest]
#[case::backtracking("local s = ('a'):rep(300) return s:find('a*a*a*a*a*a*b')")]
#[case::backtracking_lazily("local s = ('a'):rep(300) return s:match('^(a-)(a-)(a-)(a-)(a-)b')")]
#[case::balanced("local s = ('('):rep(20000) return s:find('%b()')")]
#[case::long_set("local s = ('a'):rep(5000) return s:find('[' .. ('b'):rep(5000) .. ']')")]
#[case::back_reference("local s = ('a'):rep(40000) return s:find('^(a*)%1b')")]
#[case::gmatch("for _ in ('a'):rep(300):gmatch('a*a*a*a*b') do end")]
#[case::gsub("return ('a'):rep(300):gsub('a*a*a*a*b', '')")]
#[case::plain_find("local s = ('a'):rep(100000) while true do s:find(('a'):rep(50) .. 'b', 1, true) end")]
#[case::sort(
    "local t = {} for i = 1, 20000 do t[i] = -i end while true do table.sort(t) table.sort(t, function(a, b) return a > b end) end"
)]
#[case::insert_in_front("local t = {} while true do table.insert(t, 1, 1) end")]
#[case::remove_in_front(
    "local t = {} for i = 1, 10000 do t[i] = i end while true do table.remove(t, 1) table.insert(t, 1) end"
)]
#[case::wide_concat("return table.concat({}, '', 1, 2^62)")]
#[case::wide_move("table.move({}, 1, 2^62, 2)")]
#[case::unpack("local t = {} for i = 1, 5000 do t[i] = i end while true do select('#', unpack(t)) end")]
#[case::byte("local s = ('a'):rep(100000) while true do select('#', s:byte(1, -1)) end")]
#[case::varargs(
    "local function f(...) while true do local a = select('#', ...) end end local t = {} for i = 1, 10000 do t[i] = i end f(unpack(t))"
)]
#[case::numerals("local s = ('1'):rep(1e6) while true do local x = tonumber(s) end")]
#[case::numerals_in_loops("local s = (' '):rep(1e6) .. '1' while true do for i = 1, s do end end")]
#[case::equal_texts(
    "local a, b = ('a'):rep(1e6) .. 'b', ('a'):rep(1e6) .. 'b' while true do local x = a == b end"
)]
#[case::ordered_texts(
    "local a, b = ('a'):rep(1e6) .. 'b', ('a'):rep(1e6) .. 'c' while true do local x = a < b end"
)]
#[case::walk(
    "local t = {} for i = 1, 1000 do t['k' .. i] = i end while true do for k in pairs(t) do end end"
)]
#[case::walk_anew("local t = {} for i = 1, 1000 do t['k' .. i] = i end while true do next(t) end")]
#[case::maxn("local t = {} for i = 1, 1000 do t[i] = i end while true do table.maxn(t) end")]
#[case::dates("local s = ('%c'):rep(1000) while true do os.date(s) end")]
#[case::full_table(
    "local t = {} for i = 1, 4095 do t['k' .. i] = 1 end local i = 4096 while true do t['k' .. i] = 1 t['k' .. i] = nil i = i + 1 end"
)]
#[case::full_table_of_numbers(
    "local t = {} for i = 1, 4095 do t[i + 0.5] = 1 end local i = 4096 while true do t[i + 0.5] = 1 t[i + 0.5] = nil i = i + 1 end"
)]
#[case::index_chain(
    "local t = {} for i = 1, 1900 do t = setmetatable({}, {__index = t}) end while true do local x = t.y end"
)]
#[case::failed_formats("local s = ('x'):rep(1e6) while true do pcall(string.format, '%s%d', s, 'x') end")]
#[case::many_closing(
    "
    local m = setmetatable({}, {__close = function() while true do end end})
    local function f() local x <close> = m f() return 1 end
    f()"
)]
fn hidden_work(#[case] source: &str) {
    // Tests are not optimized, so this budget is smaller.
    let budget = Budget { instructions: 100_000, ..Budget::default() };
    let found = explode(source, &Value::Null, budget);
    assert!(agree(found, End::Budget), "ended with {found:?}");
}

/// A table with a few fields and a length of 2⁶².
#[rstest]
#[case::insert("table.insert(t, 1, 1)")]
#[case::remove("table.remove(t, 1)")]
#[case::concat("return table.concat(t)")]
#[case::sort("table.sort(t)")]
#[case::next("next(t)")]
fn forged_length(#[case] source: &str) {
    let fields: Vec<_> = (3..62).map(|power| format!("[{}] = 1", 1_i64 << power)).collect();
    let fields = fields.join(", ");
    let source = format!("local t = {{1, 1, 1, 1, [5] = 1, {fields}}} assert(#t > 2^60) {source}");
    let found = explode(&source, &Value::Null, Budget::default());
    assert!(
        found == Instructions || source.ends_with("next(t)") && found == Harmless,
        "ended with {found:?}"
    );
}

/// Unlimited memory.
#[rstest]
#[case::doubling("local s = 'x' while true do s = s .. s end", Memory)]
#[case::rep("return ('x'):rep(1e9)", Memory)]
#[case::rep_with_separator("return ('x'):rep(1e9, 'y')", Memory)]
#[case::rep_beyond_numbers("return ('xx'):rep(2^62, 'yy')", Memory)]
#[case::rep_caught("pcall(string.rep, 'x', 1e9) return {status = 'Healthy'}", Memory)]
#[case::doubling_caught("local s = 'x' while true do pcall(function() s = s .. s end) end", End::Budget)]
#[case::concat(
    "local s = ('x'):rep(1e6) local t = {} for i = 1, 100 do t[i] = s end return table.concat(t)",
    Memory
)]
#[case::gsub("return ('x'):rep(1e5):gsub('x', ('y'):rep(1e5))", End::Budget)]
#[case::gsub_empty("return ('x'):rep(1e5):gsub('', ('y'):rep(1e4))", End::Budget)]
#[case::format(
    "local s = ('x'):rep(4e6) return string.format('%s%s%s%s%s%s%s%s%s', s, s, s, s, s, s, s, s, s)",
    End::Budget
)]
#[case::upper("local s = ('x'):rep(4e6) while true do s:upper() end", End::Budget)]
#[case::garbage("local s = ('x'):rep(1e6) while true do local t = s .. 'y' end", End::Budget)]
#[case::table("local t = {} while true do t[#t + 1] = {} end", End::Budget)]
#[case::closures("local t = {} while true do t[#t + 1] = function() return t end end", End::Budget)]
#[case::pack("local t = {} while true do t = table.pack(t, t, t, t) end", End::Budget)]
#[case::numbers_as_text("local i = 0 while true do i = i + 1 local s = 'n' .. i end", End::Budget)]
fn memory(#[case] source: &str, #[case] expected: End) {
    let found = explode(source, &Value::Null, Budget::default());
    assert!(agree(found, expected), "ended with {found:?}");
}

/// Ordinary errors must not count as an exceeded budget.
#[rstest]
#[case::recursion("local function f() return 1 + f() end return f()", End::Budget)]
#[case::index_loop("local t = {} setmetatable(t, {__index = t}) return t.x", Harmless)]
#[case::index_chain(
    "local t = {} for i = 1, 3000 do t = setmetatable({}, {__index = t}) end return t.x",
    Harmless
)]
#[case::nested_pcall("local function f() return pcall(f) end return f()", Harmless)]
#[case::nested_gsub("local function f() return ('x'):gsub('x', f) end return f()", Harmless)]
#[case::nested_sort("local function f() table.sort({1, 2}, f) end return f()", Harmless)]
#[case::nested_tostring(
    "local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)",
    Harmless
)]
#[case::nested_index(
    "local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) return t.x",
    Harmless
)]
#[case::nested_concat(
    "local t t = setmetatable({}, {__concat = function() return t .. 'x' end}) return t .. 'x'",
    Harmless
)]
#[case::endless_list(
    "for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end",
    Harmless
)]
#[case::rep_of_nothing("return {message = string.rep('', 1e18)}", Harmless)]
#[case::wide_format("return {message = string.format('%99.99f', 1e308)}", Harmless)]
#[case::too_wide_format("return string.format('%9999d', 1)", Harmless)]
#[case::captures("return ('x'):find(('()'):rep(1e5))", Harmless)]
#[case::deep_pattern("return ('x'):rep(1e5):find(('x?'):rep(1e5))", Harmless)]
#[case::deep_parentheses("return ('x'):find(('('):rep(1e5))", Harmless)]
#[case::error_table("error({code = 1})", Harmless)]
#[case::error_nil("error()", Harmless)]
#[case::error_function("error(print)", Harmless)]
#[case::error_megabytes("error(('x'):rep(5e6))", Harmless)]
#[case::error_with_wicked_text(
    "error(setmetatable({}, {__tostring = function() while true do end end}))",
    Harmless
)]
#[case::message_of_bytes(r"return {message = '\255\254\0'}", Harmless)]
#[case::message_with_index("return setmetatable({}, {__index = function() while true do end end})", Harmless)]
#[case::finalizer("setmetatable({}, {__gc = function() while true do end end})", Harmless)]
#[case::late_finalizer(
    "local m = {} setmetatable({}, m) m.__gc = function() while true do end end",
    Harmless
)]
#[case::arguments("return select('#', unpack({}, 1, 240000))", Harmless)]
#[case::too_many_arguments("return select('#', unpack({}, 1, 1e6))", Harmless)]
#[case::string_methods_gone("getmetatable('').__index = nil return ('x'):rep(3)", Harmless)]
fn ordinary_errors(#[case] source: &str, #[case] expected: End) {
    let found = explode(source, &Value::Null, Budget::default());
    assert!(agree(found, expected), "ended with {found:?}");
}
