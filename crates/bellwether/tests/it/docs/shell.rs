//! The commands of transcripts, as a person types them.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Result, ensure};

use crate::{NOW, Run, terminal::on_a_terminal};

/// `bellwether` and `kubectl` are functions, so that they also work in pipes. `bellwether` gets the time of
/// these tests where it has a flag for it.
const FUNCTIONS: &str = r#"exec 2>&1
bellwether() {
  case "$1 $2" in
    assess*|explain*|"rules test") set -- "$@" --now "$NOW" ;;
    query*) case " $* " in *" --controller "*) ;; *) set -- "$@" --now "$NOW" ;; esac ;;
    status*|tree*|wait*|whose*|adopt*) case " $* " in *" --from "*) set -- "$@" --now "$NOW" ;; esac ;;
  esac
  "$BELLWETHER" "$@"
}
kubectl() { "$KUBECTL" "$@"; }
"#;

/// Where and how commands run.
pub(super) struct Shell {
    directory: PathBuf,
    columns: Option<u16>,
    /// Read before each command.
    source: Option<String>,
    environment: Vec<(&'static str, OsString)>,
}

impl Shell {
    /// On a terminal of this width, or else with a pipe.
    pub(super) fn new(directory: PathBuf, columns: Option<u16>) -> Self {
        let environment = vec![
            ("BELLWETHER", env!("CARGO_BIN_EXE_bellwether").into()),
            // A command that is given no cluster must not find one.
            ("HOME", "/home/you".into()),
            ("KUBECTL", "kubectl-needs-the-option-cluster".into()),
            ("NO_COLOR", "1".into()),
            ("NOW", NOW.into()),
            ("PATH", "/usr/bin:/bin".into()),
        ];
        Self { directory, columns, source: None, environment }
    }

    pub(super) fn source(self, file: Option<String>) -> Self {
        Self { source: file, ..self }
    }

    pub(super) fn environment(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.retain(|(it, _)| *it != name);
        self.environment.push((name, value.into()));
        self
    }

    pub(super) fn run(&self, line: &str) -> Result<Run> {
        let source = self.source.as_ref().map(|file| format!(". ./{file}\n")).unwrap_or_default();
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(format!("{FUNCTIONS}{source}{line}\n"))
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        match self.columns {
            Some(columns) => Ok(on_a_terminal(&mut command, columns)),
            None => Ok(command.output()?.into()),
        }
    }

    /// Runs a command that must succeed, for the block at this place.
    pub(super) fn succeed(&self, line: &str, place: &str) -> Result<()> {
        let ran = self.run(line)?;
        ensure!(ran.code == Some(0), "{place}: {line}: {}", ran.text());
        Ok(())
    }
}

impl Run {
    /// What a person sees.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.text().lines().map(|line| line.trim_end().to_owned()).collect()
    }
}
