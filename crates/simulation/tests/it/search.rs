//! A few runs from fixed seeds. `cargo xtask simulate` makes more.

use bellwether_engine::planted::Bug;
use bellwether_simulation::{
    Plan, run,
    search::{Limits, SearchResult, search},
    shrink, story,
};

fn runs(first: u64, runs: u64, bug: Option<Bug>) -> SearchResult {
    search(Limits { first, runs, until: None, threads: 2, bug })
}

#[test]
fn runs_pass() {
    let result = runs(1, 300, None);
    assert_eq!(result.wrong, None);
    assert_eq!(result.runs, 300);
    assert!(result.writes > 300, "{result:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 1..20 {
        let plan = Plan::new(seed);
        assert_eq!(story(&plan), story(&plan), "of seed {seed}");
    }
}

/// The planted bug needs few actions, so the minimised plan is short.
#[test]
fn a_failing_plan_is_minimised() {
    let result = runs(1, 2_000, Some(Bug::SkipCompare));
    let (seed, _) = result.wrong.expect("the bug is found");
    let plan = Plan::new(seed);
    bellwether_engine::planted::plant(Some(Bug::SkipCompare));
    let short = shrink(&plan);
    assert!(run(&short).is_err());
    let story = story(&short);
    bellwether_engine::planted::plant(None);
    assert!(short.len() <= plan.len() && short.len() <= 3, "{short}");
    assert!(story.last().is_some_and(|line| line.starts_with("violation: ")), "{story:#?}");
}
