//! Reasons that Bellwether writes into conditions, status entries and Events.
//!
//! Reasons are API: scripts and alerts match them. The doc line of each constant is also its line in a table
//! of `docs`; a test compares both.
//!
//! Not listed here: the reasons of health verdicts (`docs/health-rules.md`), and those that operators report
//! and that a Rollup passes on.

pub use bellwether_health::reasons::Reason;

/// For kinds that cannot be read, in Applications and Rollups.
pub mod unreadable {
    bellwether_health::reasons! {
        /// The cluster does not serve the kind in this group.
        NOT_SERVED = "NotServed";
        /// RBAC denies access to the kind; the message names the permissions to grant.
        FORBIDDEN = "Forbidden";
        /// The API server answers requests for the kind with errors.
        NOT_READABLE = "NotReadable";
        /// Bellwether is not connected to the cluster of the kind.
        NOT_CONNECTED = "NotConnected";
        /// The files given with `--from` contain no object of the kind.
        NOT_IN_INPUT = "NotInInput";
    }
}

pub mod application {
    bellwether_health::reasons! {
        /// `Ready`: every member is ready or suspended on purpose, and the health check is ready.
        COMPONENTS_READY = "ComponentsReady";
        /// `Ready`: a member is `Failed`.
        COMPONENTS_FAILED = "ComponentsFailed";
        /// `Ready`, `Installed`: a named component does not exist, or exists and is not a member.
        COMPONENTS_MISSING = "ComponentsMissing";
        /// `Ready`: a member is `InProgress`, or the health check is not ready.
        COMPONENTS_IN_PROGRESS = "ComponentsInProgress";
        /// `Ready`: a member is being deleted.
        COMPONENTS_TERMINATING = "ComponentsTerminating";
        /// `Ready`, `Settled`, `Installed`: the state of a member is unknown, or a kind cannot be read.
        COMPONENTS_UNKNOWN = "ComponentsUnknown";
        /// `Ready`: the Application has no members.
        NO_COMPONENTS = "NoComponents";
        /// `Ready`: the Application is being deleted.
        TERMINATING = "Terminating";
        /// `Settled`: the controllers of all members have observed the latest generation.
        RECONCILE_SUCCESS = "ReconcileSuccess";
        /// `Settled`: the controller of a member has not observed the latest generation.
        COMPONENTS_NOT_SETTLED = "ComponentsNotSettled";
        /// `Installed`: every named component and dependency exists.
        ALL_INSTALLED = "AllInstalled";
        /// `Installed`: the spec names no component and no dependency.
        NOTHING_REQUIRED = "NothingRequired";
        /// `Installed`: an Application that this one depends on does not exist.
        DEPENDENCIES_MISSING = "DependenciesMissing";
        /// `Resolved`: every kind can be read.
        ALL_KINDS_RESOLVED = "AllKindsResolved";
        /// `Resolved`, `objects`: a kind is cluster-scoped; members must be in the namespace of the Application.
        CLUSTER_SCOPED = "ClusterScoped";
        /// `Resolved`: the cluster serves a kind, but not in the version that the spec names.
        VERSION_NOT_SERVED = "VersionNotServed";
        /// `Resolved`: HealthRules cannot be read, so that the state of every member is unknown.
        RULES_UNREADABLE = bellwether_health::reasons::RULES_UNREADABLE;
        /// `HealthCheckValid`: the API server accepts the Pod template.
        VALID = "Valid";
        /// `HealthCheckValid`: the API server rejects the Pod template, or another Pod has its name.
        INVALID_TEMPLATE = "InvalidTemplate";
        /// `HealthCheckValid`: a ResourceQuota denies the Pod; the template may be valid.
        QUOTA_EXCEEDED = "QuotaExceeded";
        /// `HealthCheckValid`: RBAC or an admission plug-in, such as PodSecurity, denies the Pod.
        POD_FORBIDDEN = "PodForbidden";
        /// `HealthCheckValid`: the Pod template has not been validated yet.
        PENDING = "Pending";
        /// `Adopted`: an owner reference could not be written or removed.
        OWNER_REFERENCE_NOT_UPDATED = "OwnerReferenceNotUpdated";
        /// `DependencyCycle`: the dependencies lead back to the Application.
        DEPENDENCY_CYCLE = "DependencyCycle";
        /// In `objects`: a named component does not exist.
        NOT_FOUND = "NotFound";
        /// In `objects`: a named component exists, but its labels do not match the selector.
        NOT_SELECTED = "NotSelected";
        /// In `objects`: a named component lacks the annotation that `membership: Annotated` requires.
        NOT_ANNOTATED = "NotAnnotated";
        /// In `objects`: a named component exists, but its annotation names another Application.
        MEMBER_OF_ANOTHER_APPLICATION = "MemberOfAnotherApplication";
        /// In `objects`: the Application names itself as a component.
        SELF_REFERENCE = "SelfReference";
        /// In `objects`: the member was deleted.
        DELETED = "Deleted";
        /// In `objects`: no endpoint of the Service is ready, although a workload is not scaled to zero.
        NO_READY_ENDPOINTS = "NoReadyEndpoints";
    }
}

