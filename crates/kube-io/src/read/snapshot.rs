//! Reads a cluster once, without watches.

use std::{collections::BTreeSet, fmt, sync::Arc};

use bellwether_engine::{
    DiscoveredKinds, FeedEvent, GroupKind, Lens, NamespacedName, ServedResource, Unreadable,
};
use bellwether_wire::{Verb, object_decoder::ObjectDecoder, page_reader::PageReader, read_error::ReadError};
use jiff::Timestamp;
use kube::{Client, api::ListParams};

use super::{
    discovery::{ApiGroup, discover},
    rest_mapper::{Kinds, is_unavailable, kind_of, merge_groups},
    settings::ReaderSettings,
    watch_stream::{list_request, read_page, send, send_and_read},
};

/// A cluster with the kinds that it served when this was created. Objects are read on request.
pub struct ClusterSnapshot {
    client: Client,
    settings: ReaderSettings,
    kinds: Kinds,
    groups: Vec<ApiGroup>,
}

/// An unknown or ambiguous kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchKind {
    pub word: String,
    /// Empty if the kind is unknown.
    pub candidates: Vec<GroupKind>,
}

impl fmt::Display for NoSuchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, candidates } = self;
        if candidates.is_empty() {
            return write!(f, "unknown kind {word:?}. Run kubectl api-resources to list the kinds");
        }
        let names: Vec<_> = candidates.iter().map(GroupKind::to_string).collect();
        write!(f, "ambiguous kind {word:?}: {}. Give the API group", names.join(", "))
    }
}

impl std::error::Error for NoSuchKind {}

impl ClusterSnapshot {
    /// Runs API discovery. Objects are read in the namespace of the settings, or in all namespaces.
    pub async fn at(client: Client, settings: ReaderSettings) -> Result<Self, ReadError> {
        let groups = discover(&client, settings.response_timeout).await?;
        let kinds = merge_groups(&Kinds::new(), &groups);
        Ok(Self { client, settings, kinds, groups })
    }

    pub fn served(&self, kind: &GroupKind) -> Option<&ServedResource> {
        self.kinds.get(kind)
    }

    pub fn discovered(&self) -> DiscoveredKinds {
        let unavailable = self.groups.iter().filter(|group| is_unavailable(group));
        let unavailable_groups = unavailable.map(|group| group.metadata.name.as_str().into()).collect();
        DiscoveredKinds { served: self.kinds.clone(), unavailable_groups }
    }

    /// Finds a kind as kubectl does: `deploy`, `Deployment`, `deployments.apps`, `deployments.v1.apps`.
    pub fn kind(&self, word: &str) -> Result<GroupKind, NoSuchKind> {
        let wanted = word.to_lowercase();
        let (name, suffix) = wanted.split_once('.').unwrap_or((&wanted, ""));
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for group in &self.groups {
            for version in &group.versions {
                let group = &group.metadata.name;
                let is_in_group = suffix.is_empty()
                    || *suffix == **group
                    || suffix == format!("{}.{group}", version.version);
                for resource in version.resources.iter().filter(|_| is_in_group) {
                    let Some(kind) = kind_of(resource) else { continue };
                    let is_match = resource.plural == name
                        || resource.singular == name
                        || kind.to_lowercase() == name
                        || resource.short_names.iter().any(|short| short == name);
                    if is_match && seen.insert((group.clone(), kind.to_owned())) {
                        found.push(GroupKind::new(group, kind));
                    }
                }
            }
        }
        // kubectl takes the first group. We prefer the core group and our own; otherwise the kind is
        // ambiguous.
        let mut preferred: Vec<_> =
            found.iter().filter(|kind| kind.group.is_empty() || kind.is_bellwether()).cloned().collect();
        match (&*found, &*preferred) {
            ([one], _) => Ok(one.clone()),
            (_, [_]) => Ok(preferred.remove(0)),
            _ => Err(NoSuchKind { word: word.to_owned(), candidates: found }),
        }
    }

    /// All objects of a kind in the namespace of the settings. If the kind cannot be read, the events say so;
    /// the error is for an API server that does not respond.
    pub async fn list(&self, kind: &GroupKind, lens: Arc<Lens>) -> Result<Vec<FeedEvent>, ReadError> {
        self.list_in(self.settings.namespace.as_deref(), kind, lens).await
    }

    /// As [`ClusterSnapshot::list`], in another namespace, or in all.
    pub async fn list_in(
        &self,
        namespace: Option<&str>,
        kind: &GroupKind,
        lens: Arc<Lens>,
    ) -> Result<Vec<FeedEvent>, ReadError> {
        let Some(served) = self.kinds.get(kind) else {
            let is_group_of_kind = |group: &&ApiGroup| *group.metadata.name == *kind.group;
            let why = if self.groups.iter().find(is_group_of_kind).is_some_and(is_unavailable) {
                Unreadable::Failing { why: "the aggregated API server does not respond".into() }
            } else {
                Unreadable::NotServed
            };
            return Ok(vec![FeedEvent::Unreadable(why)]);
        };
        let mut events = vec![FeedEvent::Served(served.clone()), FeedEvent::ListStarted];
        let decoder = Arc::new(ObjectDecoder::new(lens, served));
        let path = served.path(&kind.group, namespace, None);
        let mut parameters = ListParams::default().limit(self.settings.page_size);
        loop {
            let request = list_request(path.clone(), &parameters, decoder.metadata_only());
            let reader = PageReader::new(Arc::clone(&decoder), Timestamp::now());
            let within = self.settings.response_timeout;
            let page = async { read_page(send(&self.client, request, within).await?, within, reader).await };
            let page = match page.await {
                Ok(page) => page,
                Err(error) => {
                    let why = match &error {
                        // The kind was removed after discovery.
                        ReadError::NotFound { .. } => Some(Unreadable::NotServed),
                        other => other.unreadable(&served.plural),
                    };
                    return why
                        .map(|why| vec![FeedEvent::Served(served.clone()), FeedEvent::Unreadable(why)])
                        .ok_or(error);
                }
            };
            events
                .extend(page.items.into_iter().flatten().map(|(name, seen)| FeedEvent::Applied(name, seen)));
            parameters.continue_token = page.continue_token;
            if parameters.continue_token.is_none() {
                events.push(FeedEvent::ListCompleted);
                return Ok(events);
            }
        }
    }

    /// The JSON of an object, of a Secret as `PartialObjectMetadata`; `None` if it does not exist.
    pub async fn get(&self, kind: &GroupKind, name: &NamespacedName) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(served) = self.kinds.get(kind) else { return Ok(None) };
        let path = served.path(&kind.group, Some(&name.namespace), Some(&name.name));
        let verb = if kind.is_secret() { Verb::GetMetadata } else { Verb::Get };
        let request = verb.request(&path, Vec::new());
        let request = request.map_err(kube::core::request::Error::BuildRequest);
        match send_and_read(&self.client, request, self.settings.response_timeout).await {
            Ok(object) => Ok(Some(object)),
            Err(ReadError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The JSON of a list page, of Secrets as `PartialObjectMetadata`; `None` if the kind is not served.
    pub async fn list_page(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        parameters: &ListParams,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(served) = self.kinds.get(kind) else { return Ok(None) };
        let path = served.path(&kind.group, namespace, None);
        let request = list_request(path, parameters, kind.is_secret());
        send_and_read(&self.client, request, self.settings.response_timeout).await.map(Some)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }
}
