//! Compares the statuses of both controllers, field by field.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    time::Duration,
};

use anyhow::{Result, ensure};
use bellwether_testkit::eventually;
use serde_json::{Value, json};

use super::{
    situations::{self, Situation},
    stage::{Controller, Stage, Subjects, Who, kustomized, path, text},
};

/// The fields of a status, each as a line of text.
type Fields = BTreeMap<&'static str, String>;

/// The statuses of all Applications, by situation.
type Statuses = BTreeMap<String, Fields>;

/// How long the old controller may take to end at a fatal situation.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The name of the Application in every situation except the examples.
const APPLICATION: &str = "web";

/// The examples of the old controller.
const EXAMPLES: [(&str, &str); 3] = [
    ("example-wordpress", "docs/examples/wordpress"),
    ("example-working", "e2e/resources/withcrd/overlays/working"),
    ("example-broken", "e2e/resources/withcrd/overlays/broken"),
];

/// The custom resources, and whether they have the status subresource.
const KINDS: [(&str, &str, bool); 3] = [
    ("example.com", "Widget", true),
    ("v2x.example.com", "Gadget", true),
    ("test.crd.com", "TestCRD", false),
];

/// Returns a table of all differences. Fails on an unexpected difference, or if an expected one is missing.
pub async fn compare(subjects: &Subjects) -> Result<String> {
    let situations = situations::all();
    let stage = populated("old", &situations, subjects).await?;
    let controller = Controller::start(Who::Old, subjects, &stage.access, 5)?;
    let old = statuses(&stage, &stage.settled(&controller, Duration::from_secs(25)).await?).await?;
    drop(controller);
    let survived = survived(&stage, subjects).await?;
    // Users who switch do the same.
    let controller = Controller::start(Who::Ours, subjects, &stage.access, 0)?;
    let taken_over = statuses(&stage, &stage.settled(&controller, Duration::from_secs(8)).await?).await?;
    drop((controller, stage));

    let stage = populated("ours", &situations, subjects).await?;
    for situation in situations::fatal() {
        put(&stage, &situation).await?;
    }
    let controller = Controller::start(Who::Ours, subjects, &stage.access, 0)?;
    let ours = statuses(&stage, &stage.settled(&controller, Duration::from_secs(8)).await?).await?;
    drop((controller, stage));

    let mut unexpected = Vec::new();
    let mut text = table(&situations, &old, &ours, &mut unexpected)?;
    for (situation, fields) in ours.iter().filter(|(name, _)| !is_fatal(name)) {
        for (field, value) in fields {
            let other = taken_over.get(situation).and_then(|fields| fields.get(field));
            // Owner references stay, also those that Bellwether would not have set.
            if other != Some(value) && *field != "owners" {
                unexpected
                    .push(format!("{situation}: after the switch, {field} is {other:?}, want {value:?}"));
            }
        }
    }
    unexpected.extend(survived.iter().map(|name| format!("{name}: the old controller did not end")));
    for situation in situations::fatal() {
        let ready = ours.get(situation.name).and_then(|fields| fields.get("Ready")).map(String::as_str);
        write!(text, "\n{:<22}({})", situation.name, situation.because)?;
        write!(text, "\n    {:<18}old   the process ends at each start", "")?;
        write!(text, "\n    {:<18}ours  {}", "Ready", ready.unwrap_or_default())?;
    }
    ensure!(unexpected.is_empty(), "{text}\n\nunexpected:\n{}", unexpected.join("\n"));
    let count = old.len();
    let differing = situations.iter().filter(|situation| !situation.differs.is_empty()).count();
    write!(
        text,
        "\n\n{count} Applications; {differing} situations differ as expected. After a switch, all statuses are the same as on a \
         new cluster. The old controller never sets `link`."
    )?;
    Ok(text)
}

/// A cluster with all situations.
async fn populated(name: &str, situations: &[Situation], subjects: &Subjects) -> Result<Stage> {
    let stage = Stage::new(name).await?;
    for (group, kind, has_status) in KINDS {
        stage.define(group, kind, has_status).await?;
    }
    for situation in situations {
        put(&stage, situation).await?;
    }
    for (name, directory) in EXAMPLES {
        namespace(&stage, name).await?;
        for object in kustomized(&stage.cluster, &subjects.module.join(directory)).await? {
            stage.create(name, &object).await?;
        }
    }
    Ok(stage)
}

/// Creates a situation in its own namespace.
async fn put(stage: &Stage, situation: &Situation) -> Result<()> {
    namespace(stage, situation.name).await?;
    for object in &situation.objects {
        stage.create(situation.name, object).await?;
    }
    stage.create(situation.name, &application(situation)).await
}

fn is_fatal(name: &str) -> bool {
    situations::fatal().iter().any(|situation| situation.name == name)
}

async fn namespace(stage: &Stage, name: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    stage.create("", &object).await
}

fn application(situation: &Situation) -> Value {
    let mut application = json!({
        "apiVersion": "app.k8s.io/v1beta1", "kind": "Application",
        "metadata": {"name": APPLICATION, "labels": {"app": "web"}}, "spec": situation.spec,
    });
    if situation.name == "foreign-conditions" {
        application["status"] =
            json!({"conditions": [{"type": "Qualified", "status": "True", "reason": "Tested"}]});
    }
    application
}

