//! `bellwether completions`: scripts for shells.

use rstest::rstest;

use crate::run;

#[rstest]
#[case::bash("bash", "complete -F _bellwether")]
#[case::zsh("zsh", "#compdef bellwether")]
#[case::fish("fish", "complete -c bellwether")]
#[case::powershell("powershell", "Register-ArgumentCompleter")]
#[case::elvish("elvish", "edit:completion:arg-completer[bellwether]")]
fn script(#[case] shell: &str, #[case] sign: &str) {
    let run = run(&["completions", shell]);
    assert_eq!((run.stderr.as_str(), run.code), ("", Some(0)));
    assert!(run.stdout.contains(sign), "{}", run.stdout);
    assert!(run.stdout.contains("crds"), "it has the commands");
}

/// kubectl has `kubectl completion`.
#[test]
fn the_name_of_kubectl() {
    assert_eq!(run(&["completion", "bash"]).stdout, run(&["completions", "bash"]).stdout);
}

#[test]
fn bash_completes() {
    let script = run(&["completions", "bash"]).stdout;
    let ask = "COMP_WORDS=(bellwether cr); COMP_CWORD=1; _bellwether bellwether cr bellwether; echo \"${COMPREPLY[@]}\"";
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", &format!("{script}\n{ask}")])
        .output()
        .expect("bash is installed");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "crds\n");
}
