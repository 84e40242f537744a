//! Keeps the [`RestMapper`](super::RestMapper) up to date: runs discovery, and watches
//! CustomResourceDefinitions to know when to run it again.

use std::convert::Infallible;

use bellwether_engine::ResourceVersion;
use bellwether_model::Plan;
use bellwether_wire::{
    backoff::Backoff,
    envelope,
    list_watch_policy::{ListWatchEnd, ListWatchPolicy, ReadState, ReadStep},
    object_decoder,
    read_error::ReadError,
};
use kube::{api::WatchParams, core::Request};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    ClusterConnection, crd_list,
    crd_list::CRDS,
    discovery::discover,
    discovery_schedule::{CrdWatch, DiscoverySchedule},
    rest_mapper::is_unavailable,
    watch_stream::Watch,
};
use crate::clock;

pub(super) async fn discovery_loop(connection: &ClusterConnection) -> Infallible {
    let (sender, mut events) = mpsc::channel(64);
    let mut restored = connection.restored.subscribe();
    let mut reconnected = connection.reconnected.subscribe();
    let watch = async {
        loop {
            tokio::select! {
                never = watch_crds(connection, sender.clone()) => match never {},
                // The connection keeps the sender. The next watch begins with a list.
                _ = restored.changed() => {}
                _ = reconnected.changed() => {}
            }
        }
    };
    tokio::select! {
        never = watch => never,
        never = run_discovery(connection, &mut events) => never,
    }
}

async fn run_discovery(connection: &ClusterConnection, events: &mut mpsc::Receiver<CrdWatch>) -> Infallible {
    let now = || Instant::now().into_std();
    let mut requested = connection.rest_mapper.requested();
    let mut schedule = DiscoverySchedule::new(connection.settings.discovery_interval, now());
    let mut backoff = Backoff::new(connection.settings.backoff);
    loop {
        tokio::select! {
            Some(event) = events.recv() => schedule.crd_watch(event, now()),
            Ok(()) = requested.changed() => schedule.requested(now()),
            () = sleep_until(schedule.next().into()) => {
                let fulfilled = *requested.borrow_and_update();
                connection.counters.discoveries.add(1);
                match discover(&connection.client, connection.settings.response_timeout).await {
                    Ok(groups) => {
                        backoff.reset();
                        connection.rest_mapper.update(&groups, fulfilled);
                        let is_complete = !groups.iter().any(is_unavailable);
                        schedule.completed(|crd| is_served(connection, crd), is_complete, now());
                    }
                    Err(error) => {
                        connection.counters.errors.add(1);
                        let is_first = backoff.failures() == 0;
                        let pause = backoff.next_delay(error.retry_after(), &mut rand::rng());
                        if is_first {
                            warn!(%error, after = ?pause, "discovery failed: retrying");
                        } else {
                            debug!(%error, after = ?pause, "discovery failed: retrying");
                        }
                        schedule.failed(pause, now());
                    }
                }
            }
        }
    }
}

/// Whether the kind of a CRD (`widgets.acme.io`) is served.
fn is_served(connection: &ClusterConnection, crd: &str) -> bool {
    crd.split_once('.').is_some_and(|(plural, group)| connection.rest_mapper.has_resource(group, plural))
}

async fn watch_crds(connection: &ClusterConnection, sender: mpsc::Sender<CrdWatch>) -> Infallible {
    let mut policy = ListWatchPolicy::new(connection.settings.backoff);
    loop {
        let ended = match policy.step() {
            ReadStep::List => match crd_list::names(connection).await {
                Ok((version, names)) => {
                    policy.listed(version);
                    // `discovery_loop` keeps the receiver.
                    let _ = sender.send(CrdWatch::Up { names }).await;
                    continue;
                }
                Err(error) => error.into(),
            },
            ReadStep::Watch(since) => watch(connection, &since, &mut policy, &sender).await,
        };
        let reaction = policy.ended(&ended, clock::now().passed, &mut rand::rng());
        if let Some(error) = &ended.error {
            debug!(%error, after = ?reaction.pause, "watch of CustomResourceDefinitions failed: retrying");
            if reaction.new_state.is_some_and(ReadState::is_unreadable) {
                info!(
                    %error,
                    interval = ?connection.settings.discovery_interval,
                    "cannot watch CustomResourceDefinitions: polling for new kinds. Grant list and watch on \
                     customresourcedefinitions in the API group apiextensions.k8s.io"
                );
            }
        }
        if let Some(state) = reaction.new_state {
            let event = if state == ReadState::Readable { CrdWatch::Resumed } else { CrdWatch::Down };
            let _ = sender.send(event).await;
        }
        sleep(reaction.pause).await;
    }
}

async fn watch(
    connection: &ClusterConnection,
    since: &ResourceVersion,
    policy: &mut ListWatchPolicy,
    sender: &mpsc::Sender<CrdWatch>,
) -> ListWatchEnd {
    let request = |parameters: &WatchParams| Request::new(CRDS).watch_metadata(parameters, since.as_str());
    match Watch::start(&connection.client, &connection.settings, request).await {
        Ok(_) if !policy.opened() => ListWatchEnd { lasted: true, error: None },
        Ok(mut watch) => {
            let error = receive(&mut watch, policy, sender).await.err();
            ListWatchEnd { lasted: watch.has_lasted(), error }
        }
        Err(error) => error.into(),
    }
}

async fn receive(
    watch: &mut Watch,
    policy: &mut ListWatchPolicy,
    sender: &mpsc::Sender<CrdWatch>,
) -> Result<(), ReadError> {
    let plan = Plan::identity().with_all(object_decoder::ERROR_FIELDS);
    while watch.next().await? {
        let event = envelope::event(watch.line(), &plan);
        let event =
            event.map_err(|error| ReadError::rejected(format!("cannot decode a watch event: {error}")))?;
        let Some(object) = event.object else { continue };
        match &*event.type_ {
            "ERROR" => return Err(object_decoder::error(&object)),
            "BOOKMARK" => {}
            what => {
                let (name, exists) = (object.name().into(), what != "DELETED");
                let _ = sender.send(CrdWatch::Changed { name, exists }).await;
            }
        }
        policy.observe_version(&object_decoder::version(&object));
        if policy.watch_succeeded().is_some() {
            let _ = sender.send(CrdWatch::Resumed).await;
        }
    }
    Ok(())
}
