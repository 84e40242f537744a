//! Properties of verdicts on generated objects.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use bellwether_health::{Context, Source, Verdict, assess, explain, plan};
use bellwether_model::{Object, Plan, State};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    cases,
    objects::{any_map, conditions, object, put, time},
};

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    // Add a failing object to a table instead of a regression file.
    ProptestConfig { cases: default.cases.max(1024), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_verdict_is_well_formed(object in object(), now in time()) {
        well_formed(&verdict_on(&object, moment(&now)))?;
    }

    #[test]
    fn any_json_gets_a_verdict(object in any_map(), now in time()) {
        well_formed(&verdict_on(&object, moment(&now)))?;
        the_same_however_it_is_read(&object, moment(&now))?;
    }

    #[test]
    fn a_verdict_is_the_same_however_the_object_is_read(object in object(), now in time()) {
        the_same_however_it_is_read(&object, moment(&now))?;
    }

    #[test]
    fn the_order_of_fields_does_not_matter(object in object(), order in any::<u64>()) {
        prop_assert_eq!(verdict_on_shuffled(&object, order), verdict_on(&object, moment("")));
    }

    #[test]
    fn an_object_with_a_deletion_timestamp_is_terminating(mut object in object(), now in time(), since in time()) {
        put(&mut object, "metadata.deletionTimestamp", Some(json!(since)));
        prop_assert_eq!(verdict_on(&object, moment(&now)).state, State::Terminating);
    }

    #[test]
    fn a_verdict_changes_over_time_only_as_announced(object in object(), now in time(), then in time()) {
        let (now, then) = (moment(&now), moment(&then));
        let first = verdict_on(&object, now);
        if let Some(later) = &first.later {
            prop_assert!(later.at > now, "{} is not after {now}", later.at);
            prop_assert_eq!(&verdict_on(&object, later.at), &later.verdict);
        }
        if then >= now {
            let mut expected = first;
            while let Some(later) = expected.later.take_if(|later| then >= later.at) {
                expected = later.verdict;
            }
            prop_assert_eq!(verdict_on(&object, then), expected);
        }
    }

    #[test]
    fn built_in_rules_can_be_disabled(object in object()) {
        let bytes = object.to_string();
        let context = Context { builtin: false, ..Context::at(moment("")) };
        let verdict = assess(&read(bytes.as_bytes(), &Plan::everything()), &context);
        prop_assert_ne!(verdict.rule.source, Source::Builtin);
        well_formed(&verdict)?;
    }

    #[test]
    fn an_older_observed_generation_is_not_ready(mut object in object(), behind in 1..3_i64) {
        put(&mut object, "metadata.generation", Some(json!(3)));
        put(&mut object, "status.observedGeneration", Some(json!(3 - behind)));
        let verdict = verdict_on(&object, moment(""));
        prop_assert!(verdict.state != State::Ready, "{verdict:?}");
    }

    #[test]
    fn stale_conditions_are_not_ready(mut conditions in conditions(Vec::new())) {
        for condition in conditions.as_array_mut().into_iter().flatten().filter(|entry| entry.is_object()) {
            condition["observedGeneration"] = json!(1);
        }
        let object = json!({
            "apiVersion": "acme.io/v1",
            "kind": "Widget",
            "metadata": {"generation": 2},
            "status": {"conditions": conditions},
        });
        let verdict = verdict_on(&object, moment(""));
        prop_assert!(verdict.state != State::Ready, "{verdict:?}");
    }
}

fn verdict_on(object: &Value, now: Timestamp) -> Verdict {
    let bytes = object.to_string();
    assess(&read(bytes.as_bytes(), &Plan::everything()), &Context::at(now))
}

fn verdict_on_shuffled(object: &Value, order: u64) -> Verdict {
    let bytes = shuffled(object, order);
    assess(&read(&bytes, &Plan::everything()), &Context::at(moment("")))
}

fn read<'a>(json: &'a [u8], plan: &Plan) -> Object<'a> {
    Object::from_json(json, plan).expect("a map is an object")
}

/// Noon if the text is not a time.
fn moment(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|_| cases::NOON.parse().expect("a time"))
}

/// Decoded whole, with the plan of its kind, copied, and explained.
fn the_same_however_it_is_read(object: &Value, now: Timestamp) -> Result<(), TestCaseError> {
    let bytes = object.to_string();
    let whole = read(bytes.as_bytes(), &Plan::everything());
    let pruned = read(bytes.as_bytes(), &plan(whole.group(), whole.kind()));
    for has_status in [None, Some(false), Some(true)] {
        let context = Context { has_status, ..Context::at(now) };
        let verdict = assess(&whole, &context);
        prop_assert_eq!(&assess(&pruned, &context), &verdict);
        prop_assert_eq!(&assess(&whole.to_static(), &context), &verdict);
        prop_assert_eq!(&explain(&whole, &context).verdict, &verdict);
        prop_assert_eq!(&explain(&pruned, &context).verdict, &verdict);
    }
    Ok(())
}

/// Constraints of Kubernetes on conditions, of terminals, and of the type itself.
fn well_formed(verdict: &Verdict) -> Result<(), TestCaseError> {
    let reason = verdict.reason.as_bytes();
    let (Some(first), Some(last)) = (reason.first(), reason.last()) else {
        return Err(TestCaseError::fail("no reason"));
    };
    prop_assert!(first.is_ascii_alphabetic(), "{:?}", verdict.reason);
    prop_assert!(last.is_ascii_alphanumeric() || *last == b'_', "{:?}", verdict.reason);
    prop_assert!(
        reason.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(byte)),
        "{:?}",
        verdict.reason
    );
    prop_assert!(reason.len() <= 1024, "{}", reason.len());
    prop_assert!(!verdict.message.contains(char::is_control), "{:?}", verdict.message);
    prop_assert!((1..=1024).contains(&verdict.message.len()), "{}", verdict.message.len());
    prop_assert!(verdict.progress <= 100);
    prop_assert_eq!(verdict.state == State::Ready, verdict.progress == 100, "{:?}", verdict);
    prop_assert!(verdict.state == State::Suspended || !verdict.blocks, "{verdict:?}");
    prop_assert!(verdict.state != State::Missing, "{verdict:?}");
    if let Some(later) = &verdict.later {
        prop_assert_eq!(&later.verdict.rule, &verdict.rule);
        well_formed(&later.verdict)?;
    }
    Ok(())
}

/// JSON with the fields of maps in another order.
fn shuffled(value: &Value, order: u64) -> Vec<u8> {
    match value {
        Value::Array(list) => {
            let entries: Vec<_> = list.iter().map(|entry| shuffled(entry, order)).collect();
            [b"[", entries.join(&b',').as_slice(), b"]"].concat()
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            let hasher = BuildHasherDefault::<DefaultHasher>::default();
            fields.sort_by_key(|(name, _)| hasher.hash_one((name, order)));
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(name, field)| {
                    [json!(name).to_string().as_bytes(), b":", &shuffled(field, order)].concat()
                })
                .collect();
            [b"{", fields.join(&b',').as_slice(), b"}"].concat()
        }
        scalar => scalar.to_string().into_bytes(),
    }
}
