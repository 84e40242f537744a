//! The kinds that an Application uses: follows them, counts their objects, and releases them.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use crate::{
    event::Unreadable,
    feeds::ObjectId,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind},
    registry::GroupId,
    requested_fields::RequestedFields,
};

use super::{
    Applications,
    application_state::{ApplicationState, KindUse},
    health_check_pod,
    membership::{check_presence, upsert_member},
    owned_kinds::Remaining,
    ownership::{self, Owned},
};

impl Applications {
    /// Counts all members anew, after the spec changed.
    pub(super) fn apply_spec(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        if !self.apps.is_synced() {
            return;
        }
        let mut concerned: BTreeSet<_> = self.remove_spec(id).into_iter().collect();
        self.update_kind_uses(id, cx);
        self.update_kinds_below(id, cx);
        let Some(app) = self.apps.get_mut(id) else { return };
        let name = app.name.clone();
        app.components = ApplicationState::named_components(&app.spec);
        let named =
            app.components.iter().map(|component| (component.kind.clone(), Arc::clone(&component.name)));
        // An object with the name of its health-check Pod also affects it.
        let pod = health_check_pod::pod_of(app).map(|pod| (GroupKind::pod(), pod.name));
        let named: Vec<_> = named.chain(pod).collect();
        let namespaces = app.namespaces();
        let index_entry =
            |namespace: &Arc<str>| self.index.insert(namespace, id, &app.selector, named.clone());
        app.index_entries =
            namespaces.iter().map(Arc::clone).zip(namespaces.iter().map(index_entry)).collect();
        let kind_uses = app.kind_uses.values();
        let feeds: Vec<_> = kind_uses.map(|kind_use| (kind_use.feed, kind_use.allows_members)).collect();
        for (feed, allows_members) in feeds {
            let Some(feed) = cx.feeds.get(feed) else { continue };
            for object in namespaces.iter().flat_map(|namespace| feed.in_namespace(namespace)) {
                let Some(stored) = cx.feeds.object(object) else { continue };
                // Another Application may own it, and no Application used the kind before.
                concerned.insert(object);
                if allows_members && app.membership(&stored.facts).is_ok() {
                    let context = (&*cx.feeds, &mut *cx.queue, cx.now);
                    upsert_member(app, object, stored, feed, false, &self.below, context);
                    let memberships = self.memberships.entry(object).or_default();
                    let mut all: Vec<_> = memberships.iter().copied().chain([id]).collect();
                    all.sort_unstable();
                    *memberships = all.into();
                }
            }
        }
        for index in 0..app.components.len() {
            check_presence(app, index, cx);
        }
        concerned.extend(self.owned.get(app.uid()).into_iter().flat_map(Owned::members));
        if app.app_k8s_io.is_none() {
            let dependencies: Vec<_> =
                app.spec.dependencies.iter().map(|name| app.in_namespace(name)).collect();
            self.update_cycles(&name, &dependencies);
        }
        for object in concerned {
            self.reconcile_owners(object, cx);
        }
        self.apps.mark_dirty(id);
    }

    /// Removes the Application from the index and drops its counts. Returns the objects that it counted.
    pub(super) fn remove_spec(&mut self, id: GroupId) -> Vec<ObjectId> {
        let Some(app) = self.apps.get_mut(id) else { return Vec::new() };
        for (namespace, entry) in mem::take(&mut app.index_entries) {
            self.index.remove(&namespace, id, &entry);
        }
        app.is_counting = true;
        let members = mem::take(&mut app.members);
        for (kind, name, state, since) in members.times() {
            app.stored_since.insert((kind, name), (state, since));
        }
        let objects = members.objects();
        for object in &objects {
            if let Some(memberships) = self.memberships.get_mut(object) {
                *memberships = memberships.iter().copied().filter(|other| *other != id).collect();
                if memberships.is_empty() {
                    self.memberships.remove(object);
                }
            }
        }
        objects
    }

