//! `status.objects`, and why a member is in its state.

use std::{borrow::Cow, ops::RangeInclusive};

use bellwether_api::{ObjectCause, ObjectStatus};
use bellwether_health::{Rule, SERVICE_ENDPOINTS, Source};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    below::Below,
    event::Unreadable,
    feeds::{Feed, Feeds},
    members::{MemberEntry, MemberId},
    reasons::{application as reasons, unreadable},
};

use super::{
    application_state::{ApplicationState, NotMember, Presence},
    below::why_below,
    unresolved::Unresolved,
};

/// Entries of `status.objects`.
const MAX_OBJECTS: usize = 100;
/// Bytes of `status.objects`: within this range, what the other fields leave of [`MAX_STATUS_BYTES`].
const OBJECTS_BYTES: RangeInclusive<usize> = (8 << 10)..=(40 << 10);
/// Bytes of a status.
const MAX_STATUS_BYTES: usize = 62 << 10;

/// `others`: the bytes of the other fields of the status.
pub(super) fn objects(app: &ApplicationState, feeds: &Feeds, others: usize) -> Vec<ObjectStatus> {
    let (least, most) = OBJECTS_BYTES.into_inner();
    let mut bytes_left = MAX_STATUS_BYTES.saturating_sub(others).clamp(least, most);
    let object_status = |(member_id, entry): (MemberId, &MemberEntry)| {
        let (reason, message) = why(app, feeds, member_id);
        let feed = app.kind_uses.get(&entry.kind).and_then(|kind_use| feeds.get(kind_use.feed));
        let rule = rule(app, feeds, member_id, entry);
        ObjectStatus {
            link: feed.and_then(|feed| link(feed, &app.name.namespace, &entry.name.name)),
            name: (*entry.name.name).into(),
            group: (*entry.kind.group).into(),
            kind: (*entry.kind.kind).into(),
            status: entry.state,
            progress: entry.progress.into(),
            reason: Some(reason.into_owned()),
            message: Some(message.into_owned()),
            since: entry.since.map(Time),
            rule: rule.map(|rule| format!("{}/{}", source_name(rule.source), rule.id)),
            cause: cause(app, feeds, entry),
        }
    };
    app.members
        .worst_first()
        .take(MAX_OBJECTS)
        .map(object_status)
        .take_while(|object| {
            let cause = object.cause.as_ref().map(|cause| (&cause.reason, &cause.message));
            let text = [&object.link, &object.reason, &object.message].into_iter();
            let text = text.chain(cause.map(|(reason, _)| reason)).chain(cause.map(|(_, message)| message));
            let text = text.flatten().map(String::len);
            // The keys and the short fields.
            let size = 200 + object.name.len() + text.sum::<usize>();
            let fits = size <= bytes_left;
            bytes_left = bytes_left.saturating_sub(size);
            fits
        })
        .collect()
}

pub(super) fn why<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    member_id: MemberId,
) -> (Cow<'a, str>, Cow<'a, str>) {
    match member_id {
        MemberId::Object(id) => {
            let Some(stored) = feeds.object(id) else {
                return (reasons::DELETED.into(), "deleted".into());
            };
            let verdict = &stored.facts.verdict;
            if let Some(why) = app.members.get(member_id).and_then(|entry| why_below(app, feeds, entry)) {
                return why;
            }
            match feeds.get(stored.feed).and_then(|feed| feed.unreadable.as_ref()) {
                Some(unreadable) => (
                    unreadable.reason().into(),
                    format!("{unreadable}; last seen {}: {}", verdict.state.name(), verdict.message).into(),
                ),
                None => (Cow::Borrowed(&verdict.reason), Cow::Borrowed(&verdict.message)),
            }
        }
        MemberId::Placeholder(index) => {
            match app.components.get(index).map(|component| &component.presence) {
                Some(Presence::NotMember(not_member)) => match not_member {
                    NotMember::NotSelected => (
                        reasons::NOT_SELECTED.into(),
                        "exists, but its labels do not match the selector".into(),
                    ),
                    NotMember::OfAnother(other) => (
                        reasons::MEMBER_OF_ANOTHER_APPLICATION.into(),
                        format!("exists, but its annotation names Application {other}").into(),
                    ),
                    NotMember::NotAnnotated => (
                        reasons::NOT_ANNOTATED.into(),
                        format!("exists, but has no annotation {}", bellwether_api::APPLICATION_ANNOTATION)
                            .into(),
                    ),
                    NotMember::Itself => {
                        (reasons::SELF_REFERENCE.into(), "an Application cannot be its own component".into())
                    }
                },
                Some(Presence::Unknown) => unknown_presence(app, feeds, index),
                Some(Presence::Present | Presence::Absent) | None => {
                    (reasons::NOT_FOUND.into(), "not found".into())
                }
            }
        }
    }
}

/// Why it is unknown whether a component exists.
pub(super) fn unknown_presence<'a>(
    app: &ApplicationState,
    feeds: &Feeds,
    index: usize,
) -> (Cow<'a, str>, Cow<'a, str>) {
    let kind = app.components.get(index).map(|component| &component.kind);
    let kind_use = kind.and_then(|kind| app.kind_uses.get(kind));
    let feed = kind_use.and_then(|kind_use| feeds.get(kind_use.feed));
    if let Some(feed) = feed.filter(|feed| feed.unreadable.is_none())
        && feed.served.as_ref().is_some_and(|served| !served.namespaced)
    {
        return (reasons::CLUSTER_SCOPED.into(), Unresolved::ClusterScoped.to_string().into());
    }
    match feed.and_then(|feed| feed.unreadable.as_ref()) {
        Some(unreadable) => (unreadable.reason().into(), unreadable.to_string().into()),
        None => (unreadable::NOT_READABLE.into(), "cannot read objects of this kind".into()),
    }
}

/// The rule that decided: on the Pod, if the member is Failed because of one; on the endpoints of a Service.
pub(super) fn rule<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    member_id: MemberId,
    entry: &MemberEntry,
) -> Option<&'a Rule> {
    let object = match (entry.below, member_id) {
        (Some(Below::FailedPod(pod)), _) => pod,
        (Some(Below::NoReadyEndpoints), _) => return Some(&SERVICE_ENDPOINTS),
        (Some(Below::StoredFailure), _) => return app.stored_below.failure_of(entry)?.rule.as_ref(),
        (_, MemberId::Object(object)) => object,
        (_, MemberId::Placeholder(_)) => return None,
    };
    feeds.object(object).map(|stored| &stored.facts.verdict.rule)
}

pub(super) fn cause(app: &ApplicationState, feeds: &Feeds, entry: &MemberEntry) -> Option<ObjectCause> {
    if entry.below == Some(Below::StoredFailure) {
        return Some(app.stored_below.failure_of(entry)?.cause.clone());
    }
    let stored = feeds.object(entry.cause()?)?;
    let verdict = &stored.facts.verdict;
    Some(ObjectCause {
        kind: "Pod".to_owned(),
        name: (*stored.name.name).into(),
        reason: Some(verdict.reason.to_string()),
        message: Some(verdict.message.to_string()),
    })
}

/// As in `bellwether assess`.
pub(super) fn source_name(source: Source) -> &'static str {
    match source {
        Source::User => "user",
        Source::Builtin => "builtin",
        Source::Generic => "generic",
        Source::None => "none",
    }
}

pub(super) fn link(feed: &Feed, namespace: &str, name: &str) -> Option<String> {
    let served = feed.served.as_ref().filter(|_| feed.unreadable != Some(Unreadable::NotServed))?;
    Some(served.path(&feed.kind.group, Some(namespace), Some(name)))
}
