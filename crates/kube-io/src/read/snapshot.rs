//! A look at a cluster as it is now, without following it: for whoever asks once and is gone.

use std::{collections::BTreeSet, fmt, sync::Arc};

use bellwether_engine::{FeedEvent, GroupKind, Lens, NamespacedName, Served, Unreadable};
use bellwether_wire::{Verb, event_decoder::EventDecoder, read_error::ReadError};
use jiff::Timestamp;
use kube::{Client, api::ListParams, core::Request};

use super::{
    answer::ask_all,
    discovery::{Group, discover},
    rest_mapper::{Kinds, is_silent, kind_of, merge_groups},
    settings::Settings,
};

/// A cluster that is looked at. Which kinds there are was asked when this was made.
pub struct ClusterSnapshot {
    client: Client,
    settings: Settings,
    kinds: Kinds,
    groups: Vec<Group>,
}

/// There is no kind of this name, or more than one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchKind {
    /// The name.
    pub word: String,
    /// The kinds that may be meant.
    pub candidates: Vec<GroupKind>,
}

impl fmt::Display for NoSuchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, candidates } = self;
        if candidates.is_empty() {
            return write!(
                f,
                "the cluster knows no kind {word:?}: kubectl api-resources lists those that it knows"
            );
        }
        let names: Vec<_> = candidates.iter().map(GroupKind::to_string).collect();
        write!(f, "{word:?} may be {}: say which", names.join(" or "))
    }
}

impl std::error::Error for NoSuchKind {}

impl ClusterSnapshot {
    /// Asks a cluster which kinds it has. Objects are looked for in the namespace of the settings, or in all.
    pub async fn at(client: Client, settings: Settings) -> Result<Self, ReadError> {
        let groups = discover(&client, settings.answers_within).await?;
        let kinds = merge_groups(&Kinds::new(), &groups);
        Ok(Self { client, settings, kinds, groups })
    }

    /// How the cluster serves a kind, if it does.
    pub fn served(&self, kind: &GroupKind) -> Option<&Served> {
        self.kinds.get(kind)
    }

    /// The kind that a person means: `deploy`, `Deployment`, `deployments.apps`, `deployments.v1.apps`.
    pub fn kind(&self, word: &str) -> Result<GroupKind, NoSuchKind> {
        let wanted = word.to_lowercase();
        let (name, of) = wanted.split_once('.').unwrap_or((&wanted, ""));
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for group in &self.groups {
            for version in &group.versions {
                let group = &group.metadata.name;
                let is_of = of.is_empty() || *of == **group || of == format!("{}.{group}", version.version);
                for resource in version.resources.iter().filter(|_| is_of) {
                    let Some(kind) = kind_of(resource) else { continue };
                    let is_it = resource.plural == name
                        || resource.singular == name
                        || kind.to_lowercase() == name
                        || resource.short_names.iter().any(|short| short == name);
                    if is_it && seen.insert((group.clone(), kind.to_owned())) {
                        found.push(GroupKind::new(group, kind));
                    }
                }
            }
        }
        // Of those that have the same name, kubectl takes the first group; we take the core group and our own before
        // others, and otherwise ask.
        let mut preferred: Vec<_> =
            found.iter().filter(|kind| kind.group.is_empty() || kind.is_own()).cloned().collect();
        match (&*found, &*preferred) {
            ([one], _) => Ok(one.clone()),
            (_, [_]) => Ok(preferred.remove(0)),
            _ => Err(NoSuchKind { word: word.to_owned(), candidates: found }),
        }
    }

    /// All objects of a kind in the namespace of the settings, as news. Only a cluster that does not answer at all is a
    /// trouble.
    pub async fn list(&self, kind: &GroupKind, lens: Arc<Lens>) -> Result<Vec<FeedEvent>, ReadError> {
        self.list_in(self.settings.namespace.as_deref(), kind, lens).await
    }

    /// The same in another namespace, or in all.
    pub async fn list_in(
        &self,
        namespace: Option<&str>,
        kind: &GroupKind,
        lens: Arc<Lens>,
    ) -> Result<Vec<FeedEvent>, ReadError> {
        let Some(served) = self.kinds.get(kind) else {
            let is_it = |group: &&Group| *group.metadata.name == *kind.group;
            let why = if self.groups.iter().find(is_it).is_some_and(is_silent) {
                Unreadable::Failing { why: "the server behind its API group does not answer".into() }
            } else {
                Unreadable::NotServed
            };
            return Ok(vec![FeedEvent::Unreadable(why)]);
        };
        let mut news = vec![FeedEvent::Served(served.clone()), FeedEvent::ListStarted];
        let glass = EventDecoder::new(lens, served);
        let path = served.path(&kind.group, namespace, None);
        let mut parameters = ListParams::default().limit(self.settings.page_size);
        loop {
            let question = Request::new(path.clone()).list(&parameters);
            let answer = match ask_all(&self.client, question, self.settings.answers_within).await {
                Ok(answer) => answer,
                Err(trouble) => {
                    let why = match &trouble {
                        // It was served when this look began.
                        ReadError::NotFound { .. } => Some(Unreadable::NotServed),
                        other => other.unreadable(&served.plural),
                    };
                    return why
                        .map(|why| vec![FeedEvent::Served(served.clone()), FeedEvent::Unreadable(why)])
                        .ok_or(trouble);
                }
            };
            let page = match glass.page(&answer, Timestamp::now()) {
                Ok(page) => page,
                Err(error) => {
                    let why = format!("it cannot be read: {error}").into();
                    return Ok(vec![FeedEvent::Unreadable(Unreadable::Failing { why })]);
                }
            };
            news.extend(page.items.into_iter().flatten().map(|(name, seen)| FeedEvent::Applied(name, seen)));
            parameters.continue_token = page.rest;
            if parameters.continue_token.is_none() {
                news.push(FeedEvent::ListCompleted);
                return Ok(news);
            }
        }
    }

    /// The JSON of an object, if it is there.
    pub async fn get(&self, kind: &GroupKind, name: &NamespacedName) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(served) = self.kinds.get(kind) else { return Ok(None) };
        let path = served.path(&kind.group, Some(&name.namespace), Some(&name.name));
        let question = Verb::Get.request(&path, Vec::new());
        let question = question.map_err(kube::core::request::Error::BuildRequest);
        match ask_all(&self.client, question, self.settings.answers_within).await {
            Ok(object) => Ok(Some(object)),
            Err(ReadError::NotFound { .. }) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// The client with which it looks.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
