//! The kinds of the API group `bellwether.dev`: what users write, and what they read.
//!
//! | kind | scope | what it is |
//! |---|---|---|
//! | [`Application`] | namespace | the objects of one application and their combined state |
//! | [`Rollup`] | cluster | the worst of the operator conditions of a set of component objects |
//! | [`HealthRule`] | cluster | how to tell the health of a kind |
//! | [`StatusCollector`] | cluster | how to combine the state of one object over many clusters |
//! | [`BindingPolicy`] | cluster | which objects are followed in which clusters |
//! | [`CombinedStatus`] | namespace | the combined state of one object |
//!
//! This crate chooses no Kubernetes version for the types of `k8s-openapi`: the binary that uses it does, with the
//! feature `latest` or another of that crate.

#![expect(
    clippy::duplicated_attributes,
    reason = "it takes the printer columns of a kind for one attribute said twice"
)]

mod application;
mod binding_policy;
mod combined_status;
mod crds;
mod duration;
mod expression;
mod health_check;
mod health_rule;
mod rollup;
mod schema;
mod status_collector;

pub use application::*;
pub use bellwether_model::{ConditionStatus, State};
pub use binding_policy::*;
pub use combined_status::*;
pub use crds::crds;
pub use duration::{Duration, InvalidDuration};
pub use expression::Expression;
pub use health_check::*;
pub use health_rule::*;
pub use rollup::*;
pub use status_collector::*;

/// The API group of all kinds here.
pub const GROUP: &str = "bellwether.dev";

/// The version of all kinds here.
pub const VERSION: &str = "v1alpha1";

/// The annotation by which an object says to which [`Application`] of its namespace it belongs.
pub const APPLICATION_ANNOTATION: &str = "kubernetes.io/application";
