//! The clusters that `bellwether controller` reads besides the hub.

use bellwether_testkit::{Cluster, rule};

use super::*;
use crate::run;

/// A Secret in the namespace of the controller.
fn secret(name: &str, kubeconfig: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "labels": { "bellwether.dev/cluster": name } },
        "stringData": { "kubeconfig": kubeconfig },
    })
    .to_string()
}

async fn is_connected(controller: &Controller, cluster: &str) -> Result<()> {
    let metric = format!("bellwether_cluster_fresh{{cluster=\"{cluster}\"}}");
    eventually(TIMEOUT, &format!("{cluster} is connected"), async || {
        Ok(controller.0.metric::<u64>(&metric).await? == Some(1))
    })
    .await
    .with_context(|| controller.log_since_start())
}

async fn logs(controller: &Controller, text: &str) -> Result<()> {
    eventually(TIMEOUT, &format!("the log has {text}"), async || {
        Ok(controller.log_since_start().contains(text))
    })
    .await
    .with_context(|| controller.log_since_start())
}

#[tokio::test]
async fn clusters_are_registered_with_flags_and_secrets() -> Result<()> {
    let (hub, east) = (shared::cluster().await?, Cluster::start().await?);
    hub.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(hub, "clusters").await?;
    let flag = format!("east={}", east.kubeconfig().display());
    let arguments = [
        "--leader-elect=false",
        "--namespace",
        &fixture.namespace,
        "--probe-interval=1s",
        "--cluster",
        &flag,
        "--cluster-labels=east=tier=edge",
    ];
    let controller = Controller::start(hub.admin(), &arguments).await?;
    is_connected(&controller, "east").await?;

    let kubeconfig = east.admin().kubeconfig();
    let refused = kubeconfig.replace(
        "\"client-certificate-data\":",
        "\"tokenFile\":\"/etc/passwd\",\"client-certificate-data\":",
    );
    fixture.apply(&secret("refused", &refused)).await?;
    fixture.apply(&secret("west", &kubeconfig)).await?;
    fixture.apply(&secret("east", &kubeconfig)).await?;
    is_connected(&controller, "west").await?;
    for text in [
        format!(
            "origin=Secret {}/refused cluster=\"refused\" error=tokenFile is refused: it would read a file of the controller. Put the content of the file into token",
            fixture.namespace
        ),
        format!("cluster=\"east\" using=--cluster east ignored=Secret {}/east", fixture.namespace),
    ] {
        logs(&controller, &text).await?;
    }
    let fresh = "bellwether_cluster_fresh{cluster=\"refused\"}";
    assert_eq!(controller.0.metric::<u64>(fresh).await?, Some(0));

    fixture.kubectl("delete secret west").await?;
    eventually(TIMEOUT, "west is gone", async || {
        Ok(controller.0.metric::<u64>("bellwether_cluster_fresh{cluster=\"west\"}").await?.is_none())
    })
    .await?;
    let log = controller.log_since_start();
    assert!(log.contains("cluster{name=\"west\"}: connecting to cluster"), "{log}");
    for (place, secret) in [("log", &log), ("metrics", &controller.get("/metrics").await?.1)] {
        assert!(!secret.contains("-data"), "the {place} quotes a kubeconfig: {secret}");
    }
    Ok(())
}

/// A controller that was installed before there were other clusters has no right to read Secrets.
#[tokio::test]
async fn the_right_to_read_secrets_is_optional() -> Result<()> {
    let hub = shared::cluster().await?;
    hub.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(hub, "no-secrets").await?;
    let user = hub.user("no-secrets")?;
    let own = ["applications", "rollups", "healthrules"];
    hub.grant(&user, None, vec![rule(&["get", "list", "watch"], "bellwether.dev", &own)]).await?;
    let arguments = ["--leader-elect=false", "--namespace", &fixture.namespace];
    let controller = Controller::start(&user, &arguments).await?;
    let remedy = format!("Grant get, list and watch on secrets in namespace {}", fixture.namespace);
    logs(&controller, &remedy).await?;

    let rules = vec![rule(&["get", "list", "watch"], "", &["secrets"])];
    hub.grant(&user, Some(&fixture.namespace), rules).await?;
    fixture.apply(&secret("east", &hub.admin().kubeconfig())).await?;
    is_connected(&controller, "east").await?;
    let log = controller.log_since_start();
    assert!(!log.contains("deployments"), "it needs no right to search for singletons: {log}");
    Ok(())
}

#[test]
fn invalid_flags_name_the_way_out() {
    for (flags, expected) in [
        (
            vec!["--cluster=east=/"],
            "invalid --cluster east=/: a directory. Name a kubeconfig file: the controller reads clusters, not manifests",
        ),
        (vec!["--cluster=east"], "use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR"),
        (vec!["--cluster=east=a;east=b"], "duplicate --cluster east. Give each cluster its own name"),
        (
            vec!["--cluster-profile-providers=/no/such/file"],
            "cannot read /no/such/file: No such file or directory (os error 2). Check --cluster-profile-providers",
        ),
        (vec!["--cluster=east=a", "--watch-namespace=shop"], "cannot be used with"),
    ] {
        let arguments: Vec<_> = ["controller"].into_iter().chain(flags).collect();
        let ended = run(&arguments);
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
