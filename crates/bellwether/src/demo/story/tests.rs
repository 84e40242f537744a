//! The states at the end of the scenes, the changes between them, and the page.

use bellwether_inspect::owner_tree::causes;
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{Screen, columns};
use rstest::rstest;

use super::*;
use crate::demo::page::{ChangeLog, page};

const PLAIN: Screen = Screen { color: false, width: None };

/// The state of each group, its causes and its unready dependencies.
fn states(narration: &Narration) -> Vec<String> {
    let mut all = Vec::new();
    for group in narration.fleet.groups() {
        let (counts, name) = (&group.counts, &group.name.name);
        all.push(format!("{name} {:?} {}/{}", group.state, counts.ready, counts.total));
        let tree = narration.fleet.tree(&group, false);
        all.extend(causes(&tree).iter().map(|cause| {
            let (node, more) = (cause.node, cause.more);
            format!("  {} {:?} {} +{more}: {}", node.kind.kind, node.state, node.reason, node.message)
        }));
        let unready = group.dependencies().iter().filter(|it| it.ready != ConditionStatus::True);
        all.extend(unready.map(|dependency| format!("  depends on {}", dependency.name)));
    }
    all
}

/// Each CombinedStatus, and its rows.
fn rows(narration: &Narration) -> Vec<String> {
    let mut all = Vec::new();
    for status in narration.fleet.combined_statuses() {
        all.push(format!("{} in {}", status.name, status.summary()));
        all.extend(status.table(PLAIN).lines().map(str::to_owned));
    }
    all
}

/// What there is at the end of each scene.
fn at_the_ends(what: fn(&Narration) -> Vec<String>) -> Vec<Vec<String>> {
    let mut narration = Narration::begin().expect("valid manifests");
    let mut ends = Vec::new();
    while narration.next().is_some() {
        let (scene, before) = (narration.scene(), what(&narration));
        narration.step().expect("valid manifests");
        if narration.scene() != scene {
            ends.push(before);
        }
    }
    ends.push(what(&narration));
    assert_eq!(ends.len(), SCENES.len());
    ends
}

#[test]
fn states_at_the_end_of_every_scene() {
    let ready = ["mysql Ready 2/2", "wordpress Ready 4/4"];
    let web = "  StatefulSet InProgress ReplicasNotReady +0: 0 of 1 replica ready";
    let with_platform = ["platform Ready 3/3", "mysql Ready 2/2", "wordpress Ready 4/4"];
    let failed = "  DiskPool Failed HealFailed +0: 1 of 4 disks failed, no spare disk";
    let expected: [&[&str]; 16] = [
        &["wordpress InProgress 2/3", web, "  depends on mysql"],
        &["mysql Ready 2/2", "wordpress Ready 3/3"],
        &ready,
        &ready,
        &[
            "mysql Ready 2/2",
            "wordpress Failed 3/4",
            "  Pod Failed ImagePullBackOff +1: container varnish cannot pull varnish:7.77: failed to resolve reference \"varnish:7.77\": not found",
        ],
        &ready,
        &[
            "mysql Missing 1/2",
            "  StatefulSet Missing NotFound +0: not found",
            "wordpress InProgress 3/4",
            web,
            "  depends on mysql",
        ],
        &ready,
        &with_platform,
        &with_platform,
        &["platform Failed 2/3", failed, "mysql Ready 2/2", "wordpress Ready 4/4"],
        &with_platform,
        &with_platform,
        &with_platform,
        &with_platform,
        &with_platform,
    ];
    for ((end, expected), scene) in at_the_ends(states).iter().zip(expected).zip(SCENES) {
        assert_eq!(end, expected, "{}", scene.title);
    }
}

#[test]
fn rows_at_the_end_of_the_scenes_with_three_clusters() {
    let header = "CLUSTER  IMAGE       AVAILABLE  WANTED  STATE";
    let of = |clusters: &str, image: &str, west: &str| {
        let row = |cluster: &str, state: &str| format!("{cluster:7}  {image}          2       2  {state}");
        let summary = format!("storefront in 3 clusters, {clusters}");
        vec![summary, header.to_owned(), row("east", "Ready"), row("north", "Ready"), row("west", west)]
    };
    let expected = [
        of("all Ready", "nginx:1.28", "Ready"),
        of("all Ready", "nginx:1.29", "Ready"),
        of("1 stale: west", "nginx:1.29", "stale"),
        of("all Ready", "nginx:1.29", "Ready"),
    ];
    let ends = at_the_ends(rows);
    let (before, ends) = ends.split_at(SCENES.len() - expected.len());
    assert!(before.iter().all(Vec::is_empty), "{before:?}");
    assert_eq!(ends, expected);
}

