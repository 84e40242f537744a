//! How late a controller may be, because something was broken.
//!
//! Nobody can know what is kept from them. A status is judged by how things were at any moment since the trouble began that
//! may have kept the news back; where there was none, in the last few seconds.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::cast::Kind;

/// So late anybody may be, on a machine that does many things at a time.
const CALM: Duration = Duration::from_secs(5);

/// Whoever was kept from reading asks again after a pause, which is half a minute at most.
const AFTERWARDS: Duration = Duration::from_secs(35);

/// All troubles so far.
#[derive(Clone, Default)]
pub(crate) struct Troubles(Arc<Mutex<Vec<Trouble>>>);

#[derive(Clone, Debug)]
struct Trouble {
    /// The kind of which news may be late; all if none is named.
    kind: Option<Kind>,
    /// Whether the kind may have been unreadable.
    unreadable: bool,
    from: Instant,
    until: Option<Instant>,
    afterwards: Duration,
    /// When it was seen that all is well again.
    over: Option<Instant>,
}

/// A trouble that has not ended.
#[must_use = "it goes on until it is ended"]
pub(crate) struct Ongoing {
    troubles: Troubles,
    number: usize,
}

/// What a trouble does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effect {
    /// The kind of which news may be late; all if none is named.
    pub(crate) kind: Option<Kind>,
    /// Whether the kind may be unreadable.
    pub(crate) unreadable: bool,
    /// The news may be older than the trouble by so much.
    pub(crate) past: Duration,
    /// So long it takes until all is well again, at least.
    pub(crate) afterwards: Duration,
}

impl Troubles {
    /// Something is about to be broken.
    pub(crate) fn begin(&self, effect: Effect) -> Ongoing {
        let now = Instant::now();
        let mut all = self.lock();
        all.push(Trouble {
            kind: effect.kind,
            unreadable: effect.unreadable,
            from: now.checked_sub(effect.past + CALM).unwrap_or(now),
            until: None,
            over: None,
            afterwards: effect.afterwards.max(AFTERWARDS),
        });
        Ongoing { troubles: self.clone(), number: all.len() - 1 }
    }

    /// All is well, as can be seen: nothing that was broken before is felt any more.
    pub(crate) fn are_over(&self) {
        let now = Instant::now();
        for trouble in self.lock().iter_mut().filter(|trouble| trouble.until.is_some()) {
            trouble.over.get_or_insert(now);
        }
    }

    /// Since when news of a kind may have been kept back at a time.
    pub(crate) fn since(&self, kind: Kind, at: Instant) -> Instant {
        let all = self.lock();
        let own = |trouble: &&Trouble| trouble.kind.is_none_or(|other| other == kind) && trouble.from <= at;
        let mut since = at.checked_sub(CALM).unwrap_or(at);
        // One trouble may begin before the last is over.
        while let Some(earlier) =
            all.iter().filter(own).filter(|it| it.from < since && it.is_felt(since)).map(|it| it.from).min()
        {
            since = earlier;
        }
        since
    }

    /// Whether a kind may have been unreadable at a time.
    pub(crate) fn was_unreadable(&self, kind: Kind, at: Instant) -> bool {
        let is_so = |trouble: &Trouble| {
            trouble.unreadable
                && trouble.kind.is_none_or(|other| other == kind)
                && trouble.from <= at
                && trouble.is_felt(at)
        };
        self.lock().iter().any(is_so)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trouble {
    /// Whether it is felt at a time after it began.
    fn is_felt(&self, at: Instant) -> bool {
        let ends = self.until.map(|until| until + self.afterwards).into_iter().chain(self.over).min();
        ends.is_none_or(|end| at <= end)
    }
}

impl Ongoing {
    /// What was broken is whole again.
    pub(crate) fn end(self) {
        if let Some(trouble) = self.troubles.lock().get_mut(self.number) {
            trouble.until = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_calm_times_news_is_seconds_old() {
        let now = Instant::now();
        assert_eq!(Troubles::default().since(Kind::Widget, now + CALM), now);
    }

    #[test]
    fn news_may_be_as_old_as_the_trouble() {
        let troubles = Troubles::default();
        let effect = Effect { kind: Some(Kind::Widget), past: Duration::from_secs(7), ..Effect::default() };
        let ongoing = troubles.begin(effect);
        let begun = Instant::now();
        let later = begun + 2 * AFTERWARDS;
        let since = |kind| troubles.since(kind, later + CALM);
        assert!(since(Kind::Widget) + Duration::from_secs(7) <= begun);
        assert_eq!(since(Kind::ConfigMap), later);
        ongoing.end();
        assert!(troubles.since(Kind::Widget, begun + CALM) <= begun, "it is still felt");
        assert_eq!(since(Kind::Widget), later, "it is forgotten");
        troubles.are_over();
        let soon = Instant::now() + 2 * CALM;
        assert_eq!(troubles.since(Kind::Widget, soon + CALM), soon, "all is well, as was seen");
    }

    #[test]
    fn one_trouble_may_hand_over_to_the_next() {
        let troubles = Troubles::default();
        let now = Instant::now();
        let trouble = |from: u64, until: u64| Trouble {
            kind: None,
            unreadable: false,
            from: now + Duration::from_secs(from),
            until: Some(now + Duration::from_secs(until)),
            over: None,
            afterwards: AFTERWARDS,
        };
        troubles.lock().extend([trouble(100, 110), trouble(120, 130), trouble(200, 201)]);
        let since = |at: u64| (troubles.since(Kind::Widget, now + Duration::from_secs(at)) - now).as_secs();
        assert_eq!(since(150), 100);
        assert_eq!(since(190), 185, "both are forgotten");
        assert_eq!(since(204), 199);
    }
}
