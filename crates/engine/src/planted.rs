//! Bugs that can be switched on, to show that they would be found.
//!
//! Without the feature `planted` there are none, and asking for one costs nothing.

/// A bug, each of a kind that controllers have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Statuses are published before all that they are made of has been listed.
    PublishBeforeListed,
    /// What a new list does not name is taken to be there still.
    KeepWhatIsNotListed,
    /// A status is written without comparing it with what is stored.
    SkipCompare,
    /// Writes are made whoever leads.
    WriteWithoutLease,
    /// What did not get through is not tried again.
    DropRetry,
    /// A list is believed, even if what is known is newer.
    TrustOlderList,
    /// An object is given to an Application without a last look whether that is still there.
    AdoptBlindly,
    /// An object is given to an Application before its status says where to look for it.
    AdoptUnannounced,
    /// Conditions of others are dropped from a status.
    DropForeignConditions,
    /// An object under the same name is taken for the same object.
    IgnoreUid,
    /// A watch that ends with an error that asks for a list goes on where it was.
    ResumeAfterGone,
    /// A component that does not exist is as good as any.
    MissingIsFine,
    /// Of several components that decide, the first gives the reason rather than the one that changed last.
    ReasonOfTheFirst,
    /// Of objects that somebody has looked at for other reasons, nothing more is waited for.
    TrustNarrowLens,
    /// What is held back is not looked at again when its time has come.
    ForgetHeldTurn,
    /// What happens in one cluster is told to groups whose members are in another.
    MixClusters,
    /// A Rollup is a component of itself if its selector matches it.
    CountItself,
    /// A kind is followed though no group needs it any more.
    KeepKind,
    /// A condition is believed though it is older than its object.
    BelieveStaleCondition,
    /// Who asks is told what was said last, whatever is known by now.
    TellTheLastWord,
    /// A condition that turns keeps the time at which it turned before.
    KeepTransitionTime,
    /// Who follows a group is not told that it has changed.
    TellNoFollower,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::PublishBeforeListed,
        Self::KeepWhatIsNotListed,
        Self::SkipCompare,
        Self::WriteWithoutLease,
        Self::DropRetry,
        Self::TrustOlderList,
        Self::AdoptBlindly,
        Self::AdoptUnannounced,
        Self::DropForeignConditions,
        Self::IgnoreUid,
        Self::ResumeAfterGone,
        Self::MissingIsFine,
        Self::ReasonOfTheFirst,
        Self::TrustNarrowLens,
        Self::ForgetHeldTurn,
        Self::MixClusters,
        Self::CountItself,
        Self::KeepKind,
        Self::BelieveStaleCondition,
        Self::TellTheLastWord,
        Self::KeepTransitionTime,
        Self::TellNoFollower,
    ];

    /// Whether it is switched on in this thread.
    #[cfg(feature = "planted")]
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    /// Whether it is switched on: never.
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
