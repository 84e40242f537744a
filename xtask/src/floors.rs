//! The floors of the house: which crates must not know which.

use anyhow::{Result, bail};

use crate::run::{cargo, say};

/// A crate, and the packages that it must not depend on, directly or through others. After a slash: a feature of the
/// package that it must not choose.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("bellwether-model", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-expr", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-lua", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-health", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-terminal", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi", "clap"]),
    ("bellwether-input", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi", "clap"]),
    ("bellwether-conditions", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-engine", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-api", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-wire", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-memory-cluster", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-simulation", &["tokio", "kube-client", "kube-runtime"]),
    // Arguments and exit codes are for the binary, the story of the demo and HTTP for others than those who look.
    (
        "bellwether-inspect",
        &[
            "clap",
            "bellwether-server",
            "bellwether-memory-cluster",
            "bellwether-testkit",
            "bellwether-simulation",
            "k8s-openapi/latest",
        ],
    ),
    ("bellwether", &["bellwether-testkit", "bellwether-simulation", "bellwether-soak"]),
];

/// Fails if a crate depends on what it must not know.
pub(crate) fn check() -> Result<()> {
    say("\n$ floors");
    for (package, forbidden) in FORBIDDEN {
        let known = known_to(package)?;
        for unwanted in *forbidden {
            if known.iter().any(|known| known.is(unwanted)) {
                let dependency = unwanted.split('/').next().unwrap_or(unwanted);
                bail!(
                    "{package} must not know {unwanted}; `cargo tree --package {package} --edges normal --invert \
                     {dependency}` shows the way to it"
                );
            }
        }
    }
    say(&format!("{} crates know nothing that they must not", FORBIDDEN.len()));
    Ok(())
}

/// A dependency and its features.
struct Known {
    library: String,
    features: Vec<String>,
}

impl Known {
    fn is(&self, unwanted: &str) -> bool {
        let (package, feature) = match unwanted.split_once('/') {
            Some((package, feature)) => (package, Some(feature)),
            None => (unwanted, None),
        };
        self.library == package.replace('-', "_")
            && feature.is_none_or(|feature| self.features.iter().any(|own| own == feature))
    }
}

fn known_to(package: &str) -> Result<Vec<Known>> {
    let tree =
        ["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{lib} {f}"];
    let output = cargo(&tree).output()?;
    if !output.status.success() {
        bail!("cargo tree of {package} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let library = words.next().unwrap_or_default().to_owned();
            let features = words.next().unwrap_or_default().split(',').map(str::to_owned).collect();
            Known { library, features }
        })
        .collect())
}
