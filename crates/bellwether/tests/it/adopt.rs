//! `bellwether adopt --dry-run` on files: the plan and its problems. `controller/adopt.rs` has the tests on
//! clusters.

use insta::assert_snapshot;
use rstest::rstest;

use crate::{Run, bellwether};

/// The command on the objects in the directory `adopt`.
#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn adopt(words: &str) -> Run {
    let mut command = bellwether(&["adopt"]);
    command.args(words.split(' ')).args(["--from", "shop.yaml", "-n", "shop"]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/adopt"));
    command.output().expect("the binary runs").into()
}

#[test]
fn plans() {
    assert_snapshot!(adopt("wordpress deploy/web svc/web --dry-run"));
    assert_snapshot!("plan_with_further_members", adopt("wordpress deploy/web --selector app=web --dry-run"));
}

#[test]
fn manifests() {
    assert_snapshot!(adopt("wordpress deploy/web svc/web --type blog --dry-run -o yaml"));
    assert_snapshot!("manifest_as_json", adopt("wordpress deploy/web --dry-run -o json"));
}

#[test]
fn problems() {
    assert_snapshot!(adopt(
        "wordpress deploy/web deploy/none svc/mysql pv/disk --selector app=shop --dry-run"
    ));
}

#[rstest]
#[case::unknown_kind("wordpress widget/web --dry-run", "no objects of kind \"widget\" in shop.yaml")]
#[case::without_kind("wordpress web --dry-run", "invalid object \"web\": give KIND/NAME, e.g. deploy/web")]
#[case::without_dry_run("wordpress deploy/web", "--from requires --dry-run: files are not changed")]
fn invalid_input(#[case] words: &str, #[case] error: &str) {
    let run = adopt(words);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), format!("error: {error}\n").as_str()));
}
