//! Start, pause, stop, kill and restart of a program.

use std::time::Duration;

use anyhow::Result;
use bellwether_testkit::{Program, TIMEOUT, eventually};

#[tokio::test]
async fn a_program_is_stopped_paused_killed_and_started_again() -> Result<()> {
    let count =
        "trap 'echo asked; exit 7' TERM; echo \"$GREETING $1\"; while :; do sleep 0.05; echo tick; done";
    let program =
        Program::new("/bin/sh")?.arguments(["-c", count, "sh", "test"]).environment("GREETING", "hello");
    let ticks = || program.log().lines().filter(|line| *line == "tick").count();
    let goes_on = async || {
        let before = ticks();
        eventually(TIMEOUT, "the program ticks", async || Ok(ticks() > before)).await
    };
    assert!(!program.is_running());
    assert_eq!(program.pause().unwrap_err().to_string(), "sh is not running");

    program.start()?;
    goes_on().await?;
    assert!(program.log().starts_with("hello test\n"), "{}", program.log());
    assert_eq!(program.start().unwrap_err().to_string(), "sh is running already");

    program.pause()?;
    // A tick in flight may still be written.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let paused = ticks();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(ticks(), paused, "a paused program does nothing");
    program.resume()?;
    goes_on().await?;

    assert_eq!(program.stop().await?.code(), Some(7), "its handler of SIGTERM ran");
    assert!(program.log().contains("asked"), "{}", program.log());
    assert!(!program.is_running());

    program.start()?;
    goes_on().await?;
    program.kill();
    assert_eq!((program.is_running(), program.id()), (false, None));
    assert_eq!(program.log().matches("asked").count(), 1, "SIGKILL does not run the handler");
    Ok(())
}

#[tokio::test]
async fn a_program_that_exits_is_not_running() -> Result<()> {
    let program = Program::new("/bin/true")?;
    program.start()?;
    eventually(TIMEOUT, "the program has ended", async || Ok(!program.is_running())).await?;
    assert_eq!(program.resume().unwrap_err().to_string(), "true is not running");
    program.start()
}

#[test]
fn a_missing_program_cannot_be_started() -> Result<()> {
    let error = Program::new("/missing/program")?.start().unwrap_err();
    assert_eq!(error.to_string(), "cannot run /missing/program: file not found");
    Ok(())
}
