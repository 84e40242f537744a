//! Changes, so many in a second, of everything that users and their controllers change.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use bellwether_engine::NamespacedName;
use http::{Request, request::Builder};
use kube::Client;
use rand::{Rng, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value as Json, json};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    cast::{self, APPLICATION, APPLICATIONS, HEALTH_RULE, Kind, NAMESPACES, Place, Written},
    rules,
    stage::Stage,
    witness::Witness,
};

/// So many changes come in a second.
const RATE: u32 = 40;

/// So many are under way at a time, at most.
const AT_A_TIME: usize = 16;

/// How long a change may take before nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(5);

const MERGE: &str = "application/merge-patch+json";

/// All users, and the controllers of their objects.
#[derive(Clone)]
pub(crate) struct Load {
    stage: Arc<Stage>,
    witness: Witness,
    made: Arc<AtomicUsize>,
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Create,
    Edit,
    Replace,
    Report,
    Noise,
    Delete,
    Recreate,
    LetGo,
    CreateApplication,
    EditApplication,
    DeleteApplication,
    Remark,
    Rule,
}

/// How often, of so many.
const DEEDS: [(Deed, u32); 13] = [
    (Deed::Report, 300),
    (Deed::Edit, 130),
    (Deed::Create, 300),
    (Deed::Noise, 120),
    (Deed::Delete, 70),
    (Deed::Recreate, 40),
    (Deed::LetGo, 50),
    (Deed::Replace, 30),
    (Deed::EditApplication, 40),
    (Deed::CreateApplication, 70),
    (Deed::DeleteApplication, 10),
    (Deed::Remark, 20),
    (Deed::Rule, 8),
];

impl Load {
    /// A load that has done nothing yet.
    pub(crate) fn new(stage: &Arc<Stage>, witness: &Witness) -> Self {
        Self { stage: Arc::clone(stage), witness: witness.clone(), made: Arc::default() }
    }

    /// How many changes the API server has accepted so far.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Makes what there is to begin with.
    pub(crate) async fn begin(&self, random: &mut StdRng) -> Result<()> {
        let client = self.stage.client();
        for namespace in NAMESPACES {
            for number in 0..APPLICATIONS {
                post(client, &APPLICATION.within(namespace), &cast::application(number, random)).await?;
            }
            for _ in 0..110 {
                self.create(Kind::any(random), namespace, random).await;
            }
        }
        Ok(())
    }

