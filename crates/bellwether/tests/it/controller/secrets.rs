//! No content of Secrets and ConfigMaps is read: it is not requested, and not in the memory of the process.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Cluster, Fault, FaultProxy, Requests, StatusCode, Verb, eventually, shared};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::{Controller, ControllerFixture, TIMEOUT, application, text};
use crate::{Run, bellwether};

/// In a label, which is read: it shows that the search finds what is there.
const READ: &str = "marker-in-a-label-7f3a91";
/// The content of a Secret and of a ConfigMap, before and after a change.
const CONTENTS: [&str; 2] = ["marker-in-the-content-c04d5e", "marker-in-the-change-91b2aa"];

/// In the annotation with which `kubectl apply` copies the content of a Secret into its metadata. The quotation marks
/// are escaped in what the API server sends: buffers of the HTTP client and of TLS may keep that.
const APPLIED: &str = r#""key":"marker-of-kubectl-apply-5e20d7""#;

const PAGE: usize = 4096;

/// Copies the written memory of a process to a file, without pages of zeros.
fn dump(process: u32, to: &Path) -> Result<()> {
    let (mut memory, mut to) = (File::open(format!("/proc/{process}/mem"))?, File::create(to)?);
    let mut chunk = vec![0; 256 * PAGE];
    for line in fs::read_to_string(format!("/proc/{process}/maps"))?.lines() {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (from, end) = range.split_once('-').context("a range of addresses")?;
        let (mut from, end) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(end, 16)?);
        while rights.starts_with("rw") && from < end {
            let size = usize::try_from(end - from)?.min(chunk.len());
            let bytes = &mut chunk[..size];
            memory.seek(SeekFrom::Start(from))?;
            // A mapping may be gone by now, and some cannot be read.
            if memory.read_exact(bytes).is_err() {
                break;
            }
            for page in bytes.chunks(PAGE).filter(|page| **page != [0; PAGE]) {
                to.write_all(page)?;
            }
            from += size as u64;
        }
    }
    Ok(())
}

fn contains(file: &Path, text: &str) -> Result<bool> {
    let options = ["--text", "--quiet", "--fixed-strings", "--"];
    let searched = Command::new("grep").args(options).arg(text).arg(file).status()?;
    ensure!(matches!(searched.code(), Some(0 | 1)), "grep failed: {searched}");
    Ok(searched.success())
}

