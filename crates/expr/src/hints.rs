//! The usual slips, and the way out of them.

/// For a character that begins no word and no sign.
pub(crate) fn for_stray(rest: &str) -> Option<String> {
    let hint = match rest.chars().next()? {
        '=' if rest.starts_with("=>") => "write >= for at least, and list.exists(x, ...) to ask each entry",
        '=' if rest.starts_with("=~") => "to compare with a regular expression, write x.matches('...')",
        '=' => "to compare, write ==",
        '&' => "write && for both",
        '|' => "write || for either",
        '~' => "write != for not equal, ! for not, x.matches('...') for regular expressions",
        '$' => "a path begins with its first field: status.phase",
        '#' => "a comment begins with //",
        ';' => "an expression has no ; at its end",
        '‘' | '’' | '“' | '”' | '„' | '«' | '»' => "these quotes are typographic: write ' or \"",
        '≠' => "write !=",
        '≤' => "write <=",
        '≥' => "write >=",
        '–' | '−' => "this is a dash: write -",
        '@' => "no name begins with @",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For a word where an operator or the end was expected.
pub(crate) fn for_word_after_expression(word: &str) -> Option<String> {
    let hint = match word.to_ascii_lowercase().as_str() {
        "and" => "write && for both",
        "or" => "write || for either",
        "not" => "write ! before what is not so, and !(x in list) for what is in no list",
        "is" | "eq" => "to compare, write ==",
        "ne" => "write != for not equal",
        "lt" | "le" | "gt" | "ge" => "write <, <=, > or >=",
        "contains" | "like" | "matches" => "call it: text.contains('part')",
        "if" | "else" | "then" => "to choose, write condition ? one : other",
        "mod" => "write % for the remainder",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For a word that CEL reserves.
pub(crate) fn for_reserved(word: &str) -> Option<String> {
    let hint = match word {
        "if" | "else" => "to choose, write condition ? one : other",
        "for" | "while" | "loop" => {
            "to go through a list, write list.all(x, ...), list.exists(x, ...) or list.map(x, ...)"
        }
        "let" | "var" | "const" => "to name a value, write cel.bind(name, value, expression)",
        "namespace" => "the namespace of an object is metadata.namespace",
        "return" | "function" => "an expression is its value: nothing is returned",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For a name that nobody declared but other languages have.
pub(crate) fn for_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "True" | "TRUE" => "write true",
        "False" | "FALSE" => "write false",
        "None" | "nil" | "NULL" | "Null" | "undefined" => "write null",
        "not" => "write ! before what is not so",
        "this" | "obj" | "object" | "resource" => "the whole object is self",
        _ => return None,
    })
}

/// For a function that CEL calls otherwise.
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
        "exists" | "all" | "filter" | "map" => "it is called on a list: list.exists(x, x == 1)",
        "startswith" | "starts_with" | "hasPrefix" => "write x.startsWith('...')",
        "endswith" | "ends_with" | "hasSuffix" => "write x.endsWith('...')",
        "strip" => "write x.trim()",
        "now" => "expressions have no clock: the same object always gives the same answer",
        "default" | "get" | "getOrDefault" => "write has(x.y) ? x.y : other, or x.?y.orValue(other)",
        "regex" | "match" => "write x.matches('...')",
        _ => return None,
    })
}
