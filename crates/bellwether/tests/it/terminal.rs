//! Output on a terminal and in a pipe: width, colours, hints.

use std::{
    fs::File,
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Stdio},
};

use rstest::rstest;
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::{Run, bellwether, objects_command, run_on_objects};

const ESCAPE: char = '\u{1b}';

/// Of the terminal of these tests.
pub(crate) const ROWS: u16 = 24;

/// Runs the command on a terminal of this width.
#[expect(
    clippy::expect_used,
    reason = "every Linux has terminals, and cargo builds the binary before it runs these tests"
)]
pub(crate) fn on_a_terminal(command: &mut Command, columns: u16) -> Run {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let name = ptsname(&terminal, Vec::new()).expect("a name");
    let name = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let open = || File::options().read(true).write(true).open(name).expect("the terminal");
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a width");
    let mut child =
        command.stdin(open()).stdout(open()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    let mut terminal = File::from(terminal);
    // Reading fails when the other side is closed.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    let mut stderr = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    let code = child.wait().expect("it ends").code();
    Run { stdout: String::from_utf8(shown).expect("text").replace("\r\n", "\n"), stderr, code }
}

#[rstest]
#[case::narrow(80)]
#[case::wide(120)]
fn a_table_fits(#[case] columns: u16) {
    let run = on_a_terminal(&mut objects_command(&["assess", "shop.yaml"]), columns);
    let (table, _) = run.stdout.split_once("\n\n").expect("a table and a summary");
    assert!(table.lines().all(|line| line.chars().count() <= usize::from(columns)), "{table}");
    assert!(table.contains("…\n"), "{table}");
    assert!(table.contains("\nshop       Pod/web-7d9f-x2k  ✗ Failed "), "names are not cut: {table}");
    assert_eq!(table.contains("PROGRESS"), columns >= 100, "bars need 100 columns: {table}");
}

#[rstest]
#[case::no_color(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], false)]
#[case::a_dumb_terminal(&[("TERM", "dumb")], false)]
#[case::as_usual(&[("TERM", "xterm-256color")], true)]
fn colours_on_a_terminal(#[case] environment: &[(&str, &str)], #[case] color: bool) {
    let mut command = objects_command(&["assess", "shop.yaml"]);
    let run = on_a_terminal(command.envs(environment.iter().copied()), 80);
    let state = if color { "\u{1b}[31m✗ Failed\u{1b}[0m" } else { "✗ Failed" };
    assert!(run.stdout.contains(state), "{}", run.stdout);
    assert_eq!(run.stdout.contains(ESCAPE), color, "{}", run.stdout);
}

#[rstest]
#[case::as_usual(&[], false)]
#[case::forced(&[("CLICOLOR_FORCE", "1")], true)]
#[case::forced_and_forbidden(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false)]
fn colours_in_a_pipe(#[case] environment: &[(&str, &str)], #[case] color: bool) {
    for arguments in [["assess", "shop.yaml"], ["explain", "shop.yaml"]] {
        let mut command = objects_command(&arguments);
        let run = Run::from(command.envs(environment.iter().copied()).output().expect("the binary runs"));
        assert_eq!(run.stdout.contains(ESCAPE), color, "{}", run.stdout);
    }
}

#[test]
fn json_yaml_and_names_have_no_colours() {
    for format in ["json", "yaml", "name"] {
        let mut command = objects_command(&["assess", "shop.yaml", "-o", format]);
        let run = Run::from(command.env("CLICOLOR_FORCE", "1").output().expect("the binary runs"));
        assert!(!run.stdout.contains(ESCAPE), "{format}");
    }
}

#[test]
fn a_pipe_has_uncut_messages() {
    assert!(!run_on_objects(&["assess", "shop.yaml"]).stdout.contains('…'));
}

#[test]
fn wide_output_is_not_cut_on_a_terminal() {
    let run = on_a_terminal(&mut objects_command(&["assess", "shop.yaml", "-o", "wide"]), 80);
    assert_eq!(run.stdout, run_on_objects(&["assess", "shop.yaml", "-o", "wide"]).stdout);
}

#[test]
fn the_summary_is_wrapped() {
    let run = on_a_terminal(&mut objects_command(&["assess", "shop.yaml"]), 40);
    let (_, summary) = run.stdout.split_once("\n\n").expect("a table and a summary");
    let expected = "1 Failed, 2 InProgress, 1 Terminating, 1\nSuspended, 1 Ready.\n";
    assert_eq!(summary, expected);
}

#[test]
fn a_value_that_does_not_fit_is_below_its_path() {
    let run = on_a_terminal(&mut objects_command(&["explain", "shop.yaml"]), 80);
    let expected = "\n            status.containerStatuses[app].state.waiting.reason\n              \"ImagePullBackOff\"\n";
    assert!(run.stdout.contains(expected), "{run}");
}

#[rstest]
#[case::assess("assess")]
#[case::explain("explain")]
#[case::lint("lint")]
fn without_input_the_error_has_a_command(#[case] command: &str) {
    let run = on_a_terminal(&mut bellwether(&[command]), 80);
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    let hint = format!("| bellwether {command} -\n");
    assert!(
        run.stderr.starts_with("error: no input. Give files or directories") && run.stderr.ends_with(&hint),
        "{}",
        run.stderr
    );
}
