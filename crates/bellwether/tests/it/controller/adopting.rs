//! `bellwether adopt` on a real control plane: all of it or nothing, whatever goes wrong in between.

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

use super::{Story, looked_after, text};
use crate::Run;

/// The command, under way.
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

    /// Ends it as Ctrl-C does, and waits until it has heard.
    async fn interrupt(&mut self) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        kill_process(id.context("it has ended")?, Signal::INT)?;
        let stderr = self.child.stderr.as_mut().context("it has no standard error")?;
        let mut heard = vec![0; HEARD.len()];
        stderr.read_exact(&mut heard).await?;
        ensure!(heard == HEARD.as_bytes(), "it says {}", String::from_utf8_lossy(&heard));
        Ok(())
    }

    async fn end(self) -> Result<Run> {
        Ok(self.child.wait_with_output().await?.into())
    }
}

const HEARD: &str = "Interrupted: what is under way is finished or undone first.\n";

/// Two objects that know nothing of Applications, and a proxy on the way to them.
struct Shop {
    story: Story,
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
        let cluster = looked_after().await?;
        let story = Story::within(cluster, of).await?;
        story.apply(SHOP).await?;
        let proxy = FaultProxy::before(cluster).await?;
        let access = cluster.admin().via(proxy.address());
        let before = [marks(&story, OBJECTS[0]).await?, marks(&story, OBJECTS[1]).await?];
        Ok(Self { story, proxy, access, before })
    }

    fn requests(&self, verb: Verb, resource: &str) -> Requests {
        Requests::of(verb, resource).namespace(&self.story.namespace)
    }

    /// Begins to adopt, and stops it when everything was tried out and nothing is done yet.
    async fn begin(&self) -> Result<(Adopting, Injected)> {
        let creates = self.requests(Verb::Create, APPLICATIONS).times(1);
        let tried_out = self.proxy.inject(creates, Fault::HoldResponse);
        let adopting = Adopting::begin(&self.access, &self.story.namespace, WORDS)?;
        tried_out.done(1).await;
        Ok((adopting, tried_out))
    }

    /// Nothing is left of it.
    async fn is_as_before(&self) -> Result<()> {
        for (object, before) in OBJECTS.iter().zip(&self.before) {
            self.story.owners_are(object, &[]).await?;
            ensure!(marks(&self.story, object).await? == *before, "{object} is not as it was");
        }
        Ok(())
    }

    /// All of it is there, and nobody else's has changed.
    async fn is_adopted(&self) -> Result<()> {
        self.story.ready_is("shop", "ComponentsReady").await?;
        for (object, before) in OBJECTS.iter().zip(&self.before) {
            self.story.owners_are(object, &["shop"]).await?;
            let mut expected = before.clone();
            expected["labels"]["app.kubernetes.io/part-of"] = json!("shop");
            expected["annotations"]["kubernetes.io/application"] = json!("shop");
            let now = marks(&self.story, object).await?;
            ensure!(now == expected, "{object} has {now}");
        }
        Ok(())
    }
}

const APPLICATIONS: &str = "applications.bellwether.dev";

