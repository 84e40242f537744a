//! `bellwether status --watch`: the same as `bellwether status`, whenever it changes.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Write as _, stdout},
};

use anyhow::Result;
use bellwether_engine::{Group, Kind, Name};
use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};
use tokio::signal::ctrl_c;

use crate::{
    canvas::Canvas,
    cli::{GroupFormat, Status},
    family::{family, kinds_below},
    output::Outcome,
    said::sign,
    sight::{ClusterSight, Live, Sight},
    status::{List, One, is_wanted, whereabouts, why},
    terminal::{Screen, how_long, printable},
};

/// API servers speak up on every watch about once a minute: who has been silent for longer is out of touch.
const SILENCE: SignedDuration = SignedDuration::from_secs(90);

pub(crate) fn status(command: &Status, screen: Screen) -> Result<Outcome> {
    if !matches!(command.output, GroupFormat::Table | GroupFormat::Wide) {
        return Ok(Outcome::bad_input(
            "--watch is for people: leave out -o, or take table or wide".to_owned(),
        ));
    }
    // The first look is the same as without --watch: whoever cannot see anything is told so, and why.
    let opened = Sight::at(&command.scene.place, None, command.all_namespaces).and_then(|mut sight| {
        sight.look()?;
        if let Some(name) = &command.name {
            sight.group(name)?;
        }
        Ok(sight)
    });
    let sight = match opened {
        Ok(sight) => sight,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let Some(cluster) = sight.cluster() else {
        return Ok(Outcome::bad_input("files do not change: leave --watch or --from out".to_owned()));
    };
    let watch = Watch {
        command,
        whereabouts: whereabouts(&sight.whereabouts(), command.type_.as_deref()),
        context: cluster.context_flag(),
    };
    cluster.runtime().block_on(watch.run(cluster, screen))
}

/// What is shown again and again.
struct Watch<'c> {
    command: &'c Status,
    whereabouts: String,
    context: String,
}

impl Watch<'_> {
    async fn run(&self, cluster: &ClusterSight, screen: Screen) -> Result<Outcome> {
        let namespace = (!self.command.all_namespaces).then(|| cluster.namespace().to_owned());
        let mut live = Live::start(cluster.client().clone(), namespace);
        let is_terminal = stdout().is_terminal();
        let mut canvas = Canvas::default();
        let mut log = Log::default();
        loop {
            tokio::select! {
                _ = ctrl_c() => return Ok(Outcome::default()),
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
                let groups = self.groups(&live);
                let mut stdout = stdout().lock();
                for line in log.changes(&groups, now) {
                    writeln!(stdout, "{line}")?;
                }
                stdout.flush()?;
            }
        }
    }

    fn groups(&self, live: &Live) -> Vec<Group> {
        let mut groups = live.groups();
        groups.retain(|group| {
            is_wanted(group, self.command.type_.as_deref())
                && self.command.name.as_deref().is_none_or(|name| *group.name.name == *name)
        });
        groups
    }

    fn page(&self, live: &mut Live, now: Timestamp, screen: Screen) -> String {
        let groups = self.groups(live);
        let wide = self.command.output == GroupFormat::Wide;
        let mut text = match (&self.command.name, groups.first()) {
            (Some(name), None) => {
                format!("There is no Application {name:?} {} any more.\n", self.whereabouts)
            }
            (Some(_), Some(group)) => {
                let bad = group.members.iter().filter(|member| member.state != State::Ready);
                live.look_beside(kinds_below(bad));
                let family = family(group, &live.beside());
                let all = wide || self.command.all;
                let one = One { group, family: &family, all, wide, now, context: self.context.clone() };
                one.print(screen, &|_| Vec::new())
            }
            (None, _) => {
                List { groups, wide, all: wide || self.command.all, now }.print(screen, &self.whereabouts)
            }
        };
        if let Some(heard) = live.heard().filter(|heard| now.duration_since(*heard) > SILENCE) {
            let silent = format!(
                "The cluster has not been heard from for {}; this is what it last said.\n",
                how_long(heard, now)
            );
            text.insert_str(0, &silent);
        }
        text
    }
}

/// What was last said of each group, where each change is a line.
#[derive(Default)]
struct Log {
    said: BTreeMap<(Kind, Name), (State, String)>,
}

impl Log {
    /// A line for each group that is not as it was.
    fn changes(&mut self, groups: &[Group], now: Timestamp) -> Vec<String> {
        let time = now.strftime("%H:%M:%S");
        let mut lines = Vec::new();
        let mut said = BTreeMap::new();
        for group in groups {
            let key = (group.kind.clone(), group.name.clone());
            let says = (group.state, format!("{}/{} ready", group.counts.ready, group.counts.total));
            if self.said.get(&key) != Some(&says) {
                let why = match why(group) {
                    why if why.is_empty() => why,
                    why => format!(": {why}"),
                };
                let state = format!("{} {}", sign(Some(group.state)), group.state.name());
                lines.push(format!("{time} {} {state}, {}{why}", printable(&group.name.to_string()), says.1));
            }
            said.insert(key, says);
        }
        for (_, name) in self.said.keys().filter(|key| !said.contains_key(key)) {
            lines.push(format!("{time} {} is gone", printable(&name.to_string())));
        }
        self.said = said;
        lines
    }
}
