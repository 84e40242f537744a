//! When to list, when to watch, and when errors count.
//!
//! Times are [`Now::passed`](bellwether_engine::Now::passed), so that setting the wall clock changes no
//! pause.

use std::{mem, time::Duration};

use bellwether_engine::{ResourceVersion, planted::Bug};
use rand::Rng;

use crate::{
    backoff::{Backoff, BackoffLimits},
    read_error::ReadError,
    restore_detector::StaleLists,
};

/// A rejection is persistent after this many attempts or after [`REJECTED_TIME`].
const REJECTED_ATTEMPTS: u32 = 5;
const REJECTED_TIME: Duration = Duration::from_secs(30);

/// 403 is believed after this time: an API server that has just started rejects everything until it has
/// loaded RBAC.
const FORBIDDEN_TIME: Duration = Duration::from_secs(5);
/// The longest pause until 403 is believed.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(1);

/// 5xx makes a kind unreadable after this time. Most outages are shorter, and the cached objects are likely
/// still true.
const SERVER_ERROR_TIME: Duration = Duration::from_mins(2);

/// Before the first list there are no cached objects, and groups wait for the kind: then 5xx makes it
/// unreadable after this time. A failed member of another kind must not stay unreported for longer.
const FIRST_LIST_TIME: Duration = Duration::from_secs(5);
/// The longest pause between attempts until then.
const FIRST_LIST_PAUSE: Duration = Duration::from_secs(1);
/// An API server that does not respond at all makes a kind unreadable after this time, if it was never listed.
const FIRST_RESPONSE_TIME: Duration = Duration::from_mins(2);
/// A request for the first list without a response after this time hangs, if the API server answers other
/// requests: see [`ListWatchPolicy::first_list_hangs`].
const FIRST_LIST_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadStep {
    List,
    /// From this resourceVersion on.
    Watch(ResourceVersion),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    Readable,
    /// The API server does not respond. The cached objects stay valid.
    Unavailable,
    Forbidden,
    /// An error persists.
    Failing,
}

impl ReadState {
    /// Whether the cached objects are no longer valid.
    pub fn is_unreadable(self) -> bool {
        matches!(self, Self::Forbidden | Self::Failing)
    }
}

/// The end of a list or watch.
#[derive(Debug)]
pub struct ListWatchEnd {
    /// Whether a watch lasted long enough to reset the backoff.
    pub lasted: bool,
    /// `None` if a watch ended at its timeout.
    pub error: Option<ReadError>,
}

