//! All readers give the same answer about one Application at one moment: the stored status, the probe,
//! `status`, `status -w`, `tree`, `explain` and `wait`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{TIMEOUT, eventually};
use serde_json::{Value, json};
use tempfile::TempPath;

use super::{Controller, ControllerFixture, condition, shared_controller, text};
use crate::{Run, bellwether};

/// An Application whose workloads report their failures only by their Pods.
const SHOP: &str = "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  componentKinds: [{group: apps, kind: Deployment}, {group: apps, kind: StatefulSet}, {kind: Service}]
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: shop}}
spec: {selector: {run: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: shop}}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {run: web}}
  template:
    metadata: {labels: {app: shop, run: web}}
    spec: {containers: [{name: server, image: 'shop/web:1'}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {app: shop}}
spec:
  serviceName: db
  selector: {matchLabels: {run: db}}
  template:
    metadata: {labels: {app: shop, run: db}}
    spec: {containers: [{name: server, image: 'shop/db:1'}]}
";

#[tokio::test]
async fn all_readers_give_the_same_answer() -> Result<()> {
    let (cluster, controller) = shared_controller().await?;
    let fixture = ControllerFixture::in_cluster(cluster, "one-answer").await?;
    let kubeconfig = cluster.admin().kubeconfig_file()?;
    fixture.apply(SHOP).await?;
    let watch = Watch::start(&kubeconfig, &fixture.namespace)?;
    let readers = Readers { fixture, controller, kubeconfig, watch };
    readers.agree("install", "Ready").await?;

    readers.fixture.kubectl("set image deployment/web server=shop/web:2").await?;
    readers.agree("roll-out", "Ready").await?;

    // No scheduler knows the next Pod, and no kubelet runs it: this test reports its status.
    let new_pod = |image: &str| {
        json!({"spec": {"template": {"spec": {
            "schedulerName": "none", "containers": [{"name": "server", "image": image}],
        }}}})
    };
    readers.fixture.strategic_patch("deployment/web", new_pod("shop/web:missing")).await?;
    let pod = readers.next_pod("shop/web:missing").await?;
    readers.agree("a Pod without a node", "InProgress").await?;
    readers.waits(&pod, "ImagePullBackOff", 0).await?;
    readers.agree("an image that cannot be pulled", "Failed").await?;

    readers.fixture.strategic_patch("deployment/web", new_pod("shop/web:crashes")).await?;
    let pod = readers.next_pod("shop/web:crashes").await?;
    readers.waits(&pod, "CrashLoopBackOff", 7).await?;
    readers.agree("a crash loop", "Failed").await?;

    // At first it is InProgress. After 15 seconds without any event, it is Failed.
    let nowhere = json!({"spec": {"template": {"spec": {
        "schedulerName": null, "nodeSelector": {"disk": "none"},
        "containers": [{"name": "server", "image": "shop/web:3"}],
    }}}});
    readers.fixture.strategic_patch("deployment/web", nowhere).await?;
    readers.next_pod("shop/web:3").await?;
    readers.agree("only time passes", "Failed").await?;

    let anywhere = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
    readers.fixture.strategic_patch("deployment/web", anywhere).await?;
    readers.agree("mended", "Ready").await
}

impl ControllerFixture {
    /// A patch that merges lists such as `containers` by name.
    async fn strategic_patch(&self, object: &str, patch: Value) -> Result<()> {
        self.kubectl.ok(&["patch", object, "-p", &patch.to_string()]).await.map(drop)
    }
}

/// What one reader says of one object. `None`: it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    state: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    since: Option<String>,
}

