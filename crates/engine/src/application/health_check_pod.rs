//! The health-check Pod of an Application, whose readiness is part of Ready.
//!
//! The name of the Pod ends in a hash of the template, so a new template means a new Pod. Before the first
//! Pod of a template is created, a dry run validates it; the Pod of the previous template stays until then. A
//! Pod that is deleted or has finished is replaced: the first time at once, then with growing delays.

use std::{fmt::Write as _, sync::Arc};

use bellwether_api::{GROUP, PodTemplate, VERSION};
use bellwether_model::ConditionStatus;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    effect::Write,
    effect_queue::EffectQueue,
    facts::Facts,
    group_ref::GroupRef,
    grouping_context::GroupingContext,
    id::{GroupKind, NamespacedName},
    registry::GroupId,
};

use super::{
    Applications,
    application_state::ApplicationState,
    health_check_state::{HEALTH_CHECK_LABEL, Validity, slot},
    ownership::Owned,
};

impl Applications {
    /// Does nothing until Pods are listed.
    pub(super) fn reconcile_health_check(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let Some((id, feed)) = app.feed_of(&GroupKind::pod()).and_then(|id| Some((id, cx.feeds.get(id)?)))
        else {
            return;
        };
        if !feed.listed || feed.unreadable.is_some() {
            app.check.ready = None;
            // Without a view of Pods, none is created.
            if let Some(name) = &app.check.pod {
                cx.queue.request_write(slot(app.publication.group(), name), None);
            }
            return;
        }
        let checks = self.owned.get(app.uid()).into_iter().flat_map(Owned::checks);
        let checks = checks.filter_map(|id| cx.feeds.object(id));
        let pods: Vec<_> = checks.map(|stored| (stored.name.clone(), &stored.facts)).collect();
        let pod_name_is_taken = |name: &NamespacedName| cx.feeds.find_in(id, name).is_some();
        reconcile(app, &pods, pod_name_is_taken, cx.now, cx.queue);
    }
}

/// Requests creations and deletions. `pods` are all health-check Pods of the Application, those of earlier
/// templates included. `pod_name_is_taken` says whether any Pod has the name of the current one.
fn reconcile(
    app: &mut ApplicationState,
    pods: &[(NamespacedName, &Facts)],
    pod_name_is_taken: impl FnOnce(&NamespacedName) -> bool,
    now: Timestamp,
    queue: &mut EffectQueue,
) {
    let group = app.publication.group().clone();
    let Some(template) = app.spec.health_check.as_ref().map(|check| &check.template) else {
        app.check.forget(&group, queue);
        for (name, facts) in pods {
            delete(&group, name, facts, queue);
        }
        return;
    };
    let hash = hash(template);
    let name = pod_name(&app.name, &hash);
    if app.check.pod.as_ref() != Some(&name) {
        app.check.forget(&group, queue);
        app.check.pod = Some(name.clone());
    }
    let is_published = app.owned_kinds.require(&GroupKind::pod());
    let check = &mut app.check;
    let present = pods.iter().find(|(own, _)| *own == name).map(|(_, facts)| *facts);
    check.ready = None;
    match present {
        Some(facts) => {
            check.validity = Validity::Valid;
            check.visible_by = None;
            let is_over = facts.deleting || facts.pod().is_some_and(|pod| pod.finished);
            if is_over {
                check.pod_lost(now);
                delete(&group, &name, facts, queue);
            } else {
                check.alive_since.get_or_insert(now);
                queue.request_write(slot(&group, &name), None);
                let status = facts.pod().and_then(|pod| pod.ready).unwrap_or(ConditionStatus::Unknown);
                check.ready = Some((status, (*facts.verdict.message).into()));
            }
        }
        None if app.deleting => queue.request_write(slot(&group, &name), None),
        None if pod_name_is_taken(&name) => {
            queue.request_write(slot(&group, &name), None);
            check.validity = Validity::Invalid(
                format!(
                    "Pod/{} already exists and is not owned by this Application: delete the Pod, or rename it in the template",
                    name.name
                )
                .into(),
            );
        }
        None => {
            check.pod_lost(now);
            let not_before = check.next_create.max(check.visible_by).filter(|time| *time > now);
            match (&check.validity, not_before) {
                (Validity::Valid, Some(time)) => {
                    queue.schedule(time, app.publication.timer());
                }
                (Validity::Valid, None) if !is_published => queue.request_write(slot(&group, &name), None),
                (Validity::Valid, None) => {
                    let manifest = Arc::new(pod(app, template, &hash, &name));
                    queue.request_write(
                        slot(&group, &name),
                        Some(Write::Create { manifest, owner: app.uid().into(), dry_run: false }),
                    );
                }
                (Validity::Unknown | Validity::Invalid(_) | Validity::Denied(..), _) => {
                    let manifest = Arc::new(pod(app, template, &hash, &name));
                    queue.request_write(
                        slot(&group, &name),
                        Some(Write::Create { manifest, owner: app.uid().into(), dry_run: true }),
                    );
                }
            }
        }
    }
    let others = pods.iter().filter(|(other, _)| *other != name);
    // While no new Pod can be created, keep the latest old one.
    let last = others.clone().filter(|(_, facts)| !facts.deleting).reduce(|one, other| {
        if one.1.resource_version.is_before(&other.1.resource_version) { other } else { one }
    });
    let kept = last.filter(|_| app.check.validity != Validity::Valid).map(|(last, _)| last);
    for (other, facts) in others.filter(|(other, _)| Some(other) != kept) {
        delete(&group, other, facts, queue);
    }
}

fn delete(group: &GroupRef, name: &NamespacedName, facts: &Facts, queue: &mut EffectQueue) {
    let write = (!facts.deleting).then(|| Write::Delete { uid: facts.uid.clone() });
    queue.request_write(slot(group, name), write);
}

/// The name of the Pod for the current template.
pub(super) fn pod_of(app: &ApplicationState) -> Option<NamespacedName> {
    let check = app.spec.health_check.as_ref()?;
    Some(pod_name(&app.name, &hash(&check.template)))
}

/// The first 10 hex digits of a SHA-256.
fn hash(template: &PodTemplate) -> String {
    let text = serde_json::to_vec(template).unwrap_or_default();
    Sha256::digest(text).iter().take(5).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

/// Pod names have at most 253 characters.
fn pod_name(app: &NamespacedName, hash: &str) -> NamespacedName {
    let mut stem: String = app.name.chars().take(253 - hash.len() - 1).collect();
    stem.truncate(stem.trim_end_matches(['-', '.']).len());
    NamespacedName { namespace: Arc::clone(&app.namespace), name: format!("{stem}-{hash}").into() }
}

fn pod(app: &ApplicationState, template: &PodTemplate, hash: &str, name: &NamespacedName) -> Value {
    let mut metadata = Map::new();
    for field in ["annotations", "labels"] {
        if let Some(given) = template.metadata.get(field) {
            metadata.insert(field.to_owned(), given.clone());
        }
    }
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(HEALTH_CHECK_LABEL.to_owned(), hash.into());
    }
    metadata.insert("name".to_owned(), (*name.name).into());
    metadata.insert("namespace".to_owned(), (*name.namespace).into());
    metadata.insert(
        "ownerReferences".to_owned(),
        json!([{
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Application", "name": &*app.name.name, "uid": app.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }]),
    );
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_at_a_legal_place() {
        let long = NamespacedName::new("shop", &format!("{}-{}", "a".repeat(241), "b".repeat(11)));
        let name = pod_name(&long, "0123456789");
        assert_eq!(*name.name, format!("{}-0123456789", "a".repeat(241)));
    }
}
