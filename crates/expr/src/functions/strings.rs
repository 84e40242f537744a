//! Functions of strings. Indexes count characters.

use std::{ops::Range, rc::Rc};

use super::{Function, no_such_overload};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::{Text, Val},
};

const T: Types = Types::TEXT;
const I: Types = Types::INT;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("contains", &[T, T], Types::BOOL, contains),
    Function::method("startsWith", &[T, T], Types::BOOL, starts_with),
    Function::method("endsWith", &[T, T], Types::BOOL, ends_with),
    Function::method("charAt", &[T, I], T, char_at),
    Function::method("indexOf", &[T, T], I, index_of),
    Function::method("indexOf", &[T, T, I], I, index_of),
    Function::method("lastIndexOf", &[T, T], I, last_index_of),
    Function::method("lastIndexOf", &[T, T, I], I, last_index_of),
    Function::method("substring", &[T, I], T, substring),
    Function::method("substring", &[T, I, I], T, substring),
    Function::method("trim", &[T], T, trim),
    Function::method("lowerAscii", &[T], T, lower_ascii),
    Function::method("upperAscii", &[T], T, upper_ascii),
    Function::method("reverse", &[T], T, reverse),
    Function::method("replace", &[T, T, T], T, replace),
    Function::method("replace", &[T, T, T, I], T, replace),
    Function::method("split", &[T, T], Types::LIST, split),
    Function::method("split", &[T, T, I], Types::LIST, split),
    Function::method("join", &[Types::LIST], T, join),
    Function::method("join", &[Types::LIST, T], T, join),
    Function::global("strings.quote", &[T], T, quote),
];

fn contains<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::Text(part)] = arguments else {
        return Err(no_such_overload("contains", arguments));
    };
    fuel.burn_bytes(text.len() + part.len())?;
    Ok(Val::Bool(text.contains(&**part)))
}

fn starts_with<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::Text(start)] = arguments else {
        return Err(no_such_overload("startsWith", arguments));
    };
    fuel.burn_bytes(text.len().min(start.len()))?;
    Ok(Val::Bool(text.starts_with(&**start)))
}

fn ends_with<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::Text(end)] = arguments else {
        return Err(no_such_overload("endsWith", arguments));
    };
    fuel.burn_bytes(text.len().min(end.len()))?;
    Ok(Val::Bool(text.ends_with(&**end)))
}

/// The character at an index; an empty string at the end.
fn char_at<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::Int(at)] = arguments else {
        return Err(no_such_overload("charAt", arguments));
    };
    fuel.burn_bytes(text.len())?;
    let start = byte_at(text, *at).ok_or_else(|| out_of_range(*at))?;
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Ok(cut(text, start..start + length))
}

/// The index of the first occurrence at or after an index; -1 if there is none.
fn index_of<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (text, wanted, from) = match arguments {
        [Val::Text(text), Val::Text(wanted)] => (text, wanted, 0),
        [Val::Text(text), Val::Text(wanted), Val::Int(from)] => (text, wanted, *from),
        _ => return Err(no_such_overload("indexOf", arguments)),
    };
    if from < 0 {
        return Err(out_of_range(from));
    }
    fuel.burn_bytes(text.len() + wanted.len())?;
    let Some(start) = byte_at(text, from) else {
        // The empty string occurs everywhere, even at the end.
        return Ok(if wanted.is_empty() { place(text, text.len()) } else { Val::Int(-1) });
    };
    Ok(text[start..].find(&**wanted).map_or(Val::Int(-1), |found| place(text, start + found)))
}

/// The index of the last occurrence that starts at or before an index; -1 if there is none.
fn last_index_of<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (text, wanted, until) = match arguments {
        [Val::Text(text), Val::Text(wanted)] => (text, wanted, None),
        [Val::Text(text), Val::Text(wanted), Val::Int(until)] => (text, wanted, Some(*until)),
        _ => return Err(no_such_overload("lastIndexOf", arguments)),
    };
    fuel.burn_bytes(text.len() + wanted.len())?;
    let end = match until {
        None => text.len(),
        Some(until) if until < 0 => return Err(out_of_range(until)),
        Some(until) => match byte_at(text, until) {
            // An occurrence that starts there may extend beyond it.
            Some(start) if start < text.len() || wanted.is_empty() => {
                text.floor_char_boundary(start.saturating_add(wanted.len()))
            }
            None if wanted.is_empty() => text.len(),
            _ => return Ok(Val::Int(-1)),
        },
    };
    Ok(text[..end].rfind(&**wanted).map_or(Val::Int(-1), |found| place(text, found)))
}

