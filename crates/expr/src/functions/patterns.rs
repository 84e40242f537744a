//! Translation of RE2 patterns into those of the crate `regex`.
//!
//! CEL uses the syntax of RE2. The crate `regex` differs in details: its `\d` matches the digits of all
//! scripts, its classes nest, and a brace that is not a repetition is an error.

use std::mem;

use regex::escape;

/// A pattern in the syntax of the crate `regex`.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) text: String,
    /// The size of the pattern with all repetitions expanded. Compiling it, and matching one byte at worst,
    /// costs as much.
    pub(super) weight: usize,
}

/// RE2's limit for repeat counts.
const MAX_REPEATED: usize = 1000;

/// The named classes, as in `[[:alpha:]]`.
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

const DIGIT: &str = "0-9";
const SPACE: &str = r"\t\n\f\r ";
const WORD: &str = "0-9A-Za-z_";

/// The approximate number of states of a class.
const WEIGHT_OF_CLASS: usize = 8;
/// The approximate number of states of a Unicode property.
const WEIGHT_OF_PROPERTY: usize = 300;

/// Translates a pattern.
pub(super) fn translate(pattern: &str) -> Result<Translated, String> {
    let mut translation =
        Translation { rest: pattern, text: String::new(), groups: vec![0], last: 0, repeated: false };
    while let Some(char) = translation.next() {
        translation.piece(char)?;
    }
    let weight = translation.groups.iter().fold(translation.last, |sum, group| sum.saturating_add(*group));
    Ok(Translated { text: translation.text, weight })
}

struct Translation<'p> {
    /// The input that is not translated yet.
    rest: &'p str,
    text: String,
    /// The weights of the open groups, the outermost first, without their last pieces.
    groups: Vec<usize>,
    /// The weight of the last piece. A repetition multiplies it.
    last: usize,
    /// Whether the last piece is a repetition.
    repeated: bool,
}

/// A member of a class.
enum Member {
    Character(String),
    /// A set and its weight.
    Set(String, usize),
}

