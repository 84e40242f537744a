//! `bellwether controller`: publishes the status of Applications and Rollups in a cluster.

mod bound_objects;
mod probes;
mod reviews;

use std::{
    fs,
    io::IsTerminal as _,
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use bellwether_engine::{Dialect, Engine, GroupKind, NamespacedName, OwnKind};
use bellwether_inspect::shell::program;
use bellwether_kube_io::{
    client::ClientOptions,
    controller_loop::ControllerLoop,
    inventory::{AccessProviders, InventorySettings},
    leader_election::{LeaderElector, Leadership, LeaseSettings},
    read::ReaderSettings,
    reviews::Reviewer,
    write::{CallError, REQUEST_TIMEOUT, Recorder, call, olm::sync_operator_condition},
};
use bellwether_server::{Api, Guard};
use bellwether_wire::{ErrorClass, Verb};
use jiff::Timestamp;
use kube::Client;
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::timeout,
};
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{Controller, LogFormat},
    output::{Outcome, cause},
};

use bound_objects::FleetObjects;
use probes::Probes;
use reviews::HubReviews;

const LEASE: &str = "bellwether-controller";

/// The default namespace of the Lease outside of a Pod.
const NAMESPACE: &str = "bellwether-system";

/// Contains the namespace of the Pod.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The time for requests of probes and metrics to complete at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// Runs until SIGINT or SIGTERM.
pub(crate) fn run(command: &Controller) -> Result<Outcome> {
    log(command)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(control(command))?;
    Ok(Outcome::default())
}

fn log(command: &Controller) -> Result<()> {
    // kube's own lines repeat ours.
    let filter = EnvFilter::try_new(format!("kube_client=off,{}", command.log)).map_err(|error| {
        anyhow!("invalid --log {:?}: {error}. Set a level such as info or debug", command.log)
    })?;
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match command.log_format {
        LogFormat::Text => subscriber.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}

async fn control(command: &Controller) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        stop_signal().await;
        info!("shutting down: waiting for in-flight writes");
        let _ = stop.send(true);
        // A second signal ends the process at once.
        stop_signal().await;
        process::exit(1);
    });
    let clusters = command.clusters.kubeconfigs().map_err(|error| anyhow!(error))?;
    let providers = command.clusters.cluster_profile_providers.as_deref();
    let access_providers = providers.map(AccessProviders::read).transpose()?;
    let login = ClientOptions { kubeconfig: command.kubeconfig.clone(), context: command.context.clone() };
    let connection = login.connect().await?;
    connection.check().await?;
    let listener = TcpListener::bind(&command.http.listen).await.map_err(|error| {
        anyhow!(
            "cannot listen on {}: {}. Set --listen to ADDRESS:PORT with a free port",
            command.http.listen,
            cause(&error)
        )
    })?;
    let identity = identity();
    info!(
        %identity,
        server = %connection.address,
        version = %env!("CARGO_PKG_VERSION"),
        listen = %format_args!("http://{}", listener.local_addr()?),
        "starting"
    );
    if command.http.anonymous_read && !listener.local_addr()?.ip().is_loopback() {
        warn!("--anonymous-read: everyone who can reach the address may read all bound objects");
    }

    check_crds(&connection.client).await;
    let (leadership, candidate) = if command.leader_elect {
        let namespace = own_namespace(command.namespace.as_deref());
        ensure_namespace(&namespace, &connection.client).await;
        let settings = LeaseSettings::new(&namespace, &lease(command), &identity);
        let (leadership, elector) = LeaderElector::start(connection.client.clone(), settings);
        (leadership, Candidate::Elected(elector))
    } else {
        let (leadership, sender) = always_leading();
        (leadership, Candidate::Only(sender))
    };
    let inventory = InventorySettings {
        namespace: own_namespace(command.namespace.as_deref()),
        clusters,
        access_providers,
        allow_insecure: command.clusters.insecure_clusters,
        max_connecting: command.clusters.max_connecting_clusters.into(),
        probe_interval: command.clusters.probe_interval,
        reader: ReaderSettings::default(),
    };
    let settings = ReaderSettings { namespace: command.watch_namespace.clone(), ..ReaderSettings::default() };
    let recorder = Recorder::start(connection.client.clone(), &identity);
    let engine = match command.watch_namespace {
        Some(_) => Engine::of_one_namespace(),
        None => Engine::new().with_combined_statuses(),
    };
    let engine = if command.without_health_rules { engine.without_health_rules() } else { engine };
    let engine = engine.with_failed_after(command.below.failed_after());
    let engine =
        if command.app_k8s_io { engine.with_kind(OwnKind::Application(Dialect::AppK8sIo)) } else { engine };
    let mut controller_loop =
        ControllerLoop::new(engine, connection.client.clone(), settings, leadership.clone(), recorder);
    // BindingPolicies are cluster-scoped: a controller of one namespace does not use other clusters.
    if command.watch_namespace.is_none() {
        controller_loop.start_inventory(inventory);
    }
    if let Candidate::Elected(elector) = &candidate {
        controller_loop.relist_on(elector.restored());
    }
    let reviewer = Reviewer::new(connection.client.clone());
    let olm = command.rollups.olm().map(|(target, rollup)| {
        let statuses =
            controller_loop.follow(GroupKind::bellwether("Rollup"), NamespacedName::new("", rollup));
        let (target, rollup) = (target.clone(), rollup.to_owned());
        tokio::spawn(sync_operator_condition(connection.client, target, rollup, statuses, leadership.clone()))
    });
    let probes = Arc::new(Probes::new(command, &controller_loop, leadership));
    let api = api(command, &controller_loop, reviewer);
    let server = tokio::spawn(bellwether_server::serve(listener, probes, api, when_true(stopped.clone())));

    controller_loop.run(when_true(stopped.clone())).await;
    if let Some(olm) = olm {
        // It ends after its write in flight. The Lease is released after that.
        let _ = timeout(REQUEST_TIMEOUT, olm).await;
    }
    if let Candidate::Elected(elector) = candidate {
        // Without a response, the Lease expires by itself.
        let _ = timeout(REQUEST_TIMEOUT, elector.release()).await;
    }
    ensure!(*stopped.borrow(), "the leader election task has failed. Restart the controller");
    if let Ok(ended) = timeout(GRACE, server).await {
        ended??;
    }
    Ok(())
}

