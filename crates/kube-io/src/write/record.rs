//! What has turned, and what only people can put right, told to them as Events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
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
use tracing::error;

use bellwether_wire::{ErrorClass, Verb};

use super::call::{CallError, PATIENCE, call};

/// How much may wait to be told. At a first start, as many turn as there are Applications.
const QUEUE: usize = 4096;

/// So many are told at a time: statuses matter more, and share the API server.
const AT_A_TIME: usize = 4;

/// The part of Bellwether that tells.
const CONTROLLER: &str = "bellwether.dev/controller";

/// Where the Events of objects go that are in no namespace.
const NAMESPACE_OF_NONE: &str = "default";

/// The longest that API servers take.
const LONGEST_NOTE: usize = 1024;
const LONGEST_WORD: usize = 128;
const LONGEST_NAME: usize = 253;

/// What people are told.
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
    fn from(turn: Transition) -> Self {
        let note = note(&turn);
        let Transition { object, uid, good, reason, condition, .. } = turn;
        Self { object, uid, good, reason, action: condition, note }
    }
}

impl From<Warning> for EventToRecord {
    fn from(warning: Warning) -> Self {
        let Warning { object, uid, reason, message } = warning;
        let note = one_line(&*message, LONGEST_NOTE).into_owned();
        Self { object, uid, good: false, reason: reason.into(), action: "Write", note }
    }
}