impl<'p> Translation<'p> {
    fn next(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    /// Consumes the input up to and including `end`.
    fn up_to(&mut self, end: &str) -> Option<&'p str> {
        let (taken, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(taken)
    }

    fn piece(&mut self, char: char) -> Result<(), String> {
        let repeated = mem::take(&mut self.repeated);
        match char {
            '\\' => return self.escaped(),
            '[' => return self.class(),
            '(' => return self.open(),
            ')' => self.close(),
            '{' => return self.repetition(repeated),
            '*' | '+' | '?' => {
                self.text.push(char);
                return self.repeat(repeated);
            }
            '|' | '^' | '$' => self.add(char.encode_utf8(&mut [0; 4]), 0),
            '.' => self.add(".", WEIGHT_OF_CLASS),
            other => self.literal(other),
        }
        Ok(())
    }

    fn add(&mut self, text: &str, weight: usize) {
        self.text.push_str(text);
        self.weigh(weight);
    }

    fn literal(&mut self, char: char) {
        self.add(&escape(char.encode_utf8(&mut [0; 4])), char.len_utf8());
    }

    fn weigh(&mut self, weight: usize) {
        if let Some(group) = self.groups.last_mut() {
            *group = group.saturating_add(self.last);
        }
        self.last = weight;
    }

    /// Opens a group. Only the flags of RE2 are accepted.
    fn open(&mut self) -> Result<(), String> {
        self.add("(", 0);
        self.groups.push(0);
        if let Some(after) = self.rest.strip_prefix('?')
            && !after.starts_with(['P', '<'])
        {
            let end = after.find([':', ')']).unwrap_or(after.len());
            let (flags, rest) = after.split_at(end);
            if let Some((at, unknown)) = flags.char_indices().find(|(_, char)| !"imsU-".contains(*char)) {
                return Err(format!("unsupported Perl syntax '(?{}{unknown}'", &flags[..at]));
            }
            self.text.extend(["?", flags]);
            self.rest = rest;
            if let Some(rest) = rest.strip_prefix(':') {
                self.text.push(':');
                self.rest = rest;
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.text.push(')');
        // For a `)` without a group, the engine reports the error.
        if self.groups.len() > 1 {
            let inside = self.groups.pop().unwrap_or_default();
            self.last = inside.saturating_add(self.last);
        }
    }

    /// `{2}`, `{2,}` or `{2,5}`. Any other brace is literal.
    fn repetition(&mut self, repeated: bool) -> Result<(), String> {
        let counts = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let Some((least, most, inside, after)) = self.rest.split_once('}').and_then(|(inside, after)| {
            let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
            (!least.is_empty() && counts(least) && counts(most)).then_some((least, most, inside, after))
        }) else {
            self.literal('{');
            return Ok(());
        };
        match if most.is_empty() { least } else { most }.parse::<usize>() {
            Ok(times) if times <= MAX_REPEATED => self.last = self.last.saturating_mul(times.max(1)),
            _ => return Err(format!("invalid repeat count {{{inside}}}, the limit is {MAX_REPEATED}")),
        }
        self.text.extend(["{", inside, "}"]);
        self.rest = after;
        self.repeat(repeated)
    }

    /// Ends a repetition operator. It must not follow another one.
    fn repeat(&mut self, repeated: bool) -> Result<(), String> {
        if repeated {
            return Err("invalid nested repetition operator".to_owned());
        }
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.text.push('?');
            self.rest = rest;
        }
        self.repeated = true;
        Ok(())
    }

    /// An escape outside of classes.
    fn escaped(&mut self) -> Result<(), String> {
        let char = self.next().ok_or("trailing backslash")?;
        match char {
            'A' => self.add(r"\A", 0),
            'z' => self.add(r"\z", 0),
            'b' => self.add(r"(?-u:\b)", 0),
            'B' => self.add(r"\B", 0),
            'Q' => {
                let quoted = self.up_to(r"\E").unwrap_or_else(|| mem::take(&mut self.rest));
                for char in quoted.chars() {
                    self.literal(char);
                }
            }
            _ => match self.member(char)? {
                Member::Character(text) => self.add(&text, 1),
                Member::Set(text, weight) => self.add(&text, weight),
            },
        }
        Ok(())
    }

    /// An escape that is valid inside and outside of classes.
    fn member(&mut self, char: char) -> Result<Member, String> {
        let text = match char {
            'd' => format!("[{DIGIT}]"),
            'D' => format!("[^{DIGIT}]"),
            's' => format!("[{SPACE}]"),
            'S' => format!("[^{SPACE}]"),
            'w' => format!("[{WORD}]"),
            'W' => format!("[^{WORD}]"),
            'p' | 'P' => return self.property(char == 'P'),
            _ => return self.character(char).map(Member::Character),
        };
        Ok(Member::Set(text, WEIGHT_OF_CLASS))
    }

    /// `\pL`, `\p{Greek}` or `\p{^Greek}`.
    fn property(&mut self, others: bool) -> Result<Member, String> {
        let name = match self.next() {
            Some('{') => self.up_to("}").ok_or("missing closing }")?.to_owned(),
            Some(letter) => letter.to_string(),
            None => return Err("missing property name".to_owned()),
        };
        let (name, reversed) = name.strip_prefix('^').map_or((&*name, false), |name| (name, true));
        let kind = if others == reversed { 'p' } else { 'P' };
        Ok(Member::Set(format!("\\{kind}{{{name}}}"), WEIGHT_OF_PROPERTY))
    }

    /// An escape for one character.
    fn character(&mut self, char: char) -> Result<String, String> {
        let unknown = || format!("invalid escape sequence '\\{char}'");
        Ok(match char {
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => format!("\\{char}"),
            'x' => {
                let digits = if let Some(rest) = self.rest.strip_prefix('{') {
                    self.rest = rest;
                    self.up_to("}").ok_or("missing closing }")?
                } else {
                    let (digits, rest) = self.rest.split_at_checked(2).ok_or_else(unknown)?;
                    self.rest = rest;
                    digits
                };
                if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err(unknown());
                }
                format!("\\x{{{digits}}}")
            }
            '0'..='7' => {
                let more = self.rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                if more == 0 && char != '0' {
                    // A back reference, which RE2 does not support.
                    return Err(unknown());
                }
                let (digits, rest) = self.rest.split_at(more);
                self.rest = rest;
                let code = u32::from_str_radix(&format!("{char}{digits}"), 8).map_err(|_| unknown())?;
                format!("\\x{{{code:x}}}")
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => escape(&other.to_string()),
            _ => return Err(unknown()),
        })
    }

    /// A class up to its `]`.
    fn class(&mut self) -> Result<(), String> {
        let mut weight = WEIGHT_OF_CLASS;
        self.text.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.text.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            let char = self.next().ok_or("missing closing ]")?;
            // A `]` at the start of a class is literal.
            if char == ']' && !first {
                break;
            }
            first = false;
            if char == '['
                && let Some((name, rest)) = self.rest.strip_prefix(':').and_then(|rest| rest.split_once(":]"))
            {
                if !NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err(format!("unknown character class '[:{name}:]'"));
                }
                self.text.extend(["[:", name, ":]"]);
                self.rest = rest;
                continue;
            }
            match self.of_class(char)? {
                Member::Set(text, own) => {
                    self.text.push_str(&text);
                    weight = weight.saturating_add(own);
                    continue;
                }
                Member::Character(text) => self.text.push_str(&text),
            }
            if let Some(rest) = self.rest.strip_prefix('-').filter(|rest| !rest.starts_with(']')) {
                self.rest = rest;
                let high = self.next().ok_or("missing closing ]")?;
                let Member::Character(high) = self.of_class(high)? else {
                    return Err("invalid character class range".to_owned());
                };
                self.text.extend(["-", &high]);
            }
        }
        self.add("]", weight);
        Ok(())
    }

