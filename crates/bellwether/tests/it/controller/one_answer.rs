//! All readers give the same answer about one Application, and about a Rollup, at one moment: the stored status,
//! the probe, the metrics, `status`, `status -w`, `tree`, `explain` and `wait`.

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
use bellwether_model::text::with_reason;
use bellwether_testkit::{Cluster, TIMEOUT, eventually};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempPath;

use super::{Controller, ControllerFixture, condition, text};
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
    // A Rollup is in no namespace: in a shared cluster, other tests would see it.
    let cluster = Cluster::builder().name("one-answer").nodes(2).start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let controller = Controller::start(cluster.admin(), &["--leader-elect=false"]).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "one-answer").await?;
    let kubeconfig = cluster.admin().kubeconfig_file()?;
    fixture.apply(SHOP).await?;
    let rollup = json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": ROLLUP},
        "spec": {"components": [
            {"group": "apps", "kind": "Deployment", "namespace": fixture.namespace, "name": "web"},
        ]},
    });
    fixture.apply(&rollup.to_string()).await?;
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
    readers.agree("mended", "Ready").await?;

    for (story, object) in [("a member", "service/web"), ("the group", APPLICATION)] {
        readers.fixture.patch(object, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await?;
        readers.fixture.kubectl(&format!("delete {object} --wait=false")).await?;
        readers.agree(&format!("{story} is being deleted"), "Terminating").await?;
    }
    Ok(())
}

const APPLICATION: &str = "applications.bellwether.dev/shop";

/// The Rollup over the Deployment.
const ROLLUP: &str = "one-answer";

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
    /// The Pod because of which it is not ready; empty for none.
    cause: Option<String>,
}

