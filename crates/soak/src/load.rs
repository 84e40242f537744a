//! Random changes at a fixed rate, as users and controllers make them.

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
use bellwether_simulation::object::Object;
use http::{Request, request::Builder};
use kube::Client;
use rand::{Rng, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value as Json, json};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    below,
    environment::Environment,
    objects::{self, APPLICATION, APPLICATIONS, ApiResource, DesiredObject, HEALTH_RULE, Kind, NAMESPACES},
    observer::Observer,
    rules,
};

/// Changes in a second.
const RATE: u32 = 40;

const MAX_IN_FLIGHT: usize = 16;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

const MERGE: &str = "application/merge-patch+json";

/// Acts as all users, and as the controllers of their objects.
#[derive(Clone)]
pub(crate) struct Load {
    environment: Arc<Environment>,
    observer: Observer,
    made: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Create,
    Edit,
    Replace,
    ReportStatus,
    Noise,
    Delete,
    Recreate,
    RemoveFinalizer,
    CreateApplication,
    EditApplication,
    DeleteApplication,
    AddCondition,
    ChangeRule,
    RollOut,
    ReportPod,
    DeletePod,
}

/// Relative weights.
const ACTIONS: [(Action, u32); 16] = [
    (Action::ReportStatus, 300),
    (Action::Edit, 130),
    (Action::Create, 300),
    (Action::Noise, 120),
    (Action::Delete, 70),
    (Action::Recreate, 40),
    (Action::RemoveFinalizer, 50),
    (Action::Replace, 30),
    (Action::EditApplication, 40),
    (Action::CreateApplication, 70),
    (Action::DeleteApplication, 10),
    (Action::AddCondition, 20),
    (Action::ChangeRule, 8),
    (Action::RollOut, 60),
    (Action::ReportPod, 120),
    (Action::DeletePod, 30),
];

impl Load {
    pub(crate) fn new(environment: &Arc<Environment>, observer: &Observer) -> Self {
        Self { environment: Arc::clone(environment), observer: observer.clone(), made: Arc::default() }
    }

    /// How many changes the API server has accepted so far.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Creates the initial objects.
    pub(crate) async fn begin(&self, random: &mut StdRng) -> Result<()> {
        let client = self.environment.client();
        for namespace in NAMESPACES {
            for number in 0..APPLICATIONS {
                post(client, &APPLICATION.within(namespace), &objects::application(number, random)).await?;
            }
            for _ in 0..110 {
                self.create(Kind::any(random), namespace, random).await;
            }
        }
        Ok(())
    }

