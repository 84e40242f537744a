//! What a person reads on a terminal: how wide it may be, whether it has colours, and that nothing in it plays tricks.
//!
//! It knows states, because each has a sign and a colour, and nothing else of what is printed.

mod canvas;
mod screen;
mod state;
mod table;
mod text;

pub use canvas::Canvas;
pub use screen::Screen;
pub use state::{MANY, ROOM_FOR_BARS, WORST_FIRST, in_words, rank, sign, style};
pub use table::{BELOW, Cell, Table};
pub use text::{bar, columns, cut, cut_middle, first_few, first_items, how_long, percent, printable, wrap};
