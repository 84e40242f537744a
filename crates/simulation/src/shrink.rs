//! Minimises a failing plan.

use crate::{plan::Plan, search::run_plan};

/// Maximum number of plans to try.
const MAX_TRIES: usize = 5_000;

/// Removes actions and controllers from a failing plan, as long as it fails. Returns the smallest plan found.
pub fn shrink(plan: &Plan) -> Plan {
    let mut best = plan.clone();
    let mut tried = 0;
    let mut attempt = |candidate: &Plan| {
        tried += 1;
        tried <= MAX_TRIES && run_plan(candidate).is_err()
    };
    loop {
        let size_of = |plan: &Plan| (plan.actions.len(), plan.processes, plan.sweep, plan.encore);
        let before = size_of(&best);
        let mut size = best.actions.len().max(1);
        while size > 0 {
            let mut from = 0;
            while from < best.actions.len() {
                let mut candidate = best.clone();
                candidate.actions.drain(from..(from + size).min(best.actions.len()));
                if any_seed(&mut candidate, &mut attempt) {
                    best = candidate;
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
        let simpler: [fn(&Plan) -> Plan; 3] = [
            |plan| Plan { sweep: false, ..plan.clone() },
            |plan| Plan { encore: false, ..plan.clone() },
            with_one_process,
        ];
        for simpler in simpler {
            let mut candidate = simpler(&best);
            if any_seed(&mut candidate, &mut attempt) {
                best = candidate;
            }
        }
        if size_of(&best) == before {
            return best;
        }
    }
}

fn with_one_process(plan: &Plan) -> Plan {
    let actions =
        plan.actions.iter().filter(|(_, action)| action.process().is_none_or(|process| process == 0));
    Plan { processes: 1, actions: actions.cloned().collect(), ..plan.clone() }
}

/// Whether a plan fails with its seed or with one of seven others, and sets that seed. A removed action
/// shifts all later random numbers, so the own seed alone is not enough.
fn any_seed(plan: &mut Plan, attempt: &mut impl FnMut(&Plan) -> bool) -> bool {
    let own = plan.seed;
    for seed in (0..8).map(|number| own ^ number) {
        plan.seed = seed;
        if attempt(plan) {
            return true;
        }
    }
    plan.seed = own;
    false
}