/// The labels and annotations of an object.
async fn marks(story: &Story, object: &str) -> Result<Value> {
    let mut object = story.get(object).await?;
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
async fn what_exists_is_owned_and_ready_in_the_end() -> Result<()> {
    let shop = Shop::open("adopt").await?;
    let namespace = &shop.story.namespace;
    let tried = Adopting::begin(&shop.access, namespace, &format!("{WORDS} --dry-run"))?.end().await?;
    assert_eq!((tried.code, tried.stderr.as_str()), (Some(0), ""), "{tried}");
    shop.is_as_before().await?;
    assert!(!shop.story.exists("application/shop").await?);

    let run = Adopting::begin(&shop.access, namespace, WORDS)?.end().await?;
    let end = format!(
        "\nApplication {namespace}/shop was created and has 2 objects.\nNext: bellwether wait shop -n {namespace} \
         --kubeconfig "
    );
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.starts_with(&format!("{}{end}", tried.stdout)), "the plan is what was tried: {run}");
    shop.is_adopted().await?;

    let again = Adopting::begin(&shop.access, namespace, WORDS)?.end().await?;
    let nothing = format!("Nothing to do: Application {namespace}/shop has these objects already.\n");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), nothing.as_str()), "{again}");
    let other = Adopting::begin(&shop.access, namespace, "shop svc/web")?.end().await?;
    assert_eq!(other.code, Some(1), "{other}");
    assert!(other.stderr.contains("Application \"shop\" exists already"), "{other}");

    // Whoever lost what makes it a member gets that back.
    shop.story.kubectl("annotate configmap/settings kubernetes.io/application-").await?;
    let mended = Adopting::begin(&shop.access, namespace, &format!("{WORDS} -o yaml"))?.end().await?;
    assert_eq!(mended.code, Some(0), "{mended}");
    assert!(
        mended.stderr.contains("annotation kubernetes.io/application: none → shop"),
        "the plan is shown: {mended}"
    );
    shop.is_adopted().await
}

/// On a terminal somebody is asked first.
#[tokio::test]
async fn nothing_is_done_that_nobody_wants() -> Result<()> {
    let shop = Shop::open("adopt-asked").await?;
    let namespace = &shop.story.namespace;
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
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), "Go on? [y/N] "), "{run}");
        assert!(run.stdout.ends_with("with it.\nNothing was changed.\n"), "{run}");
        shop.is_as_before().await?;
    }
    let run = ask("n", " -y").await?;
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    shop.is_adopted().await?;
    shop.story.kubectl("annotate service/web kubernetes.io/application-").await?;
    let run = ask("y", "").await?;
    assert_eq!(run.code, Some(0), "{run}");
    shop.is_adopted().await
}

/// A terminal, and what is typed there.
fn terminal() -> Result<(File, OwnedFd)> {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&keyboard)?;
    unlockpt(&keyboard)?;
    let name = ptsname(&keyboard, Vec::new())?;
    let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes()))?;
    Ok((terminal, keyboard))
}

#[tokio::test]
async fn others_that_the_selector_matches_are_named() -> Result<()> {
    let shop = Shop::open("adopt-others").await?;
    let namespace = &shop.story.namespace;
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
    shop.story.apply(more).await?;
    let words = format!("{WORDS} --selector app=shop --dry-run");
    let run = Adopting::begin(&shop.access, namespace, &words)?.end().await?;
    let (_, told) = run.stdout.split_once("with it.\n").context("a plan")?;
    assert_eq!(
        told,
        "It will own others too, which have its labels and its annotation: ConfigMap owned.\n\
         It will count others too, which have its labels, without owning them: ConfigMap counted.\n"
    );
    Ok(())
}

/// The second of two changes fails.
#[tokio::test]
async fn a_change_that_fails_in_the_middle_is_undone() -> Result<()> {
    let shop = Shop::open("adopt-middle").await?;
    let (adopting, tried_out) = shop.begin().await?;
    let fault = shop.proxy.inject(shop.requests(Verb::Patch, "services"), answer(StatusCode::FORBIDDEN));
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!((run.code, fault.strikes()), (Some(1), 1), "{run}");
    assert!(run.stderr.starts_with("error: Service \"web\" was not changed: "), "{run}");
    assert!(run.stderr.ends_with("; all that was done, 1 change, was undone\n"), "{run}");
    let patches = shop.requests(Verb::Patch, "configmaps");
    assert_eq!(shop.proxy.count(&patches), 3, "tried out, done and undone");
    assert!(!shop.story.exists("application/shop").await?);
    shop.is_as_before().await
}

