//! Lua's patterns, with metering.
//!
//! Lua's own matcher backtracks without limit: `a*a*a*a*b` on a few hundred characters takes years, and no
//! instruction is counted meanwhile. This one backtracks in the same way, and pays for each step.

use mlua::{Error, Result};

use crate::meter::Meter;

/// Lua's limit for captures.
const MAX_CAPTURES: usize = 32;

/// Lua's limit for recursion.
const DEEPEST: usize = 200;

/// The number of steps between two payments.
const INSTALMENT: usize = 256;

/// A match in progress.
pub(crate) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<Capture>,
    depth: usize,
    meter: &'a Meter,
    steps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capture {
    start: usize,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The capture is not closed yet.
    Open,
    /// The capture is `()`: a position.
    Position,
    /// The length of the captured text.
    Bytes(usize),
}

/// A capture of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Text(&'a [u8]),
    /// Counted from 1.
    Position(usize),
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(text: &'a [u8], pattern: &'a [u8], meter: &'a Meter) -> Self {
        Self { text, pattern, captures: Vec::new(), depth: 0, meter, steps: 0 }
    }

    /// The end of a match that starts exactly at `start`.
    pub(crate) fn at(&mut self, start: usize) -> Result<Option<usize>> {
        self.captures.clear();
        self.depth = 0;
        self.go(start, 0)
    }

    /// Pays for the steps since the last payment.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.meter.charge(std::mem::take(&mut self.steps))
    }

    /// The number of captures of the last match.
    pub(crate) fn count(&self) -> usize {
        self.captures.len()
    }

    pub(crate) fn whole(&self, start: usize, end: usize) -> Found<'a> {
        Found::Text(&self.text[start..end])
    }

    /// A capture of the last match, counted from 0. Without captures, the whole match is the only one.
    pub(crate) fn capture(&self, index: usize, start: usize, end: usize) -> Result<Found<'a>> {
        match self.captures.get(index) {
            None if index == 0 => Ok(self.whole(start, end)),
            None => Err(error(format!("invalid capture index %{}", index + 1))),
            Some(capture) => match capture.extent {
                Extent::Open => Err(error("unfinished capture")),
                Extent::Position => Ok(Found::Position(capture.start + 1)),
                Extent::Bytes(length) => Ok(Found::Text(&self.text[capture.start..capture.start + length])),
            },
        }
    }

    fn step(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        if self.steps >= INSTALMENT { self.settle() } else { Ok(()) }
    }

    fn letter(&self, at: usize) -> Option<u8> {
        self.pattern.get(at).copied()
    }

    /// Matches the pattern from `p` against the text from `s`, one level deeper.
    fn go(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(error("pattern too complex"));
        }
        let end = self.walk(s, p);
        self.depth -= 1;
        end
    }

    fn walk(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>> {
        loop {
            self.step(1)?;
            let Some(letter) = self.letter(p) else {
                return Ok(Some(s));
            };
            match (letter, self.letter(p + 1)) {
                (b'(', Some(b')')) => return self.open(s, p + 2, Extent::Position),
                (b'(', _) => return self.open(s, p + 1, Extent::Open),
                (b')', _) => return self.close(s, p + 1),
                (b'$', None) => return Ok((s == self.text.len()).then_some(s)),
                (b'%', Some(b'b')) => match self.balanced(s, p + 2)? {
                    Some(after) => (s, p) = (after, p + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => match self.frontier(s, p + 2)? {
                    Some(after) => p = after,
                    None => return Ok(None),
                },
                (b'%', Some(digit @ b'0'..=b'9')) => match self.repeated(s, digit)? {
                    Some(after) => (s, p) = (after, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let after = self.end_of_single(p)?;
                    self.step(after - p)?;
                    let fits = self.fits(s, p, after);
                    match self.letter(after) {
                        Some(b'?') => {
                            if fits && let Some(end) = self.go(s + 1, after + 1)? {
                                return Ok(Some(end));
                            }
                            p = after + 1;
                        }
                        Some(b'+') => return if fits { self.longest(s + 1, p, after) } else { Ok(None) },
                        Some(b'*') => return self.longest(s, p, after),
                        Some(b'-') => return self.shortest(s, p, after),
                        _ if !fits => return Ok(None),
                        _ => (s, p) = (s + 1, after),
                    }
                }
            }
        }
    }

    /// Greedy repetition: the longest that lets the rest of the pattern match.
    fn longest(&mut self, s: usize, p: usize, after: usize) -> Result<Option<usize>> {
        let mut count = 0;
        while self.fits(s + count, p, after) {
            self.step(after - p)?;
            count += 1;
        }
        for count in (0..=count).rev() {
            if let Some(end) = self.go(s + count, after + 1)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Lazy repetition: the shortest that lets the rest of the pattern match.
    fn shortest(&mut self, mut s: usize, p: usize, after: usize) -> Result<Option<usize>> {
        loop {
            if let Some(end) = self.go(s, after + 1)? {
                return Ok(Some(end));
            }
            if !self.fits(s, p, after) {
                return Ok(None);
            }
            self.step(after - p)?;
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, extent: Extent) -> Result<Option<usize>> {
        if self.captures.len() >= MAX_CAPTURES {
            return Err(error("too many captures"));
        }
        let level = self.captures.len();
        self.captures.push(Capture { start: s, extent });
        let end = self.go(s, p)?;
        if end.is_none() {
            self.captures.truncate(level);
        }
        Ok(end)
    }

    fn close(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        let last = self.captures.iter().rposition(|capture| capture.extent == Extent::Open);
        let last = last.ok_or_else(|| error("invalid pattern capture"))?;
        self.captures[last].extent = Extent::Bytes(s - self.captures[last].start);
        let end = self.go(s, p)?;
        if end.is_none() {
            self.captures[last].extent = Extent::Open;
        }
        Ok(end)
    }

    /// `%bxy`: from an x to the matching y.
    fn balanced(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        let (Some(open), Some(close)) = (self.letter(p), self.letter(p + 1)) else {
            return Err(error("malformed pattern (missing arguments to '%b')"));
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for at in s + 1..self.text.len() {
            self.step(1)?;
            let letter = self.text[at];
            if letter == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if letter == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: a frontier. Returns the position behind it in the pattern.
    fn frontier(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        if self.letter(p) != Some(b'[') {
            return Err(error("missing '[' after '%f' in pattern"));
        }
        let after = self.end_of_single(p)?;
        self.step(after - p)?;
        let before = s.checked_sub(1).map_or(0, |before| self.text[before]);
        let here = self.text.get(s).copied().unwrap_or(0);
        let begins = !self.in_set(before, p, after - 1) && self.in_set(here, p, after - 1);
        Ok(begins.then_some(after))
    }

    /// `%1`: a back reference. Returns the position behind it in the text.
    fn repeated(&mut self, s: usize, digit: u8) -> Result<Option<usize>> {
        let capture =
            usize::from(digit).checked_sub(usize::from(b'1')).and_then(|index| self.captures.get(index));
        match capture.copied() {
            None | Some(Capture { extent: Extent::Open, .. }) => {
                Err(error(format!("invalid capture index %{}", char::from(digit))))
            }
            Some(Capture { extent: Extent::Position, .. }) => Ok(None),
            Some(Capture { start, extent: Extent::Bytes(length) }) => {
                self.step(length / 16)?;
                let same = self.text[s..].starts_with(&self.text[start..start + length]);
                Ok(same.then_some(s + length))
            }
        }
    }

    /// The position behind a single item: a character, a class or a set.
    fn end_of_single(&self, p: usize) -> Result<usize> {
        match self.letter(p) {
            Some(b'%') if p + 1 >= self.pattern.len() => Err(error("malformed pattern (ends with '%')")),
            Some(b'%') => Ok(p + 2),
            Some(b'[') => {
                let mut at = if self.letter(p + 1) == Some(b'^') { p + 2 } else { p + 1 };
                // A `]` at the start of a set is literal.
                loop {
                    let letter = self.letter(at).ok_or_else(|| error("malformed pattern (missing ']')"))?;
                    at += if letter == b'%' && at + 1 < self.pattern.len() { 2 } else { 1 };
                    if self.letter(at) == Some(b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the character at `s` matches the single item from `p` to `after`.
    fn fits(&self, s: usize, p: usize, after: usize) -> bool {
        let Some(letter) = self.text.get(s).copied() else {
            return false;
        };
        match self.pattern[p] {
            b'.' => true,
            b'%' => in_class(letter, self.pattern[p + 1]),
            b'[' => self.in_set(letter, p, after - 1),
            own => own == letter,
        }
    }

    /// Whether a character is in the set from `p` (at `[`) to `end` (at `]`).
    fn in_set(&self, letter: u8, p: usize, end: usize) -> bool {
        let negated = self.pattern[p + 1] == b'^';
        let mut rest = &self.pattern[if negated { p + 2 } else { p + 1 }..end];
        while let [first, others @ ..] = rest {
            rest = match (first, others) {
                (b'%', [class, others @ ..]) => {
                    if in_class(letter, *class) {
                        return !negated;
                    }
                    others
                }
                (low, [b'-', high, others @ ..]) => {
                    if (*low..=*high).contains(&letter) {
                        return !negated;
                    }
                    others
                }
                (own, others) => {
                    if *own == letter {
                        return !negated;
                    }
                    others
                }
            };
        }
        negated
    }
}

/// Whether a character is in a class such as `%d`. An upper-case letter negates the class.
fn in_class(letter: u8, class: u8) -> bool {
    let belongs = match class.to_ascii_lowercase() {
        b'a' => letter.is_ascii_alphabetic(),
        b'c' => letter.is_ascii_control(),
        b'd' => letter.is_ascii_digit(),
        b'g' => letter.is_ascii_graphic(),
        b'l' => letter.is_ascii_lowercase(),
        b'p' => letter.is_ascii_punctuation(),
        b's' => matches!(letter, b' ' | b'\t'..=b'\r'),
        b'u' => letter.is_ascii_uppercase(),
        b'w' => letter.is_ascii_alphanumeric(),
        b'x' => letter.is_ascii_hexdigit(),
        b'z' => letter == 0,
        _ => return class == letter,
    };
    belongs != class.is_ascii_uppercase()
}

/// Whether a pattern has no special characters.
pub(crate) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|letter| b"^$*+?.([%-".contains(letter))
}

fn error(text: impl Into<String>) -> Error {
    Error::RuntimeError(text.into())
}