pub mod rollup {
    bellwether_health::reasons! {
        /// The condition is good, and no component reports it, or the last one to change gives no reason.
        ALL_AS_EXPECTED = "AllAsExpected";
        /// A component is missing, lacks the condition, or gives no reason for a bad or unknown status.
        INSTALL_INVALID = "InstallInvalid";
        /// A component reports the condition with an `observedGeneration` behind its generation.
        OBSERVED_GENERATION_STALE = bellwether_conditions::OBSERVED_GENERATION_STALE;
        /// `Progressing`: a component, or the Rollup itself, is being deleted.
        TERMINATING = "Terminating";
        /// A component reports a reason without any letter.
        UNSPECIFIED = bellwether_model::text::UNSPECIFIED;
        /// `spec.components` is empty.
        NO_COMPONENTS = "NoComponents";
        /// `Resolved`: every kind can be read, and every entry of the spec is valid.
        ALL_KINDS_RESOLVED = "AllKindsResolved";
        /// `Resolved`: two entries are equal.
        DUPLICATE_COMPONENT = "DuplicateComponent";
        /// `Resolved`: an entry of a namespaced kind has no namespace.
        NAMESPACE_REQUIRED = "NamespaceRequired";
        /// `Resolved`: an entry of a cluster-scoped kind has a namespace.
        CLUSTER_SCOPED = "ClusterScoped";
        /// No object matches a selector.
        NO_OBJECTS_SELECTED = "NoObjectsSelected";
        /// An entry has both a name and a selector. API servers reject this; files may contain it.
        NAME_AND_SELECTOR = "NameAndSelector";
        /// An entry has neither a name nor a selector. API servers reject this; files may contain it.
        NAME_OR_SELECTOR_REQUIRED = "NameOrSelectorRequired";
        /// A Rollup is a component of itself, or of one of its own components.
        COMPONENT_CYCLE = "ComponentCycle";
    }
}

/// For the OperatorCondition of OLM.
pub mod operator_condition {
    bellwether_health::reasons! {
        /// The Rollup that `--olm-rollup` names does not exist.
        ROLLUP_NOT_FOUND = "RollupNotFound";
        /// `spec.upgradeable` of the Rollup is not true.
        UPGRADEABLE_NOT_ENABLED = "UpgradeableNotEnabled";
    }
}

pub mod binding_policy {
    bellwether_health::reasons! {
        /// `CollectorsAvailable`: every StatusCollector in the spec exists and is valid.
        COLLECTORS_VALID = "CollectorsValid";
        /// `CollectorsAvailable`: a StatusCollector in the spec does not exist.
        COLLECTOR_MISSING = "CollectorMissing";
        /// `CollectorsAvailable`: a StatusCollector in the spec is invalid; its own status says where.
        COLLECTOR_INVALID = "CollectorInvalid";
        /// `SingletonsApply`: every object whose status is wanted from one cluster is bound to exactly one.
        ALL_SINGLETONS = "AllSingletons";
        /// `SingletonsApply`: an object is bound to no cluster or to several, or its kind is exempt.
        NOT_ONE_CLUSTER = "NotOneCluster";
        /// `Resolved`: every kind can be read.
        ALL_KINDS_RESOLVED = "AllKindsResolved";
        /// `Resolved`: the hub does not serve a resource in the spec.
        NOT_SERVED = "NotServed";
        /// `Resolved`: a kind cannot be read, in the hub or in a cluster; the message says why.
        NOT_READABLE = "NotReadable";
        /// A bound object, in a cluster that is stale: `bellwether status` shows what it reported last.
        CLUSTER_UNREACHABLE = "ClusterUnreachable";
        /// A bound object, in a cluster that has not listed its kind yet.
        NOT_READ = "NotRead";
    }
}

