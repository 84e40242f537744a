//! How stale the view of a controller may be because of faults.
//!
//! A controller cannot know events that a fault withholds. So a status may describe any state since the start
//! of the fault that may have delayed events; without a fault, any state of the last few seconds.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::objects::Kind;

/// The allowed delay without a fault, on a busy machine.
const NORMAL_DELAY: Duration = Duration::from_secs(5);

/// How long a fault has an scope after it is lifted: the backoff of a reflector is at most half a minute.
const BACKOFF: Duration = Duration::from_secs(35);

#[derive(Clone, Default)]
pub(crate) struct FaultWindows(Arc<Mutex<Vec<FaultWindow>>>);

#[derive(Clone, Debug)]
struct FaultWindow {
    /// The kind whose events may be delayed; `None`: all kinds.
    kind: Option<Kind>,
    /// Whether the kind may have been unreadable.
    unreadable: bool,
    from: Instant,
    until: Option<Instant>,
    afterwards: Duration,
    /// When a check has shown that the fault has no scope any more.
    over: Option<Instant>,
}

/// A fault that is active.
#[must_use = "the window stays open until it is ended"]
pub(crate) struct OpenWindow {
    windows: FaultWindows,
    number: usize,
}

/// The possible effects of a fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultScope {
    /// The kind whose events may be delayed; `None`: all kinds.
    pub(crate) kind: Option<Kind>,
    /// Whether the kind may be unreadable.
    pub(crate) unreadable: bool,
    /// How much older than the fault the state may be that a controller sees.
    pub(crate) past: Duration,
    /// The minimum time of recovery after the fault.
    pub(crate) afterwards: Duration,
}

impl FaultWindows {
    /// Call it before the fault is injected.
    pub(crate) fn begin(&self, scope: FaultScope) -> OpenWindow {
        let now = Instant::now();
        let mut all = self.lock();
        all.push(FaultWindow {
            kind: scope.kind,
            unreadable: scope.unreadable,
            from: now.checked_sub(scope.past + NORMAL_DELAY).unwrap_or(now),
            until: None,
            over: None,
            afterwards: scope.afterwards.max(BACKOFF),
        });
        OpenWindow { windows: self.clone(), number: all.len() - 1 }
    }

    /// Call it when a check has shown that no lifted fault has an scope any more.
    pub(crate) fn close_all(&self) {
        let now = Instant::now();
        for window in self.lock().iter_mut().filter(|window| window.until.is_some()) {
            window.over.get_or_insert(now);
        }
    }

    /// The oldest moment whose state of a kind a controller may see at time `at`.
    pub(crate) fn since(&self, kind: Kind, at: Instant) -> Instant {
        self.since_of(Some(kind), at)
    }

    /// The same for all kinds at once.
    pub(crate) fn since_all(&self, at: Instant) -> Instant {
        self.since_of(None, at)
    }

    /// Whether a controller may have missed a version of the HealthRule that was in force between two moments:
    /// without a fault, its watch shows every version.
    pub(crate) fn may_hide_rule(&self, begin: Instant, end: Instant) -> bool {
        let since = self.since_of(None, end + NORMAL_DELAY);
        since < end && since <= begin
    }

    /// Whether a controller with this start may not know what was replaced at time `at`.
    pub(crate) fn is_late(&self, start: Instant, at: Instant) -> bool {
        start >= self.since_of(None, at)
    }

    /// The oldest moment whose state of a kind a controller may see; of the HealthRules without a kind.
    fn since_of(&self, kind: Option<Kind>, at: Instant) -> Instant {
        let all = self.lock();
        let own =
            |window: &&FaultWindow| window.kind.is_none_or(|other| Some(other) == kind) && window.from <= at;
        let mut since = at.checked_sub(NORMAL_DELAY).unwrap_or(at);
        // Windows that overlap count as one.
        while let Some(earlier) =
            all.iter().filter(own).filter(|it| it.from < since && it.is_active(since)).map(|it| it.from).min()
        {
            since = earlier;
        }
        since
    }

    /// Whether a kind may have been unreadable at time `at`.
    pub(crate) fn was_unreadable(&self, kind: Kind, at: Instant) -> bool {
        let is_so = |window: &FaultWindow| {
            window.unreadable
                && window.kind.is_none_or(|other| other == kind)
                && window.from <= at
                && window.is_active(at)
        };
        self.lock().iter().any(is_so)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FaultWindow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultWindow {
    /// Whether the fault may still have an scope at a time after its start.
    fn is_active(&self, at: Instant) -> bool {
        let ends = self.until.map(|until| until + self.afterwards).into_iter().chain(self.over).min();
        ends.is_none_or(|end| at <= end)
    }
}

impl OpenWindow {
    /// Call it after the fault is lifted.
    pub(crate) fn end(self) {
        if let Some(window) = self.windows.lock().get_mut(self.number) {
            window.until = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_fault_the_state_is_at_most_seconds_old() {
        let now = Instant::now();
        assert_eq!(FaultWindows::default().since(Kind::Widget, now + NORMAL_DELAY), now);
    }

    #[test]
    fn the_state_may_be_as_old_as_the_fault() {
        let windows = FaultWindows::default();
        let scope =
            FaultScope { kind: Some(Kind::Widget), past: Duration::from_secs(7), ..FaultScope::default() };
        let window = windows.begin(scope);
        let begun = Instant::now();
        let later = begun + 2 * BACKOFF;
        let since = |kind| windows.since(kind, later + NORMAL_DELAY);
        assert!(since(Kind::Widget) + Duration::from_secs(7) <= begun);
        assert_eq!(since(Kind::ConfigMap), later);
        window.end();
        assert!(windows.since(Kind::Widget, begun + NORMAL_DELAY) <= begun, "still active");
        assert_eq!(since(Kind::Widget), later, "the backoff is over");
        windows.close_all();
        let soon = Instant::now() + 2 * NORMAL_DELAY;
        assert_eq!(windows.since(Kind::Widget, soon + NORMAL_DELAY), soon, "closed");
    }

    #[test]
    fn overlapping_windows_count_as_one() {
        let windows = FaultWindows::default();
        let now = Instant::now();
        let window = |from: u64, until: u64| FaultWindow {
            kind: None,
            unreadable: false,
            from: now + Duration::from_secs(from),
            until: Some(now + Duration::from_secs(until)),
            over: None,
            afterwards: BACKOFF,
        };
        windows.lock().extend([window(100, 110), window(120, 130), window(200, 201)]);
        let since = |at: u64| (windows.since(Kind::Widget, now + Duration::from_secs(at)) - now).as_secs();
        assert_eq!(since(150), 100);
        assert_eq!(since(190), 185, "both windows are over");
        assert_eq!(since(204), 199);
    }
}
