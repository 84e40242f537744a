//! `bellwether wait`: waits until a group is ready.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stdout},
    time::Instant,
};

use anyhow::{Error, Result};
use bellwether_engine::Group;
use bellwether_inspect::{
    observe::{EvaluationScope, GroupQuery, LiveObservation, Notes, Observation, ObservedCluster},
    wait::{ProgressLog, WaitEnd, WaitOutcome, WaitState, cause_lines, page},
};
use bellwether_terminal::{Canvas, Screen, printable};
use jiff::{SignedDuration, Timestamp};

use crate::{
    cli::{Goal, Wait},
    output::{self, Outcome},
    signals::{INTERRUPTED, Stop},
};

pub(crate) fn run(command: &Wait, screen: Screen) -> Outcome {
    wait(command, Instant::now(), screen).unwrap_or_else(|error| {
        // An error is not a failure of the group.
        let code = exit_code(WaitOutcome::CannotTell);
        Outcome { errors: vec![format!("{error:#}")], code, ..Outcome::default() }
    })
}

fn exit_code(outcome: WaitOutcome) -> u8 {
    match outcome {
        WaitOutcome::Reached => 0,
        WaitOutcome::Failed => 1,
        WaitOutcome::TimedOut => 2,
        WaitOutcome::CannotTell => 3,
    }
}

fn wait(command: &Wait, begun: Instant, screen: Screen) -> Result<Outcome> {
    let location = command.location().map_err(Error::msg)?;
    let observation = Observation::open(&location, command.input.now(), GroupQuery::One(&command.name))?;
    let group = observation.group(&command.name)?;
    let mut state = WaitState::new(&group, command.options())?;
    let (end, last, unread_clusters) = match observation.cluster() {
        // Files do not change.
        None => {
            let end = state.check(Ok(&group), SignedDuration::ZERO, None);
            let unread = observation.notes.unread_clusters.iter().map(ToString::to_string).collect();
            (end.unwrap_or_else(|| state.time_out(&group, true, None)), Some(group), unread)
        }
        Some(cluster) => {
            let scope = observation.scope_of(&group);
            let view = WaitView {
                group,
                scope,
                begun,
                timeout: command.timeout,
                cluster,
                observation: &observation,
            };
            match cluster.runtime().block_on(view.run(&mut state, screen))? {
                Some(ended) => ended,
                None => return Ok(Outcome { code: INTERRUPTED, ..Outcome::default() }),
            }
        }
    };
    let outcome = match end.outcome {
        // What could not be read may not be ready.
        WaitOutcome::Reached if !observation.notes.problems.is_empty() => WaitOutcome::CannotTell,
        outcome => outcome,
    };
    let mut text = match (outcome, last) {
        // Objects below members do not matter for Installed. If the causes cannot be read, the outcome is the
        // same.
        (WaitOutcome::Failed | WaitOutcome::TimedOut, Some(group)) if command.goal != Goal::Installed => {
            cause_lines(&group, &observation).unwrap_or_default()
        }
        _ => String::new(),
    };
    let _ = writeln!(text, "{}", printable(&end.text));
    let is_ready = outcome == WaitOutcome::Reached;
    let below: Vec<_> = observation.notes.of_below(is_ready).map(|(_, note)| note.clone()).collect();
    let Notes { mut problems, mut notes, forbidden, .. } = observation.notes;
    problems.extend(unread_clusters);
    notes.extend(forbidden);
    notes.extend(below);
    Ok(Outcome { text, errors: problems, notes, code: exit_code(outcome), ..Outcome::default() })
}

/// The end, the last state of the group unless it was deleted, and the clusters that have never answered.
type Ended = (WaitEnd, Option<Group>, Vec<String>);

/// A group that is watched.
struct WaitView<'c> {
    group: Group,
    scope: EvaluationScope,
    begun: Instant,
    timeout: SignedDuration,
    cluster: &'c ObservedCluster,
    observation: &'c Observation,
}

impl WaitView<'_> {
    /// None after a signal.
    async fn run(self, state: &mut WaitState, screen: Screen) -> Result<Option<Ended>> {
        let mut stop = Stop::listen()?;
        let mut live =
            LiveObservation::start(self.observation, self.cluster.client(), vec![self.scope]).await;
        let is_terminal = stdout().is_terminal();
        let (mut canvas, mut log) = (Canvas::default(), ProgressLog::default());
        // Until the first list is complete.
        let mut last = Some(self.group.clone());
        loop {
            tokio::select! {
                () = stop.asked() => return Ok(None),
                () = live.changed() => {}
            }
            let elapsed = SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::MAX);
            let silent_since = live.silent_since();
            let mut end = None;
            if live.is_synced() {
                last = live.group(&self.group.kind, &self.group.name).cloned();
                end = state.check(last.as_ref().ok_or(&self.group.kind), elapsed, silent_since);
            }
            if let Some(group) = &last {
                if is_terminal {
                    canvas.draw(&page(group, elapsed, Canvas::screen(screen)))?;
                } else {
                    let lines = log.changes(group, Timestamp::now());
                    output::print(&lines.into_iter().fold(String::new(), |text, line| text + &line + "\n"))?;
                }
            }
            if elapsed >= self.timeout && end.is_none() {
                end = Some(state.time_out(last.as_ref().unwrap_or(&self.group), false, silent_since));
            }
            if let Some(end) = end {
                let unread = live.unread_clusters().map(ToString::to_string).collect();
                return Ok(Some((end, last, unread)));
            }
        }
    }
}