/// The fatal situations at which the old controller does not end. Deletes all of them afterwards.
async fn survived(stage: &Stage, subjects: &Subjects) -> Result<Vec<&'static str>> {
    let mut survived = Vec::new();
    for situation in situations::fatal() {
        put(stage, &situation).await?;
        let controller = Controller::start(Who::Old, subjects, &stage.access, 5)?;
        let ended =
            eventually(TIMEOUT, "the controller ends", async || Ok(!controller.program().is_running())).await;
        survived.extend(ended.is_err().then_some(situation.name));
        let at = format!("{}/{APPLICATION}", path(situation.name, &application(&situation)));
        stage.send("DELETE", &at, &json!({})).await?;
    }
    Ok(survived)
}

async fn statuses(stage: &Stage, applications: &[Value]) -> Result<Statuses> {
    let mut statuses = Statuses::new();
    for application in applications {
        let namespace = text(&application["metadata"]["namespace"]);
        let owners = owners(stage, &namespace, application).await?;
        let mut fields = fields(&application["status"]);
        fields.insert("owners", owners);
        statuses.insert(namespace, fields);
    }
    Ok(statuses)
}

fn fields(status: &Value) -> Fields {
    let list = |field: &str| status[field].as_array().cloned().unwrap_or_default();
    let conditions = list("conditions");
    let summary = |kind: &str| {
        let it = conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
        format!("{} {}: {}", text(&it["status"]), text(&it["reason"]), text(&it["message"]))
    };
    let has_times = |it: &Value| it["lastUpdateTime"].is_string() && it["lastTransitionTime"].is_string();
    let ours: Vec<_> =
        conditions.iter().filter(|it| ["Ready", "Error"].iter().any(|own| it["type"] == *own)).collect();
    let component = |it: &Value| {
        let group = text(&it["group"]);
        let group = if group.is_empty() { group } else { format!(".{group}") };
        format!("{}{group} {} {}", text(&it["kind"]), text(&it["name"]), text(&it["status"]))
    };
    // The old controller has no `Stalled`.
    let types: Vec<_> = conditions.iter().map(|it| text(&it["type"])).filter(|it| it != "Stalled").collect();
    BTreeMap::from([
        ("observedGeneration", status["observedGeneration"].to_string()),
        ("conditions", types.join(" ")),
        ("times", ours.iter().all(|it| has_times(it)).to_string()),
        ("Ready", summary("Ready")),
        ("Error", summary("Error")),
        ("components", list("components").iter().map(component).collect::<Vec<_>>().join(", ")),
        ("componentsReady", text(&status["componentsReady"])),
    ])
}

/// The owner references to this Application, in its namespace and on cluster-scoped objects.
async fn owners(stage: &Stage, namespace: &str, application: &Value) -> Result<String> {
    let mut owned = BTreeSet::new();
    let mut paths = vec![format!("/api/v1/namespaces/{namespace}/configmaps")];
    paths.push("/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned());
    paths.push(format!("/apis/apps/v1/namespaces/{namespace}/statefulsets"));
    paths.push(format!("/apis/test.crd.com/v1/namespaces/{namespace}/testcrds"));
    for path in paths {
        for object in stage.get(&path).await?["items"].as_array().into_iter().flatten() {
            for owner in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
                if owner["uid"] == application["metadata"]["uid"] {
                    let flags = format!("{} {}", owner["controller"], owner["blockOwnerDeletion"]);
                    let (api, name) = (text(&owner["apiVersion"]), text(&owner["name"]));
                    owned.insert(format!("{}: {api} {name} {flags}", text(&object["metadata"]["name"])));
                }
            }
        }
    }
    Ok(owned.into_iter().collect::<Vec<_>>().join(", "))
}

fn table(
    situations: &[Situation],
    old: &Statuses,
    ours: &Statuses,
    unexpected: &mut Vec<String>,
) -> Result<String> {
    let mut text = String::new();
    let nothing = Fields::new();
    for (name, own) in ours.iter().filter(|(name, _)| !is_fatal(name)) {
        let before = old.get(name).unwrap_or(&nothing);
        let situation = situations.iter().find(|situation| situation.name == name);
        // The examples have no expected differences.
        let may_differ = |field: &str| situation.is_some_and(|situation| situation.differs.contains(&field));
        let mut is_first = true;
        for (field, value) in own {
            let other = before.get(field).map(String::as_str).unwrap_or_default();
            if other == value {
                if may_differ(field) {
                    unexpected.push(format!("{name}: {field} should differ, but both are {value}"));
                }
                continue;
            }
            if !may_differ(field) {
                unexpected.push(format!("{name}: {field} is {value:?}, old {other:?}"));
            }
            if is_first {
                write!(text, "\n{name:<22}({})", situation.map_or("", |situation| situation.because))?;
                is_first = false;
            }
            write!(text, "\n    {field:<18}old   {other}\n    {:<18}ours  {value}", "")?;
        }
    }
    Ok(text)
}
