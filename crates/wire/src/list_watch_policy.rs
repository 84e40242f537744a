//! The course of a feed: what it does next, and how it takes what goes wrong. It knows no network and no clock.
//!
//! Its moments are [`Now::passed`](bellwether_engine::Now::passed): a clock that is set changes no pause.

use std::{mem, time::Duration};

use bellwether_engine::{ResourceVersion, planted::Bug};
use rand::Rng;

use crate::{
    backoff::{Backoff, BackoffLimits},
    read_error::ReadError,
};

/// So many lists in a row that are older than what is known, for so long: it is not this one API server that is behind. The
/// cluster was restored from a backup.
const RESTORED_LISTS: u32 = 5;
const RESTORED_TIME: Duration = Duration::from_mins(1);

/// An error that stays for so many attempts, or for so long, does not go away by itself.
const STUBBORN_ATTEMPTS: u32 = 5;
const STUBBORN_TIME: Duration = Duration::from_secs(30);

/// A server that has just begun forbids everything, until it has read who may do what. What is forbidden has to be so for so
/// long to be believed.
const FORBIDDEN_TIME: Duration = Duration::from_secs(5);
/// Until then it is asked at least so often.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(1);

/// A server that has answered for so long that it cannot will not soon. Most are well again before that, and what was
/// known until then is likely to be true still.
const UNWELL_TIME: Duration = Duration::from_mins(2);

/// What a feed does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// It lists all objects.
    List,
    /// It watches for what has changed since this version.
    Watch(ResourceVersion),
}

/// How a kind is doing, as far as reading it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// It can be read.
    Readable,
    /// The server does not answer. What was read stays in force.
    Unavailable,
    /// We may not read it.
    Forbidden,
    /// It cannot be read, and that does not go away.
    Failing,
}

impl ReadState {
    /// Whether what is known of the kind no longer holds.
    pub fn is_unreadable(self) -> bool {
        matches!(self, Self::Forbidden | Self::Failing)
    }
}

/// How a step ended: a watch in its time, or anything because of some trouble.
#[derive(Debug)]
pub struct Ended {
    /// Whether it went well for long enough that what was before no longer matters.
    pub lived: bool,
    /// What went wrong, if anything did.
    pub trouble: Option<ReadError>,
}

impl From<ReadError> for Ended {
    fn from(trouble: ReadError) -> Self {
        Self { lived: false, trouble: Some(trouble) }
    }
}

/// What follows from the end of a step.
#[derive(Debug, PartialEq, Eq)]
pub struct Reaction {
    /// How long to wait before the next step.
    pub pause: Duration,
    /// The state, if it has turned.
    pub turned: Option<ReadState>,
}

/// The course of a feed.
#[derive(Debug)]
pub struct ListWatchPolicy {
    /// The version up to which everything is known.
    known: Option<ResourceVersion>,
    /// The version of the last list of which a page was told, whether the rest came or not.
    begun: Option<ResourceVersion>,
    /// Whether all must be listed, whatever is known.
    list: bool,
    /// Since when lists have been older than what was told, and how many.
    behind: Option<(Duration, u32)>,
    backoff: Backoff,
    state: ReadState,
    /// Since when the server has refused to answer, and how often.
    refused: Option<(Duration, u32)>,
    /// Since when it has answered that it cannot.
    server_error: Option<Duration>,
    /// Since when it has answered that it must not.
    forbidden: Option<Duration>,
}

impl ListWatchPolicy {
    /// One that begins with a list.
    pub fn new(pauses: BackoffLimits) -> Self {
        Self {
            known: None,
            begun: None,
            list: true,
            behind: None,
            backoff: Backoff::new(pauses),
            state: ReadState::Readable,
            refused: None,
            server_error: None,
            forbidden: None,
        }
    }

    /// What to do next.
    pub fn step(&self) -> ReadStep {
        match &self.known {
            Some(version) if !self.list => ReadStep::Watch(version.clone()),
            _ => ReadStep::List,
        }
    }

    /// Whether everything was listed once.
    pub fn has_listed(&self) -> bool {
        self.known.is_some()
    }

    /// Everything must be listed once more, and what stood in the way before does not matter.
    pub fn start_over(&mut self) {
        self.list = true;
        self.state = ReadState::Readable;
        self.refused = None;
        self.server_error = None;
        self.forbidden = None;
        self.backoff.reset();
    }

