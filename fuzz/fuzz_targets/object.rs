//! Any bytes as an object: an error, or a verdict that keeps its invariants.

#![no_main]

use std::sync::LazyLock;

use bellwether_health::{Context, assess, dialect, explain, plan};
use bellwether_model::{Object, Plan, State, Value};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

static EVERYTHING: LazyLock<Plan> = LazyLock::new(Plan::everything);

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = Object::from_json(bytes, &EVERYTHING) else { return };
    // The decoder checks UTF-8 only in fields that it keeps, so different plans may differ on such input.
    if std::str::from_utf8(bytes).is_err() {
        return;
    }
    let context = Context::at(Timestamp::UNIX_EPOCH);
    let verdict = assess(&object, &context);

    assert_eq!(explain(&object, &context).verdict, verdict, "explain and assess must agree");
    let watched = Object::from_json(bytes, &plan(object.group(), object.kind())).expect("decoded before");
    assert_eq!(assess(&watched, &context), verdict, "the plan must keep all fields that the rule reads");
    if !matches!(object.at("metadata.deletionTimestamp"), None | Some(Value::Null)) {
        assert_eq!(verdict.state, State::Terminating);
    }
    if let Some(later) = &verdict.later {
        assert!(later.at > context.now, "later must be in the future");
    }
    assert!(verdict.progress <= 100 && verdict.message.len() <= 1024 && !verdict.message.contains(char::is_control));

    assess(&object, &Context { builtin: false, ..context });
    dialect::kstatus::assess(&object, context.now);
    dialect::argo::assess(&object);
});