/// Somebody else takes the name, after it was tried out.
#[tokio::test]
async fn an_application_that_is_refused_for_real_leaves_nothing() -> Result<()> {
    let shop = Shop::open("adopt-refused").await?;
    let (adopting, tried_out) = shop.begin().await?;
    shop.story.apply(&super::application("shop", "other", "")).await?;
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(
        run.stderr,
        "error: Application \"shop\" was not created: somebody else has created another one of this name; all that was \
         done, 2 changes, was undone\n"
    );
    assert!(shop.story.exists("application/shop").await?, "it is theirs");
    shop.is_as_before().await
}

/// The API server refuses it in its own words.
#[tokio::test]
async fn so_does_one_that_is_forbidden() -> Result<()> {
    let shop = Shop::open("adopt-forbidden").await?;
    let (adopting, tried_out) = shop.begin().await?;
    let creates = shop.requests(Verb::Create, APPLICATIONS);
    let _fault = shop.proxy.inject(creates, answer(StatusCode::UNPROCESSABLE_ENTITY));
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.ends_with("all that was done, 2 changes, was undone\n"), "{run}");
    assert!(!shop.story.exists("application/shop").await?);
    shop.is_as_before().await
}

/// Answers are lost: what was done is seen to be done.
#[tokio::test]
async fn lost_answers_do_no_harm() -> Result<()> {
    let shop = Shop::open("adopt-lost").await?;
    let (adopting, tried_out) = shop.begin().await?;
    let patches = shop.requests(Verb::Patch, "services").times(1);
    let creates = shop.requests(Verb::Create, APPLICATIONS).times(1);
    let faults = [patches, creates].map(|requests| shop.proxy.inject(requests, Fault::LoseResponse));
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(faults.map(|fault| fault.strikes()), [1, 1]);
    shop.is_adopted().await
}

/// The Application was created and nobody heard of it, and then it may not be created: it goes, and nothing goes with it.
#[tokio::test]
async fn an_application_in_doubt_goes_alone() -> Result<()> {
    let shop = Shop::open("adopt-doubt").await?;
    let (adopting, tried_out) = shop.begin().await?;
    let creates = || shop.requests(Verb::Create, APPLICATIONS);
    let _lost = shop.proxy.inject(creates().times(1), Fault::LoseResponse);
    let _refused = shop.proxy.inject(creates(), answer(StatusCode::FORBIDDEN));
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.ends_with("all that was done, 2 changes, was undone\n"), "{run}");
    let deletions = shop.requests(Verb::Delete, APPLICATIONS);
    assert_eq!(shop.proxy.count(&deletions), 1, "it was there");
    shop.story.is_gone("application/shop").await?;
    shop.is_as_before().await
}

/// Others may write to the objects at the same time, as long as they leave alone what is ours.
#[tokio::test]
async fn others_may_change_other_fields() -> Result<()> {
    let mut shop = Shop::open("adopt-meanwhile").await?;
    let (adopting, tried_out) = shop.begin().await?;
    shop.story.kubectl("annotate service/web note=new").await?;
    shop.before[1] = marks(&shop.story, OBJECTS[1]).await?;
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(0), "{run}");
    shop.is_adopted().await
}

#[tokio::test]
async fn what_others_change_is_theirs() -> Result<()> {
    let mut shop = Shop::open("adopt-taken").await?;
    let (adopting, tried_out) = shop.begin().await?;
    shop.story.kubectl("annotate service/web kubernetes.io/application=blog").await?;
    shop.before[1] = marks(&shop.story, OBJECTS[1]).await?;
    tried_out.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let why = "somebody else has changed its kubernetes.io/application in the meantime";
    assert!(run.stderr.contains(why), "{run}");
    shop.is_as_before().await
}