/// Lists, watches and relists with members that are Secrets and ConfigMaps.
#[tokio::test]
async fn content_is_never_in_memory() -> Result<()> {
    let cluster = shared::cluster().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(cluster, "content").await?;
    for kind in ["secret generic", "configmap"] {
        fixture.kubectl(&format!("create {kind} one --from-literal=key={}", CONTENTS[0])).await?;
    }
    let head = r#""apiVersion":"v1","kind":"Secret","metadata":{"name":"applied","labels":{"app":"shop"}}"#;
    fixture.apply(&format!(r#"{{{head},"stringData":{{{APPLIED}}}}}"#)).await?;
    fixture.kubectl(&format!("label secret/one configmap/one app=shop marker={READ}")).await?;
    let both = "{kind: ConfigMap}, {kind: Secret}";
    fixture.apply(&application("shop", "shop", "").replace("{kind: ConfigMap}", both)).await?;

    let proxy = FaultProxy::before(cluster).await?;
    let arguments = ["--leader-elect=false", "--watch-namespace", &fixture.namespace];
    let controller = Controller::start(&cluster.admin().via(proxy.address()), &arguments).await?;
    let counts = async |ready: u64| {
        fixture
            .status("shop", "all are ready", |status| {
                let counts = &status["objectCounts"];
                counts["ready"] == ready && counts["total"] == ready
            })
            .await
    };
    counts(3).await?;
    let decoded = controller.metric("bellwether_objects_decoded_total").await?;
    let change = json!({ "stringData": { "key": CONTENTS[1] } });
    fixture.patch("secret/one", change).await?;
    fixture.patch("configmap/one", json!({ "data": { "key": CONTENTS[1] } })).await?;
    eventually(TIMEOUT, "the changes are seen", async || {
        Ok(controller.metric("bellwether_objects_decoded_total").await? >= decoded + 2)
    })
    .await?;
    let relisted = |resource: &str| proxy.count(&Requests::of(Verb::List, resource)) >= 2;
    let gone = Fault::ErrorEvent(StatusCode::GONE);
    let _expired = ["secrets", "configmaps"]
        .map(|resource| proxy.inject(Requests::of(Verb::Watch, resource).times(1), gone));
    proxy.cut_all().await;
    eventually(TIMEOUT, "the kinds are relisted", async || Ok(relisted("secrets") && relisted("configmaps")))
        .await?;
    let third = format!("create secret generic two --from-literal=key={}", CONTENTS[0]);
    fixture.kubectl(&third).await?;
    fixture.kubectl("label secret/two app=shop").await?;
    counts(4).await?;

    let encoded = async |name: &str| -> Result<String> { Ok(text(&fixture.get(name).await?["data"]["key"])) };
    let mut texts = vec![READ.to_owned()];
    texts.extend(CONTENTS.map(str::to_owned));
    texts.push(APPLIED.to_owned());
    texts.extend([encoded("secret/one").await?, encoded("secret/two").await?]);
    let file = cluster.directory().join(format!("memory-of-{}", fixture.namespace));
    dump(controller.program.id().context("the controller runs")?, &file)?;
    let found = texts.iter().map(|text| contains(&file, text)).collect::<Result<Vec<_>>>()?;
    fs::remove_file(file)?;
    assert_eq!(found, [true, false, false, false, false, false], "{texts:?}");
    Ok(())
}

/// Checks that every request for Secrets since the last call asked for metadata only, except those that register
/// clusters.
fn only_metadata_was_requested(proxy: &FaultProxy, verbs: &[Verb]) -> Result<()> {
    let mut requests = proxy.requests();
    requests.retain(|request| request.call.resource.as_ref().is_some_and(|it| it.plural == "secrets"));
    requests.retain(|request| {
        let is_own = request.call.namespace.as_deref() == Some("bellwether-system");
        !(is_own && request.uri.contains("labelSelector=bellwether.dev%2Fcluster"))
    });
    for verb in verbs {
        ensure!(requests.iter().any(|request| request.call.verb == *verb), "{verb:?}: {requests:#?}");
    }
    let asks_for_metadata = |accept: &str| accept.contains("as=PartialObjectMetadata");
    let whole = requests.iter().find(|it| !it.accept.as_deref().is_some_and(asks_for_metadata));
    ensure!(whole.is_none(), "{whole:#?}");
    proxy.forget();
    Ok(())
}

/// A component of a Rollup, of which conditions are read, a rule for all kinds, of which a status is read, and
/// `explain`, which reads whole objects, still request the metadata of Secrets only.
#[tokio::test]
async fn whatever_needs_a_secret_requests_its_metadata() -> Result<()> {
    let cluster = Cluster::builder().name("metadata").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "metadata").await?;
    fixture.kubectl("create secret generic one --from-literal=key=value").await?;
    fixture.kubectl("label secret/one app=shop").await?;
    fixture.apply(&application("shop", "shop", "").replace("{kind: ConfigMap}", "{kind: Secret}")).await?;
    let component = json!({"group": "", "kind": "Secret", "namespace": fixture.namespace, "name": "one"});
    let rollup = json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": "all"},
        "spec": {"components": [component]}});
    fixture.apply(&rollup.to_string()).await?;
    let cases =
        json!([{"when": "status.phase == 'Broken'", "state": "Failed"}, {"when": "true", "state": "Ready"}]);
    let rule = json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule", "metadata": {"name": "all"},
        "spec": {"for": {"group": "", "kind": "*"}, "cel": cases}});
    fixture.apply(&rule.to_string()).await?;

    let proxy = FaultProxy::before(&cluster).await?;
    let access = cluster.admin().via(proxy.address());
    let controller = Controller::start(&access, &["--leader-elect=false"]).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    eventually(TIMEOUT, "the Rollup has a status", async || {
        Ok(fixture.get("bwru/all").await?["status"]["conditions"].is_array())
    })
    .await?;
    only_metadata_was_requested(&proxy, &[Verb::List, Verb::Watch])?;
    controller.program.stop().await?;

    let (kubeconfig, namespace) = (access.kubeconfig_file()?, fixture.namespace.clone());
    let explained = spawn_blocking(move || {
        let mut explain = bellwether(&["explain", "secret/one", "-n", &namespace]);
        explain.arg("--kubeconfig").arg(&*kubeconfig).output().map(Run::from)
    });
    let explained = explained.await??;
    ensure!(explained.stdout.contains("Secret") && explained.stdout.contains("Ready"), "{explained}");
    only_metadata_was_requested(&proxy, &[Verb::Get])
}
