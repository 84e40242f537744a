//! The reasons that Bellwether gives in conditions, in the entries of a status and in Events.
//!
//! Reasons are API: scripts and alerts match them. Each constant has one line of documentation, which is also its line in the
//! table of reasons on the page of its kind in `docs`; a test compares both.
//!
//! Reasons that pass through are not here: those of verdicts on objects, which are in `docs/health-rules.md`, and those that
//! operators report.

/// A reason, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// As it is written.
    pub name: &'static str,
    /// What it means, in Markdown.
    pub meaning: &'static str,
}

/// Defines constants, and the list of all of them.
macro_rules! reasons {
    ($(#[doc = $meaning:literal] $name:ident = $value:expr;)*) => {
        $(#[doc = $meaning] pub const $name: &str = $value;)*

        /// All of these reasons.
        pub const ALL: &[super::Reason] = &[$(super::Reason { name: $name, meaning: $meaning.trim_ascii_start() }),*];
    };
}

/// Of a kind that cannot be read, in the statuses of Applications and Rollups.
pub mod unreadable {
    reasons! {
        /// The cluster does not serve the kind in this group.
        NOT_SERVED = "NotServed";
        /// Bellwether may not read the kind; the message names the right to grant.
        FORBIDDEN = "Forbidden";
        /// The API server answers requests for the kind with errors.
        NOT_READABLE = "NotReadable";
        /// No source is connected to the cluster of the kind.
        NOT_CONNECTED = "NotConnected";
        /// None of the files that `--from` reads has an object of the kind.
        NOT_IN_INPUT = "NotInInput";
    }
}

/// Of Applications.
pub mod application {
    reasons! {
        /// `Ready`: every member is ready or suspended on purpose, and the health check is ready.
        COMPONENTS_READY = "ComponentsReady";
        /// `Ready`: a member or the health check is not ready.
        COMPONENTS_NOT_READY = "ComponentsNotReady";
        /// `Ready`, `Installed`: a named component does not exist, or exists and is not a member.
        COMPONENTS_MISSING = "ComponentsMissing";
        /// `Ready`, `Settled`, `Installed`: the state of a member, or of a kind that may have members, is unknown.
        COMPONENTS_UNKNOWN = "ComponentsUnknown";
        /// `Ready`: no object belongs to the Application.
        NO_COMPONENTS = "NoComponents";
        /// `Settled`: the controllers of all members have acted on their latest generation.
        RECONCILE_SUCCESS = "ReconcileSuccess";
        /// `Settled`: the controller of a member has not acted on its latest generation.
        COMPONENTS_NOT_SETTLED = "ComponentsNotSettled";
        /// `Installed`: every named component and dependency exists.
        ALL_INSTALLED = "AllInstalled";
        /// `Installed`: the spec names no component and no dependency.
        NOTHING_REQUIRED = "NothingRequired";
        /// `Installed`: an Application that this one depends on does not exist.
        DEPENDENCIES_MISSING = "DependenciesMissing";
        /// `Resolved`: every kind can be read.
        ALL_KINDS_RESOLVED = "AllKindsResolved";
        /// `Resolved`: a kind is cluster-scoped, and members must be in the namespace of the Application.
        CLUSTER_SCOPED = "ClusterScoped";
        /// `Resolved`: the cluster serves a kind, but not in the version that the spec asks for.
        VERSION_NOT_SERVED = "VersionNotServed";
        /// `HealthCheckValid`: the API server accepts the Pod of the template.
        VALID = "Valid";
        /// `HealthCheckValid`: the API server refuses the Pod of the template.
        INVALID_TEMPLATE = "InvalidTemplate";
        /// `HealthCheckValid`: the API server has not been asked yet.
        PENDING = "Pending";
        /// `Adopted`: an owner reference could not be written or removed.
        OWNER_REFERENCE_NOT_UPDATED = "OwnerReferenceNotUpdated";
        /// `DependencyCycle`: the dependencies lead back to the Application.
        DEPENDENCY_CYCLE = "DependencyCycle";
        /// In `objects`: a named component does not exist.
        NOT_FOUND = "NotFound";
        /// In `objects`: a named component exists, but its labels do not match the selector.
        NOT_SELECTED = "NotSelected";
        /// In `objects`: a named component exists, but does not have the annotation that `membership: Annotated` requires.
        NOT_ANNOTATED = "NotAnnotated";
        /// In `objects`: a named component exists, but its annotation names another Application.
        MEMBER_OF_ANOTHER_APPLICATION = "MemberOfAnotherApplication";
        /// In `objects`: the Application names itself as a component.
        SELF_REFERENCE = "SelfReference";
        /// In `objects`: the member is deleted.
        DELETED = "Deleted";
    }
}

/// Of Rollups.
pub mod rollup {
    reasons! {
        /// The condition is as it should be, and the component that turned last gives no reason, or none reports it.
        ALL_AS_EXPECTED = "AllAsExpected";
        /// A component does not exist, does not report the condition, or reports a bad or unknown status without a reason.
        INSTALL_INVALID = "InstallInvalid";
        /// A component reports the condition for an earlier generation than its own.
        OBSERVED_GENERATION_STALE = bellwether_conditions::OBSERVED_GENERATION_STALE;
        /// `Progressing`: a component is being deleted.
        TERMINATING = "Terminating";
        /// A component gives a reason that has no letter in it.
        UNSPECIFIED = bellwether_model::text::UNSPECIFIED;
        /// `spec.components` is empty.
        NO_COMPONENTS = "NoComponents";
        /// `Resolved`: every kind can be read, and every entry of the spec has a meaning.
        ALL_KINDS_RESOLVED = "AllKindsResolved";
        /// `Resolved`: two entries are the same.
        DUPLICATE_COMPONENT = "DuplicateComponent";
        /// `Resolved`: an entry has no namespace, and its kind is namespaced.
        NAMESPACE_REQUIRED = "NamespaceRequired";
        /// `Resolved`: an entry has a namespace, and its kind is cluster-scoped.
        CLUSTER_SCOPED = "ClusterScoped";
        /// No object matches a selector.
        NO_OBJECTS_SELECTED = "NoObjectsSelected";
        /// An entry has both a name and a selector. API servers refuse it, and files may have it.
        NAME_AND_SELECTOR = "NameAndSelector";
        /// An entry has neither a name nor a selector. API servers refuse it, and files may have it.
        NAME_OR_SELECTOR_REQUIRED = "NameOrSelectorRequired";
        /// A Rollup is a component of itself, or of one of its own components.
        COMPONENT_CYCLE = "ComponentCycle";
    }
}

/// Of OLM's OperatorConditions.
pub mod operator_condition {
    reasons! {
        /// The Rollup that `--olm-rollup` names does not exist.
        ROLLUP_NOT_FOUND = "RollupNotFound";
        /// `spec.upgradeable` of the Rollup is not true.
        UPGRADEABLE_NOT_ENABLED = "UpgradeableNotEnabled";
    }
}

/// Of HealthRules.
pub mod health_rule {
    reasons! {
        /// The rule is in force.
        ACTIVE = "Active";
        /// The rule has a mistake; the message says where.
        INVALID = "Invalid";
        /// Another rule for exactly the same kind is older, or of the same age and first by name.
        OVERRIDDEN = "Overridden";
    }
}

/// Of Applications of app.k8s.io.
pub mod app_k8s_io {
    reasons! {
        /// `Ready`: every component is ready or suspended on purpose.
        COMPONENTS_READY = "ComponentsReady";
        /// `Ready`: a component is not ready.
        COMPONENTS_NOT_READY = "ComponentsNotReady";
        /// `Ready`: no component was found, the state of one is unknown, or `Error` is True.
        COMPONENTS_READY_UNKNOWN = "ComponentsReadyUnknown";
        /// `Error`: there is no error.
        NO_ERROR = "NoError";
        /// `Error`: a kind cannot be read, a part of the spec is invalid, or an owner reference could not be written.
        ERROR_SEEN = "ErrorSeen";
    }
}

/// Of Events that do not tell of a condition. The others have the reason of their condition.
pub mod event {
    reasons! {
        /// Event: another controller writes the status, too.
        STATUS_OVERWRITTEN = "StatusOverwritten";
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use bellwether_model::text::legal_reason;
    use rstest::rstest;

    use super::*;

    /// The lines of the tables in the sections of a page whose titles begin with "Reasons".
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
    fn reasons_are_legal_and_each_is_there_once() {
        let kinds = [
            application::ALL,
            rollup::ALL,
            operator_condition::ALL,
            health_rule::ALL,
            app_k8s_io::ALL,
            event::ALL,
        ];
        for kind in kinds {
            let names: Vec<_> = kind.iter().chain(unreadable::ALL).map(|reason| reason.name).collect();
            for (index, name) in names.iter().enumerate() {
                assert_eq!(legal_reason(*name), *name);
                assert!(!names[..index].contains(name), "{name} is there twice");
            }
        }
    }
}
