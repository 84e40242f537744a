//! Keeps an inventory up to date: looks which kinds there are, and again when the definitions of kinds change.

use std::convert::Infallible;

use bellwether_engine::Version;
use bellwether_model::Plan;
use bellwether_wire::{
    backoff::Backoff,
    course::{Course, Ended, State, Step},
    decode, glass,
    trouble::Trouble,
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
    Place,
    answer::{Watch, ask_all},
    discovery::discover,
    lookout::{Heard, Lookout},
};
use crate::clock;

/// Where kinds are defined.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Looks whenever there is a reason to.
pub(super) async fn scout(place: &Place) -> Infallible {
    let (tell, mut heard) = mpsc::channel(64);
    tokio::select! {
        never = listen(place, tell) => never,
        never = look(place, &mut heard) => never,
    }
}

async fn look(place: &Place, heard: &mut mpsc::Receiver<Heard>) -> Infallible {
    let now = || Instant::now().into_std();
    let mut asked = place.inventory.asked();
    let mut lookout = Lookout::new(place.settings.looks_every, now());
    let mut backoff = Backoff::new(place.settings.pauses);
    loop {
        tokio::select! {
            Some(heard) = heard.recv() => lookout.heard(heard, now()),
            Ok(()) = asked.changed() => lookout.asked(now()),
            () = sleep_until(lookout.next().into()) => {
                let answered = *asked.borrow_and_update();
                place.tally.looks.add(1);
                match discover(&place.client, place.settings.answers_within).await {
                    Ok(groups) => {
                        backoff.reset();
                        place.inventory.found(&groups, answered);
                        lookout.looked(|definition| is_served(place, definition), now());
                    }
                    Err(trouble) => {
                        place.tally.errors.add(1);
                        if backoff.failures() == 0 {
                            warn!("the cluster does not say which kinds it serves, and is asked again: {trouble}");
                        }
                        lookout.failed(backoff.pause_or_as_asked(trouble.come_back(), &mut rand::rng()), now());
                    }
                }
            }
        }
    }
}

/// Whether what this definition (`widgets.acme.io`) defines is served.
fn is_served(place: &Place, definition: &str) -> bool {
    definition.split_once('.').is_some_and(|(plural, group)| place.inventory.has_resource(group, plural))
}

/// Listens to what becomes of the definitions of kinds.
async fn listen(place: &Place, tell: mpsc::Sender<Heard>) -> Infallible {
    let mut course = Course::new(place.settings.pauses);
    loop {
        let ended = match course.step() {
            Step::List => match present_version(place).await {
                Ok(version) => {
                    course.listed(version);
                    // Whoever listens goes only together with us.
                    let _ = tell.send(Heard::Hears).await;
                    continue;
                }
                Err(trouble) => trouble.into(),
            },
            Step::Watch(since) => watch(place, &since, &mut course, &tell).await,
        };
        let reaction = course.ended(&ended, clock::now().passed, &mut rand::rng());
        if let Some(trouble) = &ended.trouble {
            debug!("the watch of the definitions of kinds has ended: {trouble}");
            if reaction.turned.is_some_and(State::is_unreadable) {
                let every = place.settings.looks_every.as_secs();
                info!(
                    "new kinds are looked for every {every} s only; to have them noticed at once, allow list and watch \
                     on customresourcedefinitions.apiextensions.k8s.io ({trouble})"
                );
                let _ = tell.send(Heard::Deaf).await;
            }
        }
        sleep(reaction.pause).await;
    }
}

/// The version that the definitions of kinds have now.
async fn present_version(place: &Place) -> Result<Version, Trouble> {
    let question = Request::new(DEFINITIONS).list_metadata(&ListParams::default().limit(1));
    let answer = ask_all(&place.client, question, place.settings.answers_within).await?;
    let page = decode::page(&answer, &Plan::identity(), |_| ());
    let page = page.map_err(|error| Trouble::refused(format!("a list cannot be read: {error}")))?;
    Ok(Version::new(&page.version))
}

/// Watches the definitions of kinds.
async fn watch(place: &Place, since: &Version, course: &mut Course, tell: &mpsc::Sender<Heard>) -> Ended {
    let question =
        |parameters: &WatchParams| Request::new(DEFINITIONS).watch_metadata(parameters, since.as_str());
    match Watch::begin(place, question).await {
        Ok(_) if !course.opened() => Ended { lived: true, trouble: None },
        Ok(mut watch) => {
            let trouble = hear(&mut watch, course, tell).await.err();
            Ended { lived: watch.has_lived(), trouble }
        }
        Err(trouble) => trouble.into(),
    }
}

async fn hear(watch: &mut Watch, course: &mut Course, tell: &mpsc::Sender<Heard>) -> Result<(), Trouble> {
    let plan = Plan::identity().with_all(glass::OF_ERRORS);
    while watch.next().await? {
        let event = decode::event(watch.line(), &plan);
        let event = event.map_err(|error| Trouble::refused(format!("an event cannot be read: {error}")))?;
        let Some(object) = event.object else { continue };
        match &*event.what {
            "ERROR" => return Err(glass::error(&object)),
            "BOOKMARK" => {}
            what => {
                let (name, there) = (object.name().into(), what != "DELETED");
                let _ = tell.send(Heard::Changed { name, there }).await;
            }
        }
        course.told(&glass::version(&object));
        course.lived();
    }
    Ok(())
}
