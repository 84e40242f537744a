//! The floors of the house: which crates must not know which.

use anyhow::{Result, bail};

use crate::run::{cargo, say};

/// A crate, and the packages that it must not depend on, directly or through others.
const FORBIDDEN: &[(&str, &[&str])] =
    &[("bellwether-api", &["tokio", "kube-client", "kube-runtime"]), ("bellwether", &["bellwether-testkit"])];

/// Fails if a crate depends on what it must not know.
pub(crate) fn check() -> Result<()> {
    say("\n$ floors");
    for (package, forbidden) in FORBIDDEN {
        let tree =
            ["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{lib}"];
        let output = cargo(&tree).output()?;
        if !output.status.success() {
            bail!("cargo tree of {package} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let libraries = String::from_utf8(output.stdout)?;
        for unwanted in *forbidden {
            if libraries.lines().any(|library| library == unwanted.replace('-', "_")) {
                bail!(
                    "{package} depends on {unwanted}, which is on a floor above it; `cargo tree --package {package} \
                     --edges normal --invert {unwanted}` shows the way"
                );
            }
        }
    }
    say(&format!("{} crates know nothing that they must not", FORBIDDEN.len()));
    Ok(())
}