/// Tells people what has turned. It is no part of what must work: what cannot be told is counted, and that is all.
pub struct Recorder {
    queue: mpsc::Sender<(EventToRecord, Timestamp)>,
    dropped: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// A recorder on the current runtime, for the hub, which is the cluster of this client. When it is dropped, what waits is still told.
    pub fn start(client: Client, identity: &str) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(tell(client, identity.to_owned(), waiting, dropped.clone()));
        Self { queue, dropped, task }
    }

    /// Tells what still waits, if that can be done within this time.
    pub async fn finish(self, within: Duration) {
        drop(self.queue);
        // What is not told by then is not told.
        let _ = timeout(within, self.task).await;
    }

    /// Tells of it, soon; or never, if too much waits already.
    pub fn record(&self, told: impl Into<EventToRecord>) {
        let told = told.into();
        if !told.object.cluster.is_hub() {
            error!("cannot record an Event of {}: Events are written to the hub only", told.object);
            return;
        }
        if self.queue.try_send((told, Timestamp::now())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How much could not be told.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn tell(
    client: Client,
    identity: String,
    waiting: mpsc::Receiver<(EventToRecord, Timestamp)>,
    dropped: Arc<AtomicU64>,
) {
    // People are told of the first failure, not of every one.
    let trouble = AtomicBool::new(false);
    let all = stream::unfold(waiting, async |mut waiting| Some((waiting.recv().await?, waiting)));
    all.for_each_concurrent(AT_A_TIME, async |(told, at)| {
        match create(&client, &told, at, &identity).await {
            Ok(()) => trouble.store(false, Ordering::Relaxed),
            Err(why) => {
                dropped.fetch_add(1, Ordering::Relaxed);
                if !trouble.swap(true, Ordering::Relaxed) {
                    let object = &told.object;
                    tracing::warn!("no Event could be written for {object}: {why}; everything else goes on");
                }
            }
        }
    })
    .await;
}

/// Creates the Event; or says why not.
async fn create(client: &Client, told: &EventToRecord, at: Timestamp, identity: &str) -> Result<(), String> {
    let namespace = namespace_of(told);
    let event = serde_json::to_vec(&event(told, at, identity)).map_err(|error| error.to_string())?;
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    match call(client, Verb::Create.request(&path, event), PATIENCE).await {
        Ok(_) => Ok(()),
        Err(CallError::Api(error)) if error.class == ErrorClass::Forbidden => Err(format!(
            "grant the verb create on events in the API group events.k8s.io, also in namespace {namespace}"
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// An Event is where its object is.
fn namespace_of(told: &EventToRecord) -> &str {
    let namespace = &told.object.name.namespace;
    if namespace.is_empty() { NAMESPACE_OF_NONE } else { namespace }
}

/// The Event about it.
fn event(told: &EventToRecord, at: Timestamp, identity: &str) -> Event {
    let name = &told.object.name;
    let is_old = *told.object.kind.group == *Dialect::AppK8sIo.group();
    let dialect = if is_old { Dialect::AppK8sIo } else { Dialect::Bellwether };
    let word = |word: &str| Some(one_line(word, LONGEST_WORD).into_owned());
    Event {
        metadata: ObjectMeta {
            name: Some(unique_name(&name.name, at)),
            namespace: Some(namespace_of(told).to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(at)),
        type_: Some(if told.good { "Normal" } else { "Warning" }.to_owned()),
        reason: word(&told.reason),
        note: Some(told.note.clone()),
        action: word(told.action),
        regarding: Some(ObjectReference {
            api_version: Some(dialect.api_version()),
            kind: Some(told.object.kind.kind.to_string()),
            namespace: Some(name.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            name: Some(name.name.to_string()),
            uid: Some(told.uid.to_string()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: word(identity),
        ..Event::default()
    }
}

/// Two turns of an object can come in the same moment, so the moment alone is not enough.
fn unique_name(object: &str, at: Timestamp) -> String {
    let ending = format!(".{:x}{:08x}", at.as_microsecond(), rand::random::<u32>());
    let room = LONGEST_NAME.saturating_sub(ending.len());
    // A name must not have two full stops in a row.
    let beginning = object[..object.floor_char_boundary(room)].trim_end_matches(['.', '-']);
    format!("{beginning}{ending}")
}

/// What was, what is, and why.
fn note(turn: &Transition) -> String {
    let Transition { condition, to, message, .. } = turn;
    let mut note = match turn.from {
        Some(from) => format!("{condition}: was {from:?}, is {to:?}"),
        None => format!("{condition}: is {to:?}"),
    };
    if !message.is_empty() {
        note = format!("{note}: {message}");
    }
    one_line(note, LONGEST_NOTE).into_owned()
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, GroupKind, NamespacedName, ObjectKey};
    use bellwether_model::ConditionStatus::{self, False, True};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn turn(namespace: &str, name: &str) -> Transition {
        let (kind, name) = (GroupKind::own("Application"), NamespacedName::new(namespace, name));
        Transition {
            object: ObjectKey { cluster: Cluster::hub(), kind, name },
            uid: "u".into(),
            condition: "Ready",
            from: Some(True),
            to: False,
            since: Timestamp::UNIX_EPOCH,
            reason: "ComponentsNotReady".into(),
            message: "web 2 of 3 replicas ready".into(),
            good: false,
        }
    }

    #[test]
    fn a_turn_becomes_an_event() {
        let event = event(&turn("shop", "web").into(), "2026-11-14T10:00:00.5Z".parse().unwrap(), "pod-1");
        let mut event = serde_json::to_value(event).unwrap();
        let name = event["metadata"]["name"].take();
        assert!(name.as_str().unwrap().starts_with("web."), "{name}");
        let expected = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": null, "namespace": "shop" },
            "eventTime": "2026-11-14T10:00:00.500000Z",
            "type": "Warning",
            "reason": "ComponentsNotReady",
            "note": "Ready: was True, is False: web 2 of 3 replicas ready",
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

    #[test]
    fn a_warning_becomes_an_event() {
        let object = ObjectKey { kind: Dialect::AppK8sIo.kind(), ..turn("shop", "web").object };
        let warning =
            Warning { object, uid: "u".into(), reason: "StatusOverwritten", message: "stop it".into() };
        let event = event(&warning.into(), Timestamp::UNIX_EPOCH, "pod-1");
        assert_eq!(
            [event.type_.as_deref(), event.reason.as_deref(), event.note.as_deref()],
            [Some("Warning"), Some("StatusOverwritten"), Some("stop it")]
        );
        assert_eq!(event.regarding.unwrap().api_version.as_deref(), Some("app.k8s.io/v1beta1"));
    }

    #[test]
    fn what_is_in_no_namespace_is_told_in_default() {
        let event = event(&turn("", "web").into(), Timestamp::UNIX_EPOCH, "pod-1");
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.regarding.unwrap().namespace, None);
    }

    #[rstest]
    #[case::turned(Some(True), False, "why", "Ready: was True, is False: why")]
    #[case::first(None, True, "why", "Ready: is True: why")]
    #[case::wordless(Some(False), True, "", "Ready: was False, is True")]
    fn a_note_says_what_was_and_what_is(
        #[case] from: Option<ConditionStatus>,
        #[case] to: ConditionStatus,
        #[case] message: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(note(&Transition { from, to, message: message.into(), ..turn("shop", "web") }), expected);
    }

    #[test]
    fn everything_fits() {
        let long = Transition {
            reason: "R".repeat(1024).into(),
            message: "é".repeat(5000).into(),
            ..turn("shop", &"n".repeat(253))
        };
        let event = event(&long.into(), Timestamp::MAX, &"i".repeat(500));
        let lengths = [
            (event.metadata.name, LONGEST_NAME),
            (event.note, LONGEST_NOTE),
            (event.reason, LONGEST_WORD),
            (event.reporting_instance, LONGEST_WORD),
        ];
        for (text, longest) in lengths {
            let length = text.unwrap().len();
            assert!(longest - 2 <= length && length <= longest, "{length} of {longest}");
        }
    }

    #[test]
    fn names_differ_and_are_legal() {
        let names = [(); 2].map(|()| unique_name("web", Timestamp::UNIX_EPOCH));
        assert_ne!(names[0], names[1]);
        // The cut would leave a full stop before the one that we add.
        let ending = unique_name("", Timestamp::UNIX_EPOCH).len();
        let dotted = format!("{}.{}", "n".repeat(LONGEST_NAME - ending - 1), "m".repeat(20));
        assert!(!unique_name(&dotted, Timestamp::UNIX_EPOCH).contains(".."));
    }
}
