//! What is to be seen in a cluster, or in files that stand for one: the engine is shown all that it asks for, once.

mod cluster;
mod eye;
mod files;
mod live;
mod meant;
mod twice;
mod word;

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Result, bail};
use bellwether_engine::{
    Claim, Dialect, Effect, Facts, FeedId, Group, Kind, Lens, Name, News, Served, Source, Sources, Unreadable,
};
use bellwether_health::{Context, Evidence};
use bellwether_model::Object;
use jiff::Timestamp;

use crate::cli::{Place, Scene};

pub(crate) use cluster::ClusterSight;
pub(crate) use eye::View;
use eye::{Eye, rollup};
use files::Files;
pub(crate) use files::is_of_the_cluster;
pub(crate) use live::Live;
pub(crate) use meant::Meant;
use meant::views;

/// What is to be seen, and the engines that have seen it.
pub(crate) struct Sight {
    /// The one that sees the Applications, unless a Rollup is meant.
    eye: Eye,
    /// The one that sees Rollups, where the other one sees one namespace only.
    far: Option<Eye>,
    pub(crate) now: Timestamp,
    origin: Origin,
    /// The one namespace that is meant; none for all.
    scope: Option<String>,
    /// What could not be read, a sentence each.
    pub(crate) problems: Vec<String>,
    /// What else should be known of what was seen.
    pub(crate) notes: Vec<String>,
    /// Why there are no Rollups to be seen. Nobody is told who did not ask for one.
    no_rollups: Option<String>,
}

/// Where the objects are.
enum Origin {
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
    /// Looks at all that the groups speak of which are meant.
    pub(crate) fn open(scene: &Scene, meant: Meant<'_>) -> Result<Self> {
        let mut sight = Self::at(&scene.place, scene.now, meant)?;
        sight.look()?;
        Ok(sight)
    }

    /// The same, with nothing looked at yet.
    pub(crate) fn at(place: &Place, now: Option<Timestamp>, meant: Meant<'_>) -> Result<Self> {
        let all_namespaces = matches!(meant, Meant::All { all_namespaces: true });
        let mut sight = Self::before(place, now, all_namespaces, View::of_all(None))?;
        if let (Origin::Cluster(_), Some(scope)) = (&sight.origin, sight.scope.clone()) {
            let (view, far) = views(meant, scope);
            (sight.eye, sight.far) = (Eye::new(view), far.map(Eye::new));
        }
        Ok(sight)
    }

    /// Stands before a place, with nothing looked at yet.
    fn before(place: &Place, now: Option<Timestamp>, all_namespaces: bool, view: View) -> Result<Self> {
        let now = now.unwrap_or_else(Timestamp::now);
        let (origin, scope, problems, notes) = if place.from.is_empty() {
            let cluster = ClusterSight::open(place, all_namespaces)?;
            let scope = (!all_namespaces).then(|| cluster.namespace().to_owned());
            (Origin::Cluster(Box::new(cluster)), scope, Vec::new(), Vec::new())
        } else {
            let files = Files::open(&place.from, place.namespace.as_deref(), now);
            let (problems, notes) = (files.problems(), files.notes());
            // What is in files is what was meant.
            (Origin::Files(files), place.namespace.clone(), problems, notes)
        };
        Ok(Self { eye: Eye::new(view), far: None, now, origin, scope, problems, notes, no_rollups: None })
    }

    /// Shows the engine these of our own kinds, and nothing of what they speak of.
    pub(crate) fn glimpse(place: &Place, now: Option<Timestamp>, own: &[Kind]) -> Result<Self> {
        let mut sight = Self::before(place, now, false, View::of(own, None))?;
        let effects = sight.eye.open(sight.now);
        let asked = requests(&sight.origin, &mut sight.eye, effects, sight.now);
        let scope = sight.scope.clone();
        let news = sight.show(&asked, scope.as_deref())?;
        sight.eye.see(sight.now, news);
        Ok(sight)
    }

    /// Shows the engines what they ask for, until they ask for no more.
    pub(crate) fn look(&mut self) -> Result<()> {
        self.is_worth_it()?;
        self.eye = self.looked(self.eye.view.clone())?;
        let far = self.far.take().map(|eye| self.looked(eye.view));
        self.far = far.transpose()?;
        Ok(())
    }

