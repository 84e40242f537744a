//! Renders terminal output with colours as an SVG, for light and dark mode.

use std::fmt::Write as _;

/// The width of a character, in tenths of a pixel.
const CHARACTER_WIDTH: usize = 84;
/// The height of a line, in pixels.
const LINE_HEIGHT: usize = 20;

/// The space around the text, in pixels.
const MARGIN: usize = 20;
/// The height of the window's title bar, in pixels.
const FRAME: usize = 34;

/// The colours have enough contrast with the background for small text.
const STYLE: &str = "\
    .paper { fill: #f6f8fa; stroke: #d1d9e0 } .dot { fill: #d1d9e0 }
    text { fill: #1f2328; white-space: pre; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
    .bold { font-weight: 600 } .red { fill: #cf222e } .green { fill: #1a7f37 } .yellow { fill: #9a6700 } .quiet { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117; stroke: #3d444d } .dot { fill: #3d444d }
      text { fill: #e6edf3 }
      .red { fill: #f85149 } .green { fill: #3fb950 } .yellow { fill: #d29922 } .quiet { fill: #9198a1 }
    }";

/// Renders `text` in a terminal with `columns` columns.
pub(crate) fn terminal(text: &str, columns: usize, title: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let width = columns * CHARACTER_WIDTH / 10 + 2 * MARGIN;
    let height = lines.len() * LINE_HEIGHT + FRAME + MARGIN;
    let title = escaped(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">\n  \
         <title id=\"title\">{title}</title>\n  <style>\n    {STYLE}\n  </style>\n  \
         <rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        width - 1,
        height - 1,
    );
    for dot in 0..3 {
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "  <circle class=\"dot\" cx=\"{}\" cy=\"18\" r=\"5\"/>", MARGIN + 5 + dot * 17);
    }
    for (row, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let _ = writeln!(svg, "  <g>");
        let y = FRAME + LINE_HEIGHT * (row + 1) - 6;
        for piece in pieces(line) {
            let x = MARGIN * 10 + piece.column * CHARACTER_WIDTH;
            // Every piece has an explicit position and width, because fonts differ.
            let _ = writeln!(
                svg,
                "    <text x=\"{}\" y=\"{y}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{}>{}</text>",
                tenths(x),
                tenths(piece.text.chars().count() * CHARACTER_WIDTH),
                piece.class.map(|class| format!(" class=\"{class}\"")).unwrap_or_default(),
                escaped(piece.text),
            );
        }
        let _ = writeln!(svg, "  </g>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// A part of a line in one colour, without runs of spaces.
#[derive(Debug, PartialEq, Eq)]
struct Piece<'l> {
    column: usize,
    class: Option<&'static str>,
    text: &'l str,
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut column, mut class) = (Vec::new(), 0, None);
    for (index, part) in line.split('\u{1b}').enumerate() {
        let text = match part.split_once('m').filter(|_| index > 0) {
            Some((colour, text)) => {
                class = named(colour);
                text
            }
            None => part,
        };
        let mut at = 0;
        // Two spaces separate columns.
        while let Some(start) = text[at..].find(|character| character != ' ').map(|start| at + start) {
            let end = text[start..].find("  ").map_or(text.len(), |end| start + end);
            let (before, piece) = (&text[..start], text[start..end].trim_end());
            pieces.push(Piece { column: column + before.chars().count(), class, text: piece });
            at = end;
        }
        column += text.chars().count();
    }
    pieces
}

/// The CSS class of an ANSI colour code.
fn named(colour: &str) -> Option<&'static str> {
    match colour.trim_start_matches('[') {
        "1" => Some("bold"),
        "31" => Some("red"),
        "32" => Some("green"),
        "33" => Some("yellow"),
        "90" => Some("quiet"),
        _ => None,
    }
}

fn tenths(number: usize) -> String {
    format!("{}.{}", number / 10, number % 10)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_columns_and_colours() {
        let piece = |column, class, text| Piece { column, class, text };
        assert_eq!(
            pieces("web  \u{1b}[31m✗ Failed\u{1b}[0m  4s   a < b"),
            [
                piece(0, None, "web"),
                piece(5, Some("red"), "✗ Failed"),
                piece(15, None, "4s"),
                piece(20, None, "a < b"),
            ]
        );
        assert_eq!(pieces("  └─ 3 more"), [piece(2, None, "└─ 3 more")]);
    }

    #[test]
    fn text_is_escaped() {
        let svg = terminal("a < b & c", 80, "A \u{3c}picture\u{3e}");
        assert!(svg.contains(">a &lt; b &amp; c</text>"), "{svg}");
        assert!(svg.contains("A &lt;picture&gt;"), "{svg}");
    }
}