    /// Makes changes for as long as something else takes, and gives back what came of that.
    pub(crate) async fn during<T>(&self, something: impl Future<Output = T>, random: &mut StdRng) -> T {
        let mut something = pin!(something);
        let mut clock = interval(Duration::from_secs(1) / RATE);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tasks = JoinSet::new();
        let result = loop {
            tokio::select! {
                result = &mut something => break result,
                Some(_) = tasks.join_next() => {}
                _ = clock.tick(), if tasks.len() < AT_A_TIME => {
                    let deed = DEEDS.choose_weighted(random, |(_, weight)| *weight);
                    let deed = deed.map_or(Deed::Report, |(deed, _)| *deed);
                    let (load, mut random) = (self.clone(), StdRng::seed_from_u64(random.random()));
                    tasks.spawn_local(async move {
                        // What cannot be done now may be done later, or not.
                        if load.act(deed, &mut random).await.is_some() {
                            load.made.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            }
        };
        while tasks.join_next().await.is_some() {}
        result
    }

    async fn act(&self, deed: Deed, random: &mut StdRng) -> Option<()> {
        match deed {
            Deed::Create => {
                let namespace = NAMESPACES.choose(random)?;
                self.create(Kind::any(random), namespace, random).await
            }
            Deed::Edit | Deed::Replace | Deed::Report | Deed::Noise | Deed::Delete | Deed::Recreate => {
                self.act_on_member(deed, random).await
            }
            Deed::LetGo => self.let_go(random).await,
            Deed::CreateApplication => {
                let namespace = NAMESPACES.choose(random)?;
                let application = cast::application(random.random_range(0..APPLICATIONS), random);
                post(self.stage.client(), &APPLICATION.within(namespace), &application).await.ok().map(drop)
            }
            Deed::EditApplication | Deed::DeleteApplication | Deed::Remark => {
                self.act_on_application(deed, random).await
            }
            Deed::Rule => self.change_rule(random).await,
        }
    }

    async fn create(&self, kind: Kind, namespace: &str, random: &mut StdRng) -> Option<()> {
        let name = kind.any_name(random);
        let anchor = self.stage.anchor(namespace);
        let object = Written::any(random).whole(kind, &name, anchor, random.random_bool(0.15));
        let made = post(self.stage.client(), &kind.place().within(namespace), &object).await.ok()?;
        if random.random_bool(0.9) {
            self.report(kind, namespace, &made, random).await;
        }
        Some(())
    }

    async fn act_on_member(&self, deed: Deed, random: &mut StdRng) -> Option<()> {
        let kind = match deed {
            Deed::Report => *[Kind::Deployment, Kind::Widget].choose(random)?,
            _ => Kind::any(random),
        };
        let member = self.witness.any_member(kind, random)?;
        let NamespacedName { namespace, name } = &member.name;
        let (place, client) = (kind.place(), self.stage.client());
        let path = path(place, &member.name);
        match deed {
            Deed::Report => {
                let status = cast::status(kind, &member.value, random);
                patch(client, &format!("{path}/status"), MERGE, &json!({ "status": status })).await.ok()?;
            }
            Deed::Noise | Deed::Edit => {
                let change = match deed {
                    Deed::Noise => cast::noise(random),
                    _ => Written::any(random).patch(kind, name),
                };
                let changed = patch(client, &path, MERGE, &change).await.ok()?;
                if random.random_bool(0.85) {
                    self.report(kind, namespace, &changed, random).await;
                }
            }
            Deed::Replace => {
                let mut object = Written::any(random).whole(kind, name, self.stage.anchor(namespace), false);
                // Custom objects are replaced only by those who know what they replace.
                let current = get(client, &path).await.ok()?;
                object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
                object["metadata"]["finalizers"] = current["metadata"]["finalizers"].clone();
                let request = Request::put(&path).header("content-type", "application/json");
                let changed = send(client, request, Some(&object)).await.ok()?;
                self.report(kind, namespace, &changed, random).await;
            }
            _ => {
                self.delete(&path, member.uid(), None).await?;
                if matches!(deed, Deed::Recreate) {
                    let anchor = self.stage.anchor(namespace);
                    let object = Written::any(random).whole(kind, name, anchor, false);
                    let made = post(client, &place.within(namespace), &object).await.ok()?;
                    self.report(kind, namespace, &made, random).await;
                }
            }
        }
        Some(())
    }

    /// What the controller of an object says of it.
    async fn report(&self, kind: Kind, namespace: &str, object: &Json, random: &mut StdRng) {
        let (Some(name), true) = (object["metadata"]["name"].as_str(), kind.has_status()) else { return };
        let status = cast::status(kind, object, random);
        let path = format!("{}/{name}/status", kind.place().within(namespace));
        let _ = patch(self.stage.client(), &path, MERGE, &json!({ "status": status })).await;
    }

    /// Lets an object go that is being deleted, if the first one that comes to mind is.
    async fn let_go(&self, random: &mut StdRng) -> Option<()> {
        for _ in 0..20 {
            let kind = *[Kind::ConfigMap, Kind::Deployment].choose(random)?;
            let member = self.witness.any_member(kind, random)?;
            if member.is_deleting() {
                let path = path(kind.place(), &member.name);
                return patch(self.stage.client(), &path, MERGE, &cast::let_go()).await.ok().map(drop);
            }
        }
        None
    }

    async fn act_on_application(&self, deed: Deed, random: &mut StdRng) -> Option<()> {
        let app = self.witness.any_application(random)?;
        let NamespacedName { namespace, name } = &app.name;
        let (client, path) = (self.stage.client(), path(APPLICATION, &app.name));
        match deed {
            Deed::EditApplication if random.random_bool(0.2) => {
                patch(client, &path, MERGE, &cast::noise(random)).await.ok().map(drop)
            }
            Deed::EditApplication => {
                let spec = cast::spec(random);
                let fields = spec.as_object()?.iter();
                let change: Vec<_> = fields
                    .map(|(field, value)| json!({ "op": "add", "path": format!("/spec/{field}"), "value": value }))
                    .collect();
                patch(client, &path, "application/json-patch+json", &json!(change)).await.ok().map(drop)
            }
            Deed::Remark => {
                let condition = json!({
                    "type": "BackedUp", "status": "True", "reason": "Done",
                    "message": random.random::<u32>().to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z",
                });
                let change = json!({
                    "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application",
                    "metadata": { "name": &**name }, "status": { "conditions": [condition] },
                });
                let path = format!("{path}/status?fieldManager=backup&force=true");
                patch(client, &path, "application/apply-patch+yaml", &change).await.ok().map(drop)
            }
            _ => {
                let policy = *["Background", "Background", "Foreground", "Orphan"].choose(random)?;
                self.delete(&path, app.uid(), Some(policy)).await?;
                if random.random_bool(0.5) {
                    let number = name.rsplit('-').next()?.parse().ok()?;
                    let again = cast::application(number, random);
                    let _ = post(client, &APPLICATION.within(namespace), &again).await;
                }
                Some(())
            }
        }
    }

    async fn change_rule(&self, random: &mut StdRng) -> Option<()> {
        let client = self.stage.client();
        let path = format!("{}/{}", HEALTH_RULE.path(), rules::NAME);
        let choice = random.random_range(0..rules::CHOICES);
        if choice == 0 {
            return send(client, Request::delete(&path), None).await.ok().map(drop);
        }
        let path = format!("{path}?fieldManager=soak&force=true");
        patch(client, &path, "application/apply-patch+yaml", &rules::written(choice)).await.ok().map(drop)
    }

    /// Deletes this very object.
    async fn delete(&self, path: &str, uid: &str, policy: Option<&str>) -> Option<()> {
        self.witness.condemn(uid);
        let mut options = json!({ "preconditions": { "uid": uid } });
        if let Some(policy) = policy {
            options["propagationPolicy"] = json!(policy);
        }
        let request = Request::delete(path).header("content-type", "application/json");
        send(self.stage.client(), request, Some(&options)).await.ok().map(drop)
    }
}

fn path(place: Place, name: &NamespacedName) -> String {
    format!("{}/{}", place.within(&name.namespace), name.name)
}

async fn get(client: &Client, path: &str) -> Result<Json> {
    send(client, Request::get(path), None).await
}

async fn post(client: &Client, path: &str, object: &Json) -> Result<Json> {
    send(client, Request::post(path).header("content-type", "application/json"), Some(object)).await
}

async fn patch(client: &Client, path: &str, form: &str, change: &Json) -> Result<Json> {
    send(client, Request::patch(path).header("content-type", form), Some(change)).await
}

async fn send(client: &Client, request: Builder, body: Option<&Json>) -> Result<Json> {
    let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    Ok(timeout(PATIENCE, client.request(request.body(body)?)).await??)
}
