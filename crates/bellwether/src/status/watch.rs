//! `bellwether status --watch`: the same as `bellwether status`, whenever it changes.

use std::io::{IsTerminal as _, stdout};

use anyhow::Result;
use bellwether_engine::{Group, GroupKind, NamespacedName};
use bellwether_inspect::{
    observe::{EvaluationScope, Flags, LiveObservation, Observation, ObservedCluster},
    owner_tree::{family, kinds_below},
    status::{List, SingleGroup, StatusLog},
};
use bellwether_model::State;
use bellwether_terminal::{Canvas, Screen, how_long};
use jiff::Timestamp;

use super::{is_wanted, meant, whereabouts};
use crate::{
    cli::{GroupFormat, Status},
    output::{self, BAD_INPUT, Outcome},
    signals::Stop,
};

pub(super) fn run(command: &Status, screen: Screen) -> Result<Outcome> {
    if !matches!(command.output, GroupFormat::Table | GroupFormat::Wide) {
        return Ok(Outcome::bad_input(
            "--watch is for people: leave out -o, or take table or wide".to_owned(),
        ));
    }
    // The first look is the same as without --watch: whoever cannot see anything is told so, and why.
    let place = command.scene.place();
    let opened = Observation::open(&place, command.scene.now(), meant(command)).and_then(|sight| {
        let one = command.name.as_ref().map(|name| sight.group(name)).transpose()?;
        let views = one.as_ref().map_or_else(|| sight.views(), |group| vec![sight.view_of(group)]);
        Ok((sight, views, one.map(|group| (group.kind, group.name))))
    });
    let (sight, views, one) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    if !sight.remarks.problems.is_empty() {
        return Ok(Outcome { errors: sight.remarks.problems, code: BAD_INPUT, ..Outcome::default() });
    }
    let Some(cluster) = sight.cluster() else {
        return Ok(Outcome::bad_input("files do not change: leave --watch or --from out".to_owned()));
    };
    let whereabouts = whereabouts(&sight.whereabouts(), command.type_.as_deref());
    let watch = StatusWatch { command, one, whereabouts, flags: place.flags(), notes: &sight.remarks.notes };
    cluster.runtime().block_on(watch.run(cluster, views, screen))
}

/// What is shown again and again.
struct StatusWatch<'c> {
    command: &'c Status,
    /// The group that is meant, if it is one.
    one: Option<(GroupKind, NamespacedName)>,
    whereabouts: String,
    flags: Flags,
    notes: &'c [String],
}

impl StatusWatch<'_> {
    async fn run(
        &self,
        cluster: &ObservedCluster,
        views: Vec<EvaluationScope>,
        screen: Screen,
    ) -> Result<Outcome> {
        let mut stop = Stop::listen()?;
        let mut live = LiveObservation::start(cluster.client(), views);
        let is_terminal = stdout().is_terminal();
        let mut canvas = Canvas::default();
        let mut log = StatusLog::default();
        loop {
            tokio::select! {
                () = stop.asked() => return Ok(Outcome::default()),
                () = live.changed() => {}
            }
            if !live.is_known() {
                continue;
            }
            let now = Timestamp::now();
            if is_terminal {
                let text = self.page(&mut live, now, Canvas::screen(screen));
                canvas.draw(&text)?;
            } else {
                let lines = log.changes(&self.groups(&live), live.silent_since().is_some(), now);
                output::print(&lines.into_iter().fold(String::new(), |text, line| text + &line + "\n"))?;
            }
        }
    }

    fn groups<'l>(&self, live: &'l LiveObservation) -> Vec<&'l Group> {
        match &self.one {
            Some((kind, name)) => live.group(kind, name).into_iter().collect(),
            None => live.groups().filter(|group| is_wanted(group, self.command.type_.as_deref())).collect(),
        }
    }

    fn page(&self, live: &mut LiveObservation, now: Timestamp, screen: Screen) -> String {
        let groups: Vec<_> = self.groups(live).into_iter().cloned().collect();
        let wide = self.command.output == GroupFormat::Wide;
        let all = wide || self.command.all;
        let flags = self.flags.clone();
        let mut text = match (&self.one, groups.first()) {
            (Some((kind, name)), None) if name.namespace.is_empty() => {
                format!("There is no {} {:?} any more.\n", kind.kind, &*name.name)
            }
            (Some((kind, name)), None) => {
                format!("There is no {} {:?} {} any more.\n", kind.kind, &*name.name, self.whereabouts)
            }
            (Some(_), Some(group)) => {
                let bad = group.members.iter().filter(|member| member.state != State::Ready);
                live.look_beside(kinds_below(bad));
                let family = family(group, &live.beside());
                // The fields that a verdict rests on would have to be asked for each time.
                SingleGroup { group, family: &family, all, wide, now, flags }.print(screen, &|_| Vec::new())
            }
            (None, _) => List { groups, wide, all, now, flags }.print(screen, &self.whereabouts),
        };
        for note in self.notes {
            text.insert_str(0, &format!("Note: {note}\n"));
        }
        if let Some(since) = live.silent_since() {
            let long = how_long(since, now);
            let silent =
                format!("The cluster has not been heard from for {long}; this is what it last said.\n");
            text.insert_str(0, &silent);
        }
        text
    }
}