impl From<ReadError> for ListWatchEnd {
    fn from(error: ReadError) -> Self {
        Self { lasted: false, error: Some(error) }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct RetryDecision {
    /// Before the next step.
    pub pause: Duration,
    /// The new state, if it has changed.
    pub new_state: Option<ReadState>,
}

#[derive(Debug)]
pub struct ListWatchPolicy {
    /// The resourceVersion of the last complete list or watch event.
    known: Option<ResourceVersion>,
    /// The resourceVersion of the last list that started, complete or not.
    started: Option<ResourceVersion>,
    must_list: bool,
    stale: StaleLists,
    backoff: Backoff,
    state: ReadState,
    /// Since when requests have been rejected, and how many.
    rejected: Option<(Duration, u32)>,
    /// Since when requests have got 5xx.
    server_error: Option<Duration>,
    /// Since when requests have got no response, before the first list.
    no_response: Option<Duration>,
    /// Since when requests have got 403.
    forbidden: Option<Duration>,
}

impl ListWatchPolicy {
    pub fn new(pauses: BackoffLimits) -> Self {
        Self {
            known: None,
            started: None,
            must_list: true,
            stale: StaleLists::default(),
            backoff: Backoff::new(pauses),
            state: ReadState::Readable,
            rejected: None,
            server_error: None,
            no_response: None,
            forbidden: None,
        }
    }

    pub fn step(&self) -> ReadStep {
        match &self.known {
            Some(version) if !self.must_list => ReadStep::Watch(version.clone()),
            _ => ReadStep::List,
        }
    }

    /// Whether a list was completed.
    pub fn has_listed(&self) -> bool {
        self.known.is_some()
    }

    /// Relists, and forgets all errors.
    pub fn reset(&mut self) {
        self.must_list = true;
        self.state = ReadState::Readable;
        self.rejected = None;
        self.server_error = None;
        self.no_response = None;
        self.forbidden = None;
        self.backoff.reset();
    }

    /// The cluster was restored from a backup: relists, and accepts any resourceVersion.
    pub fn restored(&mut self) {
        self.known = self.known.take().map(|_| ResourceVersion::new(""));
        self.started = None;
        self.stale.end();
        self.must_list = true;
    }

    /// The first page of a list has arrived. Rejects a stale list, unless the cluster was restored from a
    /// backup; then returns true. Lists that did not complete count, too: the engine has the objects of their
    /// pages, and an older list would mix two points in time.
    pub fn accept(&mut self, version: &ResourceVersion, now: Duration) -> Result<bool, ReadError> {
        let mut seen = self.known.iter().chain(&self.started);
        let is_older = seen.any(|seen| version.is_before(seen)) && !Bug::TrustOlderList.is_planted();
        if is_older && !self.stale.add(now) {
            return Err(ReadError::Stale);
        }
        self.stale.end();
        self.started = Some(version.clone());
        Ok(is_older)
    }

    /// The list is complete. Returns the new state, if it has changed.
    pub fn listed(&mut self, version: ResourceVersion) -> Option<ReadState> {
        self.known = Some(version);
        self.must_list = false;
        self.recover()
    }

    /// The API server has accepted a watch. Returns whether to keep it: after [`ReadState::is_unreadable`], a
    /// relist comes first.
    pub fn opened(&mut self) -> bool {
        if self.state.is_unreadable() {
            self.must_list = true;
            return false;
        }
        true
    }

    /// How long to wait for the response to a list before [`first_list_hangs`](Self::first_list_hangs) can be
    /// called. `None` if no group waits for it.
    pub fn patience(&self) -> Option<Duration> {
        let waits = !self.has_listed() && self.started.is_none() && !self.state.is_unreadable();
        (waits && !Bug::WaitForFailingKind.is_planted()).then_some(FIRST_LIST_PATIENCE)
    }

    /// The first list has had no response for [`patience`](Self::patience), and the API server has answered a
    /// later request. Without the latter, the API server itself may be away, which makes no kind unreadable.
    /// The request goes on. Returns the new state, if it has changed.
    pub fn first_list_hangs(&mut self) -> Option<ReadState> {
        self.patience()?;
        self.state = ReadState::Failing;
        Some(self.state)
    }

    /// A watch event of this resourceVersion has arrived.
    pub fn observe_version(&mut self, version: &ResourceVersion) {
        let is_older = self.known.as_ref().is_some_and(|known| version.is_before(known));
        if !version.as_str().is_empty() && !is_older {
            self.known = Some(version.clone());
        }
    }

    /// The watch works. Returns the new state, if it has changed.
    pub fn watch_succeeded(&mut self) -> Option<ReadState> {
        self.backoff.reset();
        self.recover()
    }

    pub fn ended(&mut self, ended: &ListWatchEnd, now: Duration, random: &mut impl Rng) -> RetryDecision {
        let before = self.state;
        if ended.lasted {
            self.watch_succeeded();
        }
        let retry_after = ended.error.as_ref().and_then(ReadError::retry_after);
        let mut pause = self.backoff.next_delay(retry_after, random);
        if let Some(error) = &ended.error {
            self.state = self.state_after(error, now);
        }
        if self.forbidden.is_some() && self.state != ReadState::Forbidden {
            pause = pause.min(FORBIDDEN_PAUSE);
        }
        if self.server_error.is_some() && !self.has_listed() && !self.state.is_unreadable() {
            pause = pause.min(FIRST_LIST_PAUSE.max(retry_after.unwrap_or_default()));
        }
        RetryDecision { pause, new_state: (self.state != before).then_some(self.state) }
    }

    fn state_after(&mut self, error: &ReadError, now: Duration) -> ReadState {
        if !matches!(error, ReadError::Forbidden { .. }) {
            self.forbidden = None;
        }
        match error {
            ReadError::Expired | ReadError::Stale => {
                self.must_list = !Bug::ResumeAfterGone.is_planted();
                self.state
            }
            ReadError::Forbidden { .. } if self.is_forbidden(now) => ReadState::Forbidden,
            ReadError::NotFound { .. } | ReadError::Rejected { .. } if self.is_persistently_rejected(now) => {
                ReadState::Failing
            }
            ReadError::ServerError { .. } if self.is_server_error_persistent(now) => ReadState::Failing,
            ReadError::Unavailable { .. } if self.is_first_list_overdue(now) => ReadState::Failing,
            ReadError::Unavailable { .. } | ReadError::ServerError { .. }
                if self.state == ReadState::Readable && self.backoff.failures() > 1 =>
            {
                ReadState::Unavailable
            }
            ReadError::Forbidden { .. }
            | ReadError::NotFound { .. }
            | ReadError::Rejected { .. }
            | ReadError::Unavailable { .. }
            | ReadError::ServerError { .. } => self.state,
        }
    }

    /// Counts a rejection.
    fn is_persistently_rejected(&mut self, now: Duration) -> bool {
        let (since, times) = self.rejected.get_or_insert((now, 0));
        *times += 1;
        *times >= REJECTED_ATTEMPTS || now.saturating_sub(*since) >= REJECTED_TIME
    }

    fn is_server_error_persistent(&mut self, now: Duration) -> bool {
        let time = if self.has_listed() || Bug::WaitForFailingKind.is_planted() {
            SERVER_ERROR_TIME
        } else {
            FIRST_LIST_TIME
        };
        now.saturating_sub(*self.server_error.get_or_insert(now)) >= time
    }

    fn is_first_list_overdue(&mut self, now: Duration) -> bool {
        !self.has_listed()
            && self.state != ReadState::Forbidden
            && now.saturating_sub(*self.no_response.get_or_insert(now)) >= FIRST_RESPONSE_TIME
    }

    fn is_forbidden(&mut self, now: Duration) -> bool {
        now.saturating_sub(*self.forbidden.get_or_insert(now)) >= FORBIDDEN_TIME
    }

    fn recover(&mut self) -> Option<ReadState> {
        self.rejected = None;
        self.server_error = None;
        self.no_response = None;
        self.forbidden = None;
        let before = mem::replace(&mut self.state, ReadState::Readable);
        (before != ReadState::Readable).then_some(ReadState::Readable)
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng as _, rngs::StdRng};
    use rstest::rstest;

    use super::*;
    use crate::restore_detector::RESTORED_TIME;

    fn policy() -> ListWatchPolicy {
        ListWatchPolicy::new(BackoffLimits {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(10),
        })
    }

    fn version(number: u64) -> ResourceVersion {
        ResourceVersion::new(&number.to_string())
    }

    fn watching(number: u64) -> ListWatchPolicy {
        let mut policy = policy();
        policy.listed(version(number));
        policy
    }

    fn watch(number: u64) -> ReadStep {
        ReadStep::Watch(version(number))
    }

    fn unavailable() -> ReadError {
        ReadError::unavailable("connection refused")
    }

    fn forbidden() -> ReadError {
        ReadError::Forbidden { why: "no".into() }
    }

    /// The changes of state by this many failures.
    fn fail(policy: &mut ListWatchPolicy, error: &ReadError, times: usize) -> Vec<Option<ReadState>> {
        fail_at(policy, error, times, Duration::ZERO)
    }

    fn fail_at(
        policy: &mut ListWatchPolicy,
        error: &ReadError,
        times: usize,
        now: Duration,
    ) -> Vec<Option<ReadState>> {
        let mut random = StdRng::seed_from_u64(1);
        (0..times).map(|_| policy.ended(&error.clone().into(), now, &mut random).new_state).collect()
    }

    #[test]
    fn it_lists_once_and_then_watches_from_the_last_resource_version() {
        let mut policy = policy();
        assert_eq!(policy.step(), ReadStep::List);
        assert_eq!(policy.listed(version(5)), None);
        assert_eq!(policy.step(), watch(5));
        assert!(policy.opened());
        policy.observe_version(&version(8));
        policy.observe_version(&version(7));
        policy.observe_version(&ResourceVersion::new(""));
        assert_eq!(policy.step(), watch(8), "the resourceVersion never decreases");
    }

    #[rstest]
    #[case::expired(ReadError::Expired, ReadStep::List)]
    #[case::unavailable(unavailable(), watch(5))]
    #[case::forbidden(forbidden(), watch(5))]
    #[case::rejected(ReadError::rejected("no"), watch(5))]
    #[case::not_found(ReadError::NotFound { why: "no".into() }, watch(5))]
    fn only_an_expired_resource_version_leads_to_a_relist(
        #[case] error: ReadError,
        #[case] expected: ReadStep,
    ) {
        let mut policy = watching(5);
        fail(&mut policy, &error, 3);
        assert_eq!(policy.step(), expected);
    }

    #[test]
    fn an_unavailable_server_does_not_invalidate_the_cache() {
        let mut policy = watching(5);
        let states = fail(&mut policy, &unavailable(), 100);
        assert_eq!(states[..3], [None, Some(ReadState::Unavailable), None]);
        assert!(states[3..].iter().all(Option::is_none), "the change is reported once");
        assert!(policy.opened());
        assert_eq!(policy.watch_succeeded(), Some(ReadState::Readable));
        assert_eq!(policy.step(), watch(5));
    }

    #[test]
    fn after_403_a_permitted_watch_leads_to_a_relist() {
        let mut policy = watching(5);
        let begun = Duration::ZERO;
        assert_eq!(
            fail_at(&mut policy, &forbidden(), 3, begun),
            [None; 3],
            "the API server may have just started"
        );
        let reaction = policy.ended(&forbidden().into(), begun, &mut StdRng::seed_from_u64(1));
        assert!(reaction.pause <= FORBIDDEN_PAUSE);
        let later = begun + FORBIDDEN_TIME;
        assert_eq!(fail_at(&mut policy, &forbidden(), 2, later), [Some(ReadState::Forbidden), None]);
        assert_eq!(policy.step(), watch(5), "a watch is a cheaper test than a list");
        assert!(!policy.opened());
        assert_eq!(policy.step(), ReadStep::List);
        assert_eq!(policy.listed(version(9)), Some(ReadState::Readable));
        assert_eq!(policy.step(), watch(9));
    }

    /// Otherwise a status without the kind would be published for a moment.
    #[test]
    fn a_403_before_the_first_list_is_not_believed_at_once() {
        let (mut policy, begun) = (policy(), Duration::ZERO);
        assert_eq!(fail_at(&mut policy, &forbidden(), 3, begun), [None; 3]);
        assert_eq!(
            fail_at(&mut policy, &forbidden(), 1, begun + FORBIDDEN_TIME),
            [Some(ReadState::Forbidden)]
        );
    }

    #[test]
    fn an_unavailable_server_does_not_end_a_403() {
        let mut policy = watching(5);
        let begun = Duration::ZERO;
        fail_at(&mut policy, &forbidden(), 1, begun);
        fail_at(&mut policy, &forbidden(), 1, begun + FORBIDDEN_TIME);
        assert_eq!(fail(&mut policy, &unavailable(), 5), [None; 5]);
        assert!(!policy.opened(), "a relist comes first");
    }

    #[test]
    fn persistent_errors_are_reported() {
        let mut policy = policy();
        let states = fail(&mut policy, &ReadError::rejected("no"), 6);
        assert_eq!(states, [None, None, None, None, Some(ReadState::Failing), None]);
        assert_eq!(policy.listed(version(5)), Some(ReadState::Readable));
        assert_eq!(fail(&mut policy, &ReadError::rejected("no"), 4), [None; 4], "the count starts again");
    }

    #[test]
    fn errors_that_last_are_reported() {
        let (now, mut random) = (Duration::ZERO, StdRng::seed_from_u64(1));
        let mut policy = policy();
        let rejected = ReadError::rejected("no").into();
        assert_eq!(policy.ended(&rejected, now, &mut random).new_state, None);
        assert_eq!(
            policy.ended(&rejected, now + REJECTED_TIME, &mut random).new_state,
            Some(ReadState::Failing)
        );
    }

    /// The conversion webhook or the aggregated API server of one kind is down.
    #[test]
    fn a_kind_with_persistent_server_errors_is_failing() {
        let (mut policy, begun, mut random) = (watching(5), Duration::ZERO, StdRng::seed_from_u64(1));
        let server_error =
            || ListWatchEnd::from(ReadError::ServerError { why: "no conversion".into(), retry_after: None });
        assert_eq!(policy.ended(&server_error(), begun, &mut random).new_state, None);
        assert_eq!(
            policy.ended(&server_error(), begun + SERVER_ERROR_TIME / 2, &mut random).new_state,
            Some(ReadState::Unavailable)
        );
        assert_eq!(
            policy.ended(&server_error(), begun + SERVER_ERROR_TIME, &mut random).new_state,
            Some(ReadState::Failing)
        );
        assert!(!policy.opened(), "a relist comes first");
        assert_eq!(policy.listed(version(6)), Some(ReadState::Readable));
        let again = policy.ended(&server_error(), begun + 2 * SERVER_ERROR_TIME, &mut random).new_state;
        assert_eq!(again, Some(ReadState::Unavailable), "the time starts again");
    }

    /// Nothing is published for a group until its kinds are listed or unreadable.
    #[rstest]
    #[case::server_error(ReadError::ServerError { why: "no conversion".into(), retry_after: None }, FIRST_LIST_TIME)]
    #[case::no_response(unavailable(), FIRST_RESPONSE_TIME)]
    fn errors_before_the_first_list_are_reported_soon(#[case] error: ReadError, #[case] time: Duration) {
        let (mut policy, begun) = (policy(), Duration::from_secs(9));
        assert!(!fail_at(&mut policy, &error, 3, begun).contains(&Some(ReadState::Failing)));
        assert_eq!(fail_at(&mut policy, &error, 2, begun + time), [Some(ReadState::Failing), None]);
        assert_eq!(policy.step(), ReadStep::List, "it goes on");
        assert_eq!(policy.listed(version(5)), Some(ReadState::Readable));
        let after = fail_at(&mut policy, &error, 4, begun + 2 * time);
        assert!(!after.contains(&Some(ReadState::Failing)), "the cached objects are likely still true");
    }

    /// A storage or a conversion webhook hangs: groups must not wait until the request times out.
    #[test]
    fn a_first_list_that_hangs_is_reported_once() {
        let mut policy = policy();
        assert_eq!(policy.patience(), Some(FIRST_LIST_PATIENCE));
        assert_eq!(policy.first_list_hangs(), Some(ReadState::Failing));
        assert_eq!((policy.patience(), policy.first_list_hangs()), (None, None));
        assert_eq!(
            fail(&mut policy, &unavailable(), 3),
            [None; 3],
            "it times out, and the retries hang, too"
        );
        assert_eq!(policy.step(), ReadStep::List, "it goes on");
        assert_eq!(policy.accept(&version(5), Duration::ZERO), Ok(false));
        assert_eq!(policy.listed(version(5)), Some(ReadState::Readable));
        assert_eq!(policy.first_list_hangs(), None, "the cached objects are likely still true");
    }

    #[test]
    fn a_list_whose_first_page_has_arrived_does_not_hang() {
        let mut policy = policy();
        assert_eq!(policy.accept(&version(5), Duration::ZERO), Ok(false));
        assert_eq!((policy.patience(), policy.first_list_hangs()), (None, None));
    }

    #[test]
    fn the_first_list_is_retried_every_second() {
        let (mut policy, mut random) = (policy(), StdRng::seed_from_u64(1));
        let error = ReadError::ServerError { why: "no".into(), retry_after: None };
        for _ in 0..20 {
            let reaction = policy.ended(&error.clone().into(), Duration::ZERO, &mut random);
            assert!(reaction.pause <= FIRST_LIST_PAUSE);
        }
    }

    #[test]
    fn a_stale_list_is_accepted_only_after_a_restore() {
        let mut policy = watching(5);
        policy.reset();
        let mut now = Duration::ZERO;
        for _ in 0..10 {
            assert_eq!(policy.accept(&version(4), now), Err(ReadError::Stale));
        }
        assert_eq!(
            policy.accept(&version(5), now + RESTORED_TIME),
            Ok(false),
            "the API server has caught up"
        );
        for _ in 0..4 {
            now += RESTORED_TIME;
            assert_eq!(policy.accept(&version(4), now), Err(ReadError::Stale));
        }
        assert_eq!(policy.accept(&version(4), now), Ok(true));
        policy.listed(version(4));
        assert_eq!(policy.step(), watch(4));
    }

    #[test]
    fn after_a_restore_any_list_is_accepted() {
        let mut policy = watching(292);
        policy.restored();
        assert_eq!(policy.step(), ReadStep::List);
        assert!(policy.has_listed());
        assert_eq!(policy.accept(&version(237), Duration::ZERO), Ok(false));
        policy.listed(version(237));
        assert_eq!(policy.step(), watch(237));
    }

    #[test]
    fn a_list_older_than_an_incomplete_one_is_stale() {
        let (mut policy, now) = (policy(), Duration::ZERO);
        assert_eq!(policy.accept(&version(23), now), Ok(false));
        fail_at(&mut policy, &ReadError::rejected("no second page"), 1, now);
        assert_eq!(policy.accept(&version(13), now), Err(ReadError::Stale));
        assert_eq!(policy.accept(&version(23), now), Ok(false));
        policy.listed(version(23));
        assert_eq!(policy.step(), watch(23));
    }

    #[test]
    fn the_first_retry_after_a_working_watch_is_immediate() {
        let (now, mut random) = (Duration::ZERO, StdRng::seed_from_u64(1));
        let mut policy = watching(5);
        let mut pause = |policy: &mut ListWatchPolicy, lasted, error| {
            policy.ended(&ListWatchEnd { lasted, error }, now, &mut random).pause
        };
        assert_eq!(pause(&mut policy, false, None), Duration::ZERO);
        assert_ne!(pause(&mut policy, false, None), Duration::ZERO);
        policy.listed(version(6));
        assert_ne!(
            pause(&mut policy, false, None),
            Duration::ZERO,
            "a list alone does not reset the backoff"
        );
        assert_eq!(pause(&mut policy, true, None), Duration::ZERO);
        assert_ne!(pause(&mut policy, false, Some(ReadError::Expired)), Duration::ZERO);
        policy.watch_succeeded();
        assert_eq!(pause(&mut policy, false, Some(ReadError::Expired)), Duration::ZERO);
        let busy = ReadError::Unavailable { why: "busy".into(), retry_after: Some(Duration::from_secs(3)) };
        assert!(pause(&mut policy, false, Some(busy)) >= Duration::from_secs(3));
    }

    #[test]
    fn starting_over_forgets_errors() {
        let mut policy = watching(5);
        let begun = Duration::ZERO;
        fail_at(&mut policy, &forbidden(), 1, begun);
        fail_at(&mut policy, &forbidden(), 1, begun + FORBIDDEN_TIME);
        policy.reset();
        assert_eq!(policy.step(), ReadStep::List);
        let later = begun + FORBIDDEN_TIME * 2;
        assert_eq!(fail_at(&mut policy, &forbidden(), 1, later), [None]);
        assert_eq!(
            fail_at(&mut policy, &forbidden(), 1, later + FORBIDDEN_TIME),
            [Some(ReadState::Forbidden)]
        );
    }
}