/// The characters of a half-open range.
fn substring<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (text, from, to) = match arguments {
        [Val::Text(text), Val::Int(from)] => (text, *from, None),
        [Val::Text(text), Val::Int(from), Val::Int(to)] => (text, *from, Some(*to)),
        _ => return Err(no_such_overload("substring", arguments)),
    };
    fuel.burn_bytes(text.len())?;
    if let Some(to) = to
        && from > to
    {
        return Err(Stop::error(format!("invalid substring range. start: {from}, end: {to}")));
    }
    let start = byte_at(text, from).ok_or_else(|| out_of_range(from))?;
    let end = match to {
        None => text.len(),
        Some(to) => byte_at(text, to).ok_or_else(|| out_of_range(to))?,
    };
    Ok(cut(text, start..end))
}

fn trim<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("trim", arguments));
    };
    fuel.burn_bytes(text.len())?;
    let start = text.len() - text.trim_start().len();
    Ok(cut(text, start..start + text.trim().len()))
}

fn lower_ascii<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("lowerAscii", arguments));
    };
    fuel.burn_bytes(text.len())?;
    Ok(Val::text(text.to_ascii_lowercase()))
}

fn upper_ascii<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("upperAscii", arguments));
    };
    fuel.burn_bytes(text.len())?;
    Ok(Val::text(text.to_ascii_uppercase()))
}

fn reverse<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("reverse", arguments));
    };
    fuel.burn_bytes(text.len())?;
    Ok(Val::text(text.chars().rev().collect::<String>()))
}

/// Replaces all occurrences, or as many as the limit allows. The empty string occurs around each character.
fn replace<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (text, old, new, limit) = match arguments {
        [Val::Text(text), Val::Text(old), Val::Text(new)] => (text, old, new, -1),
        [Val::Text(text), Val::Text(old), Val::Text(new), Val::Int(limit)] => (text, old, new, *limit),
        _ => return Err(no_such_overload("replace", arguments)),
    };
    fuel.burn_bytes(text.len() + old.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let times = text.matches(&**old).take(limit).count();
    fuel.burn(times)?;
    fuel.burn_bytes(text.len().saturating_add(times.saturating_mul(new.len())))?;
    Ok(Val::text(text.replacen(&**old, new, times)))
}

/// Splits at each separator, into as many parts as the limit allows. An empty separator splits characters.
fn split<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (text, separator, limit) = match arguments {
        [Val::Text(text), Val::Text(separator)] => (text, separator, -1),
        [Val::Text(text), Val::Text(separator), Val::Int(limit)] => (text, separator, *limit),
        _ => return Err(no_such_overload("split", arguments)),
    };
    fuel.burn_bytes(text.len() + separator.len())?;
    let mut parts = Vec::new();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut start = 0;
    while parts.len() < limit && (start < text.len() || !separator.is_empty()) {
        // The cost of an entry, however short it is.
        fuel.burn(3)?;
        let rest = &text[start..];
        let found = if separator.is_empty() {
            rest.chars().next().map(char::len_utf8).filter(|length| *length < rest.len())
        } else {
            rest.find(&**separator)
        };
        match found {
            Some(length) if parts.len() + 1 < limit => {
                parts.push(cut(text, start..start + length));
                start += length + separator.len();
            }
            _ => {
                parts.push(cut(text, start..text.len()));
                break;
            }
        }
    }
    Ok(Val::list(parts))
}

fn join<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (list, separator) = match arguments {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::Text(separator)] => (list, &**separator),
        _ => return Err(no_such_overload("join", arguments)),
    };
    let mut joined = String::new();
    for (index, entry) in list.iter().enumerate() {
        let Val::Text(text) = &entry else {
            return Err(Stop::error(format!("join: expected string, found {}", entry.type_of())));
        };
        let separator = if index == 0 { "" } else { separator };
        fuel.burn(1)?;
        fuel.burn_bytes(separator.len() + text.len())?;
        joined.push_str(separator);
        joined.push_str(text);
    }
    Ok(Val::text(joined))
}

/// The string as a literal of CEL.
fn quote<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("strings.quote", arguments));
    };
    fuel.burn_bytes(2 * text.len())?;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(Val::text(quoted))
}

/// A part of a string, without a copy if it is borrowed. The range must be at character boundaries.
pub(super) fn cut<'v>(text: &Text<'v>, range: Range<usize>) -> Val<'v> {
    Val::Text(match text {
        Text::Read(text) => Text::Read(text.get(range).unwrap_or_default()),
        Text::Made(text) => Text::Made(Rc::from(text.get(range).unwrap_or_default())),
    })
}