    /// The first page of a list of this version has arrived. A list that is older than what was told is not to be used, unless
    /// the cluster itself was put back, which is what this gives back. A page of a list that broke off was told, too: the
    /// objects in it stay as they are, and a list that is older than they would mix two times.
    pub fn accept(&mut self, version: &ResourceVersion, now: Duration) -> Result<bool, ReadError> {
        let mut told = self.known.iter().chain(&self.begun);
        let is_older = told.any(|told| version.is_before(told)) && !Bug::TrustOlderList.is_planted();
        if is_older {
            let (since, lists) = self.behind.get_or_insert((now, 0));
            *lists += 1;
            if *lists < RESTORED_LISTS || now.saturating_sub(*since) < RESTORED_TIME {
                return Err(ReadError::Stale);
            }
        }
        self.behind = None;
        self.begun = Some(version.clone());
        Ok(is_older)
    }

    /// The list is complete. Gives the state, if it has turned.
    pub fn listed(&mut self, version: ResourceVersion) -> Option<ReadState> {
        self.known = Some(version);
        self.list = false;
        self.recover()
    }

    /// A watch has begun. Gives whether to go on with it: what could not be read before is listed first.
    pub fn opened(&mut self) -> bool {
        if self.state.is_unreadable() {
            self.list = true;
            return false;
        }
        true
    }

    /// Everything up to this version has been told.
    pub fn told(&mut self, version: &ResourceVersion) {
        let is_older = self.known.as_ref().is_some_and(|known| version.is_before(known));
        if !version.as_str().is_empty() && !is_older {
            self.known = Some(version.clone());
        }
    }

    /// A watch has shown that it is alive. Gives the state, if it has turned.
    pub fn lived(&mut self) -> Option<ReadState> {
        self.backoff.reset();
        self.recover()
    }

    /// A step has ended: what follows from that.
    pub fn ended(&mut self, ended: &Ended, now: Duration, random: &mut impl Rng) -> Reaction {
        let before = self.state;
        if ended.lived {
            self.lived();
        }
        let wish = ended.trouble.as_ref().and_then(ReadError::retry_after);
        let mut pause = self.backoff.pause_or_as_asked(wish, random);
        if let Some(trouble) = &ended.trouble {
            self.state = self.state_after(trouble, now);
        }
        if self.forbidden.is_some() && self.state != ReadState::Forbidden {
            pause = pause.min(FORBIDDEN_PAUSE);
        }
        Reaction { pause, turned: (self.state != before).then_some(self.state) }
    }

