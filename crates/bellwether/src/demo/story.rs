//! The scenes: the first day of a blog, and of the platform below it.

use std::time::Duration;

use anyhow::Result;

use super::cluster::{Cluster, UserAction};

const WORDPRESS: &str = include_str!("../../../../examples/wordpress/shared-mysql/wordpress.yaml");
const MYSQL: &str = include_str!("../../../../examples/wordpress/shared-mysql/mysql.yaml");
const CACHE: &str = include_str!("cache.yaml");
const PLATFORM: &str = include_str!("platform.yaml");

const GUESTS: &str = "guests.example.com";
const DISKS: &str = "disks.example.com";
const NET: &str = "net.example.com";

#[derive(Debug)]
pub(super) struct Scene {
    pub(super) title: &'static str,
    seconds: u64,
    /// When the scene begins.
    actions: &'static [UserAction],
}

pub(super) const SCENES: &[Scene] = &[
    Scene {
        title: "WordPress is installed. It depends on MySQL, which does not exist yet.",
        seconds: 6,
        actions: &[UserAction::Apply(WORDPRESS)],
    },
    Scene {
        title: "MySQL is installed. WordPress connects to it.",
        seconds: 7,
        actions: &[UserAction::Apply(MYSQL)],
    },
    Scene {
        title: "A page cache with four replicas is added to WordPress.",
        seconds: 7,
        actions: &[
            UserAction::AddComponents(
                "wordpress",
                r#"{"cache": {"group": "apps", "version": "v1", "kind": "Deployment"}}"#,
            ),
            UserAction::Apply(CACHE),
        ],
    },
    Scene {
        title: "Version 7.7 of the cache is rolled out.",
        seconds: 8,
        actions: &[UserAction::SetImage("cache", "varnish:7.7")],
    },
    Scene {
        title: "Typo in image tag: varnish:7.77 does not exist.",
        seconds: 13,
        actions: &[UserAction::SetImage("cache", "varnish:7.77")],
    },
    Scene {
        title: "The rollout is undone.",
        seconds: 5,
        actions: &[UserAction::SetImage("cache", "varnish:7.7")],
    },
    Scene {
        title: "The database is deleted. WordPress is not ready without it.",
        seconds: 8,
        actions: &[UserAction::Delete("mysql")],
    },
    Scene {
        title: "The database is created again. Its volume was kept.",
        seconds: 7,
        actions: &[UserAction::Apply(MYSQL)],
    },
    Scene {
        title: "The platform has three operators. A Rollup combines their health.",
        seconds: 5,
        actions: &[UserAction::Apply(PLATFORM)],
    },
    Scene {
        title: "The platform is upgraded, by each operator at its own pace.",
        seconds: 5,
        actions: &[
            UserAction::Patch(GUESTS, "Hypervisor", "hosts", r#"{"spec": {"version": "1.4"}}"#),
            UserAction::Patch(DISKS, "DiskPool", "pool", r#"{"spec": {"version": "2.1"}}"#),
            UserAction::Patch(NET, "Fabric", "fabric", r#"{"spec": {"version": "4.2"}}"#),
        ],
    },
    Scene {
        title: "A disk fails. The pool is degraded: its operator cannot repair it.",
        seconds: 5,
        actions: &[UserAction::Patch(DISKS, "DiskPool", "pool", r#"{"status": {"failed": 1}}"#)],
    },
    Scene {
        title: "The disk is replaced, and the operator repairs the pool.",
        seconds: 4,
        actions: &[UserAction::Patch(DISKS, "DiskPool", "pool", r#"{"status": {"failed": 0}}"#)],
    },
    Scene { title: "Everything is ready again.", seconds: 4, actions: &[] },
];

pub(super) struct Narration {
    pub(super) cluster: Cluster,
    /// The index of the scene.
    scene: usize,
    /// Since the beginning.
    elapsed: Duration,
    /// When the scene ends.
    until: Duration,
}

const STEP: Duration = Duration::from_millis(250);

impl Narration {
    pub(super) fn begin() -> Result<Self> {
        let (cluster, elapsed, until) = (Cluster::new(), Duration::ZERO, Duration::ZERO);
        let mut narration = Self { cluster, scene: 0, elapsed, until };
        narration.open()?;
        Ok(narration)
    }

    /// Counted from 0.
    pub(super) fn scene(&self) -> usize {
        self.scene
    }

    pub(super) fn title(&self) -> &'static str {
        SCENES.get(self.scene).map_or("", |scene| scene.title)
    }

    /// When the next step is due; none after the last.
    pub(super) fn next(&self) -> Option<Duration> {
        let is_last = self.scene + 1 >= SCENES.len();
        (!is_last || self.elapsed < self.until).then(|| self.elapsed + STEP)
    }

    pub(super) fn step(&mut self) -> Result<()> {
        let Some(next) = self.next() else { return Ok(()) };
        self.elapsed = next;
        self.cluster.wait(next);
        if self.elapsed >= self.until && self.scene + 1 < SCENES.len() {
            self.scene += 1;
            self.open()?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let Some(scene) = SCENES.get(self.scene) else { return Ok(()) };
        self.until = self.elapsed + Duration::from_secs(scene.seconds);
        scene.actions.iter().try_for_each(|action| self.cluster.perform(*action))
    }
}

#[cfg(test)]
mod tests {
    use bellwether_inspect::owner_tree::causes;
    use bellwether_model::{ConditionStatus, State};
    use bellwether_terminal::{Screen, columns};
    use rstest::rstest;

    use super::*;
    use crate::demo::page::{ChangeLog, page};

    /// The state of each group, its causes and its unready dependencies.
    fn states(narration: &Narration) -> Vec<String> {
        let mut all = Vec::new();
        for group in narration.cluster.groups() {
            let (counts, name) = (&group.counts, &group.name.name);
            all.push(format!("{name} {:?} {}/{}", group.state, counts.ready, counts.total));
            let tree = narration.cluster.tree(&group, false);
            all.extend(causes(&tree).iter().map(|cause| {
                let (node, more) = (cause.node, cause.more);
                format!("  {} {:?} {} +{more}: {}", node.kind.kind, node.state, node.reason, node.message)
            }));
            let unready = group.dependencies().iter().filter(|it| it.ready != ConditionStatus::True);
            all.extend(unready.map(|dependency| format!("  depends on {}", dependency.name)));
        }
        all
    }

    /// The states at the end of each scene.
    fn states_at_the_end() -> Vec<Vec<String>> {
        let mut narration = Narration::begin().expect("valid manifests");
        let mut ends = Vec::new();
        while narration.next().is_some() {
            let (scene, before) = (narration.scene(), states(&narration));
            narration.step().expect("valid manifests");
            if narration.scene() != scene {
                ends.push(before);
            }
        }
        ends.push(states(&narration));
        ends
    }

    #[test]
    fn states_at_the_end_of_every_scene() {
        let ready = ["mysql Ready 2/2", "wordpress Ready 4/4"];
        let web = "  StatefulSet InProgress ReplicasNotReady +0: 0 of 1 replica ready";
        let with_platform = ["platform Ready 3/3", "mysql Ready 2/2", "wordpress Ready 4/4"];
        let failed = "  DiskPool Failed HealFailed +0: 1 of 4 disks failed, no spare disk";
        let expected: [&[&str]; 13] = [
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
        ];
        let ends = states_at_the_end();
        assert_eq!(ends.len(), SCENES.len());
        for ((end, expected), scene) in ends.iter().zip(expected).zip(SCENES) {
            assert_eq!(end, expected, "{}", scene.title);
        }
    }

    /// The meaning of the Rollup, and the scene of each change.
    #[test]
    fn the_platform_is_installed_upgraded_degraded_and_repaired() {
        let mut narration = Narration::begin().expect("valid manifests");
        let mut seen: Vec<(usize, String)> = Vec::new();
        while narration.next().is_some() {
            narration.step().expect("valid manifests");
            for group in narration.cluster.groups() {
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

    #[test]
    fn replicas_become_ready_one_by_one() {
        let mut narration = Narration::begin().expect("valid manifests");
        let mut seen = Vec::new();
        while narration.scene() < 3 {
            narration.step().expect("valid manifests");
            let groups = narration.cluster.groups();
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
        let (mut log, screen) = (ChangeLog::default(), Screen { color: false, width: None });
        let mut lines = log.changes(&narration, screen);
        while narration.next().is_some() {
            narration.step().expect("valid manifests");
            lines.extend(log.changes(&narration, screen));
        }
        lines
    }

    #[test]
    fn every_run_is_the_same() {
        assert_eq!(lines(), lines());
    }

    #[test]
    fn a_run_takes_less_than_90_seconds() {
        let seconds: u64 = SCENES.iter().map(|scene| scene.seconds).sum();
        assert!((45..90).contains(&seconds), "{seconds} s");
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
            for line in page.lines() {
                assert!(width(line) <= columns, "{line}");
            }
            let is_failing = narration.cluster.groups().iter().any(|group| group.state == State::Failed);
            let has_cause = page.contains("ImagePullBackOff") || page.contains("disks failed");
            assert!(!is_failing || has_cause, "{page}");
            narration.step().expect("valid manifests");
        }
    }
}
