//! Judges all that is published, a little later, when all is known that was before it.
//!
//! A status is wrong if what it says of the objects of a kind was not so at any moment at which the controller can have seen
//! them. Those moments end with the write itself and begin with the trouble that may have kept news of the kind back (see
//! `trouble`). Each kind has moments of its own, because nobody can see two kinds at the same one; so has the rule for
//! Widgets. Within a kind, all objects must be as they were at one and the same moment.
//!
//! Besides, a status must be about the generation that it is stored with, and agree with itself.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{
    alarm::Alarms,
    cast::Kind,
    trouble::Troubles,
    truth::Share,
    witness::{Deleted, Published, Seen, Subject, Witness},
};

/// So long after it was seen, what was written before has been seen too.
const LATER: Duration = Duration::from_secs(3);

/// So long, if nothing has happened since that proves it.
const MUCH_LATER: Duration = Duration::from_secs(20);

/// After so long it is not judged any more.
const TOO_LATE: Duration = Duration::from_mins(2);

/// How statuses were judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    /// So many were judged,
    pub statuses: usize,
    /// and so many could not be, because the witness had missed something itself.
    pub unclear: usize,
}

/// Judges for ever.
pub async fn judge(witness: Witness, troubles: Troubles, alarms: Alarms, tell: impl Fn(Judged)) {
    let mut judged = Judged::default();
    loop {
        sleep(Duration::from_millis(500)).await;
        let mut seen = witness.lock();
        let now = Instant::now();
        while let Some(published) = seen.published.front().cloned() {
            match before(&seen, &published, now) {
                Before::NotYetKnown => break,
                Before::Known => match wrong(&seen, &published, &troubles) {
                    Ok(()) => judged.statuses += 1,
                    Err(Finding::Unclear) => judged.unclear += 1,
                    Err(Finding::Wrong(what)) => {
                        judged.statuses += 1;
                        let (namespace, name) = (&published.app.namespace, &published.app.name);
                        alarms.raise(&format!("Application {namespace}/{name} {what}"));
                    }
                },
                Before::NeverKnown => judged.unclear += 1,
            }
            seen.published.pop_front();
        }
        while let Some(deleted) = seen.deleted.pop_front_if(|deleted| now - deleted.seen > LATER * 2) {
            if !is_explained(&seen, &deleted) {
                let Deleted { what, fact, .. } = &deleted;
                alarms.raise(&format!("{what} was deleted, and nobody asked for it: {fact:?}"));
            }
        }
        seen.chronicle.forget(now);
        tell(judged);
    }
}

/// What is found.
enum Finding {
    Wrong(String),
    Unclear,
}

/// What was before a status.
enum Before {
    Known,
    NotYetKnown,
    NeverKnown,
}

fn before(seen: &Seen, published: &Published, now: Instant) -> Before {
    let age = now - published.seen;
    let is_known = |kind: &Kind| {
        let (since, revision) = seen.heard(Subject::Members(*kind));
        let for_long = since.is_some_and(|since| now - since > MUCH_LATER);
        (revision >= published.revision && age > LATER) || (age > MUCH_LATER && for_long)
    };
    if published.app.kinds().iter().all(is_known) {
        Before::Known
    } else if age > TOO_LATE {
        Before::NeverKnown
    } else {
        Before::NotYetKnown
    }
}

/// What is wrong with a status.
fn wrong(seen: &Seen, published: &Published, troubles: &Troubles) -> Result<(), Finding> {
    let Published { app, revision, .. } = published;
    let at = seen.chronicle.time_of(*revision).unwrap_or(published.seen).min(published.seen);
    let Some(ready) = app.condition("Ready") else {
        return Err(Finding::Wrong("has a status without the condition Ready".to_owned()));
    };
    if app.status.observed_generation != Some(app.generation) {
        return Err(Finding::Wrong(format!(
            "has a status about generation {:?} while it is at {}",
            app.status.observed_generation, app.generation
        )));
    }
    if app.condition("Resolved").is_none_or(|(status, _)| status != "True") {
        let is_so = app.kinds().iter().any(|kind| troubles.was_unreadable(*kind, at));
        return match (is_so, ready.0) {
            (true, "False" | "Unknown") => Ok(()),
            (true, _) => Err(Finding::Wrong("is ready although a kind cannot be read".to_owned())),
            (false, _) => Err(Finding::Wrong(format!(
                "says that a kind cannot be read ({:?}), and all could be",
                app.status.conditions
            ))),
        };
    }
    let shares = app.kinds().into_iter().map(|kind| app.published(kind));
    let all = Share::join(shares);
    if ready != all.ready() || app.status.object_counts != Some(all.counts()) {
        return Err(Finding::Wrong(format!(
            "is {ready:?} and counts {:?}, and lists {:?}",
            app.status.object_counts, all.objects
        )));
    }
    app.kinds().into_iter().try_for_each(|kind| was_so(seen, published, kind, at, troubles))
}

/// Whether what a status says of a kind was ever so.
fn was_so(
    seen: &Seen,
    published: &Published,
    kind: Kind,
    at: Instant,
    troubles: &Troubles,
) -> Result<(), Finding> {
    let Published { app, revision, .. } = published;
    let since = troubles.since(kind, at);
    let from = seen.chronicle.revision_at(since).min(*revision);
    let rules = seen.chronicle.rules_between(from, *revision);
    let says = app.published(kind);
    let mut last = None;
    let was_so = seen.chronicle.was_ever(kind, &app.namespace, (from, *revision), |objects| {
        rules.iter().any(|rule| {
            let mut share = app.share(kind, objects, *rule);
            share.behind = false;
            let is_so = share == says;
            last = Some(share);
            is_so
        })
    });
    if was_so {
        return Ok(());
    }
    if seen.chronicle.has_gap(kind, from, *revision) {
        return Err(Finding::Unclear);
    }
    let last = last.unwrap_or_default();
    let differs = |share: &Share, other: &Share| -> Vec<String> {
        let objects = share.objects.iter().filter(|(key, state)| other.objects.get(*key) != Some(*state));
        objects.map(|((_, name), state)| format!("{name} {}", state.name())).collect()
    };
    Err(Finding::Wrong(format!(
        "said at revision {revision} that it is {:?}, and of its {}s {:?}, installed {:?}, missing {:?}, which was never so in \
         {:.1} s since revision {from}; the last was {:?}, installed {:?}, missing {:?}",
        app.condition("Ready"),
        kind.name(),
        differs(&says, &last),
        says.installed,
        says.missing,
        (at - since).as_secs_f64(),
        differs(&last, &says),
        last.installed,
        last.missing,
    )))
}

/// Whether the garbage collector had to delete an object: all its owners were Applications, and all are gone.
fn is_explained(seen: &Seen, deleted: &Deleted) -> bool {
    let is_gone = |uid: &String| {
        seen.gone.contains(uid) || seen.applications.values().any(|app| app.uid == *uid && app.deleting)
    };
    let owners = &deleted.fact.owners;
    !owners.is_empty() && owners.iter().all(|owner| owner.is_application && is_gone(&owner.uid))
}
