//! The stored histories pass, and their files are read and written correctly.

use std::path::Path;

use bellwether_simulation::{
    Plan,
    history::{DIRECTORY, History, stored},
};
use rstest::rstest;
use tempfile::tempdir;

#[test]
fn stored_histories_pass() {
    let histories = stored(Path::new(DIRECTORY)).expect("all can be read");
    assert!(!histories.is_empty());
    for (file, history) in histories {
        if let Err(failure) = history.run() {
            panic!("{}: {}\n{}", file.display(), failure.1, failure.0);
        }
    }
}

#[test]
fn a_history_that_is_written_and_read_is_unchanged() {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("one.json");
    for seed in 1..200 {
        let history = History { shows: format!("seed {seed}"), plan: Plan::new(seed) };
        history.write(&file).expect("it is written");
        assert_eq!(History::read(&file).expect("it is read"), history);
    }
}

#[rstest]
#[case::no_json("{", "invalid history one.json: EOF while parsing an object at line 1 column 1")]
#[case::unknown_fault(
    r#"{"shows": "", "plan": {"seed": 1, "processes": 1, "sweep": false, "encore": false,
        "actions": [[0, {"fault": {"flood": {}}}]]}}"#,
    "invalid history one.json: unknown variant `flood`, expected one of"
)]
#[case::unknown_controller(
    r#"{"shows": "", "plan": {"seed": 1, "processes": 1, "sweep": false, "encore": false,
        "actions": [[0, {"fault": {"freeze": {"process": 1, "lasts": 5}}}]]}}"#,
    "invalid history one.json: plan.actions[0] names controller 1 of 1, counted from 0"
)]
#[case::disorder(
    r#"{"shows": "", "plan": {"seed": 1, "processes": 1, "sweep": false, "encore": false,
        "actions": [[9, {"fault": "compact"}], [8, {"fault": "compact"}]]}}"#,
    "invalid history one.json: plan.actions[1] is at 8 ms, after one at 9 ms"
)]
fn an_invalid_history_is_an_error(#[case] text: &str, #[case] message: &str) {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("one.json");
    std::fs::write(&file, text).expect("it is written");
    let error = format!("{:#}", History::read(&file).expect_err("it is invalid"));
    let error = error.replace(&format!("{}/", directory.path().display()), "");
    assert!(error.starts_with(message), "{error}");
}

#[test]
fn a_missing_history_is_an_error() {
    let error = format!("{:#}", History::read(Path::new("nowhere.json")).expect_err("it is not there"));
    assert!(error.starts_with("cannot read the history nowhere.json: No such file"), "{error}");
}
