//! Any text as an expression, on an object: nothing panics, nothing runs on, and every place is in the text.

#![no_main]

use bellwether_expr::{Absence, Fuel, Program, Scope, Variables, Val};
use bellwether_fuzz::sample;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let object = sample();
    let scopes = [Absence::AsInCel, Absence::NotYet, Absence::Null].map(Scope::object);
    for scope in &scopes {
        let Ok(program) = Program::cel(text, scope) else { continue };
        let mut fuel = Fuel::new(50_000);
        match program.evaluate(&object, &mut fuel) {
            Ok(value) => drop(value.to_value()),
            Err(stop) => drop(program.describe(&stop)),
        }
        let again = program.evaluate(&object, &mut Fuel::new(50_000)).map(|value| value.to_value());
        drop(again);
    }
    if let Ok(program) = Program::cel(text, &Scope::row()) {
        let fields = Some(Val::from(object.fields()));
        let row = Variables(vec![fields.clone(), fields.clone(), fields, None]);
        drop(program.evaluate(&row, &mut Fuel::new(50_000)).map(|value| value.to_value()));
    }
});
