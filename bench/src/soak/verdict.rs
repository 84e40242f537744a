//! When all is quiet: whether every Application says what there is to say, and whether the controllers then rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_model::State;
use bellwether_testkit::eventually;
use kube::Client;
use serde_json::Value as Json;
use tokio::time::sleep;

use super::{
    alarm::Alarms,
    cast::{APPLICATION, HEALTH_RULE, Kind, SAYS},
    fact::Eye,
    rules,
    stage::Stage,
    truth::{App, Objects, Share},
    watch::list,
};

/// By then all must be right.
const PATIENCE: Duration = Duration::from_mins(2);

/// So long nothing may be written when all is right,
const QUIET: Duration = Duration::from_secs(5);

/// which must begin by then.
const QUIET_WITHIN: Duration = Duration::from_mins(1);

/// Everything there is, as the API server tells it.
struct World {
    applications: Vec<App>,
    members: BTreeMap<(Kind, String), Objects>,
    rule: Option<Json>,
}

/// Waits until all is right, and until nothing is written any more. Gives back how long it took to be right, or nothing if
/// it never was.
pub async fn settle(stage: &Stage, alarms: &Alarms) -> Result<Option<Duration>> {
    let (begun, eye) = (Instant::now(), Eye::new()?);
    let right = loop {
        let mistakes = World::look(stage.client(), &eye).await?.mistakes();
        if mistakes.is_empty() {
            break begun.elapsed();
        }
        if begun.elapsed() > PATIENCE {
            let some: Vec<_> = mistakes.iter().take(5).map(String::as_str).collect();
            alarms.raise(&format!(
                "{} mistakes after {} s: {}",
                mistakes.len(),
                PATIENCE.as_secs(),
                some.join("; ")
            ));
            return Ok(None);
        }
        sleep(Duration::from_millis(250)).await;
    };
    rest(stage, alarms).await?;
    for replica in stage.replicas() {
        // Also the one that stands by.
        let watches = eventually(PATIENCE, "it watches all", async || Ok(replica.watches_all().await)).await;
        if watches.is_err() {
            alarms.raise(&format!("the controller {} does not watch all that it follows", replica.name()));
        }
    }
    // Whatever was written while it came to rest must not have been for the worse.
    if let Some(mistake) = World::look(stage.client(), &eye).await?.mistakes().first() {
        alarms.raise(&format!("all was right, and then it was not, although nothing had changed: {mistake}"));
    }
    Ok(Some(right))
}

/// Waits until nothing is written any more.
async fn rest(stage: &Stage, alarms: &Alarms) -> Result<()> {
    let begun = Instant::now();
    let mut before = (Instant::now(), stage.writes());
    while before.0.elapsed() < QUIET {
        sleep(Duration::from_millis(250)).await;
        let writes = stage.writes();
        if writes == before.1 {
            continue;
        }
        if begun.elapsed() > QUIET_WITHIN {
            let difference: Vec<_> = writes
                .iter()
                .map(|(what, count)| (what, count - before.1.get(what).copied().unwrap_or(0)))
                .filter(|(_, more)| *more > 0)
                .map(|(what, more)| format!("{more} {what}"))
                .collect();
            let difference = difference.join(", ");
            alarms.raise(&format!("all is right, and writing does not stop: lately {difference}"));
            return Ok(());
        }
        before = (Instant::now(), writes);
    }
    Ok(())
}

impl World {
    async fn look(client: &Client, eye: &Eye) -> Result<Self> {
        let mut members: BTreeMap<_, Objects> = BTreeMap::new();
        for kind in Kind::ALL {
            let (_, items) = list(client, kind.place()).await?.context("a kind is not served")?;
            for item in items.iter().filter(|item| item["metadata"]["annotations"][SAYS].is_string()) {
                let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
                let fact = Arc::new(eye.look(kind, item)?);
                members.entry((kind, text("namespace"))).or_default().insert(text("name"), fact);
            }
        }
        let (_, applications) = list(client, APPLICATION).await?.context("no Applications are served")?;
        let (_, rules) = list(client, HEALTH_RULE).await?.context("no HealthRules are served")?;
        Ok(Self {
            applications: applications.iter().map(App::read).collect::<Result<_>>()?,
            members,
            rule: rules.into_iter().next(),
        })
    }

