//! Every state of one component, and every pair of two, against the rules of the HyperConverged Cluster
//! Operator (HCO), written down as plainly as its document has them.

use bellwether_api::RollupHealth;
use rstest::rstest;
use serde_json::{Value, json};

use super::{condition, conditions, rollup, virt, virt_named, world};

const MODES: [&str; 3] = ["Matrix", "AnyTrue", "WorstIsFalse"];

/// Available, Progressing and Degraded; `None` if not reported.
type Reported = [Option<&'static str>; 3];

fn states(of: &[Option<&'static str>]) -> Vec<Reported> {
    let mut all = Vec::new();
    for a in of {
        for p in of {
            all.extend(of.iter().map(|d| [*a, *p, *d]));
        }
    }
    all
}

fn reports(reported: Reported) -> Vec<Value> {
    let kinds = ["Available", "Progressing", "Degraded"];
    let pairs = kinds.into_iter().zip(reported).filter_map(|(kind, status)| Some((kind, status?)));
    pairs.map(|(kind, status)| condition(kind, status, "Said", "said so", 1)).collect()
}

/// "If the HCO notices that a component CR is missing condition fields, the HCO will assume the status of
/// `OperatorAvailable = false`, `OperatorProgressing = unknown` and `OperatorDegraded = unknown`."
fn assumed([available, progressing, degraded]: Reported) -> [&'static str; 3] {
    [available.unwrap_or("False"), progressing.unwrap_or("Unknown"), degraded.unwrap_or("Unknown")]
}

/// "The HCO's `ConditionType`s will always represent the _worst_ `Status`": Available False, Degraded True.
/// For Progressing the table says False; by the matrix, because such a component requires manual
/// intervention.
fn worst(components: &[Reported], mode: &str) -> [&'static str; 3] {
    let components: Vec<_> = components.iter().map(|reported| assumed(*reported)).collect();
    let any = |index: usize, status: &str| components.iter().any(|component| component[index] == status);
    let first = |index: usize, statuses: [&'static str; 3]| {
        if any(index, statuses[0]) {
            statuses[0]
        } else if any(index, statuses[1]) {
            statuses[1]
        } else {
            statuses[2]
        }
    };
    let progressing = match mode {
        "Matrix" if components.contains(&["False", "False", "True"]) => "False",
        "WorstIsFalse" => first(1, ["False", "Unknown", "True"]),
        _ => first(1, ["True", "Unknown", "False"]),
    };
    [first(0, ["False", "Unknown", "True"]), progressing, first(2, ["True", "Unknown", "False"])]
}

/// "Error: not Available or Degraded; Warning: Progressing or anything Unknown."
fn health(triple: [&str; 3]) -> RollupHealth {
    match triple {
        ["False", _, _] | [_, _, "True"] => RollupHealth::Error,
        triple if triple[1] == "True" || triple.contains(&"Unknown") => RollupHealth::Warning,
        _ => RollupHealth::Healthy,
    }
}

#[rstest]
fn every_state_of_one_component(#[values("Matrix", "AnyTrue", "WorstIsFalse")] mode: &str) {
    for state in states(&[Some("True"), Some("False"), Some("Unknown"), None]) {
        let world = world([
            rollup(&json!([virt_named("a")]), &json!({ "progressing": mode })),
            virt("a", &reports(state)),
        ]);
        let expected = worst(&[state], mode);
        assert_eq!(world.triple(), expected, "{state:?} {mode}");
        let status = world.umbrella();
        assert_eq!(status.health, Some(health(expected)), "{state:?} {mode}");
        let [component] = &status.components[..] else { panic!("there is one component: {status:?}") };
        let statuses = [component.available, component.progressing, component.degraded];
        assert_eq!(statuses.map(|status| format!("{status:?}")), assumed(state), "{state:?} {mode}");
    }
}

#[rstest]
fn every_pair_of_two_components(#[values("Matrix", "AnyTrue", "WorstIsFalse")] mode: &str) {
    let states = states(&[Some("True"), Some("False"), None]);
    for one in &states {
        let mut world = world([
            rollup(&json!([virt_named("a"), virt_named("b")]), &json!({ "progressing": mode })),
            virt("a", &reports(*one)),
        ]);
        for other in &states {
            world.put(virt("b", &reports(*other)));
            assert_eq!(world.triple(), worst(&[*one, *other], mode), "{one:?} and {other:?} {mode}");
        }
    }
}

/// The columns of the matrix, and two combinations that it does not have.
#[rstest]
#[case(["True", "False", "False"], "Component is 100% healthy and the Operator is idle")]
#[case(["True", "True", "False"], "Component is functional but, either upgrading or healing")]
#[case(["True", "True", "True"], "Component is functioning below capacity and an upgrade or heal is in progress")]
#[case(["False", "False", "True"], "Component and operator are in a failed state that requires human intervention.  Failed upgrade or failed heal")]
#[case(["False", "True", "True"], "Component is in a failed state and an operator is healing")]
#[case(["False", "True", "False"], "Operator is deploying the component")]
#[case(["True", "False", "True"], "Component is functioning below capacity and the Operator is idle")]
#[case(["False", "False", "False"], "Component is not available and the Operator is idle")]
fn the_meaning_of_every_combination(#[case] triple: [&str; 3], #[case] meaning: &str) {
    for mode in MODES {
        let world = world([
            rollup(&json!([virt_named("a")]), &json!({ "progressing": mode })),
            virt("a", &conditions(triple)),
        ]);
        assert_eq!(world.triple(), triple, "{mode}");
        assert_eq!(world.umbrella().meaning.as_deref(), Some(meaning), "{mode}");
    }
}

/// One component upgrades, another is idle, a third requires intervention: by policy.
#[rstest]
#[case::upgrade(&[["True", "True", "False"], ["True", "False", "False"]], ["True", "True", "False"])]
#[case::requires_intervention(&[["True", "True", "False"], ["False", "False", "True"]], ["False", "True", "False"])]
#[case::all_progressing(&[["True", "True", "False"], ["True", "True", "False"]], ["True", "True", "True"])]
fn progressing_by_policy(#[case] components: &[[&str; 3]], #[case] progressing: [&str; 3]) {
    for (mode, expected) in MODES.into_iter().zip(progressing) {
        let names = ["a", "b"].map(virt_named);
        let objects =
            ["a", "b"].into_iter().zip(components).map(|(name, triple)| virt(name, &conditions(*triple)));
        let rollup = rollup(&json!(names), &json!({ "progressing": mode }));
        assert_eq!(world([rollup].into_iter().chain(objects)).triple()[1], expected, "{mode}");
    }
}

/// With `spec.upgradeable`, False wins, and a missing condition is fine.
#[rstest]
#[case::not_asked_for(false, &[Some("False")], "")]
#[case::none_reports(true, &[None, None], "True AllAsExpected: All components are upgradeable")]
#[case::all_agree(true, &[Some("True"), None], "True Said: All components are upgradeable")]
#[case::one_objects(true, &[Some("True"), Some("False")], "False Said: Virt/b: not now")]
#[case::one_unknown(true, &[Some("True"), Some("Unknown")], "Unknown Said: Virt/b: not now")]
fn upgradeable(#[case] enabled: bool, #[case] reported: &[Option<&str>], #[case] expected: &str) {
    let names: Vec<_> = ["a", "b"].into_iter().take(reported.len()).collect();
    let named: Vec<_> = names.iter().map(|name| virt_named(name)).collect();
    let objects = names.iter().zip(reported).map(|(name, status)| {
        let upgradeable = status.map(|status| condition("Upgradeable", status, "Said", "not now", 5));
        virt(name, &[conditions(super::HEALTHY), upgradeable.into_iter().collect()].concat())
    });
    let world = world([rollup(&json!(named), &json!({ "upgradeable": enabled }))].into_iter().chain(objects));
    assert_eq!(world.of_umbrella("Upgradeable"), expected);
    assert_eq!(
        world.umbrella().health,
        Some(RollupHealth::Healthy),
        "Upgradeable does not change the health"
    );
}
