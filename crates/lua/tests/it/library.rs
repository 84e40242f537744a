//! The functions of the library.

use rstest::rstest;

use super::{eval, output};

#[rstest]
#[case::assert("pcall(assert, false, 'no')", "false no")]
#[case::collectgarbage("collectgarbage('count')", "0")]
#[case::error("pcall(error, 'no', 0)", "false no")]
#[case::error_value("type(select(2, pcall(error, {})))", "table")]
#[case::getmetatable("getmetatable({})", "nil")]
#[case::hidden_metatable("getmetatable('')", "false")]
#[case::ipairs("select('#', ipairs({}))", "3")]
#[case::next("next({})", "nil")]
#[case::next_first("next({'a'})", "1 a")]
#[case::next_last("next({'a'}, 1)", "nil")]
#[case::pcall("pcall(function(...) return ... end, 1, nil, 3)", "true 1 nil 3")]
#[case::pcall_nothing("pcall(nil)", "false attempt to call a nil value")]
#[case::print("select('#', print('x'))", "0")]
#[case::rawequal("rawequal('a', 'a')", "true")]
#[case::rawget("rawget({a = 1}, 'a')", "1")]
#[case::rawlen("rawlen({1, 2})", "2")]
#[case::rawset("rawset({}, 'a', 1).a", "1")]
#[case::select("select(2, 'a', 'b', 'c')", "b c")]
#[case::select_from_the_end("select(-1, 'a', 'b', 'c')", "c")]
#[case::select_count("select('#', nil, nil)", "2")]
#[case::setmetatable("setmetatable({}, {__index = {a = 1}}).a", "1")]
#[case::tonumber("tonumber(' 0x10 ')", "16")]
#[case::tonumber_float("tonumber('1.5')", "1.5")]
#[case::tonumber_none("tonumber('x')", "nil")]
#[case::tonumber_of_nothing("tonumber(nil)", "nil")]
#[case::tonumber_base("tonumber('-ff', 16)", "-255")]
#[case::tonumber_wrong_digit("tonumber('8', 8)", "nil")]
#[case::tostring_whole("tostring(6 / 2)", "3")]
#[case::tostring_fraction("tostring(7 / 2)", "3.5")]
#[case::tostring_own("tostring(setmetatable({}, {__tostring = function() return 'own' end}))", "own")]
#[case::tostring_table("tostring({})", "table: 0x00000001")]
#[case::kind("type(nil) .. type(1) .. type('')", "nilnumberstring")]
#[case::xpcall("xpcall(error, function(text) return text .. '!' end, 'no')", "false no!")]
#[case::xpcall_fine("xpcall(function(a) return a end, print, 1)", "true 1")]
#[case::text_as_number("'10' + 1", "11")]
#[case::text_as_number_in_all("'10' - 1, '10' * 2, '10' / 4, '10' % 4, '2' ^ 3, -'2'", "9 20 2.5 2 8 -2")]
fn base(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(eval(expression), expected);
}

#[rstest]
#[case::byte("('abc'):byte(), ('abc'):byte(-1), ('abc'):byte(10)", "97 99")]
#[case::bytes("('abc'):byte(1, -1)", "97 98 99")]
#[case::char("string.char(97, 98)", "ab")]
#[case::format("string.format('%d/%s/%5.2f/%q/%x/%%', 3, 'x', 1.5, 'a', 255)", "3/x/ 1.50/\"a\"/ff/%")]
#[case::format_whole("string.format('%d %s %s', 3.9, 4 / 2, nil)", "3 2 nil")]
#[case::format_missing("pcall(string.format, '%d')", "false bad argument #2 to 'format' (no value)")]
#[case::format_address("pcall(string.format, '%p', {})", "false invalid conversion '%p' to 'format'")]
#[case::len("('abc'):len(), #'abc'", "3 3")]
#[case::lower("('ABC'):lower(), ('abc'):upper()", "abc ABC")]
#[case::rep("('ab'):rep(3), ('ab'):rep(2, '-'), ('ab'):rep(0), ('ab'):rep(-1)", "ababab ab-ab  ")]
#[case::reverse("('abc'):reverse()", "cba")]
#[case::sub("('abcdef'):sub(2, 3), ('abcdef'):sub(-2), ('abcdef'):sub(0), ('abc'):sub(4)", "bc ef abcdef ")]
#[case::find("('a.b'):find('.', 1, true), ('a.b'):find('%.')", "2 2 2")]
#[case::find_captures("('key=value'):find('(%w+)=(%w+)')", "1 9 key value")]
#[case::find_behind("('abc'):find('', 4), ('abc'):find('', 5)", "4 nil")]
#[case::gmatch("('a1b2'):gmatch('%a%d')()", "a1")]
#[case::gfind("('a1b2'):gfind('%d')()", "1")]
#[case::gsub("('hello'):gsub('l', 'L')", "heLLo 2")]
#[case::gsub_most("('hello'):gsub('l', 'L', 1)", "heLlo 1")]
#[case::gsub_captures("('key=value'):gsub('(%w+)=(%w+)', '%2=%1 %0')", "value=key key=value 1")]
#[case::gsub_table("('$a $b'):gsub('%$(%w)', {a = 1})", "1 $b 2")]
#[case::gsub_function("('abc'):gsub('%w', function(x) return x:upper() end)", "ABC 3")]
#[case::gsub_anchor("('aaa'):gsub('^a', 'b')", "baa 1")]
#[case::match_all("('2024-05'):match('(%d+)-(%d+)')", "2024 05")]
#[case::match_position("('abc'):match('()b()')", "2 3")]
#[case::match_none("('abc'):match('x')", "nil")]
fn string(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(eval(expression), expected);
}

