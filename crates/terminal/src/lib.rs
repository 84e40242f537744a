//! Terminal output: width, colors, tables, redrawing in place, and text without control characters.

mod canvas;
mod grid;
mod screen;
mod state;
mod table;
mod text;

pub use canvas::Canvas;
pub use grid::{Grid, GridCell};
pub use screen::Screen;
pub use state::{MANY, ROOM_FOR_BARS, WORST_FIRST, rank, sign, style};
pub use table::{BELOW, Cell, Table};
pub use text::{bar, columns, cut, cut_middle, first_few, first_items, how_long, percent, printable, wrap};
