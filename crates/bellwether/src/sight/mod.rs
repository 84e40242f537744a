//! What is to be seen in a cluster, or in files that stand for one: the engine is shown all that it asks for, once.

mod cluster;
mod files;
mod live;
mod nested;
mod word;

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Result, bail};
use bellwether_engine::{
    Claim, Dialect, Effect, Engine, Event, Facts, FeedId, Group, Kind, Lens, Name, News, Unreadable,
};
use bellwether_health::{Context, Evidence};
use bellwether_model::Object;
use jiff::Timestamp;

use crate::cli::{Place, Scene};

pub(crate) use cluster::ClusterSight;
use files::Files;
pub(crate) use files::is_of_the_cluster;
pub(crate) use live::Live;
use nested::Nested;

/// What is to be seen, and the engine that has seen it.
pub(crate) struct Sight {
    engine: Engine,
    pub(crate) now: Timestamp,
    source: Source,
    /// The one namespace that is meant; none for all.
    scope: Option<String>,
    /// What could not be read, a sentence each.
    pub(crate) problems: Vec<String>,
    /// What else should be known of what was seen.
    pub(crate) notes: Vec<String>,
}

/// Where the objects are.
enum Source {
    Cluster(Box<ClusterSight>),
    Files(Files),
}

/// A kind that somebody wants to see.
struct Asked {
    kind: Kind,
    lens: Arc<Lens>,
}

/// An object that was seen beside those that the engine knows.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) kind: Kind,
    pub(crate) name: Name,
    pub(crate) facts: Facts,
}

/// The objects of some kinds.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) objects: Vec<Beside>,
    /// The kinds that cannot be read, and why.
    pub(crate) unreadable: Vec<(Kind, Unreadable)>,
}

impl Sight {
    /// Looks at all that Applications speak of, in one namespace or in all.
    pub(crate) fn open(scene: &Scene, all_namespaces: bool) -> Result<Self> {
        let mut sight = Self::at(&scene.place, scene.now, all_namespaces)?;
        sight.look()?;
        Ok(sight)
    }

    /// The same, with nothing looked at yet.
    pub(crate) fn at(place: &Place, now: Option<Timestamp>, all_namespaces: bool) -> Result<Self> {
        let now = now.unwrap_or_else(Timestamp::now);
        let (source, scope, problems) = if place.from.is_empty() {
            let cluster = ClusterSight::open(place, all_namespaces)?;
            let scope = (!all_namespaces).then(|| cluster.namespace().to_owned());
            (Source::Cluster(Box::new(cluster)), scope, Vec::new())
        } else {
            let files = Files::open(&place.from, place.namespace.as_deref(), now);
            let problems = files.problems();
            // What is in files is what was meant.
            (Source::Files(files), place.namespace.clone(), problems)
        };
        let engine = Engine::new().with_app_k8s_io();
        Ok(Self { engine, now, source, scope, problems, notes: Vec::new() })
    }

    /// Shows the engine these of our own kinds, and nothing of what they speak of.
    pub(crate) fn glimpse(place: &Place, now: Option<Timestamp>, own: &[Kind]) -> Result<Self> {
        let mut sight = Self::at(place, now, false)?;
        let followed = sight.engine.step(sight.now, []).into_iter().filter_map(followed);
        let (wanted, unwanted): (BTreeMap<_, _>, BTreeMap<_, _>) =
            followed.partition(|(kind, _)| own.contains(kind));
        let events = sight.show(&wanted)?;
        let unseen =
            unwanted.values().map(|(feed, _)| Event::Feed(*feed, News::Unreadable(Unreadable::NotGiven)));
        sight.engine.step(sight.now, events.into_iter().chain(unseen));
        Ok(sight)
    }

    /// Shows the engine what it asks for, until it asks for no more.
    pub(crate) fn look(&mut self) -> Result<()> {
        let mut nested = Nested::default();
        let mut effects = self.engine.step(self.now, []);
        loop {
            // If a kind is asked for twice, it is the second lens that counts.
            let asked: BTreeMap<_, _> = effects.into_iter().filter_map(followed).collect();
            if asked.is_empty() {
                return Ok(());
            }
            for (kind, (feed, _)) in &asked {
                nested.follow(*feed, kind);
            }
            let events = self.show(&asked)?;
            for event in &events {
                if let Event::Feed(feed, news) = event {
                    nested.hear(*feed, news);
                }
            }
            self.is_worth_it()?;
            effects = self.engine.step(self.now, events);
            effects.extend(nested.settle(&mut self.engine, self.now));
        }
    }

