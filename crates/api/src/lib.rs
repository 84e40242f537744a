//! The kinds of the API group `bellwether.dev`.
//!
//! | kind | scope | purpose |
//! |---|---|---|
//! | [`Application`] | namespace | the objects of one application and their aggregated state |
//! | [`Rollup`] | cluster | the aggregated operator conditions of a set of component objects |
//! | [`HealthRule`] | cluster | how to assess the health of a kind |
//! | [`StatusCollector`] | cluster | how to combine the state of one object in many clusters |
//! | [`BindingPolicy`] | cluster | which objects are bound to which clusters |
//! | [`CombinedStatus`] | namespace | the combined state of one object |
//!
//! This crate does not select a Kubernetes version of the `k8s-openapi` types. The binary selects it with a
//! feature of that crate, such as `latest`.

#![warn(missing_docs)]
#![expect(
    clippy::duplicated_attributes,
    reason = "the lint takes the printer columns of a kind for one repeated attribute"
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

/// The API group of every kind in this crate.
pub const GROUP: &str = "bellwether.dev";

/// The API version of every kind in this crate.
pub const VERSION: &str = "v1alpha1";

/// The annotation on an object that names its [`Application`] in the same namespace.
pub const APPLICATION_ANNOTATION: &str = "kubernetes.io/application";
