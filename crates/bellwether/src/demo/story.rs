//! The scenes: the first day of a blog, of the platform below it, and of a shop in three clusters.

use std::time::Duration;

use anyhow::Result;

use super::{action::Action, fleet::Fleet};

const WORDPRESS: &str = include_str!("../../../../examples/wordpress/shared-mysql/wordpress.yaml");
const MYSQL: &str = include_str!("../../../../examples/wordpress/shared-mysql/mysql.yaml");
const CACHE: &str = include_str!("cache.yaml");
const PLATFORM: &str = include_str!("platform.yaml");
const STOREFRONT: &str = include_str!("storefront.yaml");

const GUESTS: &str = "guests.example.com";
const DISKS: &str = "disks.example.com";
const NET: &str = "net.example.com";

#[derive(Debug)]
pub(super) struct Scene {
    pub(super) title: &'static str,
    seconds: u64,
    /// When the scene begins.
    actions: &'static [Action],
}

pub(super) const SCENES: &[Scene] = &[
    Scene {
        title: "WordPress is installed. It depends on MySQL, which does not exist yet.",
        seconds: 6,
        actions: &[Action::Apply(WORDPRESS)],
    },
    Scene {
        title: "MySQL is installed. WordPress connects to it.",
        seconds: 7,
        actions: &[Action::Apply(MYSQL)],
    },
    Scene {
        title: "A page cache with four replicas is added to WordPress.",
        seconds: 7,
        actions: &[
            Action::AddComponents(
                "wordpress",
                r#"{"cache": {"group": "apps", "version": "v1", "kind": "Deployment"}}"#,
            ),
            Action::Apply(CACHE),
        ],
    },
    Scene {
        title: "Version 7.7 of the cache is rolled out.",
        seconds: 7,
        actions: &[Action::SetImage("cache", "varnish:7.7")],
    },
    Scene {
        title: "Typo in image tag: varnish:7.77 does not exist.",
        seconds: 11,
        actions: &[Action::SetImage("cache", "varnish:7.77")],
    },
    Scene {
        title: "The rollout is undone.",
        seconds: 5,
        actions: &[Action::SetImage("cache", "varnish:7.7")],
    },
    Scene {
        title: "The database is deleted. WordPress is not ready without it.",
        seconds: 6,
        actions: &[Action::Delete("mysql")],
    },
    Scene {
        title: "The database is created again. Its volume was kept.",
        seconds: 7,
        actions: &[Action::Apply(MYSQL)],
    },
    Scene {
        title: "The platform has three operators. A Rollup combines their health.",
        seconds: 5,
        actions: &[Action::Apply(PLATFORM)],
    },
    Scene {
        title: "The platform is upgraded, by each operator at its own pace.",
        seconds: 5,
        actions: &[
            Action::Patch(GUESTS, "Hypervisor", "hosts", r#"{"spec": {"version": "1.4"}}"#),
            Action::Patch(DISKS, "DiskPool", "pool", r#"{"spec": {"version": "2.1"}}"#),
            Action::Patch(NET, "Fabric", "fabric", r#"{"spec": {"version": "4.2"}}"#),
        ],
    },
    Scene {
        title: "A disk fails. The pool is degraded: its operator cannot repair it.",
        seconds: 5,
        actions: &[Action::Patch(DISKS, "DiskPool", "pool", r#"{"status": {"failed": 1}}"#)],
    },
    Scene {
        title: "The disk is replaced, and the operator repairs the pool.",
        seconds: 4,
        actions: &[Action::Patch(DISKS, "DiskPool", "pool", r#"{"status": {"failed": 0}}"#)],
    },
    Scene {
        title: "A storefront in three clusters. Its CombinedStatus has a row for each.",
        seconds: 5,
        actions: &[Action::Apply(STOREFRONT)],
    },
    Scene {
        title: "A new version is rolled out, cluster by cluster.",
        seconds: 14,
        actions: &[Action::SetImage("storefront", "nginx:1.29")],
    },
    Scene {
        title: "Cluster west stops answering. After 5 s without news, its row is stale.",
        seconds: 8,
        actions: &[Action::Disconnect("west")],
    },
    Scene {
        title: "West answers again. Everything is ready.",
        seconds: 5,
        actions: &[Action::Reconnect("west")],
    },
];

pub(super) struct Narration {
    pub(super) fleet: Fleet,
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
        let (fleet, elapsed, until) = (Fleet::new(), Duration::ZERO, Duration::ZERO);
        let mut narration = Self { fleet, scene: 0, elapsed, until };
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
        self.fleet.wait(next);
        if self.elapsed >= self.until && self.scene + 1 < SCENES.len() {
            self.scene += 1;
            self.open()?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let Some(scene) = SCENES.get(self.scene) else { return Ok(()) };
        self.until = self.elapsed + Duration::from_secs(scene.seconds);
        scene.actions.iter().try_for_each(|action| self.fleet.perform(*action))
    }
}

#[cfg(test)]
mod tests;
