//! Command lines for people to copy: the name of the program, and shell quoting.

use std::{borrow::Cow, env, ffi::OsStr, path::Path, sync::LazyLock};

/// How users call this program: `bellwether`, or `kubectl bellwether` if it runs as a kubectl plugin.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<&str> =
        LazyLock::new(|| program_called_as(&env::args_os().next().unwrap_or_default()));
    *PROGRAM
}

fn program_called_as(argv0: &OsStr) -> &'static str {
    let is_plugin = Path::new(argv0).file_name().is_some_and(|name| name == "kubectl-bellwether");
    if is_plugin { "kubectl bellwether" } else { "bellwether" }
}

/// The word, in quotes if a shell would expand or split it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// A flag with its value, to be appended to a command.
pub(crate) fn flag(name: &str, value: &str) -> String {
    format!(" --{name} {}", quoted(value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("bellwether", "bellwether")]
    #[case("/usr/local/bin/kubectl-bellwether", "kubectl bellwether")]
    #[case("", "bellwether")]
    fn a_kubectl_plugin_is_called_through_kubectl(#[case] argv0: &str, #[case] expected: &str) {
        assert_eq!(program_called_as(OsStr::new(argv0)), expected);
    }

    #[rstest]
    #[case::path("./dump-1/all.yaml", "./dump-1/all.yaml")]
    #[case::non_ascii_letters("größe/all.yaml", "größe/all.yaml")]
    #[case::space("my dump", "'my dump'")]
    #[case::quote("bo's $HOME", r"'bo'\''s $HOME'")]
    #[case::home("~/dump", "'~/dump'")]
    #[case::braces_and_star("{a,b}*", "'{a,b}*'")]
    #[case::empty("", "''")]
    fn shell_quoting(#[case] word: &str, #[case] expected: &str) {
        assert_eq!(quoted(word), expected);
    }
}