    /// An engine that was shown all that it asked for.
    fn looked(&mut self, view: View) -> Result<Eye> {
        let mut eye = Eye::new(view);
        let mut effects = eye.open(self.now);
        loop {
            let asked = requests(&self.origin, &mut eye, effects, self.now);
            if asked.is_empty() {
                self.problems.extend(eye.engine.cyclic_groups().map(|group| {
                    let (kind, name) = (group.kind.kind(), &group.name);
                    format!(
                        "nobody can tell how {} {name} is, because it counts groups that count one another: leave one \
                         of them out",
                        kind.kind
                    )
                }));
                return Ok(eye);
            }
            let news = self.show(&asked, eye.view.namespace.as_deref())?;
            effects = eye.see(self.now, news);
        }
    }

    /// What there is to be said about kinds that an engine follows.
    fn show(
        &mut self,
        requested: &BTreeMap<Kind, (FeedId, Arc<Lens>)>,
        namespace: Option<&str>,
    ) -> Result<Vec<(FeedId, News)>> {
        let asked =
            requested.iter().map(|(kind, (_, lens))| Asked { kind: kind.clone(), lens: Arc::clone(lens) });
        let mut shown = Vec::new();
        for (kind, news) in self.answer(asked.collect(), namespace)? {
            self.note(&kind, &news);
            if let Some((feed, _)) = requested.get(&kind) {
                shown.extend(news.into_iter().map(|news| (*feed, news)));
            }
        }
        Ok(shown)
    }

