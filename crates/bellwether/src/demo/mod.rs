//! `bellwether demo`: a story that needs no cluster. The cluster is in memory, and so are those who play in it; the engine
//! that looks at it, the rules that it judges by and the words on the screen are those of the other commands.

mod cluster;
mod machines;
mod memory;
mod operators;
mod page;
mod store;
mod story;
mod workloads;

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write as _, stdout},
    time::Duration,
};

use anyhow::Result;
use bellwether_model::State;
use bellwether_terminal::{Canvas, Screen};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};

use self::{page::ChangeLog, story::Narration};
use crate::{cli::Demo, output::Outcome};

/// How the picture is taken: so many steps after the failure, in so many lines.
const STILL_AFTER: usize = 12;
const STILL_LINES: usize = 24;

/// What to do next. It begins on a line of its own: terminals show ^C where the cursor is.
const CLOSING: &str = "
That was a cluster in memory. In your own:
  bellwether adopt NAME KIND/NAME…  makes an Application of objects that exist
  bellwether status                 says how it is, and why
";

pub(crate) fn run(command: &Demo, screen: Screen) -> Result<Outcome> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(tell(command, screen)) {
        Ok(()) => Ok(CLOSING.to_owned().into()),
        // Whoever read it has had enough.
        Err(error) if is_closed(&error) => Ok(Outcome::default()),
        Err(error) => Err(error),
    }
}

/// The page of the demo at its most telling moment, with its colours, in so many columns: an image is not there.
pub fn still(columns: usize) -> Result<String> {
    let mut telling = Narration::begin()?;
    let has_failed =
        |telling: &Narration| telling.cluster.groups().iter().any(|group| group.state == State::Failed);
    while !has_failed(&telling) && telling.next().is_some() {
        telling.step()?;
    }
    // It takes a moment to read it.
    for _ in 0..STILL_AFTER {
        telling.step()?;
    }
    let screen = Screen { colours: true, width: Some(columns) };
    Ok(page::page(&telling, screen, STILL_LINES))
}

fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Tells the story until it is at its end, or somebody has had enough of it.
async fn tell(command: &Demo, screen: Screen) -> Result<()> {
    let mut show = Display::on(screen);
    // Whoever ends it gets the cursor back.
    let (mut interrupted, mut ended) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    loop {
        let (mut telling, begun) = (Narration::begin()?, Instant::now());
        show.begin();
        show.draw(&telling)?;
        while let Some(next) = telling.next() {
            let due =
                Duration::try_from_secs_f64(next.as_secs_f64() / command.speed).unwrap_or(Duration::MAX);
            tokio::select! {
                _ = interrupted.recv() => return Ok(()),
                _ = ended.recv() => return Ok(()),
                () = sleep_until(begun + due) => {}
            }
            telling.step()?;
            show.draw(&telling)?;
        }
        if command.once {
            return Ok(());
        }
    }
}

/// Where it is shown.
enum Display {
    /// On a page that is drawn again in its place.
    Page(Canvas, Screen),
    /// In lines, one for each change.
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

    /// The story begins, perhaps not for the first time.
    fn begin(&mut self) {
        if let Self::Lines(log, _) = self {
            *log = ChangeLog::default();
        }
    }

    fn draw(&mut self, telling: &Narration) -> Result<()> {
        match self {
            Self::Page(canvas, screen) => {
                let lines = Canvas::height().unwrap_or(usize::MAX);
                canvas.draw(&page::page(telling, Canvas::screen(*screen), lines))?;
            }
            Self::Lines(log, screen) => {
                let mut stdout = stdout().lock();
                for line in log.changes(telling, *screen) {
                    writeln!(stdout, "{line}")?;
                }
                stdout.flush()?;
            }
        }
        Ok(())
    }
}