    /// All that is not as it should be.
    fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        for app in self.applications.iter().filter(|app| !app.deleting) {
            for (what, is, should) in self.differences(app) {
                let (namespace, name) = (&app.namespace, &app.name);
                mistakes.push(format!("{namespace}/{name}: {what} is {is} and should be {should}"));
            }
        }
        for ((kind, namespace), objects) in &self.members {
            for (name, fact) in objects.iter().filter(|(_, fact)| !fact.deleting) {
                let own = |app: &&App| app.namespace == *namespace && !app.deleting;
                let living = self.applications.iter().filter(own);
                let owned = fact.owners.iter().filter(|owner| owner.is_application).map(|owner| &owner.uid);
                let owned: BTreeSet<_> = owned.collect();
                let is: Vec<_> =
                    living.clone().filter(|app| owned.contains(&app.uid)).map(|app| &app.name).collect();
                let rightful = living.filter(|app| app.owns(*kind, fact));
                for app in rightful.clone().filter(|app| !app.says_it_owns(*kind)) {
                    let (app, kind) = (&app.name, kind.name());
                    mistakes.push(format!("{namespace}/{app} owns {kind} {name} and does not say so"));
                }
                let should: Vec<_> = rightful.map(|app| &app.name).collect();
                if is != should {
                    let kind = kind.name();
                    mistakes
                        .push(format!("{kind} {namespace}/{name} is owned by {is:?} and not by {should:?}"));
                }
            }
        }
        if let Some(rule) = &self.rule {
            let conditions = rule["status"]["conditions"].as_array().into_iter().flatten();
            let valid = conditions.filter(|it| it["type"] == "Valid").find_map(|it| it["status"].as_str());
            let should = if rules::is_valid(rule) { "True" } else { "False" };
            if valid != Some(should) || rule["status"]["observedGeneration"] != rule["metadata"]["generation"]
            {
                mistakes.push(format!("the rule is {valid:?} and should be {should}"));
            }
        }
        mistakes
    }

    /// What there is to say of an Application.
    fn share(&self, app: &App) -> Share {
        let rule = self.rule.as_ref().map_or(0, rules::in_force);
        let nothing = Objects::new();
        let share = |kind: Kind| {
            let objects = self.members.get(&(kind, app.namespace.clone())).unwrap_or(&nothing);
            app.share(kind, objects, rule)
        };
        Share::join(app.kinds().into_iter().map(share))
    }

    /// What is said of an Application and is not so: what it is about, what is said, and what should be.
    fn differences(&self, app: &App) -> Vec<(&'static str, String, String)> {
        let share = self.share(app);
        let find = |name: &String| {
            self.applications.iter().find(|other| other.namespace == app.namespace && other.name == *name)
        };
        let (mut installed, mut missing) = (share.installed.clone(), share.missing.clone());
        let mut dependencies = Vec::new();
        for name in &app.spec.dependencies {
            let found = find(name);
            let list = if found.is_some() { &mut installed } else { &mut missing };
            list.insert(name.clone());
            let ready = found.map_or("Unknown", |other| self.share(other).ready().0);
            dependencies.push(format!("{name} {} {ready}", found.is_some()));
        }
        let counts = share.counts();
        let said = app.status.dependencies.iter();
        let said: Vec<_> = said.map(|it| format!("{} {} {:?}", it.name, it.installed, it.ready)).collect();
        let mut differences = Vec::new();
        let mut compare = |what: &'static str, is: String, should: String| {
            if is != should {
                differences.push((what, is, should));
            }
        };
        compare("the generation", shown(app.status.observed_generation), app.generation.to_string());
        compare("Ready", format!("{:?}", app.condition("Ready")), format!("{:?}", Some(share.ready())));
        compare("objectCounts", format!("{:?}", app.status.object_counts), format!("{:?}", Some(counts)));
        let of_all = format!("{}/{}", counts.ready, counts.total);
        compare("componentsReady", shown(app.status.components_ready.as_ref()), of_all);
        compare("objects", listed_in(app), listed(&share));
        compare("installed", app.status.installed.join(","), joined(&installed));
        compare("missing", app.status.missing.join(","), joined(&missing));
        compare("dependencies", said.join(","), dependencies.join(","));
        let settled = if share.behind { "False" } else { "True" };
        let is_installed = if missing.is_empty() { "True" } else { "False" };
        for (kind, should) in [("Settled", settled), ("Installed", is_installed), ("Resolved", "True")] {
            compare(kind, shown(app.condition(kind).map(|(status, _)| status)), should.to_owned());
        }
        let in_a_circle = self.is_in_a_circle(app);
        compare(
            "DependencyCycle",
            app.condition("DependencyCycle").is_some().to_string(),
            in_a_circle.to_string(),
        );
        compare("Adopted", app.condition("Adopted").is_some().to_string(), false.to_string());
        differences
    }

    /// Whether the dependencies of an Application lead back to it.
    fn is_in_a_circle(&self, app: &App) -> bool {
        let mut reached: BTreeSet<&String> = app.spec.dependencies.iter().collect();
        loop {
            let others = self.applications.iter().filter(|other| other.namespace == app.namespace);
            let others = others.filter(|other| reached.contains(&other.name));
            let next: BTreeSet<_> =
                others.flat_map(|other| &other.spec.dependencies).chain(reached.iter().copied()).collect();
            if next == reached {
                return reached.contains(&app.name);
            }
            reached = next;
        }
    }
}

fn shown(value: Option<impl Display>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// The objects of a status, in its order.
fn listed_in(app: &App) -> String {
    let objects = app.status.objects.iter();
    let objects: Vec<_> = objects.map(|it| format!("{} {} {}", it.kind, it.name, it.status.name())).collect();
    objects.join(",")
}

/// The objects that a status should have: the worst first, then by kind and name.
fn listed(share: &Share) -> String {
    let rank = |state: State| State::WORST_FIRST.iter().position(|other| *other == state);
    let mut objects: Vec<_> =
        share.objects.iter().map(|((kind, name), state)| (rank(*state), kind, name, state)).collect();
    objects.sort();
    let objects: Vec<_> = objects
        .into_iter()
        .map(|(_, kind, name, state)| format!("{} {name} {}", kind.name(), state.name()))
        .collect();
    objects.join(",")
}
