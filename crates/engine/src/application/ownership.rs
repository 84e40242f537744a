//! Owner references. An Application owns the members whose annotation names it, and removes its reference
//! from all others. Applications of `app.k8s.io` own all their members if `addOwnerRef` is set, and never
//! remove a reference: installers add such references themselves and do not expect a controller to undo it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_api::GROUP;

use crate::{
    effect::{Part, RequiredOwner, Slot, Write},
    effect_queue::Timer,
    event::Outcome,
    facts::{Facts, OwnerReference},
    feeds::ObjectId,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    publication::CONFLICT_TIMEOUT,
    registry::GroupId,
};

use super::{Applications, application_state::ApplicationState, health_check_state::is_health_check};

impl Applications {
    /// Requests the change of owner references that an object needs, if any.
    pub(super) fn reconcile_owners(&mut self, object: ObjectId, cx: &mut GroupingContext<'_>) {
        // Before all Applications are known, the owner is not; `sync` covers all objects later.
        if !self.apps.is_synced() {
            return;
        }
        let Some(stored) = cx.feeds.object(object) else { return };
        let Some(feed) = cx.feeds.get(stored.feed) else { return };
        let facts = &stored.facts;
        let slot = slot(&feed.cluster, &feed.kind, &stored.name);
        // Our own kinds are always watched; their owners are managed only if an Application uses the kind.
        let is_managed = self.apps.uses(stored.feed)
            && !facts.deleting
            && facts.resource_version.is_known()
            && !stored.name.namespace.is_empty()
            && !is_health_check(facts)
            && feed.unreadable.is_none();
        if !is_managed {
            self.clear_failed_owner_writes(&slot.object.kind, &slot.object.name);
            return cx.queue.request_write(slot, None);
        }
        let memberships = self.memberships.get(&object).map(|memberships| &**memberships).unwrap_or_default();
        let adopts = |id: &GroupId| self.apps.get(*id).is_some_and(|app| app.adopts(facts) && !app.deleting);
        let owner = memberships.iter().copied().find(adopts);
        // The kind has to be in `status.ownedKinds` first.
        let is_published = owner.is_some_and(|id| {
            let Some(app) = self.apps.get_mut(id) else { return false };
            let is_published = app.owned_kinds.require(&feed.kind);
            if !is_published {
                self.apps.mark_dirty(id);
            }
            is_published
        });
        let owner = owner.and_then(|id| self.apps.get(id));
        let owners = applications(facts).filter_map(|uid| self.apps.get(*self.by_uid.get(uid)?));
        // A reference to a terminating Application stays: its user asked to delete what it owns.
        let former_owners: Vec<_> = owners
            .filter(|app| {
                !app.deleting && app.name.namespace == stored.name.namespace && app.app_k8s_io.is_none()
            })
            .filter(|app| owner.is_none_or(|owner| owner.uid() != app.uid()))
            .collect();
        let app_k8s_io_owners = memberships.iter().filter_map(|id| self.apps.get(*id));
        let mut app_k8s_io_owners: Vec<_> =
            app_k8s_io_owners.filter(|app| app.adds_owner() && !app.deleting).collect();
        app_k8s_io_owners.sort_unstable_by_key(|app| &app.name);
        let write =
            owner_references_write(facts, owner.filter(|_| is_published), &app_k8s_io_owners, &former_owners);
        let is_altered = owner.is_some_and(|owner| is_altered(facts, owner));
        if write.is_none() {
            self.clear_failed_owner_writes(&slot.object.kind, &slot.object.name);
        }
        if is_altered && write.is_some() {
            let overwrites = self.owner_overwrites.entry(object).or_default();
            overwrites.observe_foreign(&facts.resource_version);
            // Another writer insists on its own reference.
            if let Some(until) = overwrites.backs_off_until(cx.now) {
                cx.queue.schedule(until, Timer::Retry(slot.clone()));
                return cx.queue.request_write(slot, None);
            }
        }
        cx.queue.request_write(slot, write);
    }

    pub(super) fn record_owners(
        &mut self,
        feed: FeedId,
        object: ObjectId,
        before: Option<&Facts>,
        now: Option<&Facts>,
    ) {
        let touched = record_owners(&mut self.owned, feed, object, before, now);
        let is_check = now.or(before).is_some_and(is_health_check);
        for uid in touched {
            if let Some(id) = self.by_uid.get(&uid)
                && (is_check || self.apps.get(*id).is_some_and(|app| app.owned_kinds.is_releasing()))
            {
                self.apps.mark_dirty(*id);
            }
        }
    }

