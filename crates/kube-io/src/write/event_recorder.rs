//! Writes Kubernetes Events for transitions and warnings.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_engine::{Dialect, ObjectKey, Transition, Warning};
use bellwether_model::text::one_line;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Client, api::ObjectMeta};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tracing::{error, warn};

use bellwether_wire::{ErrorClass, Verb};

use super::{
    call::{CallError, REQUEST_TIMEOUT, call},
    event_limit::EventLimit,
};

/// The groups of a whole cluster may change at the same moment.
const QUEUE_SIZE: usize = 4096;

/// Low, because writes of statuses are more important and share the API server.
const CONCURRENCY: usize = 4;

const CONTROLLER: &str = "bellwether.dev/controller";

/// The namespace of Events about cluster-scoped objects.
const CLUSTER_SCOPED_NAMESPACE: &str = "default";

/// The limit of `note` in the API, in bytes.
const MAX_NOTE: usize = 1024;
/// The limit of `reason`, `action` and `reportingInstance` in the API, in bytes.
const MAX_WORD: usize = 128;
const MAX_NAME: usize = 253;

#[derive(Debug)]
pub struct EventToRecord {
    object: ObjectKey,
    uid: Box<str>,
    good: bool,
    reason: Arc<str>,
    action: &'static str,
    note: String,
}

impl From<Transition> for EventToRecord {
    fn from(transition: Transition) -> Self {
        let note = note(&transition);
        let Transition { object, uid, good, reason, subject, .. } = transition;
        Self { object, uid, good, reason, action: subject, note }
    }
}

impl From<Warning> for EventToRecord {
    fn from(warning: Warning) -> Self {
        let Warning { object, uid, reason, message } = warning;
        let note = one_line(&*message, MAX_NOTE).into_owned();
        Self { object, uid, good: false, reason: reason.into(), action: "Write", note }
    }
}

/// Writes Events in the background, without retries. Events that cannot be written, and those of an object that has
/// too many, are counted and dropped.
pub struct Recorder {
    queue: mpsc::Sender<(EventToRecord, Timestamp)>,
    limit: Mutex<EventLimit>,
    dropped: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Must be called within a tokio runtime. `client` is for the hub. After a drop, queued Events are still
    /// written.
    pub fn start(client: Client, identity: &str) -> Self {
        let (queue, receiver) = mpsc::channel(QUEUE_SIZE);
        let dropped = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(write_all(client, identity.to_owned(), receiver, dropped.clone()));
        Self { queue, limit: Mutex::default(), dropped, task }
    }

    /// Writes the queued Events; drops those that are not written within this time. Returns how many were
    /// dropped until then.
    pub async fn finish(self, within: Duration) -> u64 {
        drop(self.queue);
        let _ = timeout(within, self.task).await;
        self.dropped.load(Ordering::Relaxed)
    }

