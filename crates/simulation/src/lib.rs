//! Simulates controllers, clusters and faults in one process, from one seed.
//!
//! The engine, its outbox, the reflectors, the write attempts and the leader election are real. The stores,
//! the API servers, the network, the clocks and the garbage collector are simulated. Every write, every
//! answer to a query and the end state are checked against oracles: naive second implementations. The seed
//! decides all events and durations, so a run that fails can be repeated and minimised.

pub mod app_k8s_io_oracle;
pub mod below_oracle;
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
mod collectors;
mod combined_checks;
mod combined_final;
mod combined_oracle;
mod feed;
mod final_checks;
mod inventory;
mod load;
mod past;
mod policies;
mod process;
mod query_checks;
mod rollup_checks;
mod shrink;
mod site;
mod store;
mod tampering;
mod world;

pub use plan::Plan;
pub use shrink::shrink;
pub use violation::Violation;
pub use world::RunStats;

use world::World;

pub fn run(plan: &Plan) -> Result<RunStats, Violation> {
    World::new(plan, false).run()
}

/// Runs a plan and returns one line per event. The last line is the result.
pub fn story(plan: &Plan) -> Vec<String> {
    let mut world = World::new(plan, true);
    let end = search::caught(|| world.run());
    let mut story = world.into_story();
    story.push(match end {
        Ok(_) => "ok: no violation".to_owned(),
        Err(violation) => format!("violation: {violation}"),
    });
    story
}
