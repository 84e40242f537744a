//! Planted bugs: the simulation switches them on to prove that its checks find them.
//!
//! Without the feature `planted` they compile to nothing.

/// Each is a bug that real controllers have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Publishes a status before all its kinds are listed.
    PublishBeforeListed,
    /// Keeps objects that a relist does not contain.
    KeepUnlisted,
    /// Writes a status without comparing it with the stored one.
    SkipCompare,
    /// Writes without being the leader.
    WriteWithoutLease,
    /// Does not retry a failed write.
    DropRetry,
    /// Accepts a list that is older than the stored objects.
    TrustOlderList,
    /// Adds an owner reference without checking that the Application still exists.
    AdoptWithoutOwnerCheck,
    /// Adds an owner reference before `status.ownedKinds` lists the kind.
    AdoptBeforeOwnedKinds,
    /// Drops the conditions of other controllers from a status.
    DropForeignConditions,
    /// Takes a recreated object for the same one.
    IgnoreUid,
    /// Resumes a watch after 410 Gone instead of relisting.
    ResumeAfterGone,
    /// Counts a missing component as healthy.
    MissingIsHealthy,
    /// Takes the reason of the first deciding component instead of the one with the latest transition.
    UseFirstReason,
    /// Evaluates a Rollup before its components were decoded with their conditions.
    EvaluateWithoutConditions,
    /// Sets no timer for a condition that damping holds back.
    SetNoDampingTimer,
    /// Delivers events of one cluster to groups with members in another.
    MixClusters,
    /// Counts a Rollup as its own component if its selector matches it.
    CountRollupItself,
    /// Keeps watching a kind that no group uses.
    LeakWatch,
    /// Accepts a condition whose `observedGeneration` is behind.
    AcceptStaleCondition,
    /// Answers queries with the stored conditions, whatever has been evaluated since.
    AnswerWithStoredStatus,
    /// Keeps `lastTransitionTime` when the status changes.
    KeepTransitionTime,
    /// Emits no `Effect::Changed` for a group.
    EmitNoChanged,
    /// Counts Pods of old revisions against a workload.
    CountOldRevisions,
    /// Sets no timer for a Pod that has not failed for long enough.
    SetNoFailureTimer,
    /// Waits for a kind that answers its first list with errors, and holds back what is known meanwhile.
    WaitForFailingKind,
    /// Keeps its watches when the resourceVersions of a cluster have gone back.
    IgnoreRestore,
    /// Counts a stale cluster as one that reports.
    CountStaleAsReporting,
    /// Sets no timer for the time when a cluster becomes stale.
    SetNoFreshnessTimer,
    /// Keeps the rows of a cluster that a BindingPolicy does not select any more.
    KeepRowsOfRemoved,
    /// Keeps the objects of a cluster when another one has its name.
    KeepRowsOfRebuilt,
    /// Deletes CombinedStatuses while the BindingPolicies or StatusCollectors cannot be read.
    DeleteWhileUnreadable,
    /// Publishes a CombinedStatus before the clusters have answered.
    PublishBeforeAnswers,
    /// Evaluates nothing again when a StatusCollector changes.
    IgnoreCollectorChange,
    /// Selects no other clusters when the labels of a cluster change.
    IgnoreRelabelling,
    /// Does not create a CombinedStatus again that another user has deleted.
    IgnoreDeletedOutput,
    /// Writes the status of a singleton before its label.
    WriteStatusBeforeLabel,
    /// Does not look for singletons of an earlier process whose policy is gone.
    ForgetSingletons,
}

impl Bug {
    pub const ALL: [Self; 37] = [
        Self::PublishBeforeListed,
        Self::KeepUnlisted,
        Self::SkipCompare,
        Self::WriteWithoutLease,
        Self::DropRetry,
        Self::TrustOlderList,
        Self::AdoptWithoutOwnerCheck,
        Self::AdoptBeforeOwnedKinds,
        Self::DropForeignConditions,
        Self::IgnoreUid,
        Self::ResumeAfterGone,
        Self::MissingIsHealthy,
        Self::UseFirstReason,
        Self::EvaluateWithoutConditions,
        Self::SetNoDampingTimer,
        Self::MixClusters,
        Self::CountRollupItself,
        Self::LeakWatch,
        Self::AcceptStaleCondition,
        Self::AnswerWithStoredStatus,
        Self::KeepTransitionTime,
        Self::EmitNoChanged,
        Self::CountOldRevisions,
        Self::SetNoFailureTimer,
        Self::WaitForFailingKind,
        Self::IgnoreRestore,
        Self::CountStaleAsReporting,
        Self::SetNoFreshnessTimer,
        Self::KeepRowsOfRemoved,
        Self::KeepRowsOfRebuilt,
        Self::DeleteWhileUnreadable,
        Self::PublishBeforeAnswers,
        Self::IgnoreCollectorChange,
        Self::IgnoreRelabelling,
        Self::IgnoreDeletedOutput,
        Self::WriteStatusBeforeLabel,
        Self::ForgetSingletons,
    ];

    #[cfg(feature = "planted")]
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    #[cfg(not(feature = "planted"))]
    #[inline]
    pub const fn is_planted(self) -> bool {
        false
    }
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Switches one bug on in this thread, or all off.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}
