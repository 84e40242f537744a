//! A cluster, its faults and the controllers that look after it, in one process and by one seed.
//!
//! The controllers are the real thing as far as it is pure: the engine and its outbox, the followers that list and watch,
//! the requests and what answers to them mean, the election. Around them is a store with versions and a log, API servers
//! that may be behind, a network that is slow and loses things, clocks that jump, and a garbage collector. What happens,
//! and when, is drawn from a seed: a run that goes wrong can be run again, and made shorter until it can be read.

pub mod app_k8s_io_oracle;
pub mod history;
pub mod known;
pub mod needed;
pub mod object;
pub mod objects;
pub mod operators;
pub mod oracle;
pub mod plan;
pub mod rollup_oracle;
pub mod search;

mod api;
#[macro_use]
mod violation;
mod checks;
mod feed;
mod final_checks;
mod load;
mod past;
mod process;
mod query_checks;
mod rollup_checks;
mod shrink;
mod site;
mod store;
mod world;

pub use plan::Plan;
pub use shrink::shrink;
pub use violation::Violation;
pub use world::Tally;

use world::World;

/// Lets a plan happen.
pub fn run(plan: &Plan) -> Result<Tally, Violation> {
    World::new(plan, false).run()
}

/// Lets a plan happen, and tells all of it.
pub fn story(plan: &Plan) -> Vec<String> {
    let mut world = World::new(plan, true);
    let end = search::caught(|| world.run());
    let mut story = world.into_story();
    story.push(match end {
        Ok(_) => "all is well".to_owned(),
        Err(wrong) => format!("wrong: {wrong}"),
    });
    story
}
