//! `bellwether demo`: a story in simulated clusters. The engine, the rules and the output are those of the
//! other commands.

mod action;
mod combined_status;
mod delivery;
mod fleet;
mod machines;
mod memory;
mod operators;
mod page;
mod simulated_cluster;
mod store;
mod story;
mod workloads;

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write as _, stdout},
    time::Duration,
};

use anyhow::Result;
use bellwether_inspect::shell::program;
use bellwether_model::State;
use bellwether_terminal::{Canvas, Screen};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};

use self::{page::ChangeLog, story::Narration};
use crate::{cli::Demo, output::Outcome};

/// Steps between the failure and the picture, so that the causes are visible.
const STILL_STEPS: usize = 12;

/// The height of the picture.
const STILL_LINES: usize = 24;

/// Begins with a line break, because terminals show ^C where the cursor is.
fn closing() -> String {
    let program = program();
    format!(
        "
These were simulated clusters. In your own cluster:
  # Create an Application that owns existing objects
  {program} adopt NAME KIND/NAME…

  # Show its health
  {program} status
"
    )
}

pub(crate) fn run(command: &Demo, screen: Screen) -> Result<Outcome> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(play(command, screen)) {
        Ok(()) => Ok(closing().into()),
        Err(error) if is_closed(&error) => Ok(Outcome::default()),
        Err(error) => Err(error),
    }
}

/// The page after a rollout has failed because of a missing image, with colours.
pub fn still(columns: usize) -> Result<String> {
    let mut narration = Narration::begin()?;
    let has_failed =
        |narration: &Narration| narration.fleet.groups().iter().any(|group| group.state == State::Failed);
    while !has_failed(&narration) && narration.next().is_some() {
        narration.step()?;
    }
    for _ in 0..STILL_STEPS {
        narration.step()?;
    }
    let screen = Screen { color: true, width: Some(columns) };
    Ok(page::page(&narration, screen, STILL_LINES))
}

/// Whether the reader of stdout has closed the pipe.
fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Plays the story until it ends, or a signal does.
async fn play(command: &Demo, screen: Screen) -> Result<()> {
    let mut display = Display::on(screen);
    // Without handlers, the cursor would stay hidden.
    let (mut interrupted, mut ended) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    loop {
        let (mut narration, begun) = (Narration::begin()?, Instant::now());
        display.begin();
        display.draw(&narration)?;
        while let Some(next) = narration.next() {
            let due =
                Duration::try_from_secs_f64(next.as_secs_f64() / command.speed).unwrap_or(Duration::MAX);
            tokio::select! {
                _ = interrupted.recv() => return Ok(()),
                _ = ended.recv() => return Ok(()),
                () = sleep_until(begun + due) => {}
            }
            narration.step()?;
            display.draw(&narration)?;
        }
        if command.once {
            return Ok(());
        }
    }
}

enum Display {
    /// A page that is redrawn in place, on a terminal.
    Page(Canvas, Screen),
    /// A line for each change.
    Lines(ChangeLog, Screen),
}

impl Display {
    fn on(screen: Screen) -> Self {
        if stdout().is_terminal() {
            Self::Page(Canvas::default(), screen)
        } else {
            Self::Lines(ChangeLog::default(), screen)
        }
    }

    /// Before the first scene.
    fn begin(&mut self) {
        if let Self::Lines(log, _) = self {
            *log = ChangeLog::default();
        }
    }

    fn draw(&mut self, narration: &Narration) -> Result<()> {
        match self {
            Self::Page(canvas, screen) => {
                let lines = Canvas::height().unwrap_or(usize::MAX);
                canvas.draw(&page::page(narration, Canvas::screen(*screen), lines))?;
            }
            Self::Lines(log, screen) => {
                let mut stdout = stdout().lock();
                for line in log.changes(narration, *screen) {
                    writeln!(stdout, "{line}")?;
                }
                stdout.flush()?;
            }
        }
        Ok(())
    }
}
