//! Measures the peak of a controller's memory while it lists large objects of which it selects none.
//!
//! Arguments: the controller's binary, the number of objects, and the size of each in bytes.

use std::{
    env,
    io::{Write as _, stderr, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use bellwether_testkit::{Cluster, Controller, peak_memory_of};
use http::Request;
use kube::Client;
use serde_json::{Value as Json, json};

/// The timeout until the controller is ready.
const TIMEOUT: Duration = Duration::from_mins(3);

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program: PathBuf = arguments.next().context("missing argument: path of the controller")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let [objects, size] = *numbers.collect::<Result<Vec<usize>, _>>()? else {
        bail!("missing arguments: number of objects, size of each");
    };
    let cluster = Cluster::start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let client = cluster.admin().client().await?;
    figure("empty", peak(&program, &cluster).await?)?;

    let content = "x".repeat(size);
    writeln!(stderr(), "creating {objects} ConfigMaps")?;
    let make = |name: String| json!({ "metadata": { "name": name }, "data": { "content": content } });
    create(&client, "/api/v1/namespaces/default/configmaps", objects, make).await?;
    application(&client, "config-maps", &json!({ "kind": "ConfigMap" })).await?;
    figure("config_maps", peak(&program, &cluster).await?)?;

    writeln!(stderr(), "creating {objects} custom objects")?;
    post(&client, CRDS, &definition()).await?;
    let make = |name: String| {
        json!({
            "apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": { "name": name },
            "spec": { "content": content },
        })
    };
    let path = "/apis/bench.example.com/v1/namespaces/default/widgets";
    while post(&client, path, &make("first".to_owned())).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    create(&client, path, objects, make).await?;
    application(&client, "widgets", &json!({ "group": "bench.example.com", "kind": "Widget" })).await?;
    figure("custom_objects", peak(&program, &cluster).await?)
}

/// The largest resident set size of a controller until it is ready, in bytes.
async fn peak(program: &Path, cluster: &Cluster) -> Result<f64> {
    let controller = Controller::new(program, cluster.admin())?.arguments(["--leader-elect=false"]);
    controller.start()?;
    controller.ready(TIMEOUT).await?;
    let process = controller.program.id().context("the controller ended")?;
    let size = peak_memory_of(process)?;
    controller.program.stop().await?;
    Ok(size)
}

async fn create(client: &Client, path: &str, objects: usize, make: impl Fn(String) -> Json) -> Result<()> {
    for number in 0..objects {
        post(client, path, &make(format!("large-{number}"))).await?;
    }
    Ok(())
}

/// An Application that uses a kind and selects no object.
async fn application(client: &Client, name: &str, kind: &Json) -> Result<()> {
    let application = json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "metadata": { "name": name },
        "spec": { "selector": { "matchLabels": { "app": name } }, "componentKinds": [kind] },
    });
    post(client, "/apis/bellwether.dev/v1alpha1/namespaces/default/applications", &application).await
}

fn definition() -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.bench.example.com" },
        "spec": {
            "group": "bench.example.com", "names": { "kind": "Widget", "plural": "widgets" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

async fn post(client: &Client, path: &str, object: &Json) -> Result<()> {
    let request = Request::post(path).header("content-type", "application/json");
    client.request::<Json>(request.body(serde_json::to_vec(object)?)?).await?;
    Ok(())
}

fn figure(name: &str, value: f64) -> Result<()> {
    writeln!(stdout(), "{}", json!({ "figure": name, "value": value }))?;
    Ok(())
}
