//! `bellwether adopt` on files: what would be done, and what speaks against it. What it does to clusters is among the
//! stories of the controller.

use insta::assert_snapshot;
use rstest::rstest;

use crate::{Run, bellwether};

/// The command on the objects of these tests.
#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn adopt(words: &str) -> Run {
    let mut command = bellwether(&["adopt"]);
    command.args(words.split(' ')).args(["--from", "shop.yaml", "-n", "shop"]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/adopt"));
    command.output().expect("the binary runs").into()
}

#[test]
fn what_would_be_done() {
    assert_snapshot!(adopt("wordpress deploy/web svc/web --dry-run"));
    assert_snapshot!(
        "by_labels_that_others_have",
        adopt("wordpress deploy/web --selector app=web --dry-run")
    );
}

/// `kubectl apply` takes it.
#[test]
fn the_application_for_programs() {
    assert_snapshot!(adopt("wordpress deploy/web svc/web --type blog --dry-run -o yaml"));
    assert_snapshot!("the_application_as_json", adopt("wordpress deploy/web --dry-run -o json"));
}

#[test]
fn all_that_speaks_against_it() {
    assert_snapshot!(adopt(
        "wordpress deploy/web deploy/none svc/mysql pv/disk --selector app=shop --dry-run"
    ));
}

#[rstest]
#[case::no_kind("wordpress widget/web --dry-run", "no object of kind \"widget\" is in shop.yaml")]
#[case::no_object("wordpress web --dry-run", "\"web\" names no object: write KIND/NAME, such as deploy/web")]
#[case::for_real(
    "wordpress deploy/web",
    "files are not changed: add --dry-run, or leave --from out to change a cluster"
)]
fn what_makes_no_sense(#[case] words: &str, #[case] error: &str) {
    let run = adopt(words);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), format!("error: {error}\n").as_str()));
}
