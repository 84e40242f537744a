//! Any text as an expression, on an object and on a row: it does not panic, it ends, and its outcome is
//! reproducible.

#![no_main]

use bellwether_expr::{Absence, Fuel, Program, Scope, Variables, Val};
use bellwether_fuzz::sample;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let object = sample();
    let scopes = [Absence::AsInCel, Absence::NotYet, Absence::Null].map(Scope::object);
    for scope in &scopes {
        let Ok(program) = Program::cel(text, scope) else { continue };
        let outcome = || match program.evaluate(&object, &mut Fuel::new(50_000)) {
            Ok(value) => format!("{:?}", value.to_value()),
            Err(stop) => program.describe(&stop),
        };
        assert_eq!(outcome(), outcome(), "the outcome of an expression must be reproducible");
    }
    if let Ok(program) = Program::cel(text, &Scope::row()) {
        let fields = Some(Val::from(object.fields()));
        let row = Variables(vec![fields.clone(), fields.clone(), fields, None]);
        drop(program.evaluate(&row, &mut Fuel::new(50_000)).map(|value| value.to_value()));
    }
});