    /// What there is to be said about kinds that the engine follows.
    fn show(&mut self, followed: &BTreeMap<Kind, (FeedId, Arc<Lens>)>) -> Result<Vec<Event>> {
        let asked =
            followed.iter().map(|(kind, (_, lens))| Asked { kind: kind.clone(), lens: Arc::clone(lens) });
        let mut events = Vec::new();
        for (kind, news) in self.answer(asked.collect())? {
            self.note(&kind, &news);
            if let Some((feed, _)) = followed.get(&kind) {
                events.extend(news.into_iter().map(|news| Event::Feed(*feed, news)));
            }
        }
        Ok(events)
    }

    fn answer(&self, asked: Vec<Asked>) -> Result<Vec<(Kind, Vec<News>)>> {
        match &self.source {
            Source::Cluster(cluster) => cluster.answer(asked),
            Source::Files(files) => Ok(files.answer(asked)),
        }
    }

    /// Says so if something could not be read that all verdicts depend on.
    fn note(&mut self, kind: &Kind, news: &[News]) {
        if *kind == Kind::own("HealthRule")
            && let Some(News::Unreadable(
                unreadable @ (Unreadable::Forbidden { .. } | Unreadable::Failing { .. }),
            )) = news.last()
        {
            self.notes.push(format!(
                "HealthRules cannot be read, so objects are judged without them: {unreadable}"
            ));
        }
        let is_read = is_application(kind) || *kind == Kind::own("HealthRule");
        for news in news.iter().filter(|_| is_read) {
            if let News::Seen(name, seen) = news
                && seen.own.is_none()
            {
                self.problems.push(format!("{} {name} makes no sense: bellwether lint says why", kind.kind));
            }
        }
        if is_application(kind)
            && let Some(News::Unreadable(unreadable)) = news.last()
        {
            match (unreadable, &self.source) {
                (Unreadable::NotServed | Unreadable::NotGiven, _) => {}
                (Unreadable::Forbidden { .. }, Source::Cluster(cluster)) => {
                    self.problems.push(cluster.forbidden(kind, self.scope.as_deref()));
                }
                (unreadable, _) => self.problems.push(format!("{kind} cannot be read: {unreadable}")),
            }
        }
    }

    /// Whether there can be an Application at all.
    fn is_worth_it(&self) -> Result<()> {
        if let Source::Cluster(cluster) = &self.source
            && !APPLICATIONS.iter().any(|dialect| cluster.serves(&dialect.kind()))
        {
            bail!(
                "the cluster at {} does not know Applications yet: install them with bellwether crds | kubectl apply \
                 --server-side -f -",
                cluster.address()
            );
        }
        Ok(())
    }