/// BindingPolicies are cluster-scoped: a controller of one namespace has no bound objects.
fn api(command: &Controller, controller_loop: &ControllerLoop, reviewer: Reviewer) -> Api {
    let objects = controller_loop.bound_objects().filter(|_| command.watch_namespace.is_none());
    let Some(objects) = objects else { return Api::default() };
    let guard =
        if command.http.anonymous_read { Guard::open() } else { Guard::new(Arc::new(HubReviews(reviewer))) };
    Api::default().with_rows(Arc::new(FleetObjects(objects)), Arc::new(guard))
}

/// Controllers of different namespaces have different Leases.
fn lease(command: &Controller) -> String {
    match &command.watch_namespace {
        Some(namespace) => format!("{LEASE}-{namespace}"),
        None => LEASE.to_owned(),
    }
}

enum Candidate {
    Elected(LeaderElector),
    /// Without leader election.
    #[expect(dead_code, reason = "the receivers see the end of the leadership when it is dropped")]
    Only(watch::Sender<Leadership>),
}

fn always_leading() -> (watch::Receiver<Leadership>, watch::Sender<Leadership>) {
    // A century.
    let until = Instant::now() + Duration::from_hours(24 * 365 * 100);
    let (sender, leadership) = watch::channel(Leadership::Leading { since: Timestamp::now(), until });
    (leadership, sender)
}

/// Unique for each process.
fn identity() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "bellwether",
        host => host,
    };
    // A restarted container has the same process id and host name, so that the time is part of the identity.
    format!("{host}-{}-{}", process::id(), Timestamp::now().as_millisecond())
}

fn own_namespace(given: Option<&str>) -> String {
    let of_pod = || fs::read_to_string(POD_NAMESPACE).ok().map(|text| text.trim().to_owned());
    given.map(str::to_owned).or_else(of_pod).unwrap_or_else(|| NAMESPACE.to_owned())
}

/// Warns if the CRDs are not installed. The controller waits for them.
async fn check_crds(client: &Client) {
    let path = format!("/apis/{}/{}", bellwether_api::GROUP, bellwether_api::VERSION);
    if let Err(CallError::Api(error)) =
        call(client, Verb::Get.request(&path, Vec::new()), REQUEST_TIMEOUT).await
        && error.class == ErrorClass::NotServed
    {
        let command = format!("{} crds | kubectl apply --server-side -f -", program());
        warn!(command, "CRDs not installed: waiting for them");
    }
}

/// Creates the namespace of the Lease if it does not exist. If that fails, the election logs what is missing.
async fn ensure_namespace(name: &str, client: &Client) {
    let collection = "/api/v1/namespaces";
    let found =
        call(client, Verb::GetMetadata.request(&format!("{collection}/{name}"), Vec::new()), REQUEST_TIMEOUT)
            .await;
    if !matches!(found, Err(CallError::Api(error)) if error.class == ErrorClass::NotFound) {
        return;
    }
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    match call(client, Verb::Create.request(collection, namespace.to_string().into_bytes()), REQUEST_TIMEOUT)
        .await
    {
        Ok(_) => info!(namespace = name, "created namespace"),
        Err(error) => warn!(namespace = name, %error, "cannot create namespace"),
    }
}

/// Completes on SIGINT or SIGTERM.
async fn stop_signal() {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        // Without handlers, the signals end the process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

async fn when_true(mut flag: watch::Receiver<bool>) {
    let _ = flag.wait_for(|flag| *flag).await;
}
