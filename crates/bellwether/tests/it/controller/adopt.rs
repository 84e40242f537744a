//! `bellwether adopt` on a real control plane: rollback after faults, 409 conflicts, SIGINT and missing RBAC.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write as _,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Access, Fault, FaultProxy, Injected, Requests, StatusCode, Verb, rule, shared};
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::{Value, json};
use tempfile::TempPath;
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
};

use super::{ControllerFixture, controlled_cluster, text};
use crate::Run;

/// A running `bellwether adopt`.
struct Adopting {
    child: Child,
    _kubeconfig: TempPath,
}

impl Adopting {
    fn begin(access: &Access, namespace: &str, words: &str) -> Result<Self> {
        Self::begin_at(access, namespace, words, Stdio::null())
    }

    fn begin_at(access: &Access, namespace: &str, words: &str, stdin: Stdio) -> Result<Self> {
        let kubeconfig = access.kubeconfig_file()?;
        let child = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .arg("adopt")
            .args(words.split(' '))
            .args(["-n", namespace, "--kubeconfig"])
            .arg(&kubeconfig)
            .env_clear()
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, _kubeconfig: kubeconfig })
    }

    /// Sends SIGINT, and waits for the message about it.
    async fn interrupt(&mut self) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        kill_process(id.context("it has ended")?, Signal::INT)?;
        let stderr = self.child.stderr.as_mut().context("it has no standard error")?;
        let mut message = vec![0; INTERRUPTED.len()];
        stderr.read_exact(&mut message).await?;
        ensure!(message == INTERRUPTED.as_bytes(), "{}", String::from_utf8_lossy(&message));
        Ok(())
    }

    async fn end(self) -> Result<Run> {
        Ok(self.child.wait_with_output().await?.into())
    }
}

const INTERRUPTED: &str = "Interrupted: finishing the current change, then undoing all changes.\n";

/// Two objects without an Application, and a fault proxy in front of the API server.
struct Shop {
    fixture: ControllerFixture,
    proxy: FaultProxy,
    access: Access,
    before: [Value; 2],
}

const OBJECTS: [&str; 2] = ["configmap/settings", "service/web"];

const SHOP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: shop}, annotations: {note: keep}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
";

const WORDS: &str = "shop configmap/settings svc/web";

impl Shop {
    async fn open(of: &str) -> Result<Self> {
        let cluster = controlled_cluster().await?;
        let fixture = ControllerFixture::in_cluster(cluster, of).await?;
        fixture.apply(SHOP).await?;
        let proxy = FaultProxy::before(cluster).await?;
        let access = cluster.admin().via(proxy.address());
        let before = [
            labels_and_annotations(&fixture, OBJECTS[0]).await?,
            labels_and_annotations(&fixture, OBJECTS[1]).await?,
        ];
        Ok(Self { fixture, proxy, access, before })
    }

    fn requests(&self, verb: Verb, resource: &str) -> Requests {
        Requests::of(verb, resource).namespace(&self.fixture.namespace)
    }

    /// Starts the command, and holds it after the last dry run.
    async fn begin(&self) -> Result<(Adopting, Injected)> {
        let creates = self.requests(Verb::Create, APPLICATIONS).times(1);
        let dry_run = self.proxy.inject(creates, Fault::HoldResponse);
        let adopting = Adopting::begin(&self.access, &self.fixture.namespace, WORDS)?;
        dry_run.done(1).await;
        Ok((adopting, dry_run))
    }

    /// Checks that all changes are undone.
    async fn is_as_before(&self) -> Result<()> {
        for (object, before) in OBJECTS.iter().zip(&self.before) {
            self.fixture.owners_are(object, &[]).await?;
            ensure!(labels_and_annotations(&self.fixture, object).await? == *before, "{object} has changed");
        }
        Ok(())
    }

    /// Checks that the changes are made, and that no other labels and annotations have changed.
    async fn is_adopted(&self) -> Result<()> {
        self.fixture.ready_is("shop", "ComponentsReady").await?;
        for (object, before) in OBJECTS.iter().zip(&self.before) {
            self.fixture.owners_are(object, &["shop"]).await?;
            let mut expected = before.clone();
            expected["labels"]["app.kubernetes.io/part-of"] = json!("shop");
            expected["annotations"]["kubernetes.io/application"] = json!("shop");
            let now = labels_and_annotations(&self.fixture, object).await?;
            ensure!(now == expected, "{object} has {now}");
        }
        Ok(())
    }
}

const APPLICATIONS: &str = "applications.bellwether.dev";

