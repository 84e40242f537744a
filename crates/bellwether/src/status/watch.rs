//! `bellwether status --watch`: the output of `bellwether status`, whenever it changes.

use std::io::{IsTerminal as _, stdout};

use anyhow::Result;
use bellwether_engine::{Group, GroupKind, NamespacedName};
use bellwether_inspect::{
    observe::{EvaluationScope, Flags, LiveObservation, Location, Notes, Observation, ObservedCluster},
    owner_tree::{owned_kinds, tree},
    status::{List, SingleGroup, StatusLog, heading},
};
use bellwether_model::State;
use bellwether_terminal::{Canvas, Screen, how_long, printable};
use jiff::Timestamp;

use super::{has_type, query};
use crate::{
    cli::{GroupFormat, Status},
    output::{self, BAD_INPUT, Outcome},
    signals::Stop,
};

pub(super) fn run(command: &Status, location: &Location, screen: Screen) -> Result<Outcome> {
    if !matches!(command.output, GroupFormat::Table | GroupFormat::Wide) {
        return Ok(Outcome::bad_input("--watch requires -o table or -o wide".to_owned()));
    }
    // Read once as without --watch, so that errors are reported before the screen is cleared.
    let opened = Observation::open(location, command.input.now(), query(command)).and_then(|observation| {
        let one = command.name.as_ref().map(|name| observation.group(name)).transpose()?;
        let scopes =
            one.as_ref().map_or_else(|| observation.scopes(), |group| vec![observation.scope_of(group)]);
        Ok((observation, scopes, one.map(|group| (group.kind, group.name))))
    });
    let (observation, scopes, one) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    if !observation.notes.problems.is_empty() {
        return Ok(Outcome { errors: observation.notes.problems, code: BAD_INPUT, ..Outcome::default() });
    }
    let Some(cluster) = observation.cluster() else {
        return Ok(Outcome::bad_input("files do not change: remove --watch or --from".to_owned()));
    };
    let place = observation.whereabouts();
    let has_clusters = !location.clusters.is_empty();
    let watch =
        StatusWatch { command, one, place, has_clusters, flags: location.flags(), notes: &observation.notes };
    cluster.runtime().block_on(watch.run(&observation, cluster, scopes, screen))
}

struct StatusWatch<'c> {
    command: &'c Status,
    /// The group that the user names.
    one: Option<(GroupKind, NamespacedName)>,
    place: String,
    has_clusters: bool,
    flags: Flags,
    notes: &'c Notes,
}

impl StatusWatch<'_> {
    async fn run(
        &self,
        observation: &Observation,
        cluster: &ObservedCluster,
        scopes: Vec<EvaluationScope>,
        screen: Screen,
    ) -> Result<Outcome> {
        let mut stop = Stop::listen()?;
        let mut live = LiveObservation::start(observation, cluster.client(), scopes).await;
        let is_terminal = stdout().is_terminal();
        let mut canvas = Canvas::default();
        let mut log = StatusLog::default();
        if !is_terminal {
            let Notes { notes, forbidden, unread_clusters, .. } = self.notes;
            let below = self.notes.of_below(false).map(|(_, note)| note);
            notes.iter().chain(forbidden).for_each(|note| output::note(note));
            for problem in unread_clusters {
                output::note(&problem.to_string());
            }
            below.for_each(|note| output::note(note));
        }
        loop {
            tokio::select! {
                () = stop.asked() => return Ok(Outcome::default()),
                () = live.changed() => {}
            }
            if !live.is_synced() {
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

    fn groups<'l>(&self, live: &'l LiveObservation<'_>) -> Vec<&'l Group> {
        match &self.one {
            Some((kind, name)) => live.group(kind, name).into_iter().collect(),
            None => live.groups().filter(|group| has_type(group, self.command.type_.as_deref())).collect(),
        }
    }

    fn page(&self, live: &mut LiveObservation<'_>, now: Timestamp, screen: Screen) -> String {
        let groups: Vec<_> = self.groups(live).into_iter().cloned().collect();
        let wide = self.command.output == GroupFormat::Wide;
        let all = wide || self.command.all;
        let flags = self.flags.clone();
        let mut notes = self.notes.notes.clone();
        notes.extend(live.unread_clusters().map(ToString::to_string));
        let is_ready = groups.iter().all(|group| group.state == State::Ready);
        notes.extend(self.notes.of_below(is_ready).map(|(_, note)| note.clone()));
        let mut text = match (&self.one, groups.first()) {
            (Some((kind, name)), None) => format!("{}: deleted\n", printable(&heading(kind, name))),
            (Some(_), Some(group)) => {
                let not_ready = group.members.iter().filter(|member| member.state != State::Ready);
                // What is below the members of a BindingPolicy is in other clusters.
                if !group.is_policy() {
                    live.also_watch(owned_kinds(not_ready));
                }
                let tree = tree(group, &live.listed());
                let forbidden = &self.notes.forbidden;
                // Without fields: each refresh would have to get the objects.
                SingleGroup { group, tree: &tree, all, wide, now, flags, forbidden }
                    .print(screen, &|_| Vec::new())
            }
            (None, _) => {
                notes.extend(self.notes.forbidden.iter().cloned());
                let type_ = self.command.type_.as_deref();
                let (place, has_clusters) = (&*self.place, self.has_clusters);
                List { groups, wide, all, now, flags, type_, place, has_clusters }.print(screen)
            }
        };
        for note in &notes {
            text.insert_str(0, &format!("note: {note}\n"));
        }
        if let Some(since) = live.silent_since() {
            let duration = how_long(since, now);
            let warning =
                format!("No response from the API server for {duration}; showing the last known state.\n");
            text.insert_str(0, &warning);
        }
        text
    }
}
