//! Any bytes: a clear error, or a verdict that holds what verdicts promise.

#![no_main]

use std::sync::LazyLock;

use bellwether_health::{Context, assess, dialect, explain, plan};
use bellwether_model::{Object, Plan, State, Value};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

static EVERYTHING: LazyLock<Plan> = LazyLock::new(Plan::everything);

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = Object::from_json(bytes, &EVERYTHING) else { return };
    // What is skipped is not looked at closely: text that is no text is only noticed where it is kept.
    if std::str::from_utf8(bytes).is_err() {
        return;
    }
    let context = Context::at(Timestamp::UNIX_EPOCH);
    let verdict = assess(&object, &context);

    assert_eq!(explain(&object, &context).verdict, verdict, "to explain is not to judge otherwise");
    let watched = Object::from_json(bytes, &plan(object.group(), object.kind())).expect("it was read before");
    assert_eq!(assess(&watched, &context), verdict, "the plan keeps all that the rule reads");
    if !matches!(object.at("metadata.deletionTimestamp"), None | Some(Value::Null)) {
        assert_eq!(verdict.state, State::Terminating);
    }
    if let Some(later) = &verdict.later {
        assert!(later.at > context.now, "the future is not over");
    }
    assert!(verdict.progress <= 100 && verdict.message.len() <= 1024 && !verdict.message.contains(char::is_control));

    assess(&object, &Context { builtin: false, ..context });
    dialect::kstatus::assess(&object, context.now);
    dialect::argo::assess(&object);
});