    pub(super) fn owners_written(
        &mut self,
        object: &ObjectKey,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) {
        let Some(id) = cx.feeds.find(&object.cluster, &object.kind, &object.name) else { return };
        let Some(stored) = cx.feeds.object_mut(id) else { return };
        let Write::OwnerReferences { uid, owners, resource_version: before, required_owner } = write else {
            return;
        };
        match outcome {
            Outcome::Conflict if *before == stored.facts.resource_version => {
                if let Ok(time) = cx.now.checked_add(CONFLICT_TIMEOUT) {
                    cx.queue.schedule(time, Timer::Retry(slot(&object.cluster, &object.kind, &object.name)));
                }
            }
            Outcome::Written(Some(version))
                if stored.facts.uid == *uid && !version.is_before(&stored.facts.resource_version) =>
            {
                let before = stored.facts.clone();
                stored.record_write(version.clone());
                stored.facts.owners = owners.iter().cloned().collect();
                let (after, feed) = (stored.facts.clone(), stored.feed);
                self.record_owners(feed, id, Some(&before), Some(&after));
                if let Some(overwrites) = self.owner_overwrites.get_mut(&id) {
                    overwrites.record_own_write(version, cx.now);
                }
            }
            Outcome::Rejected(why) => {
                let facts = &stored.facts;
                let named = facts.application.as_ref().and_then(|app| {
                    let name = NamespacedName {
                        namespace: Arc::clone(&object.name.namespace),
                        name: (**app).into(),
                    };
                    self.bellwether_app(&name)
                });
                let owners = applications(facts).filter_map(|uid| self.by_uid.get(uid).copied());
                let adopter = required_owner.as_ref().and_then(|owner| self.by_uid.get(&owner.uid).copied());
                let concerned: BTreeSet<_> = owners.chain(named).chain(adopter).collect();
                // Other Applications may be concerned now than at the last rejection.
                self.clear_failed_owner_writes(&object.kind, &object.name);
                for id in &concerned {
                    if let Some(app) = self.apps.get_mut(*id) {
                        app.failed_owner_writes
                            .insert((object.kind.clone(), Arc::clone(&object.name.name)), Arc::clone(why));
                        self.apps.mark_dirty(*id);
                    }
                }
                self.failed_owner_writes.insert((object.kind.clone(), object.name.clone()), concerned);
            }
            _ => {}
        }
        self.reconcile_owners(id, cx);
    }

    /// The owner references of an object are fine, or not managed any more.
    pub(super) fn clear_failed_owner_writes(&mut self, kind: &GroupKind, name: &NamespacedName) {
        if self.failed_owner_writes.is_empty() {
            return;
        }
        for id in self.failed_owner_writes.remove(&(kind.clone(), name.clone())).into_iter().flatten() {
            if let Some(app) = self.apps.get_mut(id) {
                app.failed_owner_writes.remove(&(kind.clone(), Arc::clone(&name.name)));
                self.apps.mark_dirty(id);
            }
        }
    }
}

fn reference(app: &ApplicationState) -> OwnerReference {
    OwnerReference {
        api_version: app.dialect().api_version().into(),
        kind: "Application".into(),
        name: (*app.name.name).into(),
        uid: app.uid().into(),
        controller: Some(false),
        block_owner_deletion: Some(true),
    }
}

/// An absent `controller` is false. The version of the API may differ.
fn is_as_wanted(present: &OwnerReference, wanted: &OwnerReference) -> bool {
    present.name == wanted.name
        && present.controller.unwrap_or(false) == wanted.controller.unwrap_or(false)
        && present.block_owner_deletion == wanted.block_owner_deletion
}

/// Whether an owner has a reference that another writer changed.
fn is_altered(facts: &Facts, owner: &ApplicationState) -> bool {
    let wanted = reference(owner);
    facts.owners.iter().any(|present| present.uid == wanted.uid && !is_as_wanted(present, &wanted))
}

pub(super) fn is_application(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    &*owner.kind == "Application" && group == Some(GROUP)
}

