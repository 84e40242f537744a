//! `bellwether controller`: keeps statuses true in a cluster.

mod probes;

use std::{
    fs,
    io::IsTerminal as _,
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{Dialect, Engine, GroupKind, NamespacedName, OwnKind};
use bellwether_kube_io::{
    controller_loop::ControllerLoop,
    read::Settings,
    write::{
        CallError, Campaign, Leadership, LeaseSettings, Login, PATIENCE, Recorder, call, campaign,
        olm::keep_in_step,
    },
};
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
    output::Outcome,
};

use probes::Probes;

/// The name of the Lease for which controllers compete.
const LEASE: &str = "bellwether-controller";

/// Where the Lease is, if nobody says otherwise.
const NAMESPACE: &str = "bellwether-system";

/// Where a Pod finds the namespace that it is in.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// How long those who ask for probes and metrics have when the process ends.
const GRACE: Duration = Duration::from_secs(2);

/// Runs until it is told to stop.
pub(crate) fn run(command: &Controller) -> Result<Outcome> {
    log(command)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(control(command))?;
    Ok(Outcome::default())
}

fn log(command: &Controller) -> Result<()> {
    // The client's own lines are about what is told in better words, or is no news.
    let filter = EnvFilter::try_new(format!("kube_client=off,{}", command.log))
        .with_context(|| format!("--log {:?} is no level: give one such as info or debug", command.log))?;
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match command.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

async fn control(command: &Controller) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        ask_to_stop().await;
        info!("stops, and lets what is being written be written");
        let _ = stop.send(true);
        // Who asks twice does not want to wait.
        ask_to_stop().await;
        process::exit(1);
    });
    let login = Login { kubeconfig: command.kubeconfig.clone(), context: command.context.clone() };
    let connection = login.connect().await?;
    connection.check().await?;
    let listener = TcpListener::bind(&command.listen).await.with_context(|| {
        format!("cannot listen on {}: is the port free? Choose another with --listen", command.listen)
    })?;
    let identity = identity();
    info!("{identity} looks after {} and serves on http://{}", connection.address, listener.local_addr()?);

    look_for_kinds(&connection.client).await;
    let (leadership, candidate) = if command.leader_elect {
        let namespace = own_namespace(command.namespace.as_deref());
        make_sure_of(&namespace, &connection.client).await;
        let settings = LeaseSettings::new(&namespace, &lease(command), &identity);
        let (leadership, campaign) = campaign(connection.client.clone(), settings);
        (leadership, Candidate::Campaign(campaign))
    } else {
        let (leadership, sender) = alone();
        (leadership, Candidate::Alone(sender))
    };
    let settings = Settings { namespace: command.watch_namespace.clone(), ..Settings::default() };
    let recorder = Recorder::start(connection.client.clone(), &identity);
    let engine = if command.watch_namespace.is_some() { Engine::of_one_namespace() } else { Engine::new() };
    let engine =
        if command.app_k8s_io { engine.with_kind(OwnKind::Application(Dialect::AppK8sIo)) } else { engine };
    let mut controller_loop =
        ControllerLoop::new(engine, connection.client.clone(), settings, leadership.clone(), recorder);
    let olm = command.rollups.olm().map(|(place, rollup)| {
        let insights = controller_loop.follow(GroupKind::own("Rollup"), NamespacedName::new("", rollup));
        let (place, rollup) = (place.clone(), rollup.to_owned());
        tokio::spawn(keep_in_step(connection.client, place, rollup, insights, leadership.clone()))
    });
    let probed = Arc::new(Probes::new(command, &controller_loop, leadership));
    let server = tokio::spawn(bellwether_server::serve(listener, probed, when_true(stopped.clone())));

    controller_loop.run(when_true(stopped.clone())).await;
    if let Some(olm) = olm {
        // It ends with the spine, after what it is doing; nobody else leads before.
        let _ = timeout(PATIENCE, olm).await;
    }
    if let Candidate::Campaign(campaign) = candidate {
        // If nobody answers, the Lease runs out by itself.
        let _ = timeout(PATIENCE, campaign.release()).await;
    }
    ensure!(
        *stopped.borrow(),
        "the election has ended by itself, which it never should: start the controller again"
    );
    // Whoever is still asking something gets no answer.
    if let Ok(ended) = timeout(GRACE, server).await {
        ended??;
    }
    Ok(())
}

/// The Lease for which this controller competes. Those for different namespaces do not stand in for one another.
fn lease(command: &Controller) -> String {
    match &command.watch_namespace {
        Some(namespace) => format!("{LEASE}-{namespace}"),
        None => LEASE.to_owned(),
    }
}

/// Either one of many, or the only one.
enum Candidate {
    Campaign(Campaign),
    #[expect(dead_code, reason = "as long as it lives, the only one leads")]
    Alone(watch::Sender<Leadership>),
}

/// Nobody else is there.
fn alone() -> (watch::Receiver<Leadership>, watch::Sender<Leadership>) {
    // No process runs for a century.
    let until = Instant::now() + Duration::from_hours(24 * 365 * 100);
    let (sender, leadership) = watch::channel(Leadership::Leading { since: Timestamp::now(), until });
    (leadership, sender)
}

/// A name that no other process has.
fn identity() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "bellwether",
        host => host,
    };
    // Containers begin with the same process number, and are begun again under the same host name.
    format!("{host}-{}-{}", process::id(), Timestamp::now().as_millisecond())
}

fn own_namespace(given: Option<&str>) -> String {
    let of_pod = || fs::read_to_string(POD_NAMESPACE).ok().map(|text| text.trim().to_owned());
    given.map(str::to_owned).or_else(of_pod).unwrap_or_else(|| NAMESPACE.to_owned())
}

/// Says so if our own kinds are not there. They are looked after as soon as they are.
async fn look_for_kinds(client: &Client) {
    let path = format!("/apis/{}/{}", bellwether_api::GROUP, bellwether_api::VERSION);
    if let Err(CallError::Api(error)) = call(client, Verb::Get.request(&path, Vec::new()), PATIENCE).await
        && error.class == ErrorClass::NotServed
    {
        warn!(
            "the cluster does not know Bellwether's kinds yet: install them with bellwether crds | kubectl apply \
             --server-side -f -"
        );
    }
}

/// Creates the namespace if it is not there and we may. If not, the campaign says what is missing.
async fn make_sure_of(name: &str, client: &Client) {
    let all = "/api/v1/namespaces";
    let found = call(client, Verb::GetMetadata.request(&format!("{all}/{name}"), Vec::new()), PATIENCE).await;
    if !matches!(found, Err(CallError::Api(error)) if error.class == ErrorClass::NotFound) {
        return;
    }
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    match call(client, Verb::Create.request(all, namespace.to_string().into_bytes()), PATIENCE).await {
        Ok(_) => info!("created the namespace {name} for the Lease"),
        Err(CallError::Timeout(_)) => {
            warn!("the API server does not say whether it created the namespace {name} for the Lease");
        }
        Err(error) => warn!("cannot create the namespace {name} for the Lease: {error}"),
    }
}

/// Ends when somebody asks the process to stop.
async fn ask_to_stop() {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        // Then the process ends as any other would.
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
