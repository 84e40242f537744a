//! The engine: a deterministic state machine that turns watch events into statuses. It has no clock and no
//! network.
//!
//! How a change of a Service reaches the status of an Application:
//!
//! 1. A [`Source`] (the reflectors of one API server) decodes the Service through a [`Lens`] into [`Facts`],
//!    which include its health verdict, and delivers them as [`Event::Feed`] to [`Engine::step`].
//! 2. `Feeds`, the store of facts, compares them with the stored ones. If only the resourceVersion differs,
//!    no group is evaluated.
//! 3. Every `Grouping` (Applications, Rollups, HealthRules) gets the change. The index of the Applications
//!    finds those whose selector matches the labels, and each replaces the Service's entry in its `Members`.
//! 4. After the last event of the step, each touched group is evaluated: only the statuses of its conditions,
//!    no messages. `Publication` compares them with the stored conditions and emits [`Effect::Want`] for the
//!    slot.
//! 5. The [`Outbox`] calls [`Engine::change`] when the write is due. Now the status is rendered and compared
//!    with the stored one; if they differ, the result is a merge patch with uid and resourceVersion as
//!    preconditions.
//! 6. The caller sends the patch while it holds the lease, and returns the result as [`Event::Written`].

mod app_k8s_io;
mod application;
mod census;
mod clock;
mod clusters;
mod component_conditions;
pub mod condition_types;
mod context;
mod dependency_graph;
mod dialect;
mod digest;
mod driver;
mod effect;
mod effect_queue;
mod engine;
mod event;
mod facts;
mod feeds;
mod group_ref;
mod grouping;
mod id;
mod interner;
mod lazy_statement;
mod lens;
mod members;
mod nested;
mod outbox;
mod path;
pub mod planted;
mod publication;
pub mod reasons;
mod registry;
mod report;
mod rollup;
mod rules;
mod selector;
mod selector_index;
mod source;
mod stored_condition;
mod stored_status;
mod view;
mod wanted;
mod write_conflict;

pub use app_k8s_io::AppK8sIoSpec;
pub use application::HEALTH_CHECK_LABEL;
pub use census::Census;
pub use clock::Now;
pub use clusters::ClusterStatus;
pub use component_conditions::{ComponentCondition, ComponentConditions};
pub use dialect::Dialect;
pub use driver::Driver;
pub use effect::{Change, Effect, Exists, Part, Slot, Transition, Urgency, Warning};
pub use engine::Engine;
pub use event::{ClusterEvent, Event, FeedEvent, FieldConflict, Outcome, Unreadable};
pub use facts::{
    Facts, Labels, ObservedObject, OwnManifest, OwnObject, Owner, PodFacts, ResourceVersion, Served,
};
pub use group_ref::{GroupRef, OwnKind};
pub use id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey};
pub use lens::{Lens, LookContext};
pub use outbox::Outbox;
pub use report::{MemberKey, Report, Reports, ready};
pub use rollup::rollup_mistakes;
pub use rules::user_rule;
pub use source::{NoSource, Source, Sources};
pub use view::{
    Claim, Condition, Detail, Group, GroupStatus, Member, Relation, ReportedConditions, StandsFor,
    StatusSummary,
};
pub use wanted::{FieldPath, Values, Wanted};
