//! The plan of a run: actions of users and faults with their times, drawn from one seed. `shrink` can leave
//! out any of them.

use std::fmt;

use rand::{Rng, SeedableRng as _, rngs::SmallRng};
use serde::{Deserialize, Serialize};

use crate::{
    inventory::InventoryAction,
    load::{APP, ROLLUP, Text, UserAction},
    operators, policies,
    site::Site,
};

/// The kinds that faults concern.
const KINDS: [&str; 9] = [
    APP,
    APP,
    ROLLUP,
    "HealthRule.bellwether.dev",
    "Deployment.apps",
    "Widget.acme.io",
    "Platform.acme.io",
    "Service",
    "Pod",
];

/// Milliseconds since the start of the run, or a duration in milliseconds.
pub(crate) type Moment = u64;

/// A plan. It is stored in `histories/`, so names of fields and variants are a file format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// Decides durations, and whether a possible loss or error occurs.
    pub seed: u64,
    /// Number of controllers.
    pub(crate) processes: usize,
    /// Whether to delete all Applications and Rollups at the end.
    pub(crate) sweep: bool,
    /// Whether to restart all controllers at the end.
    pub(crate) encore: bool,
    /// Actions and faults, ordered by time.
    pub(crate) actions: Vec<(Moment, PlannedAction)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum PlannedAction {
    Act(UserAction),
    Fault(Fault),
    /// An action or a fault in the second cluster.
    Elsewhere(Box<PlannedAction>),
    /// An action or a fault in the cluster of this name.
    In(Site, Box<PlannedAction>),
    /// An action or a fault in all clusters but the hub, at the same time.
    Everywhere(Box<PlannedAction>),
    /// Clusters come and go.
    Inventory(InventoryAction),
}

/// Where a controller crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Point {
    Now,
    /// Before it sends its next write.
    BeforeWrite,
    /// After an API server applies its next write, before the response.
    AfterWrite,
    /// After the response to its next write.
    AfterAnswer,
}

/// A fault. `lasts` is its duration in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Fault {
    /// A controller is killed and restarted after `down` milliseconds.
    Crash { process: usize, point: Point, down: Moment },
    /// A controller is suspended.
    Freeze { process: usize, lasts: Moment },
    /// The wall clock of a controller is set forward or back.
    Jump { process: usize, seconds: i64 },
    /// All watches of a kind, or of all kinds, are closed. `torn`: within a line.
    Cut { kind: Option<Text>, torn: bool },
    /// The watches of a kind fall silent without being closed.
    Silence { kind: Text },
    /// One of two API servers gets no updates. It serves half of the requests.
    Lag { lasts: Moment },
    /// Watch events are delayed by `by` milliseconds.
    Late { by: Moment, lasts: Moment },
    /// The store is compacted: older watches expire.
    Compact,
    /// No API server responds, and all connections are closed.
    Outage { lasts: Moment },
    /// Some requests fail with this status code.
    Errors { code: u16, lasts: Moment },
    /// Some requests are lost.
    LoseRequests { lasts: Moment },
    /// Some responses are lost.
    LoseAnswers { lasts: Moment },
    /// Reading a kind is forbidden.
    Forbid { kind: Text, lasts: Moment },
    /// A kind is not served, and its objects are removed. `changes`: its preferred version is another then.
    Unserve { kind: Text, lasts: Moment, changes: bool },
    /// All writes are rejected as invalid.
    Refuse { lasts: Moment },
    /// Every list and watch of a kind fails with 500.
    Fail { kind: Text, lasts: Moment },
    /// The second cluster is restored from a backup of this moment: its resourceVersions go back, while
    /// watches are open.
    Restore,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let theme = Theme::ALL[rng.random_range(0..Theme::ALL.len())];
        let processes = if theme == Theme::Leaders || rng.random_bool(0.1) { 2 } else { 1 };
        let (acts, faults) = (rng.random_range(2..16), rng.random_range(0..7));
        let mut actions: Vec<_> = (0..acts).map(|_| PlannedAction::Act(UserAction::draw(&mut rng))).collect();
        // Actions on Rollups are added to those on Applications. A few plans have only Rollups.
        if rng.random_bool(0.1) {
            actions.clear();
        }
        let rollups = if actions.is_empty() || rng.random_bool(0.5) { rng.random_range(2..14) } else { 0 };
        for _ in 0..rollups {
            let place = rng.random_range(0..=actions.len());
            actions.insert(place, PlannedAction::Act(operators::draw(&mut rng)));
        }
        if rollups > 0 && rng.random_bool(0.7) {
            let beginning = operators::beginning(&mut rng).into_iter().map(PlannedAction::Act);
            actions.splice(0..0, beginning);
        }
        for _ in 0..faults {
            let place = rng.random_range(0..=actions.len());
            actions.insert(place, PlannedAction::Fault(Fault::draw(&mut rng, theme, processes, &KINDS)));
        }
        let mut moment = 0;
        let actions = actions.into_iter().map(|action| {
            moment += pause(&mut rng);
            (moment, action)
        });
        let mut actions: Vec<_> = actions.collect();
        // After a crash or a change of leader, `status.ownedKinds` is the only record of owned kinds. Users
        // must not clear it then.
        let crashes = |(_, action): &(Moment, PlannedAction)| {
            matches!(action, PlannedAction::Fault(Fault::Crash { .. }))
        };
        if processes > 1 || actions.iter().any(crashes) {
            for (_, action) in &mut actions {
                if let PlannedAction::Act(UserAction::Clear(_, whole)) = action {
                    *whole = false;
                }
            }
        }
        let (sweep, encore) = (rng.random_bool(0.2), rng.random_bool(0.25));
        if rng.random_bool(0.25) {
            add_second_cluster(&mut actions, &mut rng);
        }
        if rng.random_bool(0.3) {
            add_policies(&mut actions, &mut rng, theme, processes);
        }
        Self { seed, processes, sweep, encore, actions }
    }

    /// Whether controllers follow an inventory of clusters, and BindingPolicies.
    pub(crate) fn has_inventory(&self) -> bool {
        self.actions.iter().any(|(_, action)| matches!(action, PlannedAction::Inventory(_)))
    }

    /// Whether controllers without an inventory observe the second cluster.
    pub(crate) fn goes_elsewhere(&self) -> bool {
        let is_elsewhere =
            |(_, action): &(Moment, PlannedAction)| matches!(action, PlannedAction::Elsewhere(_));
        !self.has_inventory() && self.actions.iter().any(is_elsewhere)
    }

    /// Whether the second cluster is restored from a backup.
    pub(crate) fn restores(&self) -> bool {
        let restore = PlannedAction::Elsewhere(Box::new(PlannedAction::Fault(Fault::Restore)));
        self.actions.iter().any(|(_, action)| *action == restore)
    }

    pub fn len(&self) -> usize {
        self.actions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}