    /// Queues an Event; drops it if the object has too many, or if the queue is full.
    pub fn record(&self, event: impl Into<EventToRecord>) {
        let event = event.into();
        if !event.object.cluster.is_hub() {
            error!(
                object = event.object.to_string(),
                "cannot write an Event: the object is not in the hub cluster"
            );
            return;
        }
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let is_allowed = limit.allows(&event.uid, Instant::now());
        if !is_allowed || self.queue.try_send((event, Timestamp::now())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn write_all(
    client: Client,
    identity: String,
    receiver: mpsc::Receiver<(EventToRecord, Timestamp)>,
    dropped: Arc<AtomicU64>,
) {
    // Only the first of several failures in a row is logged.
    let is_failing = AtomicBool::new(false);
    let events = stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    events
    .for_each_concurrent(CONCURRENCY, async |(event, at)| {
        match create(&client, &event, at, &identity).await {
            Ok(()) => is_failing.store(false, Ordering::Relaxed),
            Err(error) => {
                dropped.fetch_add(1, Ordering::Relaxed);
                if !is_failing.swap(true, Ordering::Relaxed) {
                    warn!(object = event.object.to_string(), %error, "cannot write an Event: dropping it");
                }
            }
        }
    })
    .await;
}

async fn create(client: &Client, event: &EventToRecord, at: Timestamp, identity: &str) -> Result<(), String> {
    let namespace = namespace_of(event);
    let body = serde_json::to_vec(&manifest(event, at, identity)).map_err(|error| error.to_string())?;
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    match call(client, Verb::Create.request(&path, body), REQUEST_TIMEOUT).await {
        Ok(_) => Ok(()),
        // The namespace is being deleted, and with it the objects that the Event is about. Rights in it may
        // be gone already.
        Err(CallError::Api(error)) if error.class == ErrorClass::NamespaceTerminating => Ok(()),
        Err(CallError::Api(error))
            if error.class == ErrorClass::Forbidden && is_being_deleted(client, namespace).await =>
        {
            Ok(())
        }
        Err(CallError::Api(error)) if error.class == ErrorClass::Forbidden => Err(format!(
            "cannot create events in namespace {namespace}: forbidden. Grant Bellwether the verb create on events in \
             the API group events.k8s.io"
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a namespace is being deleted, as far as this process may know.
async fn is_being_deleted(client: &Client, namespace: &str) -> bool {
    let request = Verb::GetMetadata.request(&format!("/api/v1/namespaces/{namespace}"), Vec::new());
    match call(client, request, REQUEST_TIMEOUT).await {
        Ok(object) => serde_json::from_slice::<serde_json::Value>(&object)
            .is_ok_and(|object| object["metadata"]["deletionTimestamp"].is_string()),
        Err(CallError::Api(error)) => error.class == ErrorClass::NotFound,
        Err(_) => false,
    }
}

fn namespace_of(event: &EventToRecord) -> &str {
    let namespace = &event.object.name.namespace;
    if namespace.is_empty() { CLUSTER_SCOPED_NAMESPACE } else { namespace }
}

fn manifest(event: &EventToRecord, at: Timestamp, identity: &str) -> Event {
    let name = &event.object.name;
    let is_app_k8s_io = *event.object.kind.group == *Dialect::AppK8sIo.group();
    let dialect = if is_app_k8s_io { Dialect::AppK8sIo } else { Dialect::Bellwether };
    let word = |word: &str| Some(one_line(word, MAX_WORD).into_owned());
    Event {
        metadata: ObjectMeta {
            name: Some(unique_name(&name.name, at)),
            namespace: Some(namespace_of(event).to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(at)),
        type_: Some(if event.good { "Normal" } else { "Warning" }.to_owned()),
        reason: word(&event.reason),
        note: Some(event.note.clone()),
        action: word(event.action),
        regarding: Some(ObjectReference {
            api_version: Some(dialect.api_version()),
            kind: Some(event.object.kind.kind.to_string()),
            namespace: Some(name.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            name: Some(name.name.to_string()),
            uid: Some(event.uid.to_string()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: word(identity),
        ..Event::default()
    }
}

/// The time alone is not unique: an object can have two transitions at the same moment.
fn unique_name(object: &str, at: Timestamp) -> String {
    let suffix = format!(".{:x}{:08x}", at.as_microsecond(), rand::random::<u32>());
    let space = MAX_NAME.saturating_sub(suffix.len());
    // A name must not contain `..` or `-.`.
    let prefix = object[..object.floor_char_boundary(space)].trim_end_matches(['.', '-']);
    format!("{prefix}{suffix}")
}

fn note(transition: &Transition) -> String {
    let Transition { subject, from, to, message, .. } = transition;
    // The reason of the Event is the state.
    if *subject == Transition::STATE && !message.is_empty() {
        return one_line(&**message, MAX_NOTE).into_owned();
    }
    let mut note = match from {
        Some(from) => format!("{subject} changed from {from} to {to}"),
        None => format!("{subject} is {to}"),
    };
    if !message.is_empty() {
        note = format!("{note}: {message}");
    }
    one_line(note, MAX_NOTE).into_owned()
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, GroupKind, NamespacedName, ObjectKey};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn transition(namespace: &str, name: &str) -> Transition {
        let (kind, name) = (GroupKind::bellwether("Application"), NamespacedName::new(namespace, name));
        Transition {
            object: ObjectKey { cluster: Cluster::hub(), kind, name },
            uid: "u".into(),
            subject: "Ready",
            from: Some("True"),
            to: "False",
            since: Timestamp::UNIX_EPOCH,
            reason: "ComponentsInProgress".into(),
            message: "Deployment/web: 2 of 3 replicas ready".into(),
            good: false,
        }
    }

    #[test]
    fn a_transition_becomes_an_event() {
        let event =
            manifest(&transition("shop", "web").into(), "2026-11-14T10:00:00.5Z".parse().unwrap(), "pod-1");
        let mut event = serde_json::to_value(event).unwrap();
        let name = event["metadata"]["name"].take();
        assert!(name.as_str().unwrap().starts_with("web."), "{name}");
        let expected = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": null, "namespace": "shop" },
            "eventTime": "2026-11-14T10:00:00.500000Z",
            "type": "Warning",
            "reason": "ComponentsInProgress",
            "note": "Ready changed from True to False: Deployment/web: 2 of 3 replicas ready",
            "action": "Ready",
            "regarding": {
                "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "namespace": "shop", "name": "web",
                "uid": "u",
            },
            "reportingController": "bellwether.dev/controller",
            "reportingInstance": "pod-1",
        });
        assert_eq!(event, expected);
    }

    /// The reason of the Event is the state, and its text names the cause.
    #[test]
    fn a_state_becomes_an_event() {
        let failed = Transition {
            subject: Transition::STATE,
            from: Some("InProgress"),
            to: "Failed",
            reason: "Failed".into(),
            message: "Deployment/web: ProgressDeadlineExceeded (1 of 3 updated)".into(),
            ..transition("shop", "web")
        };
        let event = manifest(&failed.into(), Timestamp::UNIX_EPOCH, "pod-1");
        assert_eq!(
            [event.type_.as_deref(), event.reason.as_deref(), event.note.as_deref(), event.action.as_deref()],
            [
                Some("Warning"),
                Some("Failed"),
                Some("Deployment/web: ProgressDeadlineExceeded (1 of 3 updated)"),
                Some("State")
            ]
        );
    }

    #[test]
    fn a_warning_becomes_an_event() {
        let object = ObjectKey { kind: Dialect::AppK8sIo.kind(), ..transition("shop", "web").object };
        let warning =
            Warning { object, uid: "u".into(), reason: "StatusOverwritten", message: "stop it".into() };
        let event = manifest(&warning.into(), Timestamp::UNIX_EPOCH, "pod-1");
        assert_eq!(
            [event.type_.as_deref(), event.reason.as_deref(), event.note.as_deref()],
            [Some("Warning"), Some("StatusOverwritten"), Some("stop it")]
        );
        assert_eq!(event.regarding.unwrap().api_version.as_deref(), Some("app.k8s.io/v1beta1"));
    }

    #[test]
    fn events_of_cluster_scoped_objects_are_in_default() {
        let event = manifest(&transition("", "web").into(), Timestamp::UNIX_EPOCH, "pod-1");
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.regarding.unwrap().namespace, None);
    }

    #[rstest]
    #[case::changed(Some("True"), "False", "why", "Ready changed from True to False: why")]
    #[case::first(None, "True", "All components ready", "Ready is True: All components ready")]
    #[case::no_message(Some("False"), "True", "", "Ready changed from False to True")]
    fn a_note_names_the_transition_and_its_cause(
        #[case] from: Option<&'static str>,
        #[case] to: &'static str,
        #[case] message: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(
            note(&Transition { from, to, message: message.into(), ..transition("shop", "web") }),
            expected
        );
    }

    #[test]
    fn long_texts_are_cut_to_the_limits() {
        let long = Transition {
            reason: "R".repeat(1024).into(),
            message: "é".repeat(5000).into(),
            ..transition("shop", &"n".repeat(253))
        };
        let event = manifest(&long.into(), Timestamp::MAX, &"i".repeat(500));
        let lengths = [
            (event.metadata.name, MAX_NAME),
            (event.note, MAX_NOTE),
            (event.reason, MAX_WORD),
            (event.reporting_instance, MAX_WORD),
        ];
        for (text, longest) in lengths {
            let length = text.unwrap().len();
            assert!(longest - 2 <= length && length <= longest, "{length} of {longest}");
        }
    }

    #[test]
    fn names_are_unique_and_valid() {
        let names = [(); 2].map(|()| unique_name("web", Timestamp::UNIX_EPOCH));
        assert_ne!(names[0], names[1]);
        // The cut would leave a dot before the suffix, which starts with one.
        let suffix = unique_name("", Timestamp::UNIX_EPOCH).len();
        let dotted = format!("{}.{}", "n".repeat(MAX_NAME - suffix - 1), "m".repeat(20));
        assert!(!unique_name(&dotted, Timestamp::UNIX_EPOCH).contains(".."));
    }
}