    /// What there is of some kinds, in one namespace or in all. What is in files is all that there is.
    fn answer(&self, asked: Vec<Asked>, namespace: Option<&str>) -> Result<Vec<(Kind, Vec<News>)>> {
        match &self.origin {
            Origin::Cluster(cluster) => cluster.answer(asked, namespace),
            Origin::Files(files) => Ok(files.answer(asked)),
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
        let is_read = is_group(kind) || *kind == Kind::own("HealthRule");
        for news in news.iter().filter(|_| is_read) {
            if let News::Seen(name, seen) = news
                && seen.own.is_none()
            {
                let problem = format!("{} {name} makes no sense: bellwether lint says why", kind.kind);
                // A kind may be asked for more than once.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
        if is_application(kind)
            && let Some(News::Unreadable(unreadable)) = news.last()
        {
            match (unreadable, &self.origin) {
                (Unreadable::NotServed | Unreadable::NotGiven, _) => {}
                (Unreadable::Forbidden { .. }, Origin::Cluster(cluster)) => {
                    self.problems.push(cluster.forbidden(kind, self.scope.as_deref()));
                }
                (unreadable, _) => self.problems.push(format!("{kind} cannot be read: {unreadable}")),
            }
        }
        if kind.is_rollup()
            && let (Some(News::Unreadable(unreadable)), Origin::Cluster(cluster)) =
                (news.last(), &self.origin)
        {
            match unreadable {
                Unreadable::NotServed | Unreadable::NotGiven => {
                    self.no_rollups = Some(cluster.lacks("Rollups"));
                }
                // Rollups are of the whole cluster. Whoever may look at a namespace only lacks nothing that is theirs.
                Unreadable::Forbidden { .. } => self.no_rollups = Some(cluster.forbidden_everywhere(kind)),
                Unreadable::Failing { .. } | Unreadable::NotConnected => {
                    self.problems.push(format!("{kind} cannot be read: {unreadable}"));
                }
            }
        }
    }

    /// Whether there can be a group at all.
    fn is_worth_it(&self) -> Result<()> {
        if let Origin::Cluster(cluster) = &self.origin
            && !APPLICATIONS.iter().any(|dialect| cluster.serves(&dialect.kind()))
            && !cluster.serves(&rollup())
        {
            bail!("{}", cluster.lacks("Applications"));
        }
        Ok(())
    }

    /// The namespace that is meant where none is named.
    pub(crate) fn namespace(&self) -> &str {
        match &self.origin {
            Origin::Cluster(cluster) => cluster.namespace(),
            Origin::Files(files) => files.namespace(),
        }
    }

    /// Where is looked, in words.
    pub(crate) fn whereabouts(&self) -> String {
        match (&self.origin, &self.scope) {
            (Origin::Cluster(_), Some(namespace)) => format!("in namespace {namespace}"),
            (Origin::Cluster(_), None) => "in any namespace".to_owned(),
            (Origin::Files(files), Some(namespace)) => format!("of namespace {namespace} in {files}"),
            (Origin::Files(files), None) => format!("in {files}"),
        }
    }

    /// The kind and the name that a person means by `deploy/web`.
    pub(crate) fn object_named(&self, word: &str) -> Result<(Kind, Name)> {
        let (kind, name) = word::split(word)?;
        match &self.origin {
            Origin::Cluster(cluster) => cluster.object_named(kind, name),
            Origin::Files(files) => files.object_named(kind, name),
        }
    }

    /// The name of an object of which these are known. There need not be one.
    pub(crate) fn name_of(&self, kind: &Kind, namespace: &str, name: &str) -> Name {
        let is_namespaced = match &self.origin {
            Origin::Cluster(cluster) => cluster.is_namespaced(kind),
            Origin::Files(files) => files.is_namespaced(kind),
        };
        Name::new(if is_namespaced { namespace } else { "" }, name)
    }

    /// All objects of these kinds that can be read, judged as the engine judges, and why the other kinds cannot be.
    /// In the namespace that is meant, unless they may be anywhere.
    pub(crate) fn listed(&self, kinds: &[Kind], anywhere: bool) -> Result<Listed> {
        let asked = kinds.iter().map(|kind| Asked { kind: kind.clone(), lens: Arc::new(self.lens(kind)) });
        let mut listed = Listed::default();
        let namespace = self.scope.as_deref().filter(|_| !anywhere);
        for (kind, news) in self.answer(asked.collect(), namespace)? {
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
        match &self.origin {
            Origin::Cluster(cluster) => cluster.with(kind, name, make),
            Origin::Files(files) => Ok(files.with(kind, name, make)),
        }
    }

    /// The fields on which the verdict on an object rests. Where it cannot be read any more, there are none.
    pub(crate) fn evidence(&self, kind: &Kind, name: &Name) -> Vec<Evidence> {
        let explain = |object: &Object<'_>| bellwether_health::explain(object, &self.context()).evidence;
        self.with(kind, name, &explain).ok().flatten().unwrap_or_default()
    }

    /// The rules and the time by which objects are judged.
    pub(crate) fn context(&self) -> Context<'_> {
        Context { rules: Some(self.eye.engine.rules()), ..Context::at(self.now) }
    }

    /// The lens through which the engine sees a kind.
    pub(crate) fn lens(&self, kind: &Kind) -> Lens {
        self.eye.engine.lens(kind)
    }

    /// What the Applications of its namespace and the Rollups have to do with an object.
    pub(crate) fn claims(&self, kind: &Kind, name: &Name, facts: &Facts) -> Vec<Claim> {
        self.eye.engine.claims(kind, name, facts)
    }

    /// The flags by which our own commands look at the same place, and those of kubectl; kubectl reads no files.
    pub(crate) fn flags(&self) -> Flags {
        match &self.origin {
            Origin::Cluster(cluster) => {
                let flags = cluster.flags();
                Flags { own: flags.clone(), kubectl: Some(flags) }
            }
            Origin::Files(files) => Flags { own: files.flags(), kubectl: None },
        }
    }

    /// The cluster, if it is one.
    pub(crate) fn cluster(&self) -> Option<&ClusterSight> {
        match &self.origin {
            Origin::Cluster(cluster) => Some(cluster),
            Origin::Files(_) => None,
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
        for condition in &mut group.conditions {
            condition.since.take_if(is_invented);
        }
    }
}

/// The kinds that an engine has asked for and has not been shown yet. If a kind is asked for twice, it is the second lens
/// that counts.
struct Requests<'o> {
    origin: &'o Origin,
    asked: BTreeMap<Kind, (FeedId, Arc<Lens>)>,
}

impl Source for Requests<'_> {
    fn follow(&mut self, feed: FeedId, kind: &Kind, lens: Arc<Lens>) {
        self.asked.insert(kind.clone(), (feed, lens));
    }

    fn leave(&mut self, feed: FeedId) {
        self.asked.retain(|_, (asked, _)| *asked != feed);
    }

    fn served(&self, kind: &Kind) -> Option<Served> {
        match self.origin {
            Origin::Cluster(cluster) => cluster.served(kind),
            Origin::Files(files) => files.served(kind),
        }
    }
}

/// What an engine asks for in its effects: nothing is listed before all of it is known, so that it is listed at once.
fn requests(
    origin: &Origin,
    eye: &mut Eye,
    effects: Vec<Effect>,
    now: Timestamp,
) -> BTreeMap<Kind, (FeedId, Arc<Lens>)> {
    let mut requests = Requests { origin, asked: BTreeMap::new() };
    // What is not about reading is not for those who only look.
    Sources::hub(&mut requests).route(effects, |unread| eye.step(now, unread));
    requests.asked
}

/// The APIs that Applications are written in.
pub(crate) const APPLICATIONS: [Dialect; 2] = [Dialect::Bellwether, Dialect::AppK8sIo];

/// Whether objects of a kind are groups of others.
pub(crate) fn is_group(kind: &Kind) -> bool {
    is_application(kind) || kind.is_rollup()
}

fn is_application(kind: &Kind) -> bool {
    APPLICATIONS.iter().any(|dialect| dialect.kind() == *kind)
}