/// Adds actions on objects of the same names in the second cluster, and faults of its API servers.
fn add_second_cluster(actions: &mut Vec<(Moment, PlannedAction)>, rng: &mut impl Rng) {
    let end = actions.last().map_or(0, |(moment, _)| *moment);
    for _ in 0..rng.random_range(1..10) {
        let moment = rng.random_range(0..=end);
        let action = if rng.random_bool(0.8) {
            PlannedAction::Act(UserAction::draw(rng))
        } else {
            PlannedAction::Fault(Fault::of_cluster(rng, &KINDS))
        };
        let place = actions.partition_point(|(other, _)| *other <= moment);
        actions.insert(place, (moment, PlannedAction::Elsewhere(Box::new(action))));
    }
    if rng.random_bool(0.25) {
        let moment = rng.random_range(0..=end);
        let place = actions.partition_point(|(other, _)| *other <= moment);
        let restore = PlannedAction::Elsewhere(Box::new(PlannedAction::Fault(Fault::Restore)));
        actions.insert(place, (moment, restore));
    }
}

/// Adds clusters that come and go, BindingPolicies and their faults. Half of these plans have nothing else.
fn add_policies(
    actions: &mut Vec<(Moment, PlannedAction)>,
    rng: &mut impl Rng,
    theme: Theme,
    processes: usize,
) {
    actions.retain(|(_, action)| !matches!(action, PlannedAction::Elsewhere(_)));
    if rng.random_bool(0.5) {
        actions.clear();
    }
    let mut moment = 0;
    let mut add = |rng: &mut _, action: PlannedAction| {
        let place = actions.partition_point(|(other, _)| *other <= moment);
        actions.insert(place, (moment, action));
        moment += pause(rng);
    };
    for action in policies::beginning(rng) {
        add(rng, action);
    }
    for _ in 0..rng.random_range(2..16) {
        let action = match rng.random_range(0..10) {
            0..2 => PlannedAction::Fault(Fault::draw(rng, theme, processes, &policies::KINDS)),
            2 | 3 => {
                let fault = PlannedAction::Fault(Fault::of_cluster(rng, &policies::KINDS));
                if rng.random_bool(0.3) {
                    PlannedAction::Everywhere(Box::new(fault))
                } else {
                    let site = Site::WORKLOAD[rng.random_range(0..Site::WORKLOAD.len())];
                    PlannedAction::In(site, Box::new(fault))
                }
            }
            _ => policies::draw(rng),
        };
        add(rng, action);
    }
}

/// Milliseconds between two actions.
fn pause(rng: &mut impl Rng) -> Moment {
    match rng.random_range(0..8) {
        0..3 => 0,
        3..6 => rng.random_range(1..60),
        6 => rng.random_range(100..2_500),
        _ => rng.random_range(1_000..20_000),
    }
}

