//! Kinds of well-known operators, where the generic rules do not say all that their status means.
//!
//! Each is written from what the operator's words mean, as far as that is known, and compared with what others say of
//! these kinds. A line can be added by anybody: see [`super::clause`].

mod data;
mod delivery;
mod infrastructure;
mod network;
mod workloads;

use super::{
    Judge, KindRule,
    clause::{Clause, Otherwise},
};

pub(super) const TABLES: &[&[KindRule]] =
    &[data::RULES, delivery::RULES, infrastructure::RULES, network::RULES, workloads::RULES];

/// Clauses, and what they leave open to the generic rules.
const fn rule(id: &'static str, clauses: &'static [Clause]) -> KindRule {
    KindRule { id, says: "", reads: &[], judge: Judge::Clauses(clauses, Otherwise::Generic) }
}

/// Clauses, and a state where none of them holds.
const fn complete(
    id: &'static str,
    clauses: &'static [Clause],
    otherwise: bellwether_model::State,
) -> KindRule {
    KindRule { id, says: "", reads: &[], judge: Judge::Clauses(clauses, Otherwise::Is(otherwise)) }
}
