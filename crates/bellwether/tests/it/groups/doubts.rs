//! Files that say a thing twice, in a circle, or in a way that is not meant for us: none of it is taken for green.

use std::fmt::Write as _;

use insta::assert_snapshot;

use super::on;

/// A Gizmo that is available or not, with more about itself.
fn gizmo(name: &str, available: &str, metadata: &str) -> String {
    format!(
        "apiVersion: acme.io/v1\nkind: Gizmo\nmetadata: {{name: {name}{metadata}}}\nstatus:\n  conditions:\n  - {{type: \
         Available, status: '{available}', reason: Said, message: so}}\n  - {{type: Progressing, status: 'False', reason: \
         Said}}\n  - {{type: Degraded, status: 'False', reason: Said}}\n---\n"
    )
}

/// What somebody stored of a Rollup that was well.
const WELL: &str = "
status:
  health: Healthy
  conditions:
  - {type: Available, status: 'True', reason: AsExpected, message: All components are available, lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Progressing, status: 'False', reason: AsExpected, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Degraded, status: 'False', reason: AsExpected, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}
";

/// Each believes the one below it to be well, as somebody wrote long ago; the lowest is not.
#[test]
fn rollups_are_looked_into_however_deep_they_are() {
    let mut objects = gizmo("a", "False", "");
    for number in 0..25 {
        let below = match number {
            0 => "{group: acme.io, kind: Gizmo, name: a}".to_owned(),
            _ => format!("{{group: bellwether.dev, kind: Rollup, name: c{}}}", number - 1),
        };
        let _ = write!(
            objects,
            "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {{name: c{number}}}\nspec: {{components: \
             [{below}]}}\n{WELL}---\n"
        );
    }
    let all = on(&objects, &["status"]);
    assert!(all.code == Some(1) && all.stdout.ends_with("\n25 failed.\n"), "{all}");
    let waited = on(&objects, &["wait", "c24"]);
    assert_eq!(waited.code, Some(1), "{waited}");
}

/// Neither can be known before the other.
#[test]
fn of_groups_that_count_one_another_nobody_can_tell() {
    let application = |name: &str, other: &str, ready: &str| {
        format!(
            "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: shop, labels: \
             {{in: {other}}}}}\nspec: {{selector: {{matchLabels: {{in: {name}}}}}, componentKinds: [{{group: \
             bellwether.dev, kind: Application}}]}}\nstatus: {{conditions: [{{type: Ready, status: '{ready}', reason: \
             Said, message: so, lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}\n---\n"
        )
    };
    let objects = application("one", "two", "True") + &application("two", "one", "False");
    assert_snapshot!(on(&objects, &["status"]));
    let waited = on(&objects, &["wait", "one"]);
    assert_eq!((waited.stdout.as_str(), waited.code), ("", Some(3)), "{waited}");
}