/// Ctrl-C while a change is under way: that one is finished, and all of it undone.
#[tokio::test]
async fn an_interruption_leaves_nothing_half_done() -> Result<()> {
    let shop = Shop::open("adopt-interrupted").await?;
    let (mut adopting, tried_out) = shop.begin().await?;
    let patches = shop.requests(Verb::Patch, "configmaps").times(1);
    let under_way = shop.proxy.inject(patches, Fault::HoldResponse);
    tried_out.lift();
    under_way.done(1).await;
    adopting.interrupt().await?;
    under_way.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(130), "{run}");
    assert_eq!(run.stderr, "error: it was interrupted; all that was done, 1 change, was undone\n");
    assert!(!shop.story.exists("application/shop").await?);
    shop.is_as_before().await
}

/// What cannot be undone is said, with the commands that do it.
#[tokio::test]
async fn what_cannot_be_undone_is_said() -> Result<()> {
    let shop = Shop::open("adopt-left").await?;
    let (adopting, tried_out) = shop.begin().await?;
    let patches = shop.requests(Verb::Patch, "configmaps").times(1);
    let under_way = shop.proxy.inject(patches, Fault::HoldResponse);
    tried_out.lift();
    under_way.done(1).await;
    let writes = Requests::writes().namespace(&shop.story.namespace);
    let _fault = shop.proxy.inject(writes, answer(StatusCode::FORBIDDEN));
    under_way.lift();
    let run = adopting.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let (_, commands) = run.stderr.split_once(": do it with ").context("a way out")?;
    assert!(run.stderr.contains("error: ConfigMap \"settings\" could not be put back ("), "{run}");
    for command in commands.trim().split(" && ") {
        shop.story.kubectl(command.strip_prefix("kubectl ").context("a command")?).await?;
    }
    shop.is_as_before().await
}

/// Rights that are missing are said before anything is changed, all of them at once.
#[tokio::test]
async fn missing_rights_are_said_first() -> Result<()> {
    let cluster = shared::cluster_with_nodes().await?;
    let shop = Shop::open("adopt-rights").await?;
    let namespace = &shop.story.namespace;
    let user = cluster.user(&format!("adopter-of-{namespace}"))?;
    let run = Adopting::begin(&user, namespace, WORDS)?.end().await?;
    assert_eq!(run.code, Some(2), "{run}");
    let said =
        format!("error: you may not get configmaps, such as {namespace}/settings: ask for that right\n");
    assert!(run.stderr.contains(&said), "{run}");

    let rights = vec![
        rule(&["get", "list", "patch"], "", &["configmaps"]),
        rule(&["get"], "", &["services"]),
        rule(&["get"], "bellwether.dev", &["applications"]),
    ];
    cluster.grant(&user, Some(namespace), rights).await?;
    let run = Adopting::begin(&user, namespace, WORDS)?.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let said = format!(
        "error: Service \"web\" cannot be changed: you may not patch services in namespace {namespace}: ask for that right\n\
         error: Application \"shop\" cannot be created: you may not create applications.bellwether.dev in namespace \
         {namespace}: ask for that right\n"
    );
    assert_eq!(run.stderr, said);
    shop.is_as_before().await
}

/// A cluster that knows no Applications says how it comes to know them.
#[tokio::test]
async fn applications_must_be_installed() -> Result<()> {
    let cluster = bellwether_testkit::Cluster::start().await?;
    let story = Story::within(&cluster, "adopt-nowhere").await?;
    story.apply(SHOP).await?;
    let run =
        Adopting::begin(cluster.admin(), &story.namespace, "shop configmap/settings svc/nobody node/none")?;
    let run = run.end().await?;
    assert_eq!(run.code, Some(1), "{run}");
    let expected = format!(
        "error: the cluster does not know Applications yet: install them with bellwether crds | kubectl apply --server-side \
         -f -\nerror: there is no Service \"nobody\" in namespace {}: create it first, or leave it out\nerror: Node \"none\" \
         is in no namespace, and an Application has members in its own only: leave it out\n",
        text(&json!(story.namespace))
    );
    assert_eq!(run.stderr, expected);
    Ok(())
}
