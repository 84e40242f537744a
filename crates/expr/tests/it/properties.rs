//! Properties of every expression and every object.

use bellwether_expr::{Absence, CompileError, Facts, Fuel, Input, Place, Program, Scope, Stop};
use bellwether_model::{Object, Plan};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::sample::{WIDGET, object, shown};

const ABSENCES: [Absence; 3] = [Absence::AsInCel, Absence::NotYet, Absence::Null];

/// Tokens whose random sequences are often nearly valid expressions.
const WORDS: &[&str] = &[
    "status",
    "spec",
    "self",
    "metadata",
    "phase",
    "ready",
    "x",
    "y",
    "absent",
    "true",
    "false",
    "null",
    "1",
    "2u",
    "0.5",
    "-3",
    "'a'",
    "\"b\"",
    "b'c'",
    "r'\\d'",
    "'\\n'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ".",
    ".",
    ",",
    ",",
    "?",
    ":",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "in",
    "has(",
    "size(",
    ".all(x,",
    ".exists(x,",
    ".map(x,",
    ".filter(x,",
    ".transformMap(x, y,",
    ".?",
    "[?",
    "cel.bind(x,",
    ".orValue(",
    ".matches(",
    ".format([",
    "timestamp(",
    "duration(",
    "quantity(",
    "int(",
    "string(",
    "if",
    "`a/b`",
    "// c\n",
    "\n",
    "\t",
    "é",
    "🎡",
    "$",
    "#",
    "'open",
    "9223372036854775808",
    "1e400",
    "0x",
    "5Mi",
    "Widget{",
    "optional.of(",
    "math.greatest(",
    "lists.range(",
];

/// Valid expressions with any outcome.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "status.phase",
        "status.ready",
        "status.absent",
        "status.absent.deeper",
        "spec.replicas",
        "spec.paused",
        "spec.nothing",
        "spec.sizes",
        "spec.parts",
        "spec.limits",
        "spec.holes",
        "status.conditions[0].status",
        "status.conditions[1].reason",
        "status.conditions",
        "metadata.labels['tier']",
        "absent",
        "self",
        "1",
        "2.5",
        "'Up'",
        "true",
        "false",
        "[1, 2]",
        "{'a': 1}",
        "null",
        "has(status.phase)",
        "has(status.absent.deeper)",
        "has(spec.limits.cpu)",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 30, 3, |inner| {
        let signs = prop::sample::select(vec!["==", "!=", "<", ">=", "+", "-", "*", "/", "&&", "||", "in"]);
        let calls = prop::sample::select(vec!["size", "string", "int", "double", "dyn", "type", "optional.of"]);
        let loops = prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter", "sortBy"]);
        prop_oneof![
            3 => (inner.clone(), signs, inner.clone()).prop_map(|(left, sign, right)| format!("({left} {sign} {right})")),
            1 => inner.clone().prop_map(|operand| format!("!({operand})")),
            1 => (calls, inner.clone()).prop_map(|(call, of)| format!("{call}({of})")),
            1 => (inner.clone(), loops, inner.clone()).prop_map(|(of, name, body)| format!("({of}).{name}(x, {body} == x)")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("(({a}) ? ({b}) : ({c}))")),
            1 => inner.clone().prop_map(|of| format!("({of}).?type.orValue(0)")),
            1 => (inner.clone(), inner).prop_map(|(value, body)| format!("cel.bind(v, {value}, [v, {body}])")),
        ]
    })
}

/// Trees, valid or invalid.
fn tree() -> impl Strategy<Value = Json> {
    let word = prop::sample::select(vec![
        "Path",
        "Literal",
        "Not",
        "And",
        "Or",
        "Equal",
        "Less",
        "In",
        "Exists",
        "path",
        "==",
        "",
        "$",
        "$.status.phase",
        "$.a[0]",
        "$..",
        "$['a",
        "status",
    ]);
    let leaf = prop_oneof![
        word.prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
        Just(Json::Null),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let op = prop::sample::select(vec!["Path", "Literal", "Not", "And", "Or", "Equal", "Greater", "In", "Exists", "Nor"]);
        let key = prop::sample::select(vec!["op", "args", "path", "value", "x"]);
        prop_oneof![
            4 => (op, prop::collection::vec(inner.clone(), 0..4)).prop_map(|(op, args)| json!({"op": op, "args": args})),
            1 => inner.clone().prop_map(|value| json!({"op": "Literal", "value": value})),
            1 => inner.clone().prop_map(|path| json!({"op": "Path", "path": path})),
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            1 => prop::collection::btree_map(key, inner, 0..4).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<serde_json::Map<_, _>>().into()
            }),
        ]
    })
}

/// Whether a reported place is inside the text.
fn is_inside(place: &Place, text: &str) -> bool {
    match place {
        Place::Text { line, column } => {
            let line = text.split('\n').nth(line - 1);
            line.is_some_and(|line| (1..=line.chars().count() + 1).contains(column))
        }
        Place::Line(_) | Place::Tree(_) => false,
    }
}