pub mod status_collector {
    bellwether_health::reasons! {
        /// `Valid`: every expression is valid.
        VALID = "Valid";
        /// `Valid`: an expression is invalid; the message and `errors` say where.
        INVALID = "Invalid";
    }
}

pub mod health_rule {
    bellwether_health::reasons! {
        /// The rule is active.
        ACTIVE = "Active";
        /// The rule is invalid, and no valid version of it is known: its kind is Unknown. The message says where.
        INVALID = "Invalid";
        /// An edit made the rule invalid; it applies as it was before. The message says where.
        LAST_VALID_IN_FORCE = "LastValidInForce";
        /// The cluster serves the kind, but not in the version of the rule.
        VERSION_NOT_SERVED = "VersionNotServed";
        /// The cluster prefers another version of the kind, in which its objects are read.
        VERSION_NOT_PREFERRED = "VersionNotPreferred";
        /// Another rule for exactly the same kind takes precedence: it is older, or first by name.
        OVERRIDDEN = "Overridden";
    }
}

pub mod app_k8s_io {
    bellwether_health::reasons! {
        /// `Ready`: every component is ready or suspended on purpose.
        COMPONENTS_READY = "ComponentsReady";
        /// `Ready`: a component is not ready.
        COMPONENTS_NOT_READY = "ComponentsNotReady";
        /// `Ready`, `Stalled`: no component was found, the state of one is unknown, or `Error` is True.
        COMPONENTS_READY_UNKNOWN = "ComponentsReadyUnknown";
        /// `Stalled`: a component is `Failed`.
        COMPONENTS_FAILED = "ComponentsFailed";
        /// `Stalled`: it was True or Unknown before, and is not any more.
        NOT_STALLED = "NotStalled";
        /// `Error`: there is no error.
        NO_ERROR = "NoError";
        /// `Error`: a kind cannot be read, the spec is invalid, or an owner reference could not be written.
        ERROR_SEEN = "ErrorSeen";
    }
}

/// For Events that are not about a transition. Those about a state have its name as their reason, those about a
/// condition have the reason of the condition.
pub mod event {
    bellwether_health::reasons! {
        /// Event: another controller overwrites the status.
        STATUS_OVERWRITTEN = "StatusOverwritten";
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use bellwether_model::text::legal_reason;
    use rstest::rstest;

    use super::*;

    /// The table lines in all sections whose title begins with "Reasons".
    fn listed(page: &str) -> Vec<&str> {
        let mut is_inside = false;
        let lines = page.lines().filter(|line| {
            if line.starts_with('#') {
                is_inside = line.trim_start_matches('#').trim().starts_with("Reasons");
            }
            is_inside && line.starts_with("| `")
        });
        lines.collect()
    }

    #[rstest]
    #[case::application("applications.md", &[application::ALL, unreadable::ALL])]
    #[case::rollup("rollups.md", &[rollup::ALL, unreadable::ALL, operator_condition::ALL])]
    #[case::health_rule("writing-rules.md", &[health_rule::ALL])]
    #[case::binding_policy("binding-policies.md", &[binding_policy::ALL])]
    #[case::status_collector("status-collectors.md", &[status_collector::ALL])]
    #[case::app_k8s_io("app-k8s-io.md", &[app_k8s_io::ALL, event::ALL])]
    fn docs_list_every_reason(#[case] page: &str, #[case] reasons: &[&[Reason]]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let text = fs::read_to_string(&path).expect("the page exists");
        let line = |reason: &Reason| format!("| `{}` | {} |", reason.name, reason.meaning);
        let expected: Vec<_> = reasons.iter().copied().flatten().map(line).collect();
        assert_eq!(
            listed(&text),
            expected,
            "the tables of reasons in docs/{page} should be:\n{}\n",
            expected.join("\n")
        );
    }

    #[test]
    fn reasons_are_legal_and_unique() {
        let kinds = [
            application::ALL,
            rollup::ALL,
            operator_condition::ALL,
            health_rule::ALL,
            app_k8s_io::ALL,
            event::ALL,
        ];
        let with_unreadable = kinds.map(|kind| (kind, unreadable::ALL));
        let others = [binding_policy::ALL, status_collector::ALL].map(|kind| (kind, &[][..]));
        for (own, shared) in with_unreadable.into_iter().chain(others) {
            let names: Vec<_> = own.iter().chain(shared).map(|reason| reason.name).collect();
            for (index, name) in names.iter().enumerate() {
                assert_eq!(legal_reason(*name), *name);
                assert!(!names[..index].contains(name), "{name} is there twice");
            }
        }
    }
}
