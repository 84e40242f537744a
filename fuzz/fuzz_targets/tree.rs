//! Any JSON as a tree of operations, on a row: it does not panic, and it ends.

#![no_main]

use bellwether_expr::{Fuel, Program, Scope, Val, Variables};
use bellwether_fuzz::sample;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(tree) = serde_json::from_slice(bytes) else { return };
    let Ok(program) = Program::tree(&tree, &Scope::row()) else { return };
    let object = sample();
    let fields = Some(Val::from(object.fields()));
    let row = Variables(vec![fields.clone(), fields.clone(), fields, None]);
    match program.evaluate(&row, &mut Fuel::new(50_000)) {
        Ok(value) => drop(value.to_value()),
        Err(stop) => drop(program.describe(&stop)),
    }
});
