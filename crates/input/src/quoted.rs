//! Quoted text that goes on with less indentation than YAML 1.2 asks for.
//!
//! YAML 1.2 requires every line of a quoted scalar to be indented more than the block around it, and so does
//! the parser. Go's readers, and so kubectl, do not:
//!
//! ```yaml
//! conditions:
//! - message: 'cannot apply: CREATE
//! TABLE users'
//! ```
//!
//! White space at the start of these lines is not part of the text. So more of it changes nothing but makes
//! the parser content, and lines keep their numbers.

/// The text with more white space before the further lines of quoted scalars. `None` if that changes nothing.
///
/// The text may be anything: the caller has only seen that it cannot be parsed. Nothing but white space at
/// the start of lines is added or removed.
pub(super) fn indented(text: &str) -> Option<String> {
    let mut scanner = Scanner { most: text.len().saturating_mul(4).max(1 << 16), ..Scanner::default() };
    for line in text.split_inclusive('\n') {
        scanner.line(line)?;
    }
    (scanner.out != text).then_some(scanner.out)
}

/// What a line starts in.
#[derive(Clone, Copy, Debug, Default)]
enum Within {
    #[default]
    Nothing,
    /// A plain, literal or folded scalar. It lasts as long as lines are indented more than its parent.
    Unquoted {
        parent: Option<usize>,
    },
    Quoted {
        quote: u8,
    },
}

#[derive(Default)]
struct Scanner {
    out: String,
    /// The maximum length of `out`: a deep scalar of many short lines must not fill the memory.
    most: usize,
    within: Within,
    /// The columns of the mappings and sequences around the current place, the innermost last.
    parents: Vec<usize>,
    /// The number of open brackets and braces.
    flow: usize,
}

impl Scanner {
    /// `None` if the result would be too long.
    fn line(&mut self, line: &str) -> Option<()> {
        let content = line.trim_start_matches([' ', '\t']);
        let is_blank = content.trim_end().is_empty();
        let indent = line.len() - line.trim_start_matches(' ').len();
        match self.within {
            Within::Quoted { quote } => {
                // One column more than the parser asks for, which counts the space after `:` and `-`.
                let wanted = self.parents.last().map_or(0, |parent| parent + 2);
                if is_blank || indent >= wanted {
                    self.out.push_str(line);
                } else {
                    self.out.extend(std::iter::repeat_n(' ', wanted));
                    self.out.push_str(content);
                }
                if let Some(end) = end_of_quoted(content.as_bytes(), 0, quote) {
                    self.within = Within::Nothing;
                    self.tokens(content.as_bytes(), end);
                }
                return (self.out.len() <= self.most).then_some(());
            }
            Within::Unquoted { parent } if is_blank || parent.is_none_or(|parent| indent > parent) => {}
            Within::Unquoted { .. } | Within::Nothing if is_blank => {}
            Within::Unquoted { .. } | Within::Nothing => {
                self.within = Within::Nothing;
                if self.flow == 0 {
                    self.parents.retain(|parent| *parent < indent);
                }
                self.tokens(line.as_bytes(), indent);
            }
        }
        self.out.push_str(line);
        Some(())
    }

    /// Reads the rest of a line outside of scalars.
    fn tokens(&mut self, line: &[u8], mut at: usize) {
        // The column of the current node: that of its anchor or tag, if it has one.
        let mut node = None;
        while let Some(&byte) = line.get(at) {
            let column = at;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    at += 1;
                    continue;
                }
                b'#' if at.checked_sub(1).is_none_or(|before| is_blank(line, before)) => return,
                b'"' | b'\'' => {
                    let Some(end) = end_of_quoted(line, at + 1, byte) else {
                        self.within = Within::Quoted { quote: byte };
                        return;
                    };
                    at = end;
                    let colon =
                        end + line[end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                    if self.flow == 0 && is_colon(line, colon) {
                        self.parents.push(node.unwrap_or(column));
                        at = colon + 1;
                    }
                }
                b'[' | b'{' => {
                    self.flow += 1;
                    at += 1;
                }
                b']' | b'}' if self.flow > 0 => {
                    self.flow -= 1;
                    at += 1;
                }
                b',' | b':' if self.flow > 0 => at += 1,
                b'-' | b'?' | b':' if self.flow == 0 && is_blank(line, at + 1) => {
                    self.parents.push(column);
                    at += 1;
                }
                b'|' | b'>' if self.flow == 0 => {
                    self.within = Within::Unquoted { parent: self.parents.last().copied() };
                    return;
                }
                b'&' | b'!' | b'*' => {
                    at += 1;
                    while !(is_blank(line, at) || self.flow > 0 && is_flow(line, at)) {
                        at += 1;
                    }
                    node.get_or_insert(column);
                    continue;
                }
                _ => {
                    at = self.plain(line, at);
                    if is_colon(line, at) {
                        if self.flow == 0 {
                            self.parents.push(node.unwrap_or(column));
                        }
                        at += 1;
                    } else if self.flow == 0 {
                        // A comment ends a plain scalar.
                        if line[at..].iter().all(u8::is_ascii_whitespace) {
                            self.within = Within::Unquoted { parent: self.parents.last().copied() };
                        }
                        return;
                    }
                }
            }
            node = None;
        }
    }

    /// The end of a plain scalar in this line: at its colon if it is a key. Always after the start.
    fn plain(&self, line: &[u8], start: usize) -> usize {
        let mut at = start + 1;
        while at < line.len() {
            let is_comment = line[at] == b'#' && is_blank(line, at - 1);
            if is_comment || is_colon(line, at) || (self.flow > 0 && is_flow(line, at)) {
                break;
            }
            at += 1;
        }
        at
    }
}

/// The offset behind the closing quote, if it is in this line.
fn end_of_quoted(line: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start;
    while let Some(&byte) = line.get(at) {
        at += match byte {
            b'\\' if quote == b'"' => 2,
            b'\'' if quote == b'\'' && line.get(at + 1) == Some(&quote) => 2,
            _ if byte == quote => return Some(at + 1),
            _ => 1,
        };
    }
    None
}

/// Whether white space or the end of the text is here.
fn is_blank(line: &[u8], at: usize) -> bool {
    line.get(at).is_none_or(u8::is_ascii_whitespace)
}

/// Whether a colon that ends a key is here.
fn is_colon(line: &[u8], at: usize) -> bool {
    line.get(at) == Some(&b':') && is_blank(line, at + 1)
}

/// Whether a character is here that ends a plain scalar between brackets.
fn is_flow(line: &[u8], at: usize) -> bool {
    line.get(at).is_some_and(|byte| b",[]{}".contains(byte))
}
