//! Forbidden dependencies between crates.

use anyhow::{Result, bail};

use crate::run::{cargo, log};

/// A crate, and the packages that it must not depend on, directly or indirectly. `package/feature` forbids
/// only that feature.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("bellwether-model", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-expr", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-lua", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-health", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-terminal", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi", "clap"]),
    ("bellwether-input", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi", "clap"]),
    ("bellwether-conditions", &["tokio", "kube-core", "kube-client", "kube-runtime", "k8s-openapi"]),
    ("bellwether-sql", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-tables", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-engine", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-api", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-wire", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-memory-cluster", &["tokio", "kube-client", "kube-runtime", "k8s-openapi/latest"]),
    ("bellwether-simulation", &["tokio", "kube-client", "kube-runtime"]),
    // Arguments, exit codes, HTTP and the demo belong to the binary.
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

/// Fails if a crate has a forbidden dependency.
pub(crate) fn check() -> Result<()> {
    log("\n$ dependencies between crates");
    for (package, forbidden) in FORBIDDEN {
        let dependencies = dependencies_of(package)?;
        for unwanted in *forbidden {
            if dependencies.iter().any(|dependency| dependency.is(unwanted)) {
                let dependency = unwanted.split('/').next().unwrap_or(unwanted);
                bail!(
                    "{package} must not depend on {unwanted}. To see the path, run `cargo tree --package {package} --edges \
                     normal --invert {dependency}`."
                );
            }
        }
    }
    log(&format!("{} crates have no forbidden dependency", FORBIDDEN.len()));
    Ok(())
}

struct Dependency {
    library: String,
    features: Vec<String>,
}

impl Dependency {
    fn is(&self, unwanted: &str) -> bool {
        let (package, feature) = match unwanted.split_once('/') {
            Some((package, feature)) => (package, Some(feature)),
            None => (unwanted, None),
        };
        self.library == package.replace('-', "_")
            && feature.is_none_or(|feature| self.features.iter().any(|own| own == feature))
    }
}

fn dependencies_of(package: &str) -> Result<Vec<Dependency>> {
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
            Dependency { library, features }
        })
        .collect())
}
