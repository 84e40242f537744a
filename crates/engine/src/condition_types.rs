//! The types of the conditions that Bellwether writes.

/// Application, of both API groups: it works as a whole.
pub const READY: &str = "Ready";
/// Application: the controllers of its members have acted on their latest generation.
pub const SETTLED: &str = "Settled";
/// Application: the components and dependencies that it names exist.
pub const INSTALLED: &str = "Installed";
/// Application and Rollup: what the spec asks for can be had.
pub const RESOLVED: &str = "Resolved";
/// Application: the template of the health check makes a Pod. Only there with a health check.
pub const HEALTH_CHECK_VALID: &str = "HealthCheckValid";
/// Application: its owner references could be written. Only there if one could not.
pub const ADOPTED: &str = "Adopted";
/// Application: its dependencies lead back to it. Only there if they do.
pub const DEPENDENCY_CYCLE: &str = "DependencyCycle";

/// Application of app.k8s.io: something went wrong.
pub const ERROR: &str = "Error";

/// Rollup: it works.
pub const AVAILABLE: &str = "Available";
/// Rollup: it is being changed.
pub const PROGRESSING: &str = "Progressing";
/// Rollup: it does not work completely.
pub const DEGRADED: &str = "Degraded";
/// Rollup: it may be upgraded.
pub const UPGRADEABLE: &str = "Upgradeable";

/// HealthRule: it is in force.
pub const VALID: &str = "Valid";
