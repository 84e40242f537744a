//! The engine: a deterministic state machine that turns watch events into statuses. It has no clock and no
//! network.
//!
//! How a change of a Service reaches the status of an Application:
//!
//! 1. A [`ClusterSource`] (the reflectors of one API server) decodes the Service through a [`Lens`] into
//!    [`Facts`], which include its health verdict, and delivers them as [`Event::Feed`] to [`Engine::step`].
//! 2. `Feeds`, the store of facts, compares them with the stored ones. If only the resourceVersion differs,
//!    no group is evaluated.
//! 3. Every `Grouping` (Applications, Rollups, HealthRules) gets the change. The index of the Applications
//!    finds those whose selector matches the labels, and each replaces the Service's entry in its `Members`.
//! 4. After the last event of the step, each dirty group is evaluated: only the statuses of its conditions,
//!    no messages. `Publication` compares them with the stored conditions and emits [`Effect::EnqueueWrite`]
//!    for the slot.
//! 5. The [`Outbox`] calls [`Engine::render_write`] when the write is due. Now the status is rendered and
//!    compared with the stored one; if they differ, the result is a merge patch with uid and resourceVersion
//!    as preconditions.
//! 6. The caller sends the patch while it holds the lease, and returns the result as [`Event::Written`].

mod app_k8s_io;
mod application;
mod below;
mod clock;
mod cluster_source;
mod clusters;
mod combined_status;
mod component_conditions;
pub mod condition_types;
mod deciding_condition;
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
mod group_clusters;
mod group_ref;
mod group_state;
mod grouping;
mod grouping_context;
mod health_rules;
mod id;
mod interner;
mod kind_facts;
mod lazy_statement;
mod lens;
mod members;
mod nested;
mod outbox;
mod overwrite_backoff;
pub mod planted;
mod publication;
pub mod reasons;
mod registry;
mod report;
mod requested_fields;
mod resource_path;
mod rollup;
mod selector;
mod selector_index;
mod state_event;
mod stats;
mod stored_condition;
mod stored_status;
mod view;

pub use app_k8s_io::AppK8sIoSpec;
pub use application::{FAILED_AFTER, HEALTH_CHECK_LABEL};
pub use below::kinds_below;
pub use clock::Now;
pub use cluster_source::{ClusterSource, ClusterSources, NoSource};
pub use clusters::ClusterStatus;
pub use combined_status::{
    BoundRow, BoundRowKey, BoundRows, BoundRowsQuery, InvalidRowKey, RowFilter, RowVariables,
    SINGLETON_LABEL, can_be_singleton,
};
pub use component_conditions::{ComponentCondition, ComponentConditions};
pub use dialect::Dialect;
pub use driver::Driver;
pub use effect::{Effect, Part, Patched, RequiredOwner, Slot, Transition, Urgency, Warning, Write};
pub use engine::Engine;
pub use event::{
    ClusterEvent, ClusterMetadata, DiscoveredKinds, Event, FeedEvent, FieldConflict, Outcome, Unreadable,
};
pub use facts::{
    Facts, KindFacts, Labels, ObservedObject, OwnManifest, OwnObject, OwnerReference, PodFacts,
    ResourceVersion, ServedResource,
};
pub use group_clusters::{GroupClusters, SilentCluster};
pub use group_ref::{GroupRef, OwnKind};
pub use health_rules::user_rule;
pub use id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey};
pub use lens::{Lens, ProjectionContext};
pub use outbox::Outbox;
pub use report::{MemberKey, Report, Reports, ready};
pub use requested_fields::{FieldPath, RequestedFields, RequestedValues};
pub use rollup::invalid_components;
pub use stats::{EngineStats, GroupSample, GroupSamples};
pub use view::{
    Condition, Detail, Group, GroupRelation, GroupStatus, Member, Relation, ReportedConditions, StandsFor,
    StatusSummary,
};
