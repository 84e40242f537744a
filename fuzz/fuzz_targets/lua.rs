//! Any text as a script, on an object: it does not panic, it ends, and its outcome is reproducible.

#![no_main]

use bellwether_fuzz::sample;
use bellwether_lua::{Budget, Script};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(script) = Script::compile(text) else { return };
    let budget = Budget { instructions: 20_000, memory: 1 << 20 };
    let first = script.run(sample().fields(), Timestamp::UNIX_EPOCH, budget);
    let second = script.run(sample().fields(), Timestamp::UNIX_EPOCH, budget);
    assert_eq!(first, second, "the outcome of a script must be reproducible");
});
