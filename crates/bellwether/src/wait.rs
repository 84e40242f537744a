//! `bellwether wait`: until a group is ready, or it is clear that it will not be.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stdout},
    time::Instant,
};

use anyhow::Result;
use bellwether_engine::Group;
use bellwether_inspect::{
    observe::{EvaluationScope, GroupQuery, LiveObservation, Notes, Observation, ObservedCluster},
    wait::{ProgressLog, WaitEnd, WaitOutcome, WaitState, because, page},
};
use bellwether_terminal::{Canvas, Screen, printable};
use jiff::{SignedDuration, Timestamp};

use crate::{
    cli::Wait,
    output::{self, Outcome},
    signals::{INTERRUPTED, Stop},
};

pub(crate) fn run(command: &Wait, screen: Screen) -> Outcome {
    wait(command, Instant::now(), screen).unwrap_or_else(|error| {
        // Whatever goes wrong, it is not that the group has failed.
        let code = exit_code(WaitOutcome::CannotTell);
        Outcome { errors: vec![format!("{error:#}")], code, ..Outcome::default() }
    })
}

fn exit_code(ending: WaitOutcome) -> u8 {
    match ending {
        WaitOutcome::Reached => 0,
        WaitOutcome::Failed => 1,
        WaitOutcome::TimedOut => 2,
        WaitOutcome::CannotTell => 3,
    }
}

fn wait(command: &Wait, begun: Instant, screen: Screen) -> Result<Outcome> {
    let sight =
        Observation::open(&command.scene.place(), command.scene.now(), GroupQuery::One(&command.name))?;
    let group = sight.group(&command.name)?;
    let mut vigil = WaitState::new(&group, command.terms())?;
    let (end, last) = match sight.cluster() {
        // Files do not change, so that nothing is to be waited for.
        None => {
            let end = vigil.look(Ok(&group), SignedDuration::ZERO, None);
            (end.unwrap_or_else(|| vigil.time_is_up(&group, true, None)), Some(group))
        }
        Some(cluster) => {
            let view = sight.view_of(&group);
            let watch = WaitView { group, view, begun, timeout: command.timeout, cluster };
            match cluster.runtime().block_on(watch.run(&mut vigil, screen))? {
                Some(ended) => ended,
                None => return Ok(Outcome { code: INTERRUPTED, ..Outcome::default() }),
            }
        }
    };
    let ending = match end.ending {
        // What could not be read may be what is not ready.
        WaitOutcome::Reached if !sight.remarks.problems.is_empty() => WaitOutcome::CannotTell,
        ending => ending,
    };
    let mut text = match (ending, last) {
        // If the cluster does not tell why any more, the answer is the same.
        (WaitOutcome::Failed | WaitOutcome::TimedOut, Some(group)) => {
            because(&group, &sight).unwrap_or_default()
        }
        _ => String::new(),
    };
    let _ = writeln!(text, "{}", printable(&end.says));
    let Notes { problems, notes, .. } = sight.remarks;
    Ok(Outcome { text, errors: problems, notes, code: exit_code(ending) })
}

/// A group that is watched while somebody waits.
struct WaitView<'c> {
    group: Group,
    view: EvaluationScope,
    begun: Instant,
    timeout: SignedDuration,
    cluster: &'c ObservedCluster,
}

impl WaitView<'_> {
    /// How it ended, and how the group was then; nothing if somebody asked to stop.
    async fn run(self, vigil: &mut WaitState, screen: Screen) -> Result<Option<(WaitEnd, Option<Group>)>> {
        let mut stop = Stop::listen()?;
        let mut live = LiveObservation::start(self.cluster.client(), vec![self.view]);
        let is_terminal = stdout().is_terminal();
        let (mut canvas, mut log) = (Canvas::default(), ProgressLog::default());
        // What was seen at first is true until more is known.
        let mut last = Some(self.group.clone());
        loop {
            tokio::select! {
                () = stop.asked() => return Ok(None),
                () = live.changed() => {}
            }
            let elapsed = SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::MAX);
            let silent = live.silent_since();
            let mut end = None;
            if live.is_known() {
                last = live.group(&self.group.kind, &self.group.name).cloned();
                end = vigil.look(last.as_ref().ok_or(&self.group.kind), elapsed, silent);
            }
            if let Some(group) = &last {
                if is_terminal {
                    canvas.draw(&page(group, elapsed, Canvas::screen(screen)))?;
                } else {
                    let lines = log.changes(group, Timestamp::now());
                    output::print(&lines.into_iter().fold(String::new(), |text, line| text + &line + "\n"))?;
                }
            }
            if let Some(end) = end {
                return Ok(Some((end, last)));
            }
            if elapsed >= self.timeout {
                let end = vigil.time_is_up(last.as_ref().unwrap_or(&self.group), false, silent);
                return Ok(Some((end, last)));
            }
        }
    }
}
