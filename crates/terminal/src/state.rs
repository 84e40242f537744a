//! The sign, color and rank of a state.

use anstyle::{AnsiColor, Style};
use bellwether_model::State;

/// States, worst first. `None` is an object without a verdict.
pub const WORST_FIRST: [Option<State>; 8] = [
    Some(State::Failed),
    Some(State::Missing),
    Some(State::InProgress),
    Some(State::Unknown),
    Some(State::Terminating),
    Some(State::Suspended),
    None,
    Some(State::Ready),
];

/// The position in [`WORST_FIRST`]: lower is worse.
pub fn rank(state: Option<State>) -> usize {
    WORST_FIRST.iter().position(|other| *other == state).unwrap_or(WORST_FIRST.len())
}

/// The sign of a state, which makes it readable without color.
pub fn sign(state: Option<State>) -> char {
    match state {
        Some(State::Failed) => '✗',
        Some(State::Missing) => '∅',
        Some(State::InProgress) => '◐',
        Some(State::Unknown) => '?',
        Some(State::Terminating) => '↓',
        Some(State::Suspended) => '‖',
        Some(State::Ready) => '✓',
        None => '·',
    }
}

pub fn style(state: Option<State>) -> Style {
    match state {
        Some(State::Failed | State::Missing) => AnsiColor::Red.on_default(),
        Some(State::InProgress) => AnsiColor::Yellow.on_default(),
        Some(State::Ready) => AnsiColor::Green.on_default(),
        Some(State::Unknown | State::Terminating | State::Suspended) | None => {
            AnsiColor::BrightBlack.on_default()
        }
    }
}

/// With more ready rows than this, a table hides them.
pub const MANY: usize = 20;

/// The minimum width for progress bars, in columns. Narrower screens need the space for reasons.
pub const ROOM_FOR_BARS: usize = 100;