    /// Makes changes until `something` completes, and returns its result.
    pub(crate) async fn during<T>(&self, something: impl Future<Output = T>, random: &mut StdRng) -> T {
        let mut something = pin!(something);
        let mut clock = interval(Duration::from_secs(1) / RATE);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tasks = JoinSet::new();
        let result = loop {
            tokio::select! {
                result = &mut something => break result,
                Some(_) = tasks.join_next() => {}
                _ = clock.tick(), if tasks.len() < MAX_IN_FLIGHT => {
                    let action = ACTIONS.choose_weighted(random, |(_, weight)| *weight);
                    let action = action.map_or(Action::ReportStatus, |(action, _)| *action);
                    let (load, mut random) = (self.clone(), StdRng::seed_from_u64(random.random()));
                    tasks.spawn_local(async move {
                        // Errors are expected while faults are active.
                        if load.act(action, &mut random).await.is_some() {
                            load.made.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            }
        };
        while tasks.join_next().await.is_some() {}
        result
    }

    async fn act(&self, action: Action, random: &mut StdRng) -> Option<()> {
        match action {
            Action::Create => {
                let namespace = NAMESPACES.choose(random)?;
                self.create(Kind::any(random), namespace, random).await
            }
            Action::Edit
            | Action::Replace
            | Action::ReportStatus
            | Action::Noise
            | Action::Delete
            | Action::Recreate => self.act_on_member(action, random).await,
            Action::RemoveFinalizer => self.remove_finalizers(random).await,
            Action::CreateApplication => {
                let namespace = NAMESPACES.choose(random)?;
                let application = objects::application(random.random_range(0..APPLICATIONS), random);
                post(self.environment.client(), &APPLICATION.within(namespace), &application)
                    .await
                    .ok()
                    .map(drop)
            }
            Action::EditApplication | Action::DeleteApplication | Action::AddCondition => {
                self.act_on_application(action, random).await
            }
            Action::ChangeRule => self.change_rule(random).await,
            Action::RollOut => self.roll_out(random).await,
            Action::ReportPod | Action::DeletePod => self.act_on_pod(action, random).await,
        }
    }

    async fn create(&self, kind: Kind, namespace: &str, random: &mut StdRng) -> Option<()> {
        let name = kind.any_name(random);
        let anchor = self.environment.anchor(namespace);
        let object = DesiredObject::any(random).whole(kind, &name, anchor, random.random_bool(0.15));
        let made =
            post(self.environment.client(), &kind.api_resource().within(namespace), &object).await.ok()?;
        if random.random_bool(0.9) {
            self.report(kind, namespace, &made, random).await;
        }
        Some(())
    }

    async fn act_on_member(&self, action: Action, random: &mut StdRng) -> Option<()> {
        let kind = match action {
            Action::ReportStatus => *[Kind::Deployment, Kind::Widget].choose(random)?,
            _ => Kind::any(random),
        };
        let member = self.observer.any_member(kind, random)?;
        let NamespacedName { namespace, name } = &member.name;
        let (resource, client) = (kind.api_resource(), self.environment.client());
        let path = path(resource, &member.name);
        match action {
            Action::ReportStatus => {
                let status = objects::status(kind, &member.value, random);
                patch(client, &format!("{path}/status"), MERGE, &json!({ "status": status })).await.ok()?;
            }
            Action::Noise | Action::Edit => {
                let change = match action {
                    Action::Noise => objects::noise(random),
                    _ => DesiredObject::any(random).patch(kind, name),
                };
                let changed = patch(client, &path, MERGE, &change).await.ok()?;
                if random.random_bool(0.85) {
                    self.report(kind, namespace, &changed, random).await;
                }
            }
            Action::Replace => {
                let mut object =
                    DesiredObject::any(random).whole(kind, name, self.environment.anchor(namespace), false);
                // A PUT of a custom resource requires the resourceVersion.
                let current = get(client, &path).await.ok()?;
                object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
                object["metadata"]["finalizers"] = current["metadata"]["finalizers"].clone();
                let request = Request::put(&path).header("content-type", "application/json");
                let changed = send(client, request, Some(&object)).await.ok()?;
                self.report(kind, namespace, &changed, random).await;
            }
            _ => {
                self.delete(&path, member.uid(), None).await?;
                if matches!(action, Action::Recreate) {
                    let anchor = self.environment.anchor(namespace);
                    let object = DesiredObject::any(random).whole(kind, name, anchor, false);
                    let made = post(client, &resource.within(namespace), &object).await.ok()?;
                    self.report(kind, namespace, &made, random).await;
                }
            }
        }
        Some(())
    }

    /// Writes a status, as the controller of the object would.
    async fn report(&self, kind: Kind, namespace: &str, object: &Json, random: &mut StdRng) {
        let (Some(name), true) = (object["metadata"]["name"].as_str(), kind.has_status()) else { return };
        let status = objects::status(kind, object, random);
        let path = format!("{}/{name}/status", kind.api_resource().within(namespace));
        let _ = patch(self.environment.client(), &path, MERGE, &json!({ "status": status })).await;
    }

    /// Removes the finalizers of an object that is being deleted, if one of 20 random objects is.
    async fn remove_finalizers(&self, random: &mut StdRng) -> Option<()> {
        for _ in 0..20 {
            let kind = *[Kind::ConfigMap, Kind::Deployment].choose(random)?;
            let member = self.observer.any_member(kind, random)?;
            if member.is_deleting() {
                let path = path(kind.api_resource(), &member.name);
                return patch(self.environment.client(), &path, MERGE, &objects::remove_finalizers())
                    .await
                    .ok()
                    .map(drop);
            }
        }
        None
    }

    async fn act_on_application(&self, action: Action, random: &mut StdRng) -> Option<()> {
        let app = self.observer.any_application(random)?;
        let NamespacedName { namespace, name } = &app.name;
        let (client, path) = (self.environment.client(), path(APPLICATION, &app.name));
        match action {
            Action::EditApplication if random.random_bool(0.2) => {
                patch(client, &path, MERGE, &objects::noise(random)).await.ok().map(drop)
            }
            Action::EditApplication => {
                let spec = objects::spec(random);
                let fields = spec.as_object()?.iter();
                let change: Vec<_> = fields
                    .map(|(field, value)| json!({ "op": "add", "path": format!("/spec/{field}"), "value": value }))
                    .collect();
                patch(client, &path, "application/json-patch+json", &json!(change)).await.ok().map(drop)
            }
            Action::AddCondition => {
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
                    let again = objects::application(number, random);
                    let _ = post(client, &APPLICATION.within(namespace), &again).await;
                }
                Some(())
            }
        }
    }

    /// Creates a new ReplicaSet of a Deployment and its Pods. Deletes the oldest ReplicaSet if there are many.
    async fn roll_out(&self, random: &mut StdRng) -> Option<()> {
        let client = self.environment.client();
        let deployment = self.observer.any_member(Kind::Deployment, random)?;
        let namespace = &deployment.name.namespace;
        let mut sets = self.observer.children(Kind::ReplicaSet, &deployment);
        sets.sort_by_key(|set| below::revision(set));
        if let Some(oldest) = sets.first().filter(|_| sets.len() >= below::REVISIONS) {
            let path = path(Kind::ReplicaSet.api_resource(), &oldest.name);
            self.delete(&path, oldest.uid(), Some("Background")).await?;
        }
        // Sometimes the revision before is used again, as after a rollback.
        let newest = sets.last().map_or(0, |set| below::revision(set));
        let revision = if random.random_bool(0.1) { newest } else { newest + 1 };
        let set = below::replica_set(&deployment, revision, random);
        let made = post(client, &Kind::ReplicaSet.api_resource().within(namespace), &set).await.ok()?;
        let set = Object::new(made);
        for _ in 0..random.random_range(1..4) {
            let pod = below::pod(&set, random);
            let made = post(client, &Kind::Pod.api_resource().within(namespace), &pod).await.ok()?;
            if random.random_bool(0.8) {
                let path = path(Kind::Pod.api_resource(), &Object::new(made).name);
                let status = json!({ "status": below::pod_status(random) });
                let _ = patch(client, &format!("{path}/status"), MERGE, &status).await;
            }
        }
        Some(())
    }

    async fn act_on_pod(&self, action: Action, random: &mut StdRng) -> Option<()> {
        let pod = self.observer.any_member(Kind::Pod, random)?;
        let path = path(Kind::Pod.api_resource(), &pod.name);
        if let Action::DeletePod = action {
            return self.delete(&path, pod.uid(), None).await;
        }
        let status = json!({ "status": below::pod_status(random) });
        patch(self.environment.client(), &format!("{path}/status"), MERGE, &status).await.ok().map(drop)
    }

    async fn change_rule(&self, random: &mut StdRng) -> Option<()> {
        let client = self.environment.client();
        let path = format!("{}/{}", HEALTH_RULE.path(), rules::NAME);
        let choice = random.random_range(0..rules::CHOICES);
        if choice == 0 {
            return send(client, Request::delete(&path), None).await.ok().map(drop);
        }
        let path = format!("{path}?fieldManager=soak&force=true");
        patch(client, &path, "application/apply-patch+yaml", &rules::written(choice)).await.ok().map(drop)
    }

    /// Deletes the object with this uid.
    async fn delete(&self, path: &str, uid: &str, policy: Option<&str>) -> Option<()> {
        self.observer.condemn(uid);
        let mut options = json!({ "preconditions": { "uid": uid } });
        if let Some(policy) = policy {
            options["propagationPolicy"] = json!(policy);
        }
        let request = Request::delete(path).header("content-type", "application/json");
        send(self.environment.client(), request, Some(&options)).await.ok().map(drop)
    }
}

fn path(resource: ApiResource, name: &NamespacedName) -> String {
    format!("{}/{}", resource.within(&name.namespace), name.name)
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
    Ok(timeout(REQUEST_TIMEOUT, client.request(request.body(body)?)).await??)
}