/// Without the annotation of `kubectl apply`.
async fn labels_and_annotations(fixture: &ControllerFixture, object: &str) -> Result<Value> {
    let mut object = fixture.get(object).await?;
    let mut annotations = object["metadata"]["annotations"].take();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    Ok(json!({ "labels": object["metadata"]["labels"].take(), "annotations": annotations }))
}

fn answer(status: StatusCode) -> Fault {
    Fault::Answer { status, retry_after: None }
}

#[tokio::test]
async fn existing_objects_become_owned_and_ready() -> Result<()> {
    let shop = Shop::open("adopt").await?;
    let namespace = &shop.fixture.namespace;
    let dry_run = Adopting::begin(&shop.access, namespace, &format!("{WORDS} --dry-run"))?.end().await?;
    assert_eq!((dry_run.code, dry_run.stderr.as_str()), (Some(0), ""), "{dry_run}");
    shop.is_as_before().await?;
    assert!(!shop.fixture.exists("application/shop").await?);

    let run = Adopting::begin(&shop.access, namespace, WORDS)?.end().await?;
    let end = format!(
        "\nApplication {namespace}/shop created with 2 objects.\nNext:\n  bellwether wait shop -n {namespace} \
         --kubeconfig "
    );
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.starts_with(&format!("{}{end}", dry_run.stdout)), "the same plan: {run}");
    shop.is_adopted().await?;

    let again = Adopting::begin(&shop.access, namespace, WORDS)?.end().await?;
    let no_changes = format!("No changes: Application {namespace}/shop already has these objects.\n");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), no_changes.as_str()), "{again}");
    let other = Adopting::begin(&shop.access, namespace, "shop svc/web")?.end().await?;
    assert_eq!(other.code, Some(1), "{other}");
    assert!(other.stderr.contains("Application \"shop\" already exists"), "{other}");

    // `adopt` restores a missing annotation.
    shop.fixture.kubectl("annotate configmap/settings kubernetes.io/application-").await?;
    let mended = Adopting::begin(&shop.access, namespace, &format!("{WORDS} -o yaml"))?.end().await?;
    assert_eq!(mended.code, Some(0), "{mended}");
    assert!(
        mended.stderr.contains("annotation kubernetes.io/application: <none> → shop"),
        "standard error has the plan: {mended}"
    );
    shop.is_adopted().await
}

#[tokio::test]
async fn on_a_terminal_the_user_confirms() -> Result<()> {
    let shop = Shop::open("adopt-asked").await?;
    let namespace = &shop.fixture.namespace;
    let ask = async |answer: &str, more: &str| {
        let (terminal, keyboard) = terminal()?;
        let mut keyboard = File::from(keyboard);
        keyboard.write_all(format!("{answer}\n").as_bytes())?;
        let adopting =
            Adopting::begin_at(&shop.access, namespace, &format!("{WORDS}{more}"), terminal.into())?;
        adopting.end().await
    };
    for answer in ["n", ""] {
        let run = ask(answer, "").await?;
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), "Apply these changes? [y/N] "), "{run}");
        assert!(run.stdout.ends_with("deletes them.\nNo changes made.\n"), "{run}");
        shop.is_as_before().await?;
    }
    let run = ask("n", " -y").await?;
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    shop.is_adopted().await?;
    shop.fixture.kubectl("annotate service/web kubernetes.io/application-").await?;
    let run = ask("y", "").await?;
    assert_eq!(run.code, Some(0), "{run}");
    shop.is_adopted().await
}

/// A pseudo-terminal: the terminal and its keyboard.
fn terminal() -> Result<(File, OwnedFd)> {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&keyboard)?;
    unlockpt(&keyboard)?;
    let name = ptsname(&keyboard, Vec::new())?;
    let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes()))?;
    Ok((terminal, keyboard))
}

#[tokio::test]
async fn the_plan_has_further_members() -> Result<()> {
    let shop = Shop::open("adopt-others").await?;
    let namespace = &shop.fixture.namespace;
    let more = "
apiVersion: v1
kind: ConfigMap
metadata: {name: counted, labels: {app: shop}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: owned, labels: {app: shop}, annotations: {kubernetes.io/application: shop}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-another, labels: {app: shop}, annotations: {kubernetes.io/application: blog}}
";
    shop.fixture.apply(more).await?;
    let words = format!("{WORDS} --selector app=shop --dry-run");
    let run = Adopting::begin(&shop.access, namespace, &words)?.end().await?;
    let (_, further) = run.stdout.split_once("deletes them.\n").context("a plan")?;
    assert_eq!(
        further,
        "Also owned (labels and annotation): ConfigMap/owned.\n\
         Also members, not owned (labels only): ConfigMap/counted.\n"
    );
    Ok(())
}

