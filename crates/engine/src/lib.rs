//! Events in, effects out: which objects belong together, and how they are as one.

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
