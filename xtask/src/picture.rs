//! A terminal as a picture: text with colours becomes an SVG that any browser shows, in light and in dark.

use std::fmt::Write as _;

/// How much room a character takes, in tenths of a pixel and in pixels.
const TENTHS_WIDE: usize = 84;
const HIGH: usize = 20;

/// How much room is around the text, and above it for the frame of a window.
const MARGIN: usize = 20;
const FRAME: usize = 34;

/// The colours in light and in dark. They have enough contrast on their paper for small text.
const STYLE: &str = "\
    .paper { fill: #f6f8fa; stroke: #d1d9e0 } .dot { fill: #d1d9e0 }
    text { fill: #1f2328; white-space: pre; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
    .bold { font-weight: 600 } .red { fill: #cf222e } .green { fill: #1a7f37 } .yellow { fill: #9a6700 } .quiet { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117; stroke: #3d444d } .dot { fill: #3d444d }
      text { fill: #e6edf3 }
      .red { fill: #f85149 } .green { fill: #3fb950 } .yellow { fill: #d29922 } .quiet { fill: #9198a1 }
    }";

/// The picture of a terminal that shows this text in so many columns.
pub(crate) fn terminal(text: &str, columns: usize, title: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let width = columns * TENTHS_WIDE / 10 + 2 * MARGIN;
    let height = lines.len() * HIGH + FRAME + MARGIN;
    let title = escaped(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">\n  \
         <title id=\"title\">{title}</title>\n  <style>\n    {STYLE}\n  </style>\n  \
         <rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        width - 1,
        height - 1,
    );
    for dot in 0..3 {
        // Writing to text cannot fail.
        let _ = writeln!(svg, "  <circle class=\"dot\" cx=\"{}\" cy=\"18\" r=\"5\"/>", MARGIN + 5 + dot * 17);
    }
    for (row, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let _ = writeln!(svg, "  <g>");
        let y = FRAME + HIGH * (row + 1) - 6;
        for piece in pieces(line) {
            let x = MARGIN * 10 + piece.column * TENTHS_WIDE;
            // Every piece is put in its place, and made as wide as it should be: fonts differ.
            let _ = writeln!(
                svg,
                "    <text x=\"{}\" y=\"{y}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{}>{}</text>",
                tenths(x),
                tenths(piece.text.chars().count() * TENTHS_WIDE),
                piece.class.map(|class| format!(" class=\"{class}\"")).unwrap_or_default(),
                escaped(piece.text),
            );
        }
        let _ = writeln!(svg, "  </g>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Part of a line, without gaps in it.
#[derive(Debug, PartialEq, Eq)]
struct Piece<'l> {
    column: usize,
    class: Option<&'static str>,
    text: &'l str,
}

/// A line as pieces that are of one colour each.
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
        // Where there are two spaces, columns begin.
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

/// The name of a colour that terminals have a number for.
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
    fn pieces_are_where_they_were() {
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
    fn what_is_text_is_not_read_as_markup() {
        let svg = terminal("a < b & c", 80, "A \u{3c}picture\u{3e}");
        assert!(svg.contains(">a &lt; b &amp; c</text>"), "{svg}");
        assert!(svg.contains("A &lt;picture&gt;"), "{svg}");
    }
}
