//! Condition types that Bellwether writes.

/// Application, both API groups: every member is ready.
pub const READY: &str = "Ready";
/// Application: the controllers of all members have observed the latest generation.
pub const SETTLED: &str = "Settled";
/// Application: the named components and dependencies exist.
pub const INSTALLED: &str = "Installed";
/// Application, BindingPolicy, Rollup: every kind in the spec can be read, and every entry of the spec is valid.
pub const RESOLVED: &str = "Resolved";
/// Application: the API server accepts the Pod of the health check. Set only with a health check.
pub const HEALTH_CHECK_VALID: &str = "HealthCheckValid";
/// Application: an owner reference could not be written. Set only if one could not.
pub const ADOPTED: &str = "Adopted";
/// Application: the dependencies lead back to the Application. Set only if they do.
pub const DEPENDENCY_CYCLE: &str = "DependencyCycle";

/// Application of app.k8s.io: a kind cannot be read, the spec is invalid, or an owner reference was rejected.
pub const ERROR: &str = "Error";
/// Application of app.k8s.io: True if a member is Failed, Unknown if its state has been unknown for a minute. Not
/// set before either happens for the first time.
pub const STALLED: &str = "Stalled";

/// Rollup: the components work.
pub const AVAILABLE: &str = "Available";
/// Rollup: a component is being installed, upgraded, repaired or deleted.
pub const PROGRESSING: &str = "Progressing";
/// Rollup: a component works below its capacity, or not at all.
pub const DEGRADED: &str = "Degraded";
/// Rollup: no component objects to an upgrade.
pub const UPGRADEABLE: &str = "Upgradeable";

/// BindingPolicy: every StatusCollector in the spec exists and is valid. Set only if the spec names any.
pub const COLLECTORS_AVAILABLE: &str = "CollectorsAvailable";

/// BindingPolicy: every object whose status is wanted from one cluster is bound to exactly one. Set only if the
/// spec asks for that.
pub const SINGLETONS_APPLY: &str = "SingletonsApply";

/// HealthRule: the rule is valid and active. StatusCollector: every expression is valid.
pub const VALID: &str = "Valid";
