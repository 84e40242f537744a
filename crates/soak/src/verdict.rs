//! When all is quiet: whether every Application says what there is to say, and whether the controllers then rest.

use std::{
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_engine::GroupKind;
use bellwether_simulation::{
    known::Known,
    object::Object,
    oracle::{Oracle, shape},
};
use bellwether_testkit::eventually;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value as Json;
use tokio::time::sleep;

use crate::{
    alarm::Alarms,
    cast::{APPLICATION, HEALTH_RULE, Kind, Objects, Place, ROLLUP},
    rules,
    stage::Stage,
    watch::list,
};

/// By then all must be right.
const PATIENCE: Duration = Duration::from_mins(2);

/// So long nothing may be written when all is right,
const QUIET: Duration = Duration::from_secs(5);

/// which must begin by then.
const QUIET_WITHIN: Duration = Duration::from_mins(1);

/// Everything there is, as the API server tells it.
struct World(BTreeMap<GroupKind, Known>);

/// Waits until all is right, and until nothing is written any more. Gives back how long it took to be right, or nothing if
/// it never was.
pub(crate) async fn settle(stage: &Stage, alarms: &Alarms) -> Result<Option<Duration>> {
    let begun = Instant::now();
    let right = loop {
        let mistakes = World::look(stage.client()).await?.mistakes();
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
    if let Some(mistake) = World::look(stage.client()).await?.mistakes().first() {
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
    async fn look(client: &Client) -> Result<Self> {
        let objects = async |place: Place| -> Result<Objects> {
            let (_, items) = list(client, place).await?.with_context(|| format!("no {}", place.plural))?;
            Ok(items.into_iter().map(|item| (item.name.clone(), item)).collect())
        };
        let mut kinds = BTreeMap::new();
        for kind in Kind::ALL {
            kinds.insert(kind.place().group_kind(), kind.known(objects(kind.place()).await?));
        }
        for own in [APPLICATION, HEALTH_RULE, ROLLUP] {
            let objects = objects(own).await?;
            kinds.insert(own.group_kind(), Known { listed: true, objects, ..Known::default() });
        }
        Ok(Self(kinds))
    }

    /// All that is not as it should be.
    fn mistakes(&self) -> Vec<String> {
        let kinds = self.0.iter().map(|(kind, known)| (kind.clone(), known)).collect();
        let oracle = Oracle { kinds, now: Timestamp::now() };
        let mut mistakes = Vec::new();
        for object in self.objects(&APPLICATION.group_kind()).filter(|app| !app.is_deleting()) {
            mistakes.extend(differences(&oracle, object));
        }
        for kind in Kind::ALL.map(|kind| kind.place().group_kind()) {
            for object in self.objects(&kind) {
                let Some(should) = oracle.owners(&kind, object) else { continue };
                let is: Vec<_> = object.owners().collect();
                if is != should {
                    let name = &object.name;
                    mistakes.push(format!("{kind} {name} is owned by {is:?} and should be by {should:?}"));
                }
            }
        }
        for rule in self.objects(&HEALTH_RULE.group_kind()).map(|rule| &rule.value) {
            let valid = condition(&rule["status"], "Valid").map(|it| &it["status"]);
            let should = if rules::is_valid(rule) { "True" } else { "False" };
            if valid.is_none_or(|valid| valid != should)
                || rule["status"]["observedGeneration"] != rule["metadata"]["generation"]
            {
                mistakes.push(format!("the rule is {valid:?} and should be {should}"));
            }
        }
        mistakes
    }

    fn objects(&self, kind: &GroupKind) -> impl Iterator<Item = &Rc<Object>> {
        self.0.get(kind).into_iter().flat_map(|known| known.objects.values())
    }
}

/// What is said of an Application and is not so.
fn differences(oracle: &Oracle<'_>, object: &Object) -> Vec<String> {
    let name = &object.name;
    let Some(expected) = object.application().and_then(|app| oracle.status(app)) else {
        return vec![format!("{name}: the oracle cannot tell what it should say")];
    };
    let status = &object.value["status"];
    let said = shape(status, &expected);
    let fields = expected.as_object().into_iter().flatten();
    let differing = fields.filter(|(field, should)| said[*field] != **should);
    let mut differences: Vec<_> = differing
        .map(|(field, should)| format!("{name}: {field} is {} and should be {should}", said[field]))
        .collect();
    if let Some(adopted) = condition(status, "Adopted") {
        differences.push(format!("{name}: {adopted} should not be there"));
    }
    differences
}

fn condition<'a>(status: &'a Json, kind: &str) -> Option<&'a Json> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
