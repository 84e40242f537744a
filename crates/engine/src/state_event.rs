//! When a change of a group's state is reported as an Event, and of which type.
//!
//! What was reported is in the status: a field, `lastEvent`, or in the API of others conditions. So a restart or a
//! new leader neither repeats an Event nor loses one: an Event is due if the status differs from what [`next`]
//! returns, and it is recorded once that is written.

use bellwether_api::{EventType, LastEvent, State};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::stored_condition;

/// While a manifest is being applied, its group is created before or after its members.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// How long a state is `Unknown` before a person should look.
const UNKNOWN_LASTS: SignedDuration = SignedDuration::from_secs(60);

/// The `lastEvent` to store for a state, and when time alone changes it.
pub(crate) fn next(
    stored: Option<&LastEvent>,
    state: State,
    created: Option<Timestamp>,
    now: Timestamp,
) -> (Option<LastEvent>, Option<Timestamp>) {
    let same = stored.filter(|stored| stored.state == state);
    let (type_, later) = match state {
        State::Failed | State::Missing => (EventType::Warning, None),
        State::Unknown => match same {
            Some(same) if same.type_ == EventType::Warning => (EventType::Warning, None),
            Some(same) => match same.time.0.checked_add(UNKNOWN_LASTS) {
                Ok(end) if now < end => (EventType::Normal, Some(end)),
                _ => (EventType::Warning, None),
            },
            None => (EventType::Normal, now.checked_add(UNKNOWN_LASTS).ok()),
        },
        State::Ready | State::InProgress | State::Suspended | State::Terminating => (EventType::Normal, None),
    };
    if same.is_some_and(|same| same.type_ == type_) {
        return (stored.cloned(), later);
    }
    if let Some(end) = grace_end(created).filter(|end| now < *end && type_ == EventType::Warning) {
        return (stored.cloned(), Some(end));
    }
    let time = stored_condition::whole_seconds(now).unwrap_or(now);
    (Some(LastEvent { state, type_, time: Time(time) }), later)
}

/// Whether a change of the stored `lastEvent` is recorded as an Event. The first good state of a group is not
/// a change, and during the grace period it is not yet known what the manifest contains.
pub(crate) fn is_recorded(from: Option<&LastEvent>, to: &LastEvent, created: Option<Timestamp>) -> bool {
    let is_first = from.is_none() && to.type_ == EventType::Normal;
    !is_first && !is_early(to.time.0, created)
}

/// Whether this is in the grace period of the group.
pub(crate) fn is_early(time: Timestamp, created: Option<Timestamp>) -> bool {
    grace_end(created).is_some_and(|end| time < end)
}

fn grace_end(created: Option<Timestamp>) -> Option<Timestamp> {
    created?.checked_add(GRACE).ok()
}

#[cfg(test)]
mod tests {
    use bellwether_api::EventType::{Normal, Warning};
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn event(state: State, type_: EventType, second: i64) -> LastEvent {
        LastEvent { state, type_, time: Time(at(second)) }
    }

    /// Stored `lastEvent`, state, seconds since the creation of the group; the next `lastEvent` and when it may
    /// change; whether it is recorded.
    #[rstest]
    #[case::first_in_grace(None, State::InProgress, 1, Some((State::InProgress, Normal, 1)), None, false)]
    #[case::bad_in_grace(None, State::Missing, 3, None, Some(10), false)]
    #[case::bad_after_grace(None, State::Missing, 10, Some((State::Missing, Warning, 10)), None, true)]
    #[case::ready_in_grace(Some((State::InProgress, Normal, 1)), State::Ready, 9, Some((State::Ready, Normal, 9)), None, false)]
    #[case::ready_later(Some((State::InProgress, Normal, 1)), State::Ready, 11, Some((State::Ready, Normal, 11)), None, true)]
    #[case::worse_in_grace(Some((State::InProgress, Normal, 1)), State::Failed, 5, Some((State::InProgress, Normal, 1)), Some(10), false)]
    #[case::first_seen_late(None, State::Ready, 500, Some((State::Ready, Normal, 500)), None, false)]
    #[case::first_seen_failed(None, State::Failed, 500, Some((State::Failed, Warning, 500)), None, true)]
    #[case::same(Some((State::Failed, Warning, 50)), State::Failed, 500, Some((State::Failed, Warning, 50)), None, false)]
    #[case::failed(Some((State::InProgress, Normal, 50)), State::Failed, 500, Some((State::Failed, Warning, 500)), None, true)]
    #[case::unknown(Some((State::Ready, Normal, 50)), State::Unknown, 500, Some((State::Unknown, Normal, 500)), Some(560), true)]
    #[case::still_unknown(Some((State::Unknown, Normal, 500)), State::Unknown, 559, Some((State::Unknown, Normal, 500)), Some(560), false)]
    #[case::unknown_lasts(Some((State::Unknown, Normal, 500)), State::Unknown, 560, Some((State::Unknown, Warning, 560)), None, true)]
    #[case::unknown_was_reported(Some((State::Unknown, Warning, 560)), State::Unknown, 900, Some((State::Unknown, Warning, 560)), None, false)]
    #[case::unknown_since_the_creation(Some((State::Unknown, Normal, 1)), State::Unknown, 61, Some((State::Unknown, Warning, 61)), None, true)]
    fn events_of_states(
        #[case] stored: Option<(State, EventType, i64)>,
        #[case] state: State,
        #[case] now: i64,
        #[case] expected: Option<(State, EventType, i64)>,
        #[case] later: Option<i64>,
        #[case] recorded: bool,
    ) {
        let of = |(state, type_, second): (State, EventType, i64)| event(state, type_, second);
        let (stored, created) = (stored.map(of), Some(at(0)));
        let (event, time) = next(stored.as_ref(), state, created, at(now));
        assert_eq!((&event, time), (&expected.map(of), later.map(at)));
        let changed = event.filter(|event| stored.as_ref() != Some(event));
        assert_eq!(changed.is_some_and(|event| is_recorded(stored.as_ref(), &event, created)), recorded);
    }

    #[test]
    fn without_a_creation_time_there_is_no_grace_period() {
        let (event, _) = next(None, State::Failed, None, at(1));
        assert!(is_recorded(None, &event.expect("an Event"), None));
    }
}