/// By object (`Kind/name`), then by reader.
type Answers = BTreeMap<String, Vec<(&'static str, Answer)>>;

impl Answer {
    /// From the JSON of a command or a stored object, which name their fields alike.
    fn of(value: &Value) -> Self {
        let field = |name: &str| Some(text(&value[name]));
        let state = value.get("state").or_else(|| value.get("status")).map(text);
        Self { state, reason: field("reason"), message: field("message"), since: field("since") }
    }

    /// The same, of a group: its Ready condition has the reason.
    fn of_group(value: &Value) -> Self {
        let field = |name: &str| value[name].as_str().map(str::to_owned);
        let Self { reason, message, .. } = Self::of_ready(value);
        Self { state: field("state"), reason, message, since: field("since") }
    }

    /// The Ready condition of a group. Its time is that of its last transition, not that of the state.
    fn of_ready(value: &Value) -> Self {
        let ready = condition(value, "Ready");
        let since = ready.get("since").or_else(|| ready.get("lastTransitionTime")).map(text);
        Self { since: Some(since.unwrap_or_default()), ..Self::of(&ready) }
    }

    /// Whether two readers contradict each other.
    fn contradicts(&self, other: &Self) -> bool {
        let fields = |answer: &Self| {
            [&answer.state, &answer.reason, &answer.message, &answer.since].map(Option::clone)
        };
        let pairs = fields(self).into_iter().zip(fields(other));
        pairs.into_iter().any(|(one, other)| one.is_some() && other.is_some() && one != other)
    }
}

struct Readers {
    fixture: ControllerFixture,
    controller: &'static Controller,
    kubeconfig: TempPath,
    watch: Watch,
}

impl Readers {
    /// Waits until the Application has this state and all readers agree about it and its members, all at one
    /// moment. Fails with what each of them says.
    async fn agree(&self, story: &str, state: &str) -> Result<()> {
        let mut last = String::new();
        eventually(TIMEOUT, &format!("{story}: all readers agree on {state}"), async || {
            let before = self.versions().await?;
            let answers = self.answers().await?;
            let after = self.versions().await?;
            let group = answers.get("Application/shop").context("no answers")?;
            let is_there = group.iter().any(|(_, answer)| answer.state.as_deref() == Some(state));
            let contradictions = contradictions(&answers);
            last.clone_from(&contradictions);
            // Something has changed while they were asked.
            ensure!(before == after, "the objects change");
            ensure!(is_there, "{:?}", group.first());
            ensure!(contradictions.is_empty(), "contradictions");
            Ok(true)
        })
        .await
        .with_context(|| format!("{story}: the last answers that differ:\n{last}"))
    }

    /// The versions of all objects that an answer may depend on.
    async fn versions(&self) -> Result<String> {
        let versions = "jsonpath={.items[*].metadata.resourceVersion}";
        let kinds = "applications.bellwether.dev,deployments,statefulsets,services,pods";
        self.fixture.kubectl(&format!("get {kinds} -o {versions}")).await
    }

    async fn answers(&self) -> Result<Answers> {
        let mut answers = Answers::new();
        let mut add = |reader, object: String, answer| {
            answers.entry(object).or_default().push((reader, answer));
        };
        let group = || "Application/shop".to_owned();
        let ready = || "Application/shop, condition Ready".to_owned();

        let mut stored = self.fixture.get("applications.bellwether.dev/shop").await?["status"].take();
        let members = stored["objects"].take();
        add("stored status", group(), Answer::of_group(&stored));
        add("stored status", ready(), Answer::of_ready(&stored));
        for member in members.as_array().into_iter().flatten() {
            add("stored status", name_of(member), Answer::of(member));
        }

        let (_, probe) = self.controller.probe(&self.probe_path()).await?;
        add("probe", group(), Answer::of_group(&probe));
        // Its conditions have no time.
        add("probe", ready(), Answer { since: None, ..Answer::of_ready(&probe) });

        let status = self.json(&["status", "shop"])?;
        add("status", group(), Answer::of_group(&status));
        add("status", ready(), Answer::of_ready(&status));
        for member in status["objects"].as_array().into_iter().flatten() {
            add("status", name_of(member), Answer::of(member));
        }

        let tree = self.json(&["tree", "shop"])?;
        add("tree", group(), Answer::of(&tree));
        for member in tree["children"].as_array().into_iter().flatten() {
            add("tree", name_of(member), Answer::of(member));
        }

        let mut names = vec!["applications.bellwether.dev/shop".to_owned()];
        names.extend(status["objects"].as_array().into_iter().flatten().map(name_of));
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let explained = self.json(&[&["explain"], &*names].concat())?;
        for object in explained.as_array().into_iter().flatten() {
            let mut answer = Answer::of(object);
            // It has no `since` for an object without a timestamp: it does not know when the others saw it.
            answer.since = answer.since.filter(|since| !since.is_empty());
            add("explain", name_of(object), answer);
        }

        let state = |state: &str| Answer { state: Some(state.to_owned()), ..Answer::default() };
        add("status -w", group(), state(&self.watch.last_state()?));
        add("wait", group(), state(&self.wait()?));
        Ok(answers)
    }

    fn probe_path(&self) -> String {
        format!("/readyz/applications/{}/shop", self.fixture.namespace)
    }

    fn run(&self, arguments: &[&str]) -> Result<Run> {
        run(&self.kubeconfig, &self.fixture.namespace, arguments)
    }

    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let run = self.run(&[arguments, &["-o", "json"]].concat())?;
        serde_json::from_str(&run.stdout).with_context(|| format!("{arguments:?}: {run}"))
    }

    /// The state by the exit code and the last line of `wait`.
    fn wait(&self) -> Result<String> {
        let run = self.run(&["wait", "shop", "--timeout", "1s"])?;
        let last = run.stdout.lines().last().unwrap_or_default();
        let state = match run.code {
            Some(0) if last.contains("/shop: ready after ") => "Ready",
            Some(1) if last.contains("/shop: failed after ") => "Failed",
            Some(2) if last.contains("/shop: timed out after ") => "InProgress",
            _ => return Ok(format!("{run}")),
        };
        Ok(state.to_owned())
    }

    /// The Pod of this image, as soon as it exists and all others are as they will stay.
    async fn next_pod(&self, image: &str) -> Result<String> {
        let mut pod = String::new();
        eventually(TIMEOUT, &format!("a Pod of {image}"), async || {
            let pods = self.fixture.get("pods").await?;
            let items: Vec<_> = pods["items"].as_array().into_iter().flatten().collect();
            let of_image = items.iter().filter(|pod| pod["spec"]["containers"][0]["image"] == image);
            pod = of_image.map(|pod| text(&pod["metadata"]["name"])).next().unwrap_or_default();
            // Two of web:2, one of db, and the new one.
            Ok(!pod.is_empty() && items.len() == 4)
        })
        .await?;
        Ok(pod)
    }

    /// Reports as a kubelet does that the container of a Pod waits.
    async fn waits(&self, pod: &str, reason: &str, restarts: u8) -> Result<()> {
        let since = "2026-11-14T10:00:00Z";
        let container = json!({
            "name": "server", "image": "shop/web", "imageID": "", "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": reason, "message": "back-off"}},
        });
        let not_ready = |kind: &str| json!({"type": kind, "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": since});
        let status = json!({
            "phase": "Pending", "containerStatuses": [container],
            "conditions": [not_ready("Ready"), not_ready("ContainersReady")],
        });
        self.fixture.report(&format!("pod/{pod}"), status).await
    }
}