    /// The groups that are meant, by their names.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups = self.engine.groups();
        groups.retain(|group| self.scope.as_ref().is_none_or(|scope| *group.name.namespace == **scope));
        undated(&mut groups, self.now, Timestamp::MAX);
        groups
    }

    /// The group that a person means by `wordpress`, `application/wordpress` or `blog/wordpress`. It must be there.
    pub(crate) fn group(&self, word: &str) -> Result<Group> {
        let (namespace, kind, name) = word::application(word);
        if let (Some(namespace), Some(scope)) = (namespace, &self.scope)
            && namespace != scope
        {
            bail!("{word:?} is not in namespace {scope}: choose the namespace with -n {namespace}");
        }
        let is_meant = |group: &Group| {
            *group.name.name == *name
                && namespace.is_none_or(|namespace| *group.name.namespace == *namespace)
                && kind.is_none_or(|kind| word::means(kind, &group.kind.kind, &group.kind.group))
        };
        let mut found: Vec<_> = self.groups().into_iter().filter(is_meant).collect();
        match found.len() {
            1 => Ok(found.remove(0)),
            0 if self.problems.is_empty() => bail!("there is no Application {word:?} {}", self.whereabouts()),
            0 => bail!("{}", self.problems.join("; ")),
            _ => {
                let names = found.iter().map(|group| {
                    format!("{}/{name} in {}", group.kind.to_string().to_lowercase(), group.name.namespace)
                });
                bail!(
                    "{name:?} may be {}: say which, with -n if need be",
                    names.collect::<Vec<_>>().join(" or ")
                )
            }
        }
    }

    /// The namespace that is meant where none is named.
    pub(crate) fn namespace(&self) -> &str {
        match &self.source {
            Source::Cluster(cluster) => cluster.namespace(),
            Source::Files(files) => files.namespace(),
        }
    }

    /// Where is looked, in words.
    pub(crate) fn whereabouts(&self) -> String {
        match (&self.source, &self.scope) {
            (Source::Cluster(_), Some(namespace)) => format!("in namespace {namespace}"),
            (Source::Cluster(_), None) => "in any namespace".to_owned(),
            (Source::Files(files), Some(namespace)) => format!("of namespace {namespace} in {files}"),
            (Source::Files(files), None) => format!("in {files}"),
        }
    }

    /// The kind and the name that a person means by `deploy/web`.
    pub(crate) fn object_named(&self, word: &str) -> Result<(Kind, Name)> {
        let (kind, name) = word::split(word)?;
        match &self.source {
            Source::Cluster(cluster) => cluster.object_named(kind, name),
            Source::Files(files) => files.object_named(kind, name),
        }
    }

    /// All objects of these kinds that can be read, judged as the engine judges, and why the other kinds cannot be.
    pub(crate) fn listed(&self, kinds: &[Kind]) -> Result<Listed> {
        let asked =
            kinds.iter().map(|kind| Asked { kind: kind.clone(), lens: Arc::new(self.engine.lens(kind)) });
        let mut listed = Listed::default();
        for (kind, news) in self.answer(asked.collect())? {
            for news in news {
                match news {
                    News::Seen(name, seen) => {
                        listed.objects.push(Beside { kind: kind.clone(), name, facts: seen.facts });
                    }
                    News::Unreadable(why) => listed.unreadable.push((kind.clone(), why)),
                    _ => {}
                }
            }
        }
        Ok(listed)
    }

    /// What somebody makes of an object, if it is there.
    pub(crate) fn with<R: Send>(
        &self,
        kind: &Kind,
        name: &Name,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Option<R>> {
        match &self.source {
            Source::Cluster(cluster) => cluster.with(kind, name, make),
            Source::Files(files) => Ok(files.with(kind, name, make)),
        }
    }

    /// The fields on which the verdict on an object rests. Where it cannot be read any more, there are none.
    pub(crate) fn evidence(&self, kind: &Kind, name: &Name) -> Vec<Evidence> {
        let explain = |object: &Object<'_>| bellwether_health::explain(object, &self.context()).evidence;
        self.with(kind, name, &explain).ok().flatten().unwrap_or_default()
    }

    /// The rules and the time by which objects are judged.
    pub(crate) fn context(&self) -> Context<'_> {
        Context { rules: Some(self.engine.rules()), ..Context::at(self.now) }
    }

    /// The lens through which the engine sees a kind.
    pub(crate) fn lens(&self, kind: &Kind) -> Lens {
        self.engine.lens(kind)
    }

    /// What the Applications of its namespace have to do with an object.
    pub(crate) fn claims(&self, kind: &Kind, name: &Name, facts: &Facts) -> Vec<Claim> {
        self.engine.claims(kind, name, facts)
    }

    /// The flags by which our own commands look at the same place, and those of kubectl; kubectl reads no files.
    pub(crate) fn flags(&self) -> Flags {
        match &self.source {
            Source::Cluster(cluster) => {
                let flags = cluster.flags();
                Flags { own: flags.clone(), kubectl: Some(flags) }
            }
            Source::Files(files) => Flags { own: format!(" --from {files}"), kubectl: None },
        }
    }

    /// The cluster, if it is one.
    pub(crate) fn cluster(&self) -> Option<&ClusterSight> {
        match &self.source {
            Source::Cluster(cluster) => Some(cluster),
            Source::Files(_) => None,
        }
    }
}

/// How to look at the same place once more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) own: String,
    pub(crate) kubectl: Option<String>,
}

/// Drops the times from a first look: whoever looks does not know since when something is so, only that it is not since
/// they looked.
fn undated(groups: &mut [Group], begun: Timestamp, ended: Timestamp) {
    let begun = Timestamp::from_second(begun.as_second()).unwrap_or(begun);
    let is_invented = |since: &mut Timestamp| (begun..=ended).contains(since);
    for group in groups {
        group.since.take_if(is_invented);
        for member in &mut group.members {
            member.since.take_if(is_invented);
        }
    }
}

fn followed(effect: Effect) -> Option<(Kind, (FeedId, Arc<Lens>))> {
    match effect {
        Effect::Follow { feed, kind, lens, .. } => Some((kind, (feed, lens))),
        Effect::Leave { .. } | Effect::Want(..) | Effect::Record(_) | Effect::Warn(_) | Effect::Wake(_) => {
            None
        }
    }
}

/// The APIs that Applications are written in.
pub(crate) const APPLICATIONS: [Dialect; 2] = [Dialect::Bellwether, Dialect::AppK8sIo];

fn is_application(kind: &Kind) -> bool {
    APPLICATIONS.iter().any(|dialect| dialect.kind() == *kind)
}