#[rstest]
#[case::concat("return table.concat({1, 2.0, 'x'}, ', ')", "1, 2, x")]
#[case::concat_part("return table.concat({1, 2, 3, 4}, '', 2, 3)", "23")]
#[case::getn("return table.getn({1, 2, 3})", "3")]
#[case::insert("local t = {1, 3} table.insert(t, 4) table.insert(t, 2, 2) return unpack(t)", "1 2 3 4")]
#[case::insert_outside(
    "return pcall(table.insert, {}, 5, 1)",
    "false bad argument #2 to 'insert' (position out of bounds)"
)]
#[case::maxn("return table.maxn({1, 2, [10] = 3, x = 4})", "10")]
#[case::move_right("return unpack(table.move({1, 2, 3}, 1, 3, 2))", "1 1 2 3")]
#[case::move_left("return unpack(table.move({1, 2, 3}, 2, 3, 1))", "2 3 3")]
#[case::pack("local t = table.pack(1, nil, 3) return t.n, t[3]", "3 3")]
#[case::remove("local t = {1, 2, 3} return table.remove(t), table.remove(t, 1), #t, t[1]", "3 1 1 2")]
#[case::remove_nothing("return table.remove({})", "nil")]
#[case::sort("local t = {3, 1, 2} table.sort(t) return unpack(t)", "1 2 3")]
#[case::sort_texts("local t = {'b', 'a', 'B'} table.sort(t) return unpack(t)", "B a b")]
#[case::sort_down(
    "local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return unpack(t)",
    "3 2 1"
)]
#[case::sort_mixed("return pcall(table.sort, {1, 'a'})", "false attempt to compare string with number")]
#[case::sort_without_order("local t = {3, 1, 2} table.sort(t, function() return true end) return #t", "3")]
#[case::sort_by_metatable(
    "local m = {__lt = function(a, b) return a.n < b.n end}
     local t = {setmetatable({n = 2}, m), setmetatable({n = 1}, m)} table.sort(t) return t[1].n, t[2].n",
    "1 2"
)]
#[case::unpack("return unpack({1, 2, 3}, 2)", "2 3")]
#[case::table_unpack("return table.unpack({1, 2, 3})", "1 2 3")]
fn table(#[case] chunk: &str, #[case] expected: &str) {
    assert_eq!(output(chunk), expected);
}

#[rstest]
#[case::rounding("math.floor(2.7), math.ceil(2.1), math.floor(-2.5), math.floor(3)", "2 3 -3 3")]
#[case::abs("math.abs(-2), math.abs(-2.5)", "2 2.5")]
#[case::extremes("math.max(1, 3, 2), math.min(1.5, 1), math.huge > 1", "3 1 true")]
#[case::rest("math.fmod(7, 3), math.mod(7, 3), math.fmod(-7, 3)", "1 1 -1")]
#[case::power("math.pow(2, 10), math.sqrt(16)", "1024 4")]
#[case::parts("math.modf(3.5)", "3 0.5")]
#[case::kinds("math.type(1), math.type(1.5), math.type('1'), math.tointeger(3.0)", "integer float nil 3")]
#[case::no_chance("math.random, math.randomseed", "nil nil")]
fn math(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(eval(expression), expected);
}

/// The time of the run is 2026-03-01T12:34:56Z.
#[rstest]
#[case::time("os.time()", "1772368496")]
#[case::time_of_fields(
    "os.time({year = 2026, month = 3, day = 1, hour = 12, min = 34, sec = 56})",
    "1772368496"
)]
#[case::time_of_texts(
    "os.time({year = '2026', month = '03', day = '01', hour = '12', min = '34', sec = '56'})",
    "1772368496"
)]
#[case::time_at_noon("os.time({year = 1970, month = 1, day = 1})", "43200")]
#[case::time_that_overflows(
    "os.time({year = 2025, month = 15, day = 0, hour = 36, min = 34, sec = 56})",
    "1772368496"
)]
#[case::time_without_day(
    "pcall(os.time, {year = 2026, month = 3})",
    "false field 'day' missing in date table"
)]
#[case::date("os.date('!%Y-%m-%dT%H:%M:%SZ')", "2026-03-01T12:34:56Z")]
#[case::date_of_time("os.date('%d.%m.%y', 0)", "01.01.70")]
#[case::date_default("os.date()", "Sun Mar  1 12:34:56 2026")]
#[case::date_composed("os.date('%x %X %p %j %%')", "03/01/26 12:34:56 PM 060 %")]
#[case::date_parts("os.date('*t').wday, os.date('!*t', 86400).yday", "1 2")]
#[case::date_unknown("pcall(os.date, '%Q')", "false invalid conversion specifier '%Q'")]
#[case::nothing_else(
    "os.exit, os.getenv, os.clock, os.execute, os.remove, os.rename, os.tmpname",
    "nil nil nil nil nil nil nil"
)]
fn os(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(eval(expression), expected);
}

#[rstest]
fn absent_globals(
    #[values(
        "io",
        "require",
        "package",
        "load",
        "loadstring",
        "loadfile",
        "dofile",
        "debug",
        "coroutine",
        "utf8",
        "warn",
        "module",
        "getfenv",
        "setfenv",
        "newproxy",
        "string.dump",
        "string.pack",
        "string.unpack",
        "math.random"
    )]
    name: &str,
) {
    assert_eq!(eval(name), "nil");
}

#[rstest]
#[case(
    "local t = {} for i = 1, 3 do if i == 2 then goto continue end t[#t + 1] = i ::continue:: end return unpack(t)",
    "1 3"
)]
fn goto_continue(#[case] chunk: &str, #[case] expected: &str) {
    assert_eq!(output(chunk), expected);
}