/// `Kind/name`
fn name_of(object: &Value) -> String {
    format!("{}/{}", text(&object["kind"]), text(&object["name"]))
}

/// A table of the objects that the readers do not agree on. Empty if there is none.
fn contradictions(answers: &Answers) -> String {
    let mut table = String::new();
    for (object, answers) in answers {
        let contradict = |(_, one): &(&str, Answer)| answers.iter().any(|(_, other)| one.contradicts(other));
        if answers.iter().any(contradict) {
            let _ = writeln!(table, "{object}");
            for (reader, Answer { state, reason, message, since }) in answers {
                let fields = [state, reason, since, message].map(|field| field.as_deref().unwrap_or("–"));
                let _ = writeln!(table, "  {reader:13}  {}", fields.join("  "));
            }
        }
    }
    table
}

fn run(kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Result<Run> {
    let mut command = bellwether(arguments);
    command.args(["-n", namespace]).arg("--kubeconfig").arg(kubeconfig);
    Ok(command.output()?.into())
}

/// A running `status -w`.
struct Watch {
    process: Child,
    last_line: Arc<Mutex<String>>,
}

impl Watch {
    fn start(kubeconfig: &Path, namespace: &str) -> Result<Self> {
        let mut command = bellwether(&["status", "shop", "-w"]);
        command.args(["-n", namespace]).arg("--kubeconfig").arg(kubeconfig);
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().context("a pipe")?;
        let last_line = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&last_line);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                *written.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        });
        Ok(Self { process, last_line })
    }

    /// The state in the last line: `12:00:00 Application shop/shop: Ready, 5/5 ready`.
    fn last_state(&self) -> Result<String> {
        let line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rest = line.split_once("/shop: ").with_context(|| format!("not a line of status -w: {line}"))?.1;
        Ok(rest.split(',').next().unwrap_or_default().to_owned())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
