//! Follows one kind: lists it, watches it, and tells what it sees.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use bellwether_engine::{Kind, Lens, News, Served, Unreadable, Version};
use jiff::Timestamp;
use kube::{api::ListParams, core::Request};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use super::{
    Place,
    answer::{Watch, ask_all},
    course::{Course, Ended, Reaction, State, Step},
    glass::{Glass, Told},
    inventory::Kinds,
    tally::Pulse,
    trouble::Trouble,
};

/// How long to wait for another look at which kinds there are.
const LOOK: Duration = Duration::from_secs(30);

/// Follows one kind.
pub(super) struct Feed<Id> {
    id: Id,
    kind: Kind,
    place: Arc<Place>,
    news: mpsc::Sender<(Id, News)>,
    pulse: Arc<Pulse>,
    course: Course,
    said: Said,
}

/// What was last said of the kind as a whole.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    Served(Served),
    NotServed,
    /// It is served, and cannot be read.
    Unreadable,
}

impl<Id: Copy + Send + Sync + 'static> Feed<Id> {
    pub(super) fn new(
        id: Id,
        kind: Kind,
        place: Arc<Place>,
        news: mpsc::Sender<(Id, News)>,
        pulse: Arc<Pulse>,
    ) -> Self {
        let course = Course::new(place.settings.pauses);
        Self { id, kind, place, news, pulse, course, said: Said::Nothing }
    }

    /// Follows the kind until nobody listens any more. When the lens changes, everything is listed once more.
    pub(super) async fn run(mut self, mut lenses: watch::Receiver<Arc<Lens>>) {
        let news = self.news.clone();
        loop {
            let lens = Arc::clone(&lenses.borrow_and_update());
            tokio::select! {
                () = news.closed() => return,
                changed = lenses.changed() => match changed {
                    Ok(()) => self.course.start_over(),
                    Err(_) => return,
                },
                never = self.follow(&lens) => match never {},
            }
        }
    }

    /// It may be dropped at any time: what was not told by then is told when it is called again.
    async fn follow(&mut self, lens: &Arc<Lens>) -> Infallible {
        loop {
            let served = self.until_served().await;
            let glass = Glass::new(Arc::clone(lens), &served);
            self.read(&served, &glass).await;
        }
    }

    /// Waits until the kind is served, and says whether it is.
    async fn until_served(&mut self) -> Served {
        let mut kinds = self.place.inventory.kinds();
        loop {
            let found = kinds.borrow_and_update().as_ref().map(|kinds| kinds.get(&self.kind).cloned());
            match found {
                Some(Some(served)) => {
                    if !matches!(&self.said, Said::Served(before) if looks_alike(before, &served)) {
                        info!("the cluster serves {} in version {}", self.kind, served.version);
                        self.course.start_over();
                    }
                    self.say_served(&served).await;
                    return served;
                }
                Some(None) if self.place.inventory.is_silent(&self.kind.group) => {
                    if self.said != Said::Unreadable {
                        let why = "the server of its API group does not answer";
                        warn!("{} cannot be read: {why}; it is tried again", self.kind);
                        self.tell(News::Unreadable(Unreadable::Failing { why: why.into() })).await;
                        self.said = Said::Unreadable;
                        self.course.start_over();
                    }
                }
                Some(None) if self.said != Said::NotServed => {
                    info!("the cluster does not serve {}, which is followed as soon as it does", self.kind);
                    self.tell(News::Unreadable(Unreadable::NotServed)).await;
                    self.said = Said::NotServed;
                    self.course.start_over();
                }
                Some(None) | None => {}
            }
            // What sends lives as long as the place does.
            let _ = kinds.changed().await;
        }
    }

    async fn say_served(&mut self, served: &Served) {
        if !matches!(&self.said, Said::Served(before) if before == served) {
            self.tell(News::Served(served.clone())).await;
            self.said = Said::Served(served.clone());
        }
    }

    /// Lists and watches, until the kind may be served in another way, or no longer.
    async fn read(&mut self, served: &Served, glass: &Glass) {
        loop {
            let ended = match self.course.step() {
                Step::List => match self.list(served, glass).await {
                    Ok(()) => continue,
                    Err(trouble) => trouble.into(),
                },
                Step::Watch(since) => {
                    let (mut kinds, kind) = (self.place.inventory.kinds(), self.kind.clone());
                    tokio::select! {
                        ended = self.watch(served, glass, &since) => ended,
                        () = until_other(&mut kinds, &kind, served) => return,
                    }
                }
            };
            let is_absent = matches!(ended.trouble, Some(Trouble::Absent { .. }));
            if is_absent {
                let _ = timeout(LOOK, self.place.inventory.look_again()).await;
                if self.place.inventory.served(&self.kind).as_ref() != Some(served) {
                    return;
                }
            }
            let reaction = self.course.ended(&ended, Instant::now().into_std(), &mut rand::rng());
            self.react(&reaction, ended.trouble.as_ref(), served).await;
            sleep(reaction.pause).await;
            if is_absent {
                return;
            }
        }
    }

    /// Counts what went wrong, and says so where it matters.
    async fn react(&mut self, reaction: &Reaction, trouble: Option<&Trouble>, served: &Served) {
        let Some(trouble) = trouble else { return self.log_recovery(reaction.turned) };
        let kind = &self.kind;
        self.place.tally.errors.add(1);
        debug!("{kind} was not read: {trouble}");
        let unreadable = match reaction.turned {
            Some(State::Away) => {
                warn!(
                    "the cluster does not answer about {kind}, and what is known stays in force: {trouble}"
                );
                return;
            }
            Some(State::Forbidden) => {
                info!("{kind} may not be read; allow list and watch on {}: {trouble}", served.plural);
                Unreadable::Forbidden { resource: Arc::clone(&served.plural) }
            }
            Some(State::Failing) => {
                warn!("{kind} cannot be read, and that has not gone away by itself: {trouble}");
                Unreadable::Failing { why: trouble.to_string().into() }
            }
            Some(State::Well) | None => return,
        };
        self.tell(News::Unreadable(unreadable)).await;
        self.said = Said::Unreadable;
    }

    /// Lists all objects, and tells of each.
    async fn list(&mut self, served: &Served, glass: &Glass) -> Result<(), Trouble> {
        let place = Arc::clone(&self.place);
        place.tally.lists.add(1);
        place.tally.relists.add(usize::from(self.course.has_listed()));
        let request = Request::new(self.path(served));
        let mut parameters = ListParams::default().limit(place.settings.page_size);
        let mut version = None;
        loop {
            let question = request.list(&parameters);
            let answer = ask_all(&place.client, question, place.settings.answers_within).await?;
            let now = Timestamp::now();
            self.pulse.beat(now);
            let page = glass.page(&answer, now);
            let page = page.map_err(|error| Trouble::refused(format!("a list cannot be read: {error}")))?;
            drop(answer);
            if version.is_none() {
                let of_list = Version::new(&page.version);
                let was_put_back = self.course.accept(&of_list)?;
                self.say_served(served).await;
                if was_put_back {
                    self.tell(News::PutBack).await;
                }
                self.tell(News::Listing).await;
                version = Some(of_list);
            }
            for item in page.items {
                match item {
                    Some((name, seen)) => {
                        place.tally.read.add(1);
                        self.tell(News::Seen(name, seen)).await;
                    }
                    None => self.pass_over(),
                }
            }
            match page.rest {
                Some(rest) => parameters.continue_token = Some(rest),
                None => break,
            }
        }
        self.tell(News::Listed).await;
        let turned = version.and_then(|version| self.course.listed(version));
        self.log_recovery(turned);
        Ok(())
    }

    /// Watches what becomes of the objects since this version.
    async fn watch(&mut self, served: &Served, glass: &Glass, since: &Version) -> Ended {
        let place = Arc::clone(&self.place);
        place.tally.watches.add(1);
        let request = Request::new(self.path(served));
        match Watch::begin(&place, |parameters| request.watch(parameters, since.as_str())).await {
            Ok(_) if !self.course.opened() => Ended { lived: true, trouble: None },
            Ok(mut watch) => {
                let _open = place.tally.open_watches.one();
                let trouble = self.hear(&mut watch, glass).await.err();
                Ended { lived: watch.has_lived(), trouble }
            }
            Err(trouble) => trouble.into(),
        }
    }

    /// Tells what a watch tells.
    async fn hear(&mut self, watch: &mut Watch, glass: &Glass) -> Result<(), Trouble> {
        self.pulse.beat(Timestamp::now());
        while watch.next().await? {
            let now = Timestamp::now();
            self.pulse.beat(now);
            let told = glass.event(watch.line(), now);
            let told = told.map_err(|error| Trouble::refused(format!("an event cannot be read: {error}")))?;
            let version = match told {
                Told::Seen(name, seen) => {
                    let version = seen.facts.version.clone();
                    self.tell(News::Seen(name, seen)).await;
                    version
                }
                Told::Gone(name, version) => {
                    self.tell(News::Gone(name)).await;
                    version
                }
                Told::UpTo(version) => {
                    watch.speaks();
                    version
                }
                Told::Failed(trouble) => return Err(trouble),
                Told::Nonsense => {
                    self.pass_over();
                    continue;
                }
            };
            self.place.tally.read.add(1);
            self.course.told(&version);
            let turned = self.course.lived();
            self.log_recovery(turned);
        }
        Ok(())
    }

    /// The path of the objects.
    fn path(&self, served: &Served) -> String {
        served.path(&self.kind.group, self.place.settings.namespace.as_deref(), None)
    }

    async fn tell(&self, news: News) {
        if self.news.send((self.id, news)).await.is_err() {
            // Nobody listens any more: the task is about to end.
            pending::<()>().await;
        }
    }

    fn pass_over(&self) {
        self.place.tally.unreadable.add(1);
        warn!("the cluster has sent something as {} that is no object, and it is passed over", self.kind);
    }

    fn log_recovery(&self, turned: Option<State>) {
        if turned == Some(State::Well) {
            info!("{} is read again", self.kind);
        }
    }
}

/// Waits until the kind is served in another way. That it is missing in the inventory is not enough: if it is really gone,
/// the API server ends the watch, and otherwise there is no reason to.
async fn until_other(kinds: &mut watch::Receiver<Option<Arc<Kinds>>>, kind: &Kind, served: &Served) {
    let is_other = |kinds: &Option<Arc<Kinds>>| {
        kinds.as_ref().and_then(|kinds| kinds.get(kind)).is_some_and(|found| found != served)
    };
    if kinds.wait_for(is_other).await.is_err() {
        pending::<()>().await;
    }
}

/// Whether objects that were read in one way would look the same when read in the other.
fn looks_alike(one: &Served, other: &Served) -> bool {
    let way = |served: &Served| {
        (Arc::clone(&served.version), Arc::clone(&served.plural), served.namespaced, served.has_status)
    };
    way(one) == way(other)
}