/// Which faults occur together. Many bugs need more than one fault to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    Any,
    /// Stale reads and missed watch events.
    Past,
    /// All outcomes of writes.
    Writes,
    /// Several controllers, and faults that make more than one believe that it leads.
    Leaders,
}

impl Theme {
    const ALL: [Self; 6] = [Self::Any, Self::Any, Self::Any, Self::Past, Self::Writes, Self::Leaders];

    /// A number that `Fault::draw` turns into a fault.
    fn draw(self, rng: &mut impl Rng) -> u32 {
        let among: &[u32] = match self {
            Self::Any => return rng.random_range(0..42),
            Self::Past => &[0, 15, 16, 20, 20, 20, 23, 26, 26],
            Self::Writes => &[0, 1, 2, 3, 26, 29, 31, 33, 34, 35, 39],
            Self::Leaders => &[0, 1, 10, 10, 29, 31, 33, 34, 13],
        };
        among[rng.random_range(0..among.len())]
    }
}

impl Fault {
    /// A fault of the API servers of a cluster.
    fn of_cluster(rng: &mut impl Rng, kinds: &[&'static str]) -> Self {
        loop {
            let fault = Self::draw(rng, Theme::Any, 1, kinds);
            if PlannedAction::Fault(fault.clone()).process().is_none() {
                return fault;
            }
        }
    }

    fn draw(rng: &mut impl Rng, theme: Theme, processes: usize, kinds: &[&'static str]) -> Self {
        let process = rng.random_range(0..processes);
        let lasts = match rng.random_range(0..4) {
            0 => rng.random_range(10..200),
            1..3 => rng.random_range(200..5_000),
            _ => rng.random_range(5_000..40_000),
        };
        // Sometimes longer than any back-off.
        let long = if rng.random_bool(0.1) { rng.random_range(600_000..900_000) } else { lasts };
        let kind = kinds[rng.random_range(0..kinds.len())].into();
        match theme.draw(rng) {
            0..10 => {
                let points = [Point::Now, Point::BeforeWrite, Point::AfterWrite, Point::AfterAnswer];
                let point = points[rng.random_range(0..points.len())];
                Self::Crash { process, point, down: rng.random_range(0..3_000) }
            }
            10..13 => Self::Freeze { process, lasts },
            13..15 => Self::Jump { process, seconds: [-3600, -30, -2, 2, 30, 3600][rng.random_range(0..6)] },
            15..19 => Self::Cut { kind: rng.random_bool(0.7).then_some(kind), torn: rng.random() },
            19 if rng.random_bool(0.3) => Self::Silence { kind },
            19..23 => Self::Lag { lasts },
            23..26 => Self::Late { by: rng.random_range(10..5_000), lasts },
            26..29 => Self::Compact,
            29..31 => Self::Outage { lasts },
            31..33 => {
                Self::Errors { code: [429, 500, 503, 504, 410, 404, 401, 409][rng.random_range(0..8)], lasts }
            }
            33 => Self::LoseRequests { lasts },
            34..36 => Self::LoseAnswers { lasts },
            36 => Self::Forbid { kind, lasts: long },
            37..39 => {
                let kind = if rng.random_bool(0.2) { "Platform.acme.io" } else { "Widget.acme.io" };
                Self::Unserve { kind: kind.into(), lasts: long, changes: rng.random() }
            }
            39 => Self::Refuse { lasts: long },
            _ => Self::Fail { kind, lasts: rng.random_range(20_000..150_000) },
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {} controllers", self.seed, self.processes)?;
        for (moment, action) in &self.actions {
            writeln!(f, "{moment:>8} ms  {action}")?;
        }
        if self.sweep {
            writeln!(f, "at the end: delete all Applications and Rollups")?;
        }
        if self.encore { writeln!(f, "at the end: restart all controllers") } else { Ok(()) }
    }
}

impl PlannedAction {
    /// The controller that a fault concerns. None for faults of clusters.
    pub(crate) fn process(&self) -> Option<usize> {
        match self {
            Self::Fault(
                Fault::Crash { process, .. } | Fault::Freeze { process, .. } | Fault::Jump { process, .. },
            ) => Some(*process),
            Self::Act(_)
            | Self::Fault(_)
            | Self::Elsewhere(_)
            | Self::In(..)
            | Self::Everywhere(_)
            | Self::Inventory(_) => None,
        }
    }
}

impl fmt::Display for PlannedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Act(action) => write!(f, "{action}"),
            Self::Fault(fault) => write!(f, "{fault:?}"),
            Self::Elsewhere(action) => write!(f, "in the second cluster: {action}"),
            Self::In(site, action) => write!(f, "in {}: {action}", site.name()),
            Self::Everywhere(action) => write!(f, "in all clusters but the hub: {action}"),
            Self::Inventory(action) => write!(f, "{action}"),
        }
    }
}
