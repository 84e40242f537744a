//! Properties of every function, for arguments of any type.

use std::{iter, rc::Rc, sync::LazyLock};

use bellwether_model::Value;
use jiff::{SignedDuration, Timestamp};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
    prop_assert, proptest,
    sample::select,
    test_runner::Config,
};

use super::{Function, all, maths, text_of};
use crate::{
    quantity::Quantity,
    stop::Fuel,
    types::{Type, Types},
    value::{List, Text, Val},
};

/// Borrowed values, as from an object.
static READ: LazyLock<Value<'static>> = LazyLock::new(|| {
    let text = |text: &'static str| Value::Text(text.into());
    let list = Value::List(vec![text("b"), text("a"), Value::Int(3), Value::List(vec![Value::Null])]);
    Value::Map([("name".into(), text("pod-é")), ("list".into(), list)].into_iter().collect())
});

const PATTERNS: [&str; 8] =
    ["a+", r"\d{2,4}", "(a|é)*z", "[^-]", "(", r"\pL{9}", "%.3f %s %x %d", "%.99999f%e"];

fn value_of(one: Type) -> BoxedStrategy<Val<'static>> {
    let small = -3_i64..70;
    match one {
        Type::Null => Just(Val::Null).boxed(),
        Type::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Type::Int => {
            prop_oneof![small, any::<i64>(), Just(i64::MIN), Just(i64::MAX)].prop_map(Val::Int).boxed()
        }
        Type::Uint => prop_oneof![0_u64..70, any::<u64>(), Just(u64::MAX)].prop_map(Val::Uint).boxed(),
        Type::Double => any::<f64>().prop_map(Val::Double).boxed(),
        Type::Text => prop_oneof![
            "[ -~é日😀]{0,40}".prop_map(Val::text),
            "[0-9hms.:TZ+-]{0,25}".prop_map(Val::text),
            "[ab]{0,900}".prop_map(Val::text),
            select(&PATTERNS[..]).prop_map(|text| Val::Text(Text::Read(text))),
        ]
        .boxed(),
        Type::Bytes => vec(any::<u8>(), 0..40).prop_map(|bytes| Val::Bytes(bytes.into())).boxed(),
        Type::List => prop_oneof![
            vec(scalar(), 0..20).prop_map(Val::list),
            vec(value_of(Type::Text), 0..20).prop_map(Val::list),
            vec(vec(scalar(), 0..4).prop_map(Val::list), 0..6).prop_map(Val::list),
            vec(any::<f64>().prop_map(Val::Double), 0..40).prop_map(Val::list),
            Just(Val::List(List::Read(READ.get("list").and_then(Value::as_list).unwrap_or_default()))),
        ]
        .boxed(),
        Type::Map => prop_oneof![
            btree_map("[a-z]{1,5}", scalar(), 0..5).prop_map(|fields| Val::map(
                fields.into_iter().map(|(key, value)| (Val::text(key), value)).collect()
            )),
            Just(Val::from(&*READ)),
        ]
        .boxed(),
        Type::Timestamp => (-62_135_596_800_i64..253_402_207_200)
            .prop_map(|second| Val::Timestamp(Timestamp::from_second(second).unwrap()))
            .boxed(),
        Type::Duration => any::<i64>()
            .prop_map(|nanoseconds| Val::Duration(SignedDuration::from_nanos(nanoseconds)))
            .boxed(),
        Type::Type => Just(Val::Type(Type::Int)).boxed(),
        Type::Quantity => "-?[0-9]{1,30}(\\.[0-9]{1,12})?(Ki|Ei|m|G|e-?[0-9]{1,3})?"
            .prop_filter_map("not a quantity", |text| text.parse::<Quantity>().ok())
            .prop_map(|quantity| Val::Quantity(Rc::new(quantity)))
            .boxed(),
        Type::Optional => option::of(scalar()).prop_map(|value| Val::Optional(value.map(Rc::new))).boxed(),
    }
}

fn scalar() -> BoxedStrategy<Val<'static>> {
    let scalars = [Type::Null, Type::Bool, Type::Int, Type::Uint, Type::Double, Type::Text, Type::Duration];
    select(scalars.to_vec()).prop_flat_map(value_of).boxed()
}

