//! `bellwether demo` on a terminal and in a pipe.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Stdio},
};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Run, bellwether, run,
    terminal::{ROWS, on_a_terminal},
};

const COLUMNS: u16 = 80;

#[test]
fn a_log_in_a_pipe() {
    assert_snapshot!(run(&["demo", "--once", "--speed", "1000"]));
}

#[test]
fn help_of_demo() {
    assert_snapshot!(run(&["demo", "--help"]));
}

#[test]
fn invalid_speed() {
    assert_snapshot!(run(&["demo", "--speed", "0"]));
}

/// A demo after its first line, and the rest of its output.
#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn begun(arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command = bellwether(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    assert!(first.starts_with("1/"), "{first}");
    (child, stdout)
}

#[test]
fn a_signal_ends_it_with_commands_to_try() {
    for signal in [Signal::INT, Signal::TERM] {
        let (child, mut stdout) = begun(&["demo"]);
        let id = Pid::from_child(&child);
        kill_process(id, signal).expect("a process");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("text");
        assert!(rest.contains("bellwether adopt NAME KIND/NAME…"), "{rest}");
        let ended = Run::from(child.wait_with_output().expect("it ends"));
        assert_eq!((&*ended.stderr, ended.code), ("", Some(0)));
    }
}

#[test]
fn it_repeats_until_the_pipe_is_closed() {
    let (child, mut stdout) = begun(&["demo", "--speed", "1000"]);
    let begins = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line.starts_with("1/"));
    assert!(stdout.by_ref().lines().any(|line| begins(&line)), "it starts again");
    drop(stdout);
    let ended = Run::from(child.wait_with_output().expect("it ends"));
    assert_eq!((&*ended.stderr, ended.code), ("", Some(0)));
}

/// A terminal that knows the escape sequences of the demo.
#[derive(Default)]
struct Terminal {
    lines: Vec<String>,
    row: usize,
    cursor_is_hidden: bool,
}

#[expect(clippy::expect_used, reason = "an unknown escape sequence is a failure of the test")]
impl Terminal {
    /// Fails if the text scrolls, or is wider than the terminal.
    fn write(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let mut parts = line.trim_end_matches('\n').split('\u{1b}');
            let mut shown = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let end =
                    part.find(|character: char| character.is_ascii_alphabetic()).expect("a whole sequence");
                let (sequence, text) = part.split_at(end + 1);
                self.control(sequence);
                shown.push_str(text);
            }
            self.put(shown.trim_matches('\r'));
            self.row += usize::from(line.ends_with('\n'));
            assert!(self.row < usize::from(ROWS), "it scrolls: {:#?}", self.lines);
        }
    }

    fn control(&mut self, sequence: &str) {
        match sequence {
            "[?25l" => self.cursor_is_hidden = true,
            "[?25h" => self.cursor_is_hidden = false,
            "[B" => self.row += 1,
            "[J" => self.lines.truncate(self.row),
            "[2K" => {
                if let Some(line) = self.lines.get_mut(self.row) {
                    line.clear();
                }
            }
            // Line wrap off and on.
            "[?7l" | "[?7h" => {}
            color if color.ends_with('m') => {}
            up => {
                let count = up.strip_prefix('[').and_then(|up| up.strip_suffix('A'));
                let count: usize = count.and_then(|count| count.parse().ok()).expect("lines to go up");
                self.row = self.row.checked_sub(count).expect("a line of the screen");
            }
        }
    }

    fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        assert!(text.chars().count() <= usize::from(COLUMNS), "it is too wide: {text:?}");
        self.lines.resize(self.lines.len().max(self.row + 1), String::new());
        text.clone_into(&mut self.lines[self.row]);
    }
}

#[test]
fn a_page_on_a_terminal() {
    let mut command = bellwether(&["demo", "--once", "--speed", "1000"]);
    let run = on_a_terminal(command.env("TERM", "xterm-256color"), COLUMNS);
    assert_eq!((&*run.stderr, run.code), ("", Some(0)));
    let mut terminal = Terminal::default();
    let (page, closing) = run.stdout.split_once("\u{1b}[?7h").expect("an end of the page");
    terminal.write(page);
    assert!(terminal.cursor_is_hidden);
    terminal.write(closing);
    assert!(!terminal.cursor_is_hidden, "the cursor is visible again");
    assert_snapshot!(terminal.lines.join("\n"));
}
