//! What every group says about its state: the stored status, probes and the terminal take it from here.

use bellwether_model::State;

/// The progress of a group, from the mean of its members: 100 if it is ready, otherwise at most 99.
pub(crate) fn progress(mean: Option<u8>, state: State) -> Option<u8> {
    match state {
        State::Ready => Some(100),
        _ => mean.map(|mean| mean.min(99)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::no_members(None, State::Unknown, None)]
    #[case::only_a_health_check(None, State::Ready, Some(100))]
    #[case::as_the_members(Some(40), State::InProgress, Some(40))]
    #[case::never_done_before_ready(Some(100), State::Failed, Some(99))]
    #[case::a_suspended_member(Some(60), State::Ready, Some(100))]
    fn progress_is_100_only_if_ready(
        #[case] mean: Option<u8>,
        #[case] state: State,
        #[case] expected: Option<u8>,
    ) {
        assert_eq!(progress(mean, state), expected);
    }
}