    fn state_after(&mut self, trouble: &ReadError, now: Duration) -> ReadState {
        if !matches!(trouble, ReadError::Forbidden { .. }) {
            self.forbidden = None;
        }
        match trouble {
            ReadError::Expired | ReadError::Stale => {
                self.list = !Bug::ResumeAfterGone.is_planted();
                self.state
            }
            ReadError::Forbidden { .. } if self.is_forbidden_for_good(now) => ReadState::Forbidden,
            ReadError::NotFound { .. } | ReadError::Rejected { .. } if self.is_persistent(now) => {
                ReadState::Failing
            }
            ReadError::ServerError { .. } if self.is_server_error_for_long(now) => ReadState::Failing,
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

    /// The server has refused once more. Gives whether that is how it stays.
    fn is_persistent(&mut self, now: Duration) -> bool {
        let (since, times) = self.refused.get_or_insert((now, 0));
        *times += 1;
        *times >= STUBBORN_ATTEMPTS || now.saturating_sub(*since) >= STUBBORN_TIME
    }

    /// The server has answered once more that it cannot. Gives whether it has for long.
    fn is_server_error_for_long(&mut self, now: Duration) -> bool {
        now.saturating_sub(*self.server_error.get_or_insert(now)) >= UNWELL_TIME
    }

    /// The server has answered once more that it must not. Gives whether that is to be believed.
    fn is_forbidden_for_good(&mut self, now: Duration) -> bool {
        now.saturating_sub(*self.forbidden.get_or_insert(now)) >= FORBIDDEN_TIME
    }

    fn recover(&mut self) -> Option<ReadState> {
        self.refused = None;
        self.server_error = None;
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

    fn away() -> ReadError {
        ReadError::unavailable("connection refused")
    }

    fn forbidden() -> ReadError {
        ReadError::Forbidden { why: "no".into() }
    }

    /// Fails at once so many times; gives how the state turned each time.
    fn fail(policy: &mut ListWatchPolicy, trouble: &ReadError, times: usize) -> Vec<Option<ReadState>> {
        fail_from(policy, trouble, times, Duration::ZERO)
    }

    /// Fails so many times at this moment.
    fn fail_from(
        policy: &mut ListWatchPolicy,
        trouble: &ReadError,
        times: usize,
        now: Duration,
    ) -> Vec<Option<ReadState>> {
        let mut random = StdRng::seed_from_u64(1);
        (0..times).map(|_| policy.ended(&trouble.clone().into(), now, &mut random).turned).collect()
    }

    #[test]
    fn it_lists_once_and_then_watches_from_what_is_known() {
        let mut policy = policy();
        assert_eq!(policy.step(), ReadStep::List);
        assert_eq!(policy.listed(version(5)), None);
        assert_eq!(policy.step(), watch(5));
        assert!(policy.opened());
        policy.told(&version(8));
        policy.told(&version(7));
        policy.told(&ResourceVersion::new(""));
        assert_eq!(policy.step(), watch(8), "it never goes back");
    }

    #[rstest]
    #[case::expired(ReadError::Expired, ReadStep::List)]
    #[case::away(away(), watch(5))]
    #[case::forbidden(forbidden(), watch(5))]
    #[case::refused(ReadError::rejected("no"), watch(5))]
    #[case::absent(ReadError::NotFound { why: "no".into() }, watch(5))]
    fn only_what_is_lost_is_listed_again(#[case] trouble: ReadError, #[case] expected: ReadStep) {
        let mut policy = watching(5);
        fail(&mut policy, &trouble, 3);
        assert_eq!(policy.step(), expected);
    }

    #[test]
    fn a_server_that_is_away_is_no_reason_to_doubt_what_is_known() {
        let mut policy = watching(5);
        let states = fail(&mut policy, &away(), 100);
        assert_eq!(states[..3], [None, Some(ReadState::Unavailable), None]);
        assert!(states[3..].iter().all(Option::is_none), "it is said once");
        assert!(policy.opened());
        assert_eq!(policy.lived(), Some(ReadState::Readable));
        assert_eq!(policy.step(), watch(5));
    }

    #[test]
    fn what_was_forbidden_is_listed_when_it_is_allowed() {
        let mut policy = watching(5);
        let begun = Duration::ZERO;
        assert_eq!(fail_from(&mut policy, &forbidden(), 3, begun), [None; 3], "a server may have just begun");
        let reaction = policy.ended(&forbidden().into(), begun, &mut StdRng::seed_from_u64(1));
        assert!(reaction.pause <= FORBIDDEN_PAUSE);
        let later = begun + FORBIDDEN_TIME;
        assert_eq!(fail_from(&mut policy, &forbidden(), 2, later), [Some(ReadState::Forbidden), None]);
        assert_eq!(policy.step(), watch(5), "a watch shows whether it still is, at less cost than a list");
        assert!(!policy.opened());
        assert_eq!(policy.step(), ReadStep::List);
        assert_eq!(policy.listed(version(9)), Some(ReadState::Readable));
        assert_eq!(policy.step(), watch(9));
    }

    /// Otherwise what is known without a kind would be told for a moment, though it is served.
    #[test]
    fn what_was_never_read_is_not_forbidden_at_once_either() {
        let (mut policy, begun) = (policy(), Duration::ZERO);
        assert_eq!(fail_from(&mut policy, &forbidden(), 3, begun), [None; 3]);
        assert_eq!(
            fail_from(&mut policy, &forbidden(), 1, begun + FORBIDDEN_TIME),
            [Some(ReadState::Forbidden)]
        );
    }

    #[test]
    fn a_server_that_goes_away_gives_no_rights_back() {
        let mut policy = watching(5);
        let begun = Duration::ZERO;
        fail_from(&mut policy, &forbidden(), 1, begun);
        fail_from(&mut policy, &forbidden(), 1, begun + FORBIDDEN_TIME);
        assert_eq!(fail(&mut policy, &away(), 5), [None; 5]);
        assert!(!policy.opened(), "it is still to be listed");
    }

    #[test]
    fn errors_that_stay_are_told() {
        let mut policy = policy();
        let states = fail(&mut policy, &ReadError::rejected("no"), 6);
        assert_eq!(states, [None, None, None, None, Some(ReadState::Failing), None]);
        assert_eq!(policy.listed(version(5)), Some(ReadState::Readable));
        assert_eq!(fail(&mut policy, &ReadError::rejected("no"), 4), [None; 4], "it is counted anew");
    }

    #[test]
    fn errors_that_stay_for_long_are_told_too() {
        let (now, mut random) = (Duration::ZERO, StdRng::seed_from_u64(1));
        let mut policy = policy();
        let refused = ReadError::rejected("no").into();
        assert_eq!(policy.ended(&refused, now, &mut random).turned, None);
        assert_eq!(policy.ended(&refused, now + STUBBORN_TIME, &mut random).turned, Some(ReadState::Failing));
    }

    /// One kind whose webhook or server is down, while all others are well.
    #[test]
    fn a_kind_that_the_server_cannot_serve_for_long_is_failing() {
        let (mut policy, begun, mut random) = (watching(5), Duration::ZERO, StdRng::seed_from_u64(1));
        let server_error =
            || Ended::from(ReadError::ServerError { why: "no conversion".into(), retry_after: None });
        assert_eq!(policy.ended(&server_error(), begun, &mut random).turned, None);
        assert_eq!(
            policy.ended(&server_error(), begun + UNWELL_TIME / 2, &mut random).turned,
            Some(ReadState::Unavailable)
        );
        assert_eq!(
            policy.ended(&server_error(), begun + UNWELL_TIME, &mut random).turned,
            Some(ReadState::Failing)
        );
        assert!(!policy.opened(), "what could not be read is listed first");
        assert_eq!(policy.listed(version(6)), Some(ReadState::Readable));
        let again = policy.ended(&server_error(), begun + 2 * UNWELL_TIME, &mut random).turned;
        assert_eq!(again, Some(ReadState::Unavailable), "it counts anew");
    }

    #[test]
    fn a_list_from_the_past_is_used_only_if_there_is_no_other() {
        let mut policy = watching(5);
        policy.start_over();
        let mut now = Duration::ZERO;
        for _ in 0..10 {
            assert_eq!(policy.accept(&version(4), now), Err(ReadError::Stale));
        }
        assert_eq!(policy.accept(&version(5), now + RESTORED_TIME), Ok(false), "it has caught up");
        for _ in 0..4 {
            now += RESTORED_TIME;
            assert_eq!(policy.accept(&version(4), now), Err(ReadError::Stale));
        }
        assert_eq!(policy.accept(&version(4), now), Ok(true));
        policy.listed(version(4));
        assert_eq!(policy.step(), watch(4));
    }

    #[test]
    fn a_list_older_than_one_that_broke_off_is_not_used() {
        let (mut policy, now) = (policy(), Duration::ZERO);
        assert_eq!(policy.accept(&version(23), now), Ok(false));
        fail_from(&mut policy, &ReadError::rejected("no second page"), 1, now);
        assert_eq!(policy.accept(&version(13), now), Err(ReadError::Stale));
        assert_eq!(policy.accept(&version(23), now), Ok(false));
        policy.listed(version(23));
        assert_eq!(policy.step(), watch(23));
    }

    #[test]
    fn the_first_attempt_after_a_good_watch_is_at_once() {
        let (now, mut random) = (Duration::ZERO, StdRng::seed_from_u64(1));
        let mut policy = watching(5);
        let mut pause = |policy: &mut ListWatchPolicy, lived, trouble| {
            policy.ended(&Ended { lived, trouble }, now, &mut random).pause
        };
        assert_eq!(pause(&mut policy, false, None), Duration::ZERO);
        assert_ne!(pause(&mut policy, false, None), Duration::ZERO);
        policy.listed(version(6));
        assert_ne!(pause(&mut policy, false, None), Duration::ZERO, "a list alone proves little");
        assert_eq!(pause(&mut policy, true, None), Duration::ZERO);
        assert_ne!(pause(&mut policy, false, Some(ReadError::Expired)), Duration::ZERO);
        policy.lived();
        assert_eq!(pause(&mut policy, false, Some(ReadError::Expired)), Duration::ZERO);
        let busy = ReadError::Unavailable { why: "busy".into(), retry_after: Some(Duration::from_secs(3)) };
        assert!(pause(&mut policy, false, Some(busy)) >= Duration::from_secs(3));
    }

    #[test]
    fn what_was_in_the_way_does_not_matter_after_a_new_start() {
        let mut policy = watching(5);
        let begun = Duration::ZERO;
        fail_from(&mut policy, &forbidden(), 1, begun);
        fail_from(&mut policy, &forbidden(), 1, begun + FORBIDDEN_TIME);
        policy.start_over();
        assert_eq!(policy.step(), ReadStep::List);
        let later = begun + FORBIDDEN_TIME * 2;
        assert_eq!(fail_from(&mut policy, &forbidden(), 1, later), [None]);
        assert_eq!(
            fail_from(&mut policy, &forbidden(), 1, later + FORBIDDEN_TIME),
            [Some(ReadState::Forbidden)]
        );
    }
}
