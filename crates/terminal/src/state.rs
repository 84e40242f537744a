//! How a state looks: its sign, its colour, its place among others.

use anstyle::{AnsiColor, Style};
use bellwether_model::State;

/// States from the worst to the best, each with its sign and its colour; at the end what nobody has an opinion on.
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

/// How bad it is: less is worse.
pub fn rank(state: Option<State>) -> usize {
    WORST_FIRST.iter().position(|other| *other == state).unwrap_or(WORST_FIRST.len())
}

/// The sign of a state, for those who see no colours.
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

/// The colour of a state.
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

/// `InProgress` as a person would say it.
pub fn in_words(word: &str) -> String {
    let mut words = String::new();
    for character in word.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

/// So many rows of what is ready still leave the rest in sight.
pub const MANY: usize = 20;

/// Narrower screens need their room for the reasons.
pub const ROOM_FOR_BARS: usize = 100;