/// The byte offset of a character, the end of the string included.
fn byte_at(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

/// Converts a byte offset into an index of characters.
fn place<'v>(text: &str, byte: usize) -> Val<'v> {
    let characters = text.get(..byte).unwrap_or(text).chars().count();
    Val::Int(i64::try_from(characters).unwrap_or(i64::MAX))
}

fn out_of_range<'v>(index: i64) -> Stop<'v> {
    Stop::error(format!("index out of range: {index}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("'hello'.contains('ell')", "true")]
    #[case("'hello'.contains('')", "true")]
    #[case("'hello'.contains('Ell')", "false")]
    #[case("'hello'.startsWith('he')", "true")]
    #[case("'he'.startsWith('hello')", "false")]
    #[case("'hello'.endsWith('llo')", "true")]
    #[case("'héllo'.charAt(1)", "'é'")]
    #[case("'hello'.charAt(5)", "''")]
    #[case("'hello'.charAt(6)", "error: index out of range: 6")]
    #[case("'hello'.charAt(-1)", "error: index out of range: -1")]
    fn characters(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("'hello mellow'.indexOf('')", "0")]
    #[case("'hello mellow'.indexOf('ello')", "1")]
    #[case("'hello mellow'.indexOf('jello')", "-1")]
    #[case("'hello mellow'.indexOf('', 2)", "2")]
    #[case("'hello mellow'.indexOf('', 50)", "12")]
    #[case("'hello mellow'.indexOf('ello', 2)", "7")]
    #[case("'hello mellow'.indexOf('ello', 20)", "-1")]
    #[case("'hello mellow'.indexOf('ello', -1)", "error: index out of range: -1")]
    #[case("'日本日本'.indexOf('本', 2)", "3")]
    #[case("'hello mellow'.lastIndexOf('')", "12")]
    #[case("'hello mellow'.lastIndexOf('', 3)", "3")]
    #[case("'hello mellow'.lastIndexOf('', 50)", "12")]
    #[case("'hello mellow'.lastIndexOf('ello')", "7")]
    #[case("'hello mellow'.lastIndexOf('ello', 7)", "7")]
    #[case("'hello mellow'.lastIndexOf('ello', 6)", "1")]
    #[case("'hello mellow'.lastIndexOf('ello', 20)", "-1")]
    #[case("'hello mellow'.lastIndexOf('ello', -1)", "error: index out of range: -1")]
    #[case("'aé'.lastIndexOf('é', 0)", "-1")]
    #[case("'日本日本'.lastIndexOf('日本', 1)", "0")]
    #[case("''.lastIndexOf('a', 0)", "-1")]
    fn places(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("'tacocat'.substring(4)", "'cat'")]
    #[case("'tacocat'.substring(7)", "''")]
    #[case("'tacocat'.substring(0, 4)", "'taco'")]
    #[case("'ta©o©αT'.substring(2, 6)", "'©o©α'")]
    #[case("'tacocat'.substring(40)", "error: index out of range: 40")]
    #[case("'tacocat'.substring(-1)", "error: index out of range: -1")]
    #[case("'tacocat'.substring(1, 50)", "error: index out of range: 50")]
    #[case("'tacocat'.substring(2, 1)", "error: invalid substring range. start: 2, end: 1")]
    #[case("' \\f\\n\\u00a0\\u2003text\\u2028 '.trim()", "'text'")]
    #[case("'\\u200btext\\u200b'.trim().size()", "6")]
    #[case("'TacoCÆt'.lowerAscii()", "'tacocÆt'")]
    #[case("'tacoCÆt xii'.upperAscii()", "'TACOCÆT XII'")]
    #[case("'héo'.reverse()", "'oéh'")]
    fn changed(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("'hello hello'.replace('he', 'we')", "'wello wello'")]
    #[case("'hello hello'.replace('he', 'we', -1)", "'wello wello'")]
    #[case("'hello hello'.replace('he', 'we', 1)", "'wello hello'")]
    #[case("'hello hello'.replace('he', 'we', 0)", "'hello hello'")]
    #[case("'hello'.replace('', '_')", "'_h_e_l_l_o_'")]
    #[case("'hello'.replace('', '_', 2)", "'_h_ello'")]
    #[case("'hello hello'.replace('h', '')", "'ello ello'")]
    #[case("'aaa'.replace('aa', 'b')", "'ba'")]
    fn replaced(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("'a b c'.split(' ')", "['a', 'b', 'c']")]
    #[case("'a b c'.split(' ', 0)", "[]")]
    #[case("'a b c'.split(' ', 1)", "['a b c']")]
    #[case("'a b c'.split(' ', 2)", "['a', 'b c']")]
    #[case("'a b c'.split(' ', -1)", "['a', 'b', 'c']")]
    #[case("'a,'.split(',')", "['a', '']")]
    #[case("''.split(',')", "['']")]
    #[case("''.split('')", "[]")]
    #[case("'日本x'.split('')", "['日', '本', 'x']")]
    #[case("'日本x'.split('', 2)", "['日', '本x']")]
    #[case("['a', 'b'].join()", "'ab'")]
    #[case("['a', '', 'b'].join('-')", "'a--b'")]
    #[case("[].join('-')", "''")]
    #[case("[1].join('-')", "error: join: expected string, found int")]
    fn split_and_joined(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case(r#"strings.quote('say "no"')"#, r#"'"say \"no\""'"#)]
    #[case(r"strings.quote('\a\b\f\n\r\t\v\\é')", r#"'"\a\b\f\n\r\t\v\\é"'"#)]
    fn quoted(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
