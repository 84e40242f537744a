//! Hints for habits from other languages.

/// A hint for a syntax error, from the source line that Lua reports and from its message.
pub(crate) fn in_source(source: &str, line: usize, said: &str) -> Option<&'static str> {
    let text = source.lines().nth(line.saturating_sub(1)).map(without_texts).unwrap_or_default();
    let has_word = |word: &str| words(&text).any(|own| own == word);
    let opens_condition = has_word("if") || has_word("elseif") || has_word("while");
    if said.contains("'end' expected") {
        return Some(if source.lines().map(without_texts).any(|line| is_else_if(&line)) {
            "write `elseif`: `else if` opens a second `if` that needs its own `end`"
        } else {
            "close every `if`, `for`, `while`, `do` and `function` with its own `end`"
        });
    }
    let slips: [(bool, &str); 12] = [
        (text.contains("!="), "write `~=` for not equal"),
        (text.contains("&&"), "write `and` for `&&`"),
        (text.contains("||"), "write `or` for `||`"),
        (near(said, "!"), "write `not` for `!`"),
        (opens_condition && near(said, "="), "`=` assigns; to compare, write `==`"),
        (["+=", "-=", "++", "..="].iter().any(|sign| text.contains(sign)), "write `x = x + 1`"),
        (near(said, "{") || near(said, "}"), "open blocks with `then` or `do` and close them with `end`"),
        (text.trim_start().starts_with("//") || text.contains("/*"), "write `--` for a comment"),
        (text.trim_start().starts_with('#'), "write `--` for a comment"),
        (["let", "var", "const"].iter().any(|word| has_word(word)), "declare variables with `local`"),
        (has_word("elif") || has_word("elsif"), "write `elseif`"),
        (has_word("null") || has_word("None"), "write `nil`"),
    ];
    slips.into_iter().find_map(|(slipped, hint)| slipped.then_some(hint)).or_else(|| {
        said.contains("<eof> expected").then_some("remove the extra `end`, or what follows `return`")
    })
}

/// A hint for a run-time error, from Lua's message.
pub(crate) fn at_run_time(said: &str) -> Option<&'static str> {
    let hints: [(&str, &str); 5] = [
        ("(global 'null')", "write `nil`"),
        ("perform arithmetic on a string value", "write `..` to join strings"),
        (
            "(global 'require')",
            "scripts cannot load modules; use `os.time`, `os.date`, `string`, `table` and `math`",
        ),
        ("(global 'io')", "scripts cannot access files"),
        ("call a nil value (field 'random')", "scripts have no random numbers"),
    ];
    hints.into_iter().find_map(|(part, hint)| said.contains(part).then_some(hint))
}

fn near(said: &str, token: &str) -> bool {
    said.ends_with(&format!("near '{token}'"))
}

fn is_else_if(line: &str) -> bool {
    let mut words = words(line);
    words.any(|word| word == "else") && words.next() == Some("if")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// A line without its strings and comments.
fn without_texts(line: &str) -> String {
    let mut rest = String::with_capacity(line.len());
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match quote {
            Some(_) if letter == '\\' => drop(letters.next()),
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == '-' && letters.peek() == Some(&'-') => break,
            None => rest.push(letter),
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{is_else_if, without_texts};

    #[rstest]
    #[case("a = 'x != y' .. \"z\" -- && it", "a =  ..  ")]
    #[case(r"a = 'it\'s' != b", "a =  != b")]
    #[case("a = 'unfinished", "a = ")]
    #[case("a - b", "a - b")]
    fn quotes_and_comments_are_left_out(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(without_texts(line), expected);
    }

    #[rstest]
    #[case("else if x then", true)]
    #[case("elseif x then", false)]
    #[case("else x() if y then", false)]
    fn else_if_is_two_words(#[case] line: &str, #[case] expected: bool) {
        assert_eq!(is_else_if(line), expected);
    }
}