/// The meaning of the Rollup, and the scene of each change.
#[test]
fn the_platform_is_installed_upgraded_degraded_and_repaired() {
    let mut narration = Narration::begin().expect("valid manifests");
    let mut seen: Vec<(usize, String)> = Vec::new();
    while narration.next().is_some() {
        narration.step().expect("valid manifests");
        for group in narration.fleet.groups() {
            let Some(meaning) = group.meaning() else { continue };
            if seen.last().is_none_or(|(_, last)| last != meaning) {
                seen.push((narration.scene() + 1, meaning.to_owned()));
            }
        }
    }
    let healthy = "Component is 100% healthy and the Operator is idle";
    let expected = [
        (9, "Operator is deploying the component"),
        (9, healthy),
        (10, "Component is functional but, either upgrading or healing"),
        (10, healthy),
        (11, "Component is functioning below capacity and the Operator is idle"),
        (12, "Component is functioning below capacity and an upgrade or heal is in progress"),
        (12, healthy),
    ];
    assert_eq!(seen, expected.map(|(scene, meaning)| (scene, meaning.to_owned())));
}

/// The CombinedStatus after each change, and when in which scene it changed.
#[test]
fn the_shop_is_rolled_out_cluster_by_cluster_and_a_stale_row_comes_back() {
    let mut narration = Narration::begin().expect("valid manifests");
    let mut seen: Vec<(usize, String)> = Vec::new();
    let (mut scene, mut began, mut stale_after) = (0, Duration::ZERO, None);
    while narration.next().is_some() {
        narration.step().expect("valid manifests");
        if narration.scene() != scene {
            (scene, began) = (narration.scene(), narration.elapsed);
        }
        for status in narration.fleet.combined_statuses() {
            let summary = status.summary();
            if seen.last().is_none_or(|(_, last)| *last != summary) {
                if summary.contains("stale") {
                    stale_after = Some(narration.elapsed.saturating_sub(began));
                }
                seen.push((narration.scene() + 1, summary));
            }
        }
    }
    let expected = [
        (13, "3 clusters, 3 InProgress: east, north, west"),
        (13, "3 clusters, all Ready"),
        (14, "3 clusters, 1 InProgress: east"),
        (14, "3 clusters, 1 InProgress: north"),
        (14, "3 clusters, 1 InProgress: west"),
        (14, "3 clusters, all Ready"),
        (15, "3 clusters, 1 stale: west"),
        (16, "3 clusters, all Ready"),
    ];
    assert_eq!(seen, expected.map(|(scene, summary)| (scene, summary.to_owned())));
    assert_eq!(stale_after, Some(Duration::from_secs(5)));
}

#[test]
fn replicas_become_ready_one_by_one() {
    let mut narration = Narration::begin().expect("valid manifests");
    let mut seen = Vec::new();
    while narration.scene() < 3 {
        narration.step().expect("valid manifests");
        let groups = narration.fleet.groups();
        let members = groups.iter().flat_map(|group| &group.members);
        let cache = members.filter(|member| &*member.kind.kind == "Deployment");
        for member in cache.filter(|_| narration.scene() == 2) {
            if seen.last() != Some(&member.progress) {
                seen.push(member.progress);
            }
        }
    }
    assert_eq!(seen, [0, 25, 50, 75, 100]);
}

fn lines() -> Vec<String> {
    let mut narration = Narration::begin().expect("valid manifests");
    let mut log = ChangeLog::default();
    let mut lines = log.changes(&narration, PLAIN);
    while narration.next().is_some() {
        narration.step().expect("valid manifests");
        lines.extend(log.changes(&narration, PLAIN));
    }
    lines
}

#[test]
fn every_run_is_the_same() {
    assert_eq!(lines(), lines());
}

#[test]
fn a_run_takes_less_than_110_seconds() {
    let seconds: u64 = SCENES.iter().map(|scene| scene.seconds).sum();
    assert!((45..110).contains(&seconds), "{seconds} s");
}

/// The columns of a line without its escape sequences.
fn width(line: &str) -> usize {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().map_or(0, columns);
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, text)| columns(text))).sum::<usize>()
}

#[rstest]
#[case::low(80, 15)]
#[case::usual(80, 23)]
#[case::large(140, 39)]
fn the_page_fits(#[case] columns: usize, #[case] height: usize) {
    let screen = Screen { color: true, width: Some(columns) };
    let mut narration = Narration::begin().expect("valid manifests");
    while narration.next().is_some() {
        let page = page(&narration, screen, height);
        assert!(page.lines().count() <= height, "{page}");
        assert!(page.contains(narration.title()), "{page}");
        for line in page.lines() {
            assert!(width(line) <= columns, "{line}");
        }
        let is_failing = narration.fleet.groups().iter().any(|group| group.state == State::Failed);
        let has_cause = page.contains("ImagePullBackOff") || page.contains("disks failed");
        assert!(!is_failing || has_cause, "{page}");
        for status in narration.fleet.combined_statuses() {
            assert!(page.contains(&status.table(screen)), "{page}");
        }
        narration.step().expect("valid manifests");
    }
}
