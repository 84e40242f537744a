//! Runs kubectl.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context, Result, bail};
use tempfile::{TempDir, TempPath};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::{access::Access, binaries::Binary, guardian::Guardian};

/// kubectl with the credentials of one user.
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: TempPath,
    cache: TempDir,
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// Whether the exit code was 0.
    pub success: bool,
}

impl Kubectl {
    /// Uses a kubeconfig and a cache of its own, never those in the home directory.
    pub fn new(access: &Access) -> Result<Self> {
        Ok(Self {
            program: Binary::Kubectl.find()?,
            kubeconfig: access.kubeconfig_file()?,
            cache: tempfile::tempdir_in(Guardian::get()?.directory())?,
            namespace: "default".to_owned(),
        })
    }

    /// The default is the namespace `default`.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    pub async fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.run_with_input(arguments, "").await
    }

    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let mut child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(self.cache.path())
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env("HOME", self.cache.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run kubectl")?;
        let mut stdin = child.stdin.take().context("kubectl has no standard input")?;
        let write = async move {
            // A command that does not read its input closes the pipe: that is not an error.
            let _ = stdin.write_all(input.as_bytes()).await;
        };
        let ((), output) = tokio::join!(write, child.wait_with_output());
        let output = output?;
        Ok(Output {
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
            success: output.status.success(),
        })
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub async fn ok(&self, arguments: &[&str]) -> Result<String> {
        self.ok_with_input(arguments, "").await
    }

    pub async fn ok_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        let output = self.run_with_input(arguments, input).await?;
        if !output.success {
            bail!("kubectl {} failed: {}", arguments.join(" "), output.stderr.trim());
        }
        Ok(output.stdout)
    }
}
