//! Kinds of well-known operators whose status the generic rules do not fully interpret.
//!
//! Each rule follows the documented meaning of the status and is compared with Argo CD's health checks. To
//! add a kind, add a line to a table: see [`super::clause`].

mod data;
mod delivery;
mod infrastructure;
mod network;
mod workloads;

use super::{
    Evaluator, KindRule,
    clause::{BuiltinClause, Otherwise},
};

pub(super) const TABLES: &[&[KindRule]] =
    &[data::RULES, delivery::RULES, infrastructure::RULES, network::RULES, workloads::RULES];

/// Clauses, then the generic rules.
const fn rule(id: &'static str, clauses: &'static [BuiltinClause]) -> KindRule {
    KindRule { id, description: "", reads: &[], evaluator: Evaluator::Clauses(clauses, Otherwise::Generic) }
}

/// Clauses, then a default state.
const fn complete(
    id: &'static str,
    clauses: &'static [BuiltinClause],
    otherwise: bellwether_model::State,
) -> KindRule {
    KindRule {
        id,
        description: "",
        reads: &[],
        evaluator: Evaluator::Clauses(clauses, Otherwise::Is(otherwise)),
    }
}
