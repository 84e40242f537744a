//! Runs, in a small way; `cargo xtask simulate` makes more of them.

use bellwether_engine::planted::Bug;
use bellwether_simulation::{
    Plan, run,
    search::{Limits, SearchResult, hunt},
    shrink, story,
};

fn runs(first: u64, runs: u64, bug: Option<Bug>) -> SearchResult {
    hunt(Limits { first, runs, until: None, threads: 2, bug })
}

#[test]
fn nothing_goes_wrong() {
    let hunt = runs(1, 300, None);
    assert_eq!(hunt.wrong, None);
    assert_eq!(hunt.runs, 300);
    assert!(hunt.writes > 300, "{hunt:?}");
}

/// The same seed gives the same story, to the last line.
#[test]
fn a_seed_is_a_history() {
    for seed in 1..20 {
        let plan = Plan::new(seed);
        assert_eq!(story(&plan), story(&plan), "of seed {seed}");
    }
}

/// What goes wrong is told in a story that is no longer than it must be.
#[test]
fn what_goes_wrong_is_made_short() {
    let hunt = runs(1, 2_000, Some(Bug::SkipCompare));
    let (seed, _) = hunt.wrong.expect("it is found");
    let plan = Plan::new(seed);
    bellwether_engine::planted::plant(Some(Bug::SkipCompare));
    let short = shrink(&plan);
    assert!(run(&short).is_err());
    let story = story(&short);
    bellwether_engine::planted::plant(None);
    assert!(short.len() <= plan.len() && short.len() <= 3, "{short}");
    assert!(story.last().is_some_and(|line| line.starts_with("wrong: ")), "{story:#?}");
}
