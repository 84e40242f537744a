//! Clusters that a command line names: `--cluster NAME=KUBECONFIG[:CONTEXT]` or `--cluster NAME=DIR`.

use std::path::{Path, PathBuf};

use crate::schema::{NAME_RULE, is_name};

/// The value of one `--cluster`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterArgument {
    pub name: String,
    pub target: ClusterTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterTarget {
    Kubeconfig {
        path: PathBuf,
        /// `None` for the current-context.
        context: Option<String>,
    },
    /// Of manifests.
    Directory(PathBuf),
}

/// A parser of values for clap.
///
/// The first colon ends the path of a kubeconfig, because names of contexts contain colons more often than
/// paths do. A path that exists as it is written has no context.
pub fn cluster(text: &str) -> Result<ClusterArgument, String> {
    let Some((name, target)) = text.split_once('=') else {
        return Err("use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR".to_owned());
    };
    if !is_name(name) {
        return Err(format!("invalid name {name:?}: {NAME_RULE}"));
    }
    Ok(ClusterArgument { name: name.to_owned(), target: target_of(target)? })
}

fn target_of(text: &str) -> Result<ClusterTarget, String> {
    let whole = Path::new(text);
    if whole.is_dir() {
        return Ok(ClusterTarget::Directory(whole.to_owned()));
    }
    let (path, context) = match text.split_once(':') {
        Some((path, context)) if !whole.exists() => (path, Some(context)),
        _ => (text, None),
    };
    match (path, context) {
        ("", _) => Err("path missing after '='".to_owned()),
        (path, Some("")) => Err(format!("context missing after {path}:")),
        (path, Some(_)) if Path::new(path).is_dir() => {
            Err(format!("{path} is a directory. Leave out the context, or name a kubeconfig file"))
        }
        (path, context) => {
            Ok(ClusterTarget::Kubeconfig { path: path.into(), context: context.map(str::to_owned) })
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    const DIRECTORY: &str = env!("CARGO_MANIFEST_DIR");

    #[rstest]
    #[case("east=/etc/east.yaml", "east", "/etc/east.yaml", None)]
    #[case("east=/etc/east.yaml:admin", "east", "/etc/east.yaml", Some("admin"))]
    #[case(
        "eu.east-1=conf:arn:aws:eks:eu-1:42:cluster/e=1",
        "eu.east-1",
        "conf",
        Some("arn:aws:eks:eu-1:42:cluster/e=1")
    )]
    #[case(&format!("east={FILE}"), "east", FILE, None)]
    #[case(&format!("east={FILE}:admin"), "east", FILE, Some("admin"))]
    fn kubeconfigs(
        #[case] text: &str,
        #[case] name: &str,
        #[case] path: &str,
        #[case] context: Option<&str>,
    ) {
        let target = ClusterTarget::Kubeconfig { path: path.into(), context: context.map(str::to_owned) };
        assert_eq!(cluster(text), Ok(ClusterArgument { name: name.to_owned(), target }));
    }

    #[test]
    fn a_directory() {
        let target = ClusterTarget::Directory(DIRECTORY.into());
        let expected = ClusterArgument { name: "east".to_owned(), target };
        assert_eq!(cluster(&format!("east={DIRECTORY}")), Ok(expected));
    }

    #[rstest]
    #[case::no_name("/etc/east.yaml", "use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR")]
    #[case::empty("", "use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR")]
    #[case::empty_name("=/etc/east.yaml", &format!(r#"invalid name "": {NAME_RULE}"#))]
    #[case::capitals("East=/etc/east.yaml", &format!(r#"invalid name "East": {NAME_RULE}"#))]
    #[case::no_path("east=", "path missing after '='")]
    #[case::only_a_context("east=:admin", "path missing after '='")]
    #[case::no_context("east=/etc/east.yaml:", "context missing after /etc/east.yaml:")]
    #[case::context_of_a_directory(
        &format!("east={DIRECTORY}:admin"),
        &format!("{DIRECTORY} is a directory. Leave out the context, or name a kubeconfig file")
    )]
    fn invalid_values_name_the_way_out(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(cluster(text), Err(expected.to_owned()));
    }
}
