//! Keeps an inventory up to date: looks which kinds there are, and again when the definitions of kinds change.

use std::convert::Infallible;

use bellwether_engine::ResourceVersion;
use bellwether_model::Plan;
use bellwether_wire::{
    backoff::Backoff,
    decode, event_decoder,
    list_watch_policy::{Ended, ListWatchPolicy, ReadState, ReadStep},
    read_error::ReadError,
};
use kube::{
    api::{ListParams, WatchParams},
    core::Request,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    ClusterConnection,
    answer::{Watch, ask_all},
    discovery::discover,
    discovery_schedule::{CrdWatch, DiscoverySchedule},
};
use crate::clock;

/// Where kinds are defined.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Looks whenever there is a reason to.
pub(super) async fn discovery_loop(connection: &ClusterConnection) -> Infallible {
    let (tell, mut heard) = mpsc::channel(64);
    tokio::select! {
        never = listen(connection, tell) => never,
        never = look(connection, &mut heard) => never,
    }
}

async fn look(connection: &ClusterConnection, heard: &mut mpsc::Receiver<CrdWatch>) -> Infallible {
    let now = || Instant::now().into_std();
    let mut asked = connection.rest_mapper.asked();
    let mut schedule = DiscoverySchedule::new(connection.settings.looks_every, now());
    let mut backoff = Backoff::new(connection.settings.pauses);
    loop {
        tokio::select! {
            Some(heard) = heard.recv() => schedule.heard(heard, now()),
            Ok(()) = asked.changed() => schedule.asked(now()),
            () = sleep_until(schedule.next().into()) => {
                let answered = *asked.borrow_and_update();
                connection.tally.looks.add(1);
                match discover(&connection.client, connection.settings.answers_within).await {
                    Ok(groups) => {
                        backoff.reset();
                        connection.rest_mapper.found(&groups, answered);
                        schedule.looked(|definition| is_served(connection, definition), now());
                    }
                    Err(trouble) => {
                        connection.tally.errors.add(1);
                        if backoff.failures() == 0 {
                            warn!("the cluster does not say which kinds it serves, and is asked again: {trouble}");
                        }
                        schedule.failed(backoff.pause_or_as_asked(trouble.retry_after(), &mut rand::rng()), now());
                    }
                }
            }
        }
    }
}

/// Whether what this definition (`widgets.acme.io`) defines is served.
fn is_served(connection: &ClusterConnection, definition: &str) -> bool {
    definition
        .split_once('.')
        .is_some_and(|(plural, group)| connection.rest_mapper.has_resource(group, plural))
}

/// Listens to what becomes of the definitions of kinds.
async fn listen(connection: &ClusterConnection, tell: mpsc::Sender<CrdWatch>) -> Infallible {
    let mut course = ListWatchPolicy::new(connection.settings.pauses);
    loop {
        let ended = match course.step() {
            ReadStep::List => match present_version(connection).await {
                Ok(version) => {
                    course.listed(version);
                    // Whoever listens goes only together with us.
                    let _ = tell.send(CrdWatch::Up).await;
                    continue;
                }
                Err(trouble) => trouble.into(),
            },
            ReadStep::Watch(since) => watch(connection, &since, &mut course, &tell).await,
        };
        let reaction = course.ended(&ended, clock::now().passed, &mut rand::rng());
        if let Some(trouble) = &ended.trouble {
            debug!("the watch of the definitions of kinds has ended: {trouble}");
            if reaction.turned.is_some_and(ReadState::is_unreadable) {
                let every = connection.settings.looks_every.as_secs();
                info!(
                    "new kinds are looked for every {every} s only; to have them noticed at once, allow list and watch \
                     on customresourcedefinitions.apiextensions.k8s.io ({trouble})"
                );
                let _ = tell.send(CrdWatch::Down).await;
            }
        }
        sleep(reaction.pause).await;
    }
}

/// The version that the definitions of kinds have now.
async fn present_version(connection: &ClusterConnection) -> Result<ResourceVersion, ReadError> {
    let question = Request::new(DEFINITIONS).list_metadata(&ListParams::default().limit(1));
    let answer = ask_all(&connection.client, question, connection.settings.answers_within).await?;
    let page = decode::page(&answer, &Plan::identity(), |_| ());
    let page = page.map_err(|error| ReadError::rejected(format!("a list cannot be read: {error}")))?;
    Ok(ResourceVersion::new(&page.version))
}

/// Watches the definitions of kinds.
async fn watch(
    connection: &ClusterConnection,
    since: &ResourceVersion,
    course: &mut ListWatchPolicy,
    tell: &mpsc::Sender<CrdWatch>,
) -> Ended {
    let question =
        |parameters: &WatchParams| Request::new(DEFINITIONS).watch_metadata(parameters, since.as_str());
    match Watch::begin(connection, question).await {
        Ok(_) if !course.opened() => Ended { lived: true, trouble: None },
        Ok(mut watch) => {
            let trouble = hear(&mut watch, course, tell).await.err();
            Ended { lived: watch.has_lived(), trouble }
        }
        Err(trouble) => trouble.into(),
    }
}

async fn hear(
    watch: &mut Watch,
    course: &mut ListWatchPolicy,
    tell: &mpsc::Sender<CrdWatch>,
) -> Result<(), ReadError> {
    let plan = Plan::identity().with_all(event_decoder::ERROR_FIELDS);
    while watch.next().await? {
        let event = decode::event(watch.line(), &plan);
        let event =
            event.map_err(|error| ReadError::rejected(format!("an event cannot be read: {error}")))?;
        let Some(object) = event.object else { continue };
        match &*event.what {
            "ERROR" => return Err(event_decoder::error(&object)),
            "BOOKMARK" => {}
            what => {
                let (name, there) = (object.name().into(), what != "DELETED");
                let _ = tell.send(CrdWatch::Changed { name, there }).await;
            }
        }
        course.told(&event_decoder::version(&object));
        course.lived();
    }
    Ok(())
}