    fn of_class(&mut self, char: char) -> Result<Member, String> {
        if char != '\\' {
            return Ok(Member::Character(escape(&char.to_string())));
        }
        let char = self.next().ok_or("trailing backslash")?;
        self.member(char)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::translate;

    #[rstest]
    #[case("plain text, 1-2 &&", r"plain text, 1\-2 \&\&")]
    #[case(r"\d\D\w", "[0-9][^0-9][0-9A-Za-z_]")]
    #[case(r"\bx\B", r"(?-u:\b)x\B")]
    #[case(r"\Qa.b\E.", r"a\.b.")]
    #[case(r"\Qa.b", r"a\.b")]
    #[case(r"\<\>\_\ \/", "<>_ /")]
    #[case(r"\101\0\x41\x{1F600}", r"\x{41}\x{0}\x{41}\x{1F600}")]
    #[case(r"\pL\P{Greek}\p{^Greek}", r"\p{L}\P{Greek}\P{Greek}")]
    #[case("a{2}b{2,}c{2,5}", "a{2}b{2,}c{2,5}")]
    #[case("{}a{,2}b{x}c{", r"\{\}a\{,2\}b\{x\}c\{")]
    #[case("[a-z&&[b]", r"[a-z\&\&\[b]")]
    #[case("[]a]", r"[\]a]")]
    #[case("[^]a]", r"[^\]a]")]
    #[case("[+--]", r"[\+-\-]")]
    #[case("[a-]", r"[a\-]")]
    #[case("[[:]x", r"[\[:]x")]
    #[case(r"[[:alpha:]\d\]-]", r"[[:alpha:][0-9]\]\-]")]
    #[case("(?i)(?P<name>a)(?:b)(?is-U:c)", "(?i)(?P<name>a)(?:b)(?is-U:c)")]
    #[case("a*?b+?c??d{2}?", "a*?b+?c??d{2}?")]
    fn translated(#[case] pattern: &str, #[case] expected: &str) {
        assert_eq!(translate(pattern).unwrap().text, expected);
    }

    #[rstest]
    #[case(r"\", "trailing backslash")]
    #[case(r"\q", r"invalid escape sequence '\q'")]
    #[case(r"\1", r"invalid escape sequence '\1'")]
    #[case(r"\é", r"invalid escape sequence '\é'")]
    #[case(r"\p", "missing property name")]
    #[case(r"\p{L", "missing closing }")]
    #[case(r"\x4}", r"invalid escape sequence '\x'")]
    #[case(r"\x4", r"invalid escape sequence '\x'")]
    #[case("[a", "missing closing ]")]
    #[case(r"[a-\d]", "invalid character class range")]
    #[case("(?x)a", "unsupported Perl syntax '(?x'")]
    #[case("[[:nothing:]]", "unknown character class '[:nothing:]'")]
    #[case("a**", "invalid nested repetition operator")]
    #[case("a{2}{3}", "invalid nested repetition operator")]
    #[case("a{2000}", "invalid repeat count {2000}, the limit is 1000")]
    fn refused(#[case] pattern: &str, #[case] expected: &str) {
        assert_eq!(translate(pattern).unwrap_err(), expected);
    }

    #[rstest]
    #[case("", 0)]
    #[case("abc", 3)]
    #[case("a{10}", 10)]
    #[case("xa{10}y", 12)]
    #[case("(ab{3}|c){10}", 50)]
    #[case("((a{10}){10}){10}", 1000)]
    #[case("[a-z]{3}", 24)]
    #[case(r"\d+\.", 9)]
    #[case(r"[\pL\PN]", 608)]
    #[case("a{0}", 1)]
    #[case("(((a)))", 1)]
    fn weights(#[case] pattern: &str, #[case] expected: usize) {
        assert_eq!(translate(pattern).unwrap().weight, expected);
    }
}