fn value_within(types: Types) -> BoxedStrategy<Val<'static>> {
    select(types.members().collect::<Vec<_>>()).prop_flat_map(value_of).boxed()
}

/// A function with arguments that mostly have the right types.
fn call() -> impl Strategy<Value = (&'static Function, Vec<Val<'static>>)> {
    select(all().collect::<Vec<_>>()).prop_flat_map(|function| {
        let arguments: Vec<_> = function
            .takes
            .iter()
            .map(|takes| prop_oneof![9 => value_within(*takes), 1 => value_within(Types::ANY)].boxed())
            .collect();
        (Just(function), arguments)
    })
}

/// The bytes of a value and of all that it contains.
fn bytes(value: &Val<'_>) -> usize {
    let own = size_of::<Val<'_>>();
    own + match value {
        Val::Text(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.iter().map(|entry| bytes(&entry)).sum(),
        Val::Map(fields) => fields.iter().map(|(key, value)| bytes(&key) + bytes(&value)).sum(),
        Val::Optional(Some(value)) => bytes(value),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(Config::with_cases(2000))]

    /// Nothing panics, and every allocation is paid for.
    #[test]
    fn every_function_pays_for_what_it_makes((function, arguments) in call(), steps in 0_u64..3000) {
        let mut fuel = Fuel::new(steps);
        let given: usize = arguments.iter().map(bytes).sum();
        if let Ok(value) = (function.run)(&mut fuel, &arguments) {
            let paid = usize::try_from(steps - fuel.left()).unwrap();
            let made = bytes(&value);
            prop_assert!(made <= 2 * given + 64 * (paid + 1), "{}: {made} bytes for {paid}", function.name);
        }
    }

    #[test]
    fn every_function_gives_what_it_says((function, arguments) in call()) {
        if let Ok(value) = (function.run)(&mut Fuel::default(), &arguments) {
            let own = value.type_of();
            prop_assert!(function.gives.meets(Types::of(own)), "{} gives a {own}", function.name);
        }
    }

    #[test]
    fn operators_take_anything(left in value_within(Types::ANY), right in value_within(Types::ANY)) {
        let fuel = &mut Fuel::default();
        for operator in [maths::add, maths::subtract, maths::multiply, maths::divide, maths::modulo] {
            let _ = operator(fuel, &left, &right);
        }
        let _ = maths::negate(&left);
    }

    /// `string(x)` parses back to the same value.
    #[test]
    fn texts_come_back(value in value_within(Types::NUMBER.or(Types::TIMESTAMP).or(Types::DURATION))) {
        let name = match value.type_of() {
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            other => other.name(),
        };
        let text = text_of(&value).unwrap();
        let read = all().find(|function| function.name == name).unwrap();
        let again = (read.run)(&mut Fuel::default(), &[Val::text(&*text)]).map_err(|stop| format!("{stop:?}")).unwrap();
        prop_assert!(text_of(&again) == Some(text));
    }
}

/// Functions with large results stop before they allocate them.
#[test]
fn large_results_are_rejected_before_they_are_allocated() {
    let long = Val::text("a".repeat(1_000_000));
    let many = Val::list(iter::repeat_n(long.clone(), 1000).collect::<Vec<_>>());
    let calls: [(&str, &[Val<'_>]); 6] = [
        ("replace", &[long.clone(), Val::text(""), long.clone()]),
        ("join", &[many.clone(), long.clone()]),
        ("lists.range", &[Val::Int(i64::MAX)]),
        ("format", &[Val::text("%.999999999e"), Val::list([Val::Int(1)])]),
        ("format", &[Val::text("%s"), Val::list([many.clone()])]),
        ("findAll", &[long, Val::text("a")]),
    ];
    for (name, arguments) in calls {
        let function =
            all().find(|function| function.name == name && function.takes.len() == arguments.len()).unwrap();
        let outcome = (function.run)(&mut Fuel::default(), arguments);
        assert!(matches!(outcome, Err(crate::stop::Stop::TooExpensive)), "{name}");
    }
}
