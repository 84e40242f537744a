//! Hints for frequent errors.

use crate::{
    compile_error::nearest,
    scope::{SELF, Scope, USUAL_FIELDS},
};

/// For a character that starts no token.
pub(crate) fn for_stray(rest: &str) -> Option<String> {
    let hint = match rest.chars().next()? {
        '=' if rest.starts_with("=>") => {
            "to compare, write >=; to test each entry, write list.exists(x, ...)"
        }
        '=' if rest.starts_with("=~") => "to compare with a regular expression, write x.matches('...')",
        '=' => "to compare, write ==",
        '&' => "write && for and",
        '|' => "write || for or",
        '~' => "write != for not equal, ! for not, or x.matches('...') for a regular expression",
        '#' => "write // for a comment",
        ';' | '@' => "remove this character",
        '‘' | '’' | '“' | '”' | '„' | '«' | '»' => "write straight quotes: ' or \"",
        '≠' => "write !=",
        '≤' => "write <=",
        '≥' => "write >=",
        '–' | '−' => "write - for minus",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For a path from `$`, as trees have it.
pub(crate) fn for_root(text: &str, scope: &Scope) -> String {
    let mut in_brackets = false;
    let is_after = |c: char| {
        let is_after = !in_brackets && !matches!(c, '.' | '_' | '[') && !c.is_alphanumeric();
        in_brackets = if in_brackets { c != ']' } else { c == '[' };
        is_after
    };
    let path = text.trim_start_matches('$').split(is_after).next().unwrap_or_default();
    let path = match path.trim_matches('.') {
        path if path.starts_with(char::is_alphabetic) => path,
        _ => "status.phase",
    };
    let first = path.split(['.', '[']).next().unwrap_or_default();
    let variable = if scope.position(first).is_some() { None } else { variable_of(first, scope) };
    format!("write the path without $: {}{path}", variable.map(|name| format!("{name}.")).unwrap_or_default())
}

/// The variable of a row that a top-level field of the object belongs to.
fn variable_of(field: &str, scope: &Scope) -> Option<&'static str> {
    let variable = if field == "status" { "returned" } else { "obj" };
    scope.position(variable).map(|_| variable)
}

/// For a top-level field of the object that is not in scope by itself.
pub(crate) fn for_field_of_object(name: &str, scope: &Scope) -> Option<String> {
    let fields = || USUAL_FIELDS.iter().copied().filter(|field| *field != SELF);
    let field = fields().find(|field| *field == name).or_else(|| nearest(name, fields()))?;
    Some(format!("did you mean `{}.{field}`?", variable_of(field, scope)?))
}

/// For a word after a complete expression.
pub(crate) fn for_word_after_expression(word: &str) -> Option<String> {
    let hint = match word.to_ascii_lowercase().as_str() {
        "and" => "write &&",
        "or" => "write ||",
        "not" => "write !x, or !(x in list)",
        "is" | "eq" => "to compare, write ==",
        "ne" => "write !=",
        "lt" | "le" | "gt" | "ge" => "write <, <=, > or >=",
        "contains" | "like" => "write text.contains('part')",
        "matches" => "write text.matches('regex')",
        "if" | "else" | "then" => "write condition ? a : b",
        "mod" => "write %",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For prose where CEL is expected. The text is shown only where it needs no escapes.
pub(crate) fn for_plain_text(text: &str) -> String {
    const LONGEST: usize = 100;
    let text = text.trim();
    let can_be_copied = text.len() <= LONGEST && !text.contains(['\'', '"', '\\', '\n']);
    format!("plain text needs inner quotes: \"'{}'\"", if can_be_copied { text } else { "..." })
}

/// For a reserved identifier.
pub(crate) fn for_reserved(word: &str) -> Option<String> {
    let hint = match word {
        "if" | "else" => "write condition ? a : b",
        "for" | "while" | "loop" => {
            "to iterate over a list, write list.all(x, ...), list.exists(x, ...) or list.map(x, ...)"
        }
        "let" | "var" | "const" => "to name a value, write cel.bind(name, value, expression)",
        "namespace" => "write metadata.namespace for the namespace of an object",
        "return" => "remove return: the value of the expression is the result",
        "function" => "use the functions of CEL: an expression cannot define its own",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For an undeclared name that other languages have.
pub(crate) fn for_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "True" | "TRUE" => "write true",
        "False" | "FALSE" => "write false",
        "None" | "nil" | "NULL" | "Null" | "undefined" => "write null",
        "not" => "write !x",
        "this" | "obj" | "object" | "resource" => "write self for the whole object",
        _ => return None,
    })
}

/// For a function that has another name in CEL.
pub(crate) fn for_function(name: &str) -> Option<&'static str> {
    Some(match name {
        "not" => "write !x",
        "len" | "length" | "count" => "write size(x)",
        "toLowerCase" | "toLower" | "lower" => "write x.lowerAscii()",
        "toUpperCase" | "toUpper" | "upper" => "write x.upperAscii()",
        "includes" | "has_key" | "hasKey" | "containsKey" => "write value in list, or key in map",
        "any" | "some" => "write list.exists(x, ...)",
        "every" => "write list.all(x, ...)",
        "find_all" | "select" => "write list.filter(x, ...)",
        "toString" | "str" => "write string(x)",
        "parseInt" | "Number" | "number" => "write int(x) or double(x)",
        "exists" | "all" | "filter" | "map" => "call it on a list: list.exists(x, x == 1)",
        "startswith" | "starts_with" | "hasPrefix" => "write x.startsWith('...')",
        "endswith" | "ends_with" | "hasSuffix" => "write x.endsWith('...')",
        "strip" => "write x.trim()",
        "now" => "expressions cannot read the clock",
        "default" | "get" | "getOrDefault" => "write has(x.y) ? x.y : other, or x.?y.orValue(other)",
        "regex" | "match" => "write x.matches('...')",
        _ => return None,
    })
}