    /// Follows the kinds of the spec, and kinds whose owner references still have to be removed.
    pub(super) fn update_kind_uses(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let requests = app.requested_kinds();
        let mut before: BTreeMap<_, _> =
            mem::take(&mut app.kind_uses).into_iter().map(|(kind, kind_use)| (kind, kind_use.feed)).collect();
        before.append(&mut app.kinds_to_release);
        let kept: Vec<_> =
            app.owned_kinds.kinds().filter(|kind| !requests.contains_key(kind)).cloned().collect();
        let mut follow =
            |kind: &GroupKind| self.apps.follow(id, &Cluster::hub(), kind, &RequestedFields::default(), cx);
        let mut kind_uses = BTreeMap::new();
        for (kind, request) in requests {
            let feed = before.remove(&kind).unwrap_or_else(|| follow(&kind));
            kind_uses.insert(
                kind,
                KindUse { feed, versions: request.versions, allows_members: request.allows_members },
            );
        }
        for kind in kept {
            before.entry(kind).or_insert_with_key(&mut follow);
        }
        if let Some(app) = self.apps.get_mut(id) {
            (app.kind_uses, app.kinds_to_release) = (kind_uses, before);
        }
    }

    /// `status.ownedKinds` was written or observed: owner references for these kinds can be added now.
    pub(super) fn owned_kinds_published(
        &mut self,
        id: GroupId,
        published: BTreeSet<GroupKind>,
        cx: &mut GroupingContext<'_>,
    ) {
        let Some(app) = self.apps.get_mut(id) else { return };
        if !app.owned_kinds.set_published(published) {
            return;
        }
        self.apps.mark_dirty(id);
        if !self.apps.is_synced() {
            return;
        }
        // Another replica may have published a kind that the spec no longer names.
        self.update_kind_uses(id, cx);
        let Some(app) = self.apps.get(id) else { return };
        for object in app.members.objects() {
            self.reconcile_owners(object, cx);
        }
    }

    /// Stops watching kinds of which the Application certainly owns nothing any more.
    pub(super) fn release_kinds(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let mut owned_kinds = mem::take(&mut app.owned_kinds);
        let owned = self.owned.get(app.uid());
        let remaining = |kind: &GroupKind| {
            let Some((id, feed)) = app.feed_of(kind).and_then(|id| Some((id, cx.feeds.get(id)?))) else {
                return Remaining::Maybe;
            };
            match feed.unreadable {
                Some(Unreadable::NotServed) => Remaining::NotServed,
                None if feed.listed && !owned.is_some_and(|owned| owned.has_of(id, kind)) => {
                    Remaining::Nothing
                }
                Some(_) | None => Remaining::Maybe,
            }
        };
        let recheck = owned_kinds.drop_released(|kind| app.may_own(kind), remaining, cx.now);
        if let Some(recheck) = recheck {
            cx.queue.schedule(recheck, app.publication.timer());
        }
        app.owned_kinds = owned_kinds;
        let released: Vec<_> =
            app.kinds_to_release.extract_if(.., |kind, _| !app.owned_kinds.contains(kind)).collect();
        for (_, feed) in released {
            self.release_feed(feed, id, cx);
        }
    }

    pub(super) fn release_feed(&mut self, feed: FeedId, id: GroupId, cx: &mut GroupingContext<'_>) {
        if self.apps.leave(feed, id, cx.feeds) {
            // No Application uses the kind any more: withdraw the pending changes of owner references.
            for object in cx.feeds.all(feed) {
                if let (Some(stored), Some(feed)) = (cx.feeds.object(object), cx.feeds.get(feed)) {
                    cx.queue.request_write(ownership::slot(&feed.cluster, &feed.kind, &stored.name), None);
                    self.clear_failed_owner_writes(&feed.kind, &stored.name);
                }
            }
        }
    }
}