/// Compiles and evaluates a text in every scope, and checks all reported places.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    let widget = object(WIDGET);
    for scope in ABSENCES.map(Scope::object).into_iter().chain([Scope::row()]) {
        match Program::cel(text, &scope) {
            Err(CompileError { place, text: error, .. }) => {
                prop_assert!(is_inside(&place, text), "{place} is not in {text:?}");
                prop_assert!(!error.is_empty());
            }
            Ok(program) => {
                if let Err(Stop::Error(error)) = program.evaluate(&widget, &mut Fuel::new(10_000)) {
                    let place = program.place(&error);
                    prop_assert!(
                        place.as_ref().is_none_or(|place| is_inside(place, text)),
                        "{place:?} is not in {text:?}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// The outcome as a caller sees it, without the name of a missing field.
fn outcome(program: &Program, input: &dyn Input, fuel: u64) -> String {
    match program.evaluate(input, &mut Fuel::new(fuel)) {
        Ok(value) => shown(&value),
        Err(Stop::Missing(_)) => "missing".to_owned(),
        Err(Stop::TooExpensive) => TOO_EXPENSIVE.to_owned(),
        Err(stop) => program.describe(&stop),
    }
}

const TOO_EXPENSIVE: &str = "too expensive";
const PLENTY: u64 = 1_000_000;

proptest! {
    #[test]
    fn no_text_does_harm(text in "\\PC*") {
        check_text(&text)?;
    }

    #[test]
    fn no_control_character_does_harm(text in any::<String>()) {
        check_text(&text)?;
    }

    #[test]
    fn no_row_of_words_does_harm(words in prop::collection::vec(prop::sample::select(WORDS), 0..30), spaced in any::<bool>()) {
        check_text(&words.join(if spaced { " " } else { "" }))?;
    }

    #[test]
    fn no_tree_does_harm(tree in tree()) {
        let widget = object(WIDGET);
        for scope in [Scope::object(Absence::NotYet), Scope::row()] {
            if let Ok(program) = Program::tree(&tree, &scope)
                && let Err(stop) = program.evaluate(&widget, &mut Fuel::new(10_000))
            {
                prop_assert!(!program.describe(&stop).is_empty());
            }
        }
    }

    #[test]
    fn the_same_again(text in expression(), absence in prop::sample::select(&ABSENCES)) {
        let Ok(program) = Program::cel(&text, &Scope::object(absence)) else { return Ok(()) };
        let again = Program::cel(&text, &Scope::object(absence)).expect("it was read before");
        let widget = object(WIDGET);
        let mut fuels = [Fuel::default(), Fuel::default()];
        let _ = program.evaluate(&widget, &mut fuels[0]);
        let _ = again.evaluate(&widget, &mut fuels[1]);
        prop_assert_eq!(fuels[0], fuels[1]);
        prop_assert_eq!(outcome(&program, &widget, PLENTY), outcome(&again, &widget, PLENTY));
        prop_assert_eq!(program.paths(), again.paths());
    }

    /// The fuel decides whether there is an outcome, never which one.
    #[test]
    fn less_fuel(text in expression(), absence in prop::sample::select(&ABSENCES), fuel in 0..400_u64) {
        let Ok(program) = Program::cel(&text, &Scope::object(absence)) else { return Ok(()) };
        let widget = object(WIDGET);
        let mut left = Fuel::new(PLENTY);
        let _ = program.evaluate(&widget, &mut left);
        let needed = PLENTY - left.left();
        let with_less = outcome(&program, &widget, fuel);
        if fuel >= needed {
            prop_assert_eq!(with_less, outcome(&program, &widget, PLENTY));
        } else {
            prop_assert_eq!(with_less, TOO_EXPENSIVE);
        }
    }

    /// Facts give the same outcome as the object. `Absence::AsInCel` is left out: it depends on the step
    /// where a path ends, which facts do not record.
    #[test]
    fn facts_are_enough(text in expression(), absence in prop::sample::select(&ABSENCES[1..])) {
        let Ok(program) = Program::cel(&text, &Scope::object(absence)) else { return Ok(()) };
        let widget = object(WIDGET);
        let found: Vec<_> = program.paths().iter().map(|path| path.find(widget.fields(), &mut 0)).collect();
        prop_assume!(found.iter().all(|found| !found.is_err_and(|absent| absent.blocked)));
        let facts: Vec<_> = found.into_iter().map(|found| found.ok().cloned()).collect();
        prop_assert_eq!(outcome(&program, &Facts(&facts), PLENTY), outcome(&program, &widget, PLENTY));
    }

    /// The paths of a program are complete: on an object that keeps only them, the outcome is the same.
    #[test]
    fn the_paths_are_all_it_reads(text in expression(), absence in prop::sample::select(&ABSENCES)) {
        let Ok(program) = Program::cel(&text, &Scope::object(absence)) else { return Ok(()) };
        let mut plan = Plan::identity();
        for path in program.paths() {
            plan.keep(&path.fields());
        }
        let kept = Object::from_json(WIDGET.as_bytes(), &plan).expect("the object of the test");
        prop_assert_eq!(outcome(&program, &kept, PLENTY), outcome(&program, &object(WIDGET), PLENTY));
    }
}