/// By object (`Kind/name`), then by reader.
type Answers = BTreeMap<String, Vec<(&'static str, Answer)>>;

impl Answer {
    /// From the JSON of a command or a stored object, which name their fields alike.
    fn of(value: &Value) -> Self {
        let field = |name: &str| Some(text(&value[name]));
        let state = value.get("state").or_else(|| value.get("status")).map(text);
        Self { state, reason: field("reason"), message: field("message"), since: field("since"), cause: None }
    }

    /// The same, of a member in `objects[]`.
    fn of_member(value: &Value) -> Self {
        let cause = &value["cause"];
        let fields = ["kind", "name", "reason", "message"].map(|field| text(&cause[field]));
        let cause = if cause.is_null() { String::new() } else { fields.join(" ") };
        Self { cause: Some(cause), ..Self::of(value) }
    }

    /// What a line should say about a group with these members: the first that is not ready, and why; and the
    /// causes of all of them.
    fn why(members: &[Value], state: &str) -> Self {
        let state_of = |member: &Value| text(member.get("state").unwrap_or(&member["status"]));
        let is_bad = |member: &&Value| !matches!(&*state_of(member), "Ready" | "Suspended");
        let bad: Vec<_> = members.iter().filter(is_bad).collect();
        let why = bad.first().map(|member| {
            let (reason, message) = (text(&member["reason"]), text(&member["message"]));
            let why = if state_of(member) == "Failed" {
                with_reason(&reason, &message)
            } else {
                message.as_str().into()
            };
            let more = if bad.len() > 1 { format!(" (and {} more)", bad.len() - 1) } else { String::new() };
            format!("{}: {why}{more}", name_of(member))
        });
        let causes = bad.iter().filter(|member| !member["cause"].is_null());
        let causes: Vec<_> = causes.map(|member| name_of(&member["cause"])).collect();
        Self {
            message: Some(why.unwrap_or_default()),
            cause: Some(causes.join(" ")),
            state: Some(state.to_owned()),
            ..Self::default()
        }
    }

    /// The same, of a group: its Ready condition has the reason.
    fn of_group(value: &Value) -> Self {
        let field = |name: &str| value[name].as_str().map(str::to_owned);
        let Self { reason, message, .. } = Self::of_ready(value);
        Self { state: field("state"), reason, message, since: field("since"), cause: None }
    }

    /// The Ready condition of a group. Its time is that of its last transition, not that of the state.
    fn of_ready(value: &Value) -> Self {
        let ready = condition(value, "Ready");
        let since = ready.get("since").or_else(|| ready.get("lastTransitionTime")).map(text);
        Self { since: Some(since.unwrap_or_default()), ..Self::of(&ready) }
    }

    fn state_only(&self) -> Self {
        Self { state: self.state.clone(), ..Self::default() }
    }

    /// Whether two readers contradict each other.
    fn contradicts(&self, other: &Self) -> bool {
        let fields = |answer: &Self| {
            let Self { state, reason, message, since, cause } = answer;
            [state, reason, message, since, cause].map(Option::clone)
        };
        let pairs = fields(self).into_iter().zip(fields(other));
        pairs.into_iter().any(|(one, other)| one.is_some() && other.is_some() && one != other)
    }
}

struct Readers {
    fixture: ControllerFixture,
    controller: Controller,
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
        let kinds =
            "applications.bellwether.dev,rollups.bellwether.dev,deployments,statefulsets,services,pods";
        self.fixture.kubectl(&format!("get {kinds} -o {versions}")).await
    }

    async fn answers(&self) -> Result<Answers> {
        let mut answers = Answers::new();
        self.answers_of_the_rollup(&mut answers).await?;
        let mut add = |reader, object: String, answer| {
            answers.entry(object).or_default().push((reader, answer));
        };
        let group = || "Application/shop".to_owned();
        let ready = || "Application/shop, condition Ready".to_owned();
        let why = || "Application/shop, why".to_owned();

        let mut stored = self.fixture.get(APPLICATION).await?["status"].take();
        let members = stored["objects"].take();
        add("stored status", group(), Answer::of_group(&stored));
        add("stored status", ready(), Answer::of_ready(&stored));
        let of_group = text(&stored["state"]);
        for member in members.as_array().into_iter().flatten() {
            add("stored status", name_of(member), Answer::of_member(member));
        }
        let is_going = text(&condition(&stored, "Ready")["reason"]) == "Terminating";
        let why_of = |members: &Value| match (members.as_array(), is_going) {
            (_, true) => Answer { message: Some("being deleted".to_owned()), ..Answer::default() },
            (members, false) => Answer::why(members.map_or(&[], Vec::as_slice), &of_group),
        };
        add("stored status", why(), why_of(&members));
        add("metrics", group(), self.metric("Application", &self.fixture.namespace, "shop").await?);

        let (_, probe) = self.controller.probe(&self.probe_path()).await?;
        add("probe", group(), Answer::of_group(&probe));
        // Its conditions have no time.
        add("probe", ready(), Answer { since: None, ..Answer::of_ready(&probe) });

        let status = self.json(&["status", "shop"])?;
        add("status", group(), Answer::of_group(&status));
        add("status", ready(), Answer::of_ready(&status));
        for member in status["objects"].as_array().into_iter().flatten() {
            add("status", name_of(member), Answer::of_member(member));
        }
        add("status", why(), why_of(&status["objects"]));

        let tree = self.json(&["tree", "shop"])?;
        add("tree", group(), Answer::of(&tree));
        for member in tree["children"].as_array().into_iter().flatten() {
            add("tree", name_of(member), Answer::of(member));
        }

        let mut names = vec![APPLICATION.to_owned()];
        names.extend(status["objects"].as_array().into_iter().flatten().map(name_of));
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let explained = self.json(&[&["explain"], &*names].concat())?;
        for object in explained.as_array().into_iter().flatten() {
            let mut answer = Answer::of(object);
            // It has no `since` for an object without a timestamp: it does not know when the others saw it.
            answer.since = answer.since.filter(|since| !since.is_empty());
            add("explain", name_of(object), answer);
        }

        let watched = self.watch.last()?;
        add("status -w", group(), watched.state_only());
        // It has no line for each number of a message, so that only the reason of a failure is the latest.
        let is_latest = watched.state.as_deref() != Some("InProgress");
        add("status -w", why(), Answer { message: watched.message.clone().filter(|_| is_latest), ..watched });
        let waited = self.wait("shop")?;
        add("wait", group(), waited.state_only());
        add("wait", why(), waited);
        Ok(answers)
    }

    async fn answers_of_the_rollup(&self, answers: &mut Answers) -> Result<()> {
        const CONDITIONS: [&str; 3] = ["Available", "Progressing", "Degraded"];
        let group = format!("Rollup/{ROLLUP}");
        let mut add = |reader, value: &Value| {
            let state = Answer { state: Some(text(&value["state"])), ..Answer::default() };
            answers.entry(group.clone()).or_default().push((reader, state));
            for kind in CONDITIONS {
                // Its conditions in the terminal have the times of its components.
                let answer = Answer { since: None, ..Answer::of(&condition(value, kind)) };
                answers.entry(format!("{group}, condition {kind}")).or_default().push((reader, answer));
            }
        };
        let stored = self.fixture.get(&format!("rollups.bellwether.dev/{ROLLUP}")).await?;
        add("stored status", &stored["status"]);
        let (_, probe) = self.controller.probe(&format!("/readyz/rollups/{ROLLUP}")).await?;
        add("probe", &probe);
        let name = format!("rollup/{ROLLUP}");
        let status = self.json(&["status", &name])?;
        add("status", &status);
        let mut add = |reader, answer| answers.entry(group.clone()).or_default().push((reader, answer));
        add("tree", Answer::of(&self.json(&["tree", &name])?).state_only());
        let explained = self.json(&["explain", &format!("rollups.bellwether.dev/{ROLLUP}")])?;
        add("explain", Answer::of(&explained[0]).state_only());
        add("wait", self.wait(&name)?.state_only());
        add("metrics", self.metric("Rollup", "", ROLLUP).await?.state_only());
        Ok(())
    }

    /// The state of a group with 1 as its value, and since when.
    async fn metric(&self, kind: &str, namespace: &str, name: &str) -> Result<Answer> {
        let (_, metrics) = self.controller.get("/metrics").await?;
        let labels = format!("{{kind=\"{kind}\",namespace=\"{namespace}\",name=\"{name}\"");
        let value =
            |metric: &str| metrics.lines().find_map(|line| line.strip_prefix(&format!("{metric}{labels}")));
        let state = metrics.lines().find_map(|line| {
            let series = line.strip_prefix(&format!("bellwether_group_state{labels},state=\""))?;
            series.strip_suffix("\"} 1").map(str::to_owned)
        });
        let since = value("bellwether_group_state_since_seconds").and_then(|rest| rest.strip_prefix("} "));
        let since = since.and_then(|seconds| seconds.split('.').next());
        let since = since.map(|seconds| anyhow::Ok(Timestamp::from_second(seconds.parse()?)?.to_string()));
        Ok(Answer { state, since: since.transpose()?, ..Answer::default() })
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

    /// The state that `wait` prints last, why by its last line, and the causes by the lines before.
    fn wait(&self, name: &str) -> Result<Answer> {
        let run = self.run(&["wait", name, "--timeout", "1s"])?;
        let lines: Vec<_> = run.stdout.lines().collect();
        let last = lines.last().and_then(|line| line.split_once(": ")).unwrap_or_default().1;
        let (what, why) = last.split_once(": ").unwrap_or((last, ""));
        let states = lines.iter().filter_map(|line| line.split_once(" ready")?.0.rsplit_once(", "));
        let state =
            states.filter_map(|(before, _)| before.rsplit_once(": ")).map(|(_, state)| state).next_back();
        let expected = match state {
            Some("Ready") => (0, "ready"),
            Some("Failed") => (1, "failed"),
            Some("InProgress" | "Missing") => (2, "timed out"),
            Some("Terminating") if why != "being deleted" => (2, "timed out"),
            _ => (3, "unknown"),
        };
        let result = what.split_once(" after ").map_or(what, |(result, _)| result);
        if (run.code, result) != (Some(expected.0), expected.1) {
            return Ok(Answer { state: Some(format!("{run}")), ..Answer::default() });
        }
        let causes = lines.iter().filter_map(|line| line.strip_prefix("cause: ")?.split_once(": "));
        let causes: Vec<_> = causes.map(|(name, _)| name).collect();
        Ok(Answer {
            state: state.map(str::to_owned),
            message: Some(why.to_owned()),
            cause: Some(causes.join(" ")),
            ..Answer::default()
        })
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
            for (reader, Answer { state, reason, message, since, cause }) in answers {
                let fields =
                    [state, reason, since, message, cause].map(|field| field.as_deref().unwrap_or("–"));
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

    /// The state and why in the last line: `12:00:00 Application shop/shop: Failed, 2/3 ready: …`.
    fn last(&self) -> Result<Answer> {
        let line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rest = line.split_once("/shop: ").with_context(|| format!("not a line of status -w: {line}"))?.1;
        let (state, rest) = rest.split_once(", ").unwrap_or((rest, ""));
        let why = rest.split_once(": ").map_or("", |(_, why)| why);
        Ok(Answer { state: Some(state.to_owned()), message: Some(why.to_owned()), ..Answer::default() })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