#[tokio::test]
async fn if_the_second_change_fails_the_first_is_undone() -> Result<()> {
    let shop = Shop::open("adopt-middle").await?;
    let (adopting, dry_run) = shop.begin().await?;
    let fault = shop.proxy.inject(shop.requests(Verb::Patch, "services"), answer(StatusCode::FORBIDDEN));
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!((run.code, fault.strikes()), (Some(1), 1), "{run}");
    assert!(run.stderr.starts_with("error: cannot change Service/web: "), "{run}");
    assert!(run.stderr.ends_with("; 1 change undone\n"), "{run}");
    let patches = shop.requests(Verb::Patch, "configmaps");
    assert_eq!(shop.proxy.count(&patches), 3, "dry run, change and undo");
    assert!(!shop.fixture.exists("application/shop").await?);
    shop.is_as_before().await
}

/// After the dry run, another client creates an Application of the same name.
#[tokio::test]
async fn if_the_application_exists_the_changes_are_undone() -> Result<()> {
    let shop = Shop::open("adopt-refused").await?;
    let (adopting, dry_run) = shop.begin().await?;
    shop.fixture.apply(&super::application("shop", "other", "")).await?;
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(
        run.stderr,
        "error: cannot create Application \"shop\": another client created an Application with this name; 2 changes undone\n"
    );
    assert!(shop.fixture.exists("application/shop").await?, "that of the other client");
    shop.is_as_before().await
}

#[tokio::test]
async fn if_the_application_is_refused_the_changes_are_undone() -> Result<()> {
    let shop = Shop::open("adopt-forbidden").await?;
    let (adopting, dry_run) = shop.begin().await?;
    let creates = shop.requests(Verb::Create, APPLICATIONS);
    let _fault = shop.proxy.inject(creates, answer(StatusCode::UNPROCESSABLE_ENTITY));
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.ends_with("; 2 changes undone\n"), "{run}");
    assert!(!shop.fixture.exists("application/shop").await?);
    shop.is_as_before().await
}

/// The retry finds that the API server has made the change.
#[tokio::test]
async fn lost_responses() -> Result<()> {
    let shop = Shop::open("adopt-lost").await?;
    let (adopting, dry_run) = shop.begin().await?;
    let patches = shop.requests(Verb::Patch, "services").times(1);
    let creates = shop.requests(Verb::Create, APPLICATIONS).times(1);
    let faults = [patches, creates].map(|requests| shop.proxy.inject(requests, Fault::LoseResponse));
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(faults.map(|fault| fault.strikes()), [1, 1]);
    shop.is_adopted().await
}

/// The API server creates the Application, its response is lost, and it forbids the retry: `adopt` deletes
/// the Application and orphans its objects.
#[tokio::test]
async fn an_application_created_without_a_response_is_deleted() -> Result<()> {
    let shop = Shop::open("adopt-doubt").await?;
    let (adopting, dry_run) = shop.begin().await?;
    let creates = || shop.requests(Verb::Create, APPLICATIONS);
    let _lost = shop.proxy.inject(creates().times(1), Fault::LoseResponse);
    let _refused = shop.proxy.inject(creates(), answer(StatusCode::FORBIDDEN));
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.ends_with("; 2 changes undone\n"), "{run}");
    let deletions = shop.requests(Verb::Delete, APPLICATIONS);
    assert_eq!(shop.proxy.count(&deletions), 1, "it was created");
    shop.fixture.is_gone("application/shop").await?;
    shop.is_as_before().await
}

#[tokio::test]
async fn another_client_changes_other_annotations() -> Result<()> {
    let mut shop = Shop::open("adopt-meanwhile").await?;
    let (adopting, dry_run) = shop.begin().await?;
    shop.fixture.kubectl("annotate service/web note=new").await?;
    shop.before[1] = labels_and_annotations(&shop.fixture, OBJECTS[1]).await?;
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(0), "{run}");
    shop.is_adopted().await
}

#[tokio::test]
async fn another_client_changes_the_same_annotation() -> Result<()> {
    let mut shop = Shop::open("adopt-taken").await?;
    let (adopting, dry_run) = shop.begin().await?;
    shop.fixture.kubectl("annotate service/web kubernetes.io/application=blog").await?;
    shop.before[1] = labels_and_annotations(&shop.fixture, OBJECTS[1]).await?;
    dry_run.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let why = "another client has changed kubernetes.io/application";
    assert!(run.stderr.contains(why), "{run}");
    shop.is_as_before().await
}

