//! The story: what happens to a blog on its first day, and to the platform below it, scene by scene.

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

/// Part of the story.
#[derive(Debug)]
pub(super) struct Scene {
    /// What happens, in a sentence.
    pub(super) says: &'static str,
    /// How long it takes, in seconds.
    lasts: u64,
    /// What somebody does when it begins.
    deeds: &'static [UserAction],
}

pub(super) const SCENES: &[Scene] = &[
    Scene {
        says: "WordPress is installed. It needs MySQL, which is not there yet.",
        lasts: 6,
        deeds: &[UserAction::Apply(WORDPRESS)],
    },
    Scene {
        says: "MySQL is installed, and the blog finds its database.",
        lasts: 7,
        deeds: &[UserAction::Apply(MYSQL)],
    },
    Scene {
        says: "A page cache is put in front of the blog, in four replicas.",
        lasts: 7,
        deeds: &[
            UserAction::Expect(
                "wordpress",
                r#"{"cache": {"group": "apps", "version": "v1", "kind": "Deployment"}}"#,
            ),
            UserAction::Apply(CACHE),
        ],
    },
    Scene {
        says: "Version 7.7 of the cache is rolled out.",
        lasts: 8,
        deeds: &[UserAction::SetImage("cache", "varnish:7.7")],
    },
    Scene {
        says: "A slip of the finger in the next version: there is no varnish:7.77.",
        lasts: 13,
        deeds: &[UserAction::SetImage("cache", "varnish:7.77")],
    },
    Scene {
        says: "The change is rolled back.",
        lasts: 5,
        deeds: &[UserAction::SetImage("cache", "varnish:7.7")],
    },
    Scene {
        says: "Somebody deletes the database, and the blog notices.",
        lasts: 8,
        deeds: &[UserAction::Delete("mysql")],
    },
    Scene {
        says: "The database is put back. Its volume was kept.",
        lasts: 7,
        deeds: &[UserAction::Apply(MYSQL)],
    },
    Scene {
        says: "The platform below has three operators. A Rollup says how they are as one.",
        lasts: 5,
        deeds: &[UserAction::Apply(PLATFORM)],
    },
    Scene {
        says: "The platform is upgraded, by each operator at its own pace.",
        lasts: 5,
        deeds: &[
            UserAction::Patch(GUESTS, "Hypervisor", "hosts", r#"{"spec": {"version": "1.4"}}"#),
            UserAction::Patch(DISKS, "DiskPool", "pool", r#"{"spec": {"version": "2.1"}}"#),
            UserAction::Patch(NET, "Fabric", "fabric", r#"{"spec": {"version": "4.2"}}"#),
        ],
    },
    Scene {
        says: "A disk fails: the pool is degraded, and its operator is at a loss.",
        lasts: 5,
        deeds: &[UserAction::Patch(DISKS, "DiskPool", "pool", r#"{"status": {"failed": 1}}"#)],
    },
    Scene {
        says: "Somebody puts in a new disk, and the operator heals the pool.",
        lasts: 4,
        deeds: &[UserAction::Patch(DISKS, "DiskPool", "pool", r#"{"status": {"failed": 0}}"#)],
    },
    Scene { says: "All is ready again.", lasts: 4, deeds: &[] },
];

/// The story so far.
pub(super) struct Narration {
    pub(super) cluster: Cluster,
    /// Which scene it is.
    scene: usize,
    /// How long it has been told.
    passed: Duration,
    /// When the scene ends.
    until: Duration,
}

/// Time passes in steps like this.
const STEP: Duration = Duration::from_millis(250);

impl Narration {
    /// The first moment of it.
    pub(super) fn begin() -> Result<Self> {
        let (cluster, passed, until) = (Cluster::new(), Duration::ZERO, Duration::ZERO);
        let mut telling = Self { cluster, scene: 0, passed, until };
        telling.open()?;
        Ok(telling)
    }

    /// Which scene it is, counted from 0.
    pub(super) fn scene(&self) -> usize {
        self.scene
    }

    /// What happens, in a sentence.
    pub(super) fn says(&self) -> &'static str {
        SCENES.get(self.scene).map_or("", |scene| scene.says)
    }

    /// When the next step is due; never, if this was the last.
    pub(super) fn next(&self) -> Option<Duration> {
        let is_last = self.scene + 1 >= SCENES.len();
        (!is_last || self.passed < self.until).then(|| self.passed + STEP)
    }

    /// Goes on by a step.
    pub(super) fn step(&mut self) -> Result<()> {
        let Some(next) = self.next() else { return Ok(()) };
        self.passed = next;
        self.cluster.wait(next);
        if self.passed >= self.until && self.scene + 1 < SCENES.len() {
            self.scene += 1;
            self.open()?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let Some(scene) = SCENES.get(self.scene) else { return Ok(()) };
        self.until = self.passed + Duration::from_secs(scene.lasts);
        scene.deeds.iter().try_for_each(|deed| self.cluster.suffer(*deed))
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

    /// How everything is: each Application with what is wrong with it, as deep as it goes.
    fn all(telling: &Narration) -> Vec<String> {
        let mut all = Vec::new();
        for group in telling.cluster.groups() {
            let (counts, name) = (&group.counts, &group.name.name);
            all.push(format!("{name} {:?} {}/{}", group.state, counts.ready, counts.total));
            let family = telling.cluster.family(&group, false);
            all.extend(causes(&family).iter().map(|cause| {
                let (node, more) = (cause.node, cause.more);
                format!("  {} {:?} {} +{more}: {}", node.kind.kind, node.state, node.reason, node.message)
            }));
            let needed = group.dependencies().iter().filter(|needed| needed.ready != ConditionStatus::True);
            all.extend(needed.map(|needed| format!("  needs {}", needed.name)));
        }
        all
    }

    /// How everything is at the end of each scene.
    fn ends() -> Vec<Vec<String>> {
        let mut telling = Narration::begin().expect("it begins");
        let mut ends = Vec::new();
        while telling.next().is_some() {
            let (scene, before) = (telling.scene(), all(&telling));
            telling.step().expect("it goes on");
            if telling.scene() != scene {
                ends.push(before);
            }
        }
        ends.push(all(&telling));
        ends
    }

    #[test]
    fn every_scene_ends_as_it_promises() {
        let ready = ["mysql Ready 2/2", "wordpress Ready 4/4"];
        let web = "  Pod InProgress PodNotReady +0: container wordpress is running and not ready";
        let with_platform = ["platform Ready 3/3", "mysql Ready 2/2", "wordpress Ready 4/4"];
        let failed = "  DiskPool Failed HealFailed +0: 1 of 4 disks has failed, and there is no spare one";
        let expected: [&[&str]; 13] = [
            &["wordpress InProgress 2/3", web, "  needs mysql"],
            &["mysql Ready 2/2", "wordpress Ready 3/3"],
            &ready,
            &ready,
            &[
                "mysql Ready 2/2",
                "wordpress Failed 3/4",
                "  Pod Failed ImagePullBackOff +1: container varnish cannot pull its image: Back-off pulling image \
                 \"varnish:7.77\": ErrImagePull: failed to resolve reference \"varnish:7.77\": not found",
            ],
            &ready,
            &[
                "mysql Missing 1/2",
                "  StatefulSet Missing NotFound +0: not found",
                "wordpress InProgress 3/4",
                web,
                "  needs mysql",
            ],
            &ready,
            &with_platform,
            &with_platform,
            &["platform Failed 2/3", failed, "mysql Ready 2/2", "wordpress Ready 4/4"],
            &with_platform,
            &with_platform,
        ];
        let ends = ends();
        assert_eq!(ends.len(), SCENES.len());
        for ((end, expected), scene) in ends.iter().zip(expected).zip(SCENES) {
            assert_eq!(end, expected, "{}", scene.says);
        }
    }

    /// What a Rollup says in each scene, in the order in which it says it.
    #[test]
    fn the_platform_is_installed_upgraded_broken_and_healed() {
        let mut telling = Narration::begin().expect("it begins");
        let mut seen: Vec<(usize, String)> = Vec::new();
        while telling.next().is_some() {
            telling.step().expect("it goes on");
            for group in telling.cluster.groups() {
                let Some(meaning) = group.meaning() else { continue };
                if seen.last().is_none_or(|(_, last)| last != meaning) {
                    seen.push((telling.scene() + 1, meaning.to_owned()));
                }
            }
        }
        let healthy = "Component is 100% healthy and the Operator is idle";
        let expected = [
            (9, "Operator is deploying the component"),
            (9, healthy),
            (10, "Component is functional but, either upgrading or healing"),
            (10, healthy),
            (11, "Component is functioning below capacity and the Operator does nothing about it"),
            (12, "Component is functioning below capacity and an upgrade or heal is in progress"),
            (12, healthy),
        ];
        assert_eq!(seen, expected.map(|(scene, meaning)| (scene, meaning.to_owned())));
    }

    #[test]
    fn replicas_come_up_one_by_one() {
        let mut telling = Narration::begin().expect("it begins");
        let mut seen = Vec::new();
        while telling.scene() < 3 {
            telling.step().expect("it goes on");
            let groups = telling.cluster.groups();
            let members = groups.iter().flat_map(|group| &group.members);
            let cache = members.filter(|member| &*member.kind.kind == "Deployment");
            for member in cache.filter(|_| telling.scene() == 2) {
                if seen.last() != Some(&member.progress) {
                    seen.push(member.progress);
                }
            }
        }
        assert_eq!(seen, [0, 25, 50, 75, 100]);
    }

    fn lines() -> Vec<String> {
        let mut telling = Narration::begin().expect("it begins");
        let (mut log, screen) = (ChangeLog::default(), Screen { colours: false, width: None });
        let mut lines = log.changes(&telling, screen);
        while telling.next().is_some() {
            telling.step().expect("it goes on");
            lines.extend(log.changes(&telling, screen));
        }
        lines
    }

    #[test]
    fn it_is_told_the_same_again() {
        assert_eq!(lines(), lines());
    }

    #[test]
    fn it_takes_less_than_a_minute_and_a_half() {
        let seconds: u64 = SCENES.iter().map(|scene| scene.lasts).sum();
        assert!((45..90).contains(&seconds), "{seconds} s");
    }

    /// How many columns a line takes on a terminal, whatever its colours.
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
        let screen = Screen { colours: true, width: Some(columns) };
        let mut telling = Narration::begin().expect("it begins");
        while telling.next().is_some() {
            let page = page(&telling, screen, height);
            assert!(page.lines().count() <= height, "{page}");
            for line in page.lines() {
                assert!(width(line) <= columns, "{line}");
            }
            let is_failing = telling.cluster.groups().iter().any(|group| group.state == State::Failed);
            let is_told = page.contains("ImagePullBackOff") || page.contains("disks has failed");
            assert!(!is_failing || is_told, "the cause is told: {page}");
            telling.step().expect("it goes on");
        }
    }
}