/// `owner` should own the object, and so should the Applications of `app.k8s.io` in `app_k8s_io_owners`;
/// references to `former_owners` are removed. Other references stay.
pub(super) fn owner_references_write(
    facts: &Facts,
    owner: Option<&ApplicationState>,
    app_k8s_io_owners: &[&ApplicationState],
    former_owners: &[&ApplicationState],
) -> Option<Write> {
    let is_former = |owner: &&OwnerReference| former_owners.iter().any(|app| *app.uid() == *owner.uid);
    let mut owners: Vec<_> = facts.owners.iter().filter(|owner| !is_former(owner)).cloned().collect();
    let mut requires = None;
    if let Some(app) = owner {
        let wanted = reference(app);
        match owners.iter_mut().find(|owner| *owner.uid == *app.uid()) {
            Some(present) if is_as_wanted(present, &wanted) => {}
            Some(present) => *present = wanted,
            None => {
                owners.push(wanted);
                requires = Some(Box::new(existing(app)));
            }
        }
    }
    for app in app_k8s_io_owners {
        // One new owner per write, because each must be checked to exist.
        if requires.is_some() || owners.iter().any(|owner| *owner.uid == *app.uid()) {
            continue;
        }
        let wanted = reference(app);
        let has_same_name = |owner: &&mut OwnerReference| {
            owner.api_version == wanted.api_version && owner.kind == wanted.kind && owner.name == wanted.name
        };
        // An Application that was recreated has another uid.
        match owners.iter_mut().find(has_same_name) {
            Some(before) => *before = wanted,
            None => owners.push(wanted),
        }
        requires = Some(Box::new(existing(app)));
    }
    (*owners != *facts.owners).then(|| Write::OwnerReferences {
        uid: facts.uid.clone(),
        resource_version: facts.resource_version.clone(),
        owners: owners.into(),
        required_owner: requires,
    })
}

fn existing(app: &ApplicationState) -> RequiredOwner {
    RequiredOwner {
        kind: app.dialect().kind(),
        api_version: app.dialect().version().into(),
        plural: "applications".into(),
        name: app.name.clone(),
        uid: app.uid().into(),
    }
}

pub(super) fn slot(cluster: &Cluster, kind: &GroupKind, name: &NamespacedName) -> Slot {
    let object = ObjectKey { cluster: cluster.clone(), kind: kind.clone(), name: name.clone() };
    Slot { object, part: Part::OwnerReferences }
}

pub(super) fn applications(facts: &Facts) -> impl Iterator<Item = &Box<str>> {
    facts.owners.iter().filter(|owner| is_application(owner)).map(|owner| &owner.uid)
}

/// Objects with an owner reference to an Application.
#[derive(Debug, Default)]
pub(super) struct Owned {
    members: BTreeMap<FeedId, BTreeSet<ObjectId>>,
    checks: BTreeSet<ObjectId>,
}

impl Owned {
    pub(super) fn members(&self) -> impl Iterator<Item = ObjectId> {
        self.members.values().flatten().copied()
    }

    pub(super) fn checks(&self) -> impl Iterator<Item = ObjectId> {
        self.checks.iter().copied()
    }

    pub(super) fn has_of(&self, feed: FeedId, kind: &GroupKind) -> bool {
        self.members.contains_key(&feed) || (*kind == GroupKind::pod() && !self.checks.is_empty())
    }

    fn insert(&mut self, feed: FeedId, object: ObjectId, is_check: bool) {
        if is_check {
            self.checks.insert(object);
        } else {
            self.members.entry(feed).or_default().insert(object);
        }
    }

    fn remove(&mut self, feed: FeedId, object: ObjectId) {
        self.checks.remove(&object);
        if let Some(objects) = self.members.get_mut(&feed) {
            objects.remove(&object);
            if objects.is_empty() {
                self.members.remove(&feed);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.checks.is_empty()
    }
}

/// Updates `owned`. Returns the Applications that owned the object before or own it now.
pub(super) fn record_owners(
    owned: &mut HashMap<Box<str>, Owned>,
    feed: FeedId,
    object: ObjectId,
    before: Option<&Facts>,
    now: Option<&Facts>,
) -> BTreeSet<Box<str>> {
    let mut touched = BTreeSet::new();
    for uid in before.into_iter().flat_map(applications) {
        touched.insert(uid.clone());
        if let Some(own) = owned.get_mut(uid) {
            own.remove(feed, object);
            if own.is_empty() {
                owned.remove(uid);
            }
        }
    }
    let is_check = now.is_some_and(is_health_check);
    // A terminating object needs no release.
    let now = now.filter(|facts| is_check || !facts.deleting);
    for uid in now.into_iter().flat_map(applications) {
        touched.insert(uid.clone());
        owned.entry(uid.clone()).or_default().insert(feed, object, is_check);
    }
    touched
}