/// `adopt` finishes the change in flight, then undoes it.
#[tokio::test]
async fn after_sigint_the_changes_are_undone() -> Result<()> {
    let shop = Shop::open("adopt-interrupted").await?;
    let (mut adopting, dry_run) = shop.begin().await?;
    let patches = shop.requests(Verb::Patch, "configmaps").times(1);
    let in_flight = shop.proxy.inject(patches, Fault::HoldResponse);
    dry_run.lift();
    in_flight.done(1).await;
    adopting.interrupt().await?;
    in_flight.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(130), "{run}");
    assert_eq!(run.stderr, "error: interrupted; 1 change undone\n");
    assert!(!shop.fixture.exists("application/shop").await?);
    shop.is_as_before().await
}

/// The commands in the error undo the change.
#[tokio::test]
async fn changes_that_cannot_be_undone() -> Result<()> {
    let shop = Shop::open("adopt-left").await?;
    let (adopting, dry_run) = shop.begin().await?;
    let patches = shop.requests(Verb::Patch, "configmaps").times(1);
    let in_flight = shop.proxy.inject(patches, Fault::HoldResponse);
    dry_run.lift();
    in_flight.done(1).await;
    let writes = Requests::writes().namespace(&shop.fixture.namespace);
    let _fault = shop.proxy.inject(writes, answer(StatusCode::FORBIDDEN));
    in_flight.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let (_, commands) = run.stderr.split_once(". Run: ").context("a way out")?;
    assert!(run.stderr.contains("error: cannot undo the change of ConfigMap/settings: "), "{run}");
    for command in commands.trim().split(" && ") {
        // The commands have the flags of `adopt`. Its kubeconfig leads to the proxy, and is deleted by now.
        let (command, rest) = command.split_once(" --kubeconfig ").context("the flags of adopt")?;
        let (_, rest) = rest.split_once(' ').context("a file")?;
        let command = format!("{} {rest}", command.strip_prefix("kubectl ").context("a command")?);
        shop.fixture.kubectl(&command).await?;
    }
    shop.is_as_before().await
}

/// `adopt` reports all missing permissions at once, before it changes anything.
#[tokio::test]
async fn missing_rights_are_reported() -> Result<()> {
    let cluster = shared::cluster_with_nodes().await?;
    let shop = Shop::open("adopt-rights").await?;
    let namespace = &shop.fixture.namespace;
    let user = cluster.user(&format!("adopter-of-{namespace}"))?;
    let run = Adopting::begin(&user, namespace, WORDS)?.end().await?;
    assert_eq!(run.code, Some(2), "{run}");
    let name = format!("user \"adopter-of-{namespace}\"");
    let expected = format!(
        "error: {name} cannot get configmaps in namespace {namespace}. Grant user adopter-of-{namespace} the verb get on \
         configmaps\n"
    );
    assert!(run.stderr.contains(&expected), "{run}");

    let rights = vec![
        rule(&["get", "list", "patch"], "", &["configmaps"]),
        rule(&["get"], "", &["services"]),
        rule(&["get"], "bellwether.dev", &["applications"]),
    ];
    cluster.grant(&user, Some(namespace), rights).await?;
    let run = Adopting::begin(&user, namespace, WORDS)?.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let expected = format!(
        "error: cannot change Service/web: {name} cannot patch services in namespace {namespace}\n\
         error: cannot create Application \"shop\": {name} cannot create applications.bellwether.dev in namespace \
         {namespace}\n"
    );
    assert_eq!(run.stderr, expected);
    shop.is_as_before().await
}

#[tokio::test]
async fn crds_must_be_installed() -> Result<()> {
    let cluster = bellwether_testkit::Cluster::start().await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "adopt-nowhere").await?;
    fixture.apply(SHOP).await?;
    let run =
        Adopting::begin(cluster.admin(), &fixture.namespace, "shop configmap/settings svc/nosuch node/none")?;
    let run = run.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let expected = format!(
        "error: CRDs not installed. Run: bellwether crds | kubectl apply --server-side -f -\n\
         error: Service/nosuch not found in namespace {}. Create it first, or leave it out\n\
         error: Node/none is cluster-scoped and cannot be a member. Leave it out\n",
        text(&json!(fixture.namespace))
    );
    assert_eq!(run.stderr, expected);
    Ok(())
}
