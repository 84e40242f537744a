//! What an Application looks at: the kinds that its spec speaks of, and the objects of them that belong to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use crate::{
    context::Context,
    event::Unreadable,
    feeds::ObjectId,
    id::{Cluster, FeedId, GroupKind},
    registry::GroupId,
    wanted::Wanted,
};

use super::{
    Applications,
    app::{App, KindUse},
    health_check,
    membership::{count, look_for},
    owned_kinds::Left,
    ownership::{self, Owned},
};

impl Applications {
    /// The spec of an Application is new: finds out all over what belongs to it.
    pub(super) fn attach(&mut self, id: GroupId, cx: &mut Context<'_>) {
        if !self.apps.is_synced() {
            return;
        }
        let mut concerned: BTreeSet<_> = self.detach(id).into_iter().collect();
        self.choose_kinds(id, cx);
        let Some(app) = self.apps.get_mut(id) else { return };
        let name = app.name.clone();
        app.components = App::named(&app.spec);
        let named =
            app.components.iter().map(|component| (component.kind.clone(), Arc::clone(&component.name)));
        // Whoever has the name of its Pod concerns it, too.
        let pod = health_check::pod_of(app).map(|pod| (GroupKind::pod(), pod.name));
        let named: Vec<_> = named.chain(pod).collect();
        let places = app.places();
        let enter = |place: &Arc<str>| self.index.insert(place, id, &app.selector, named.clone());
        app.entries = places.iter().map(Arc::clone).zip(places.iter().map(enter)).collect();
        let feeds: Vec<_> = app.needs.values().filter(|need| need.counts).map(|need| need.feed).collect();
        for feed in feeds.into_iter().filter_map(|feed| cx.feeds.get(feed)) {
            for object in places.iter().flat_map(|place| feed.in_namespace(place)) {
                let Some(stored) = cx.feeds.object(object) else { continue };
                concerned.insert(object);
                if app.membership(&stored.facts).is_ok() {
                    count(app, object, stored, feed, false, cx.now);
                    let counting = self.counting.entry(object).or_default();
                    let mut all: Vec<_> = counting.iter().copied().chain([id]).collect();
                    all.sort_unstable();
                    *counting = all.into();
                }
            }
        }
        for index in 0..app.components.len() {
            look_for(app, index, cx);
        }
        let needs = app.spec.dependencies.iter().map(|name| app.member(name)).collect();
        let circle_may_change = app.legacy.is_none() && self.dependencies.set(&name, needs);
        concerned.extend(self.owned.get(app.uid()).into_iter().flat_map(Owned::members));
        if circle_may_change {
            self.touch_cycle(&name);
        }
        for object in concerned {
            self.look_at_owners(object, cx);
        }
        self.apps.touch(id);
    }

    /// Counts nothing for an Application any more. Gives back what was counted.
    pub(super) fn detach(&mut self, id: GroupId) -> Vec<ObjectId> {
        let Some(app) = self.apps.get_mut(id) else { return Vec::new() };
        for (place, entry) in mem::take(&mut app.entries) {
            self.index.remove(&place, id, &entry);
        }
        let members = mem::take(&mut app.members);
        for (kind, name, state, since) in members.times() {
            app.remembered.insert((kind, name), (state, since));
        }
        let objects = members.objects();
        for object in &objects {
            if let Some(counting) = self.counting.get_mut(object) {
                *counting = counting.iter().copied().filter(|other| *other != id).collect();
                if counting.is_empty() {
                    self.counting.remove(object);
                }
            }
        }
        objects
    }

    /// Follows the kinds that the spec of an Application asks for, and no others, except to let go of what it owns.
    pub(super) fn choose_kinds(&mut self, id: GroupId, cx: &mut Context<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let requests = app.requests();
        let mut before: BTreeMap<_, _> =
            mem::take(&mut app.needs).into_iter().map(|(kind, need)| (kind, need.feed)).collect();
        before.append(&mut app.leaving);
        let held: Vec<_> =
            app.owned_kinds.kinds().filter(|kind| !requests.contains_key(kind)).cloned().collect();
        let mut follow =
            |kind: &GroupKind| self.apps.follow(id, &Cluster::hub(), kind, &Wanted::default(), cx);
        let mut needs = BTreeMap::new();
        for (kind, request) in requests {
            let feed = before.remove(&kind).unwrap_or_else(|| follow(&kind));
            needs.insert(kind, KindUse { feed, versions: request.versions, counts: request.counts });
        }
        for kind in held {
            before.entry(kind).or_insert_with_key(&mut follow);
        }
        if let Some(app) = self.apps.get_mut(id) {
            (app.needs, app.leaving) = (needs, before);
        }
    }

    /// The status of an Application names the kinds of which it may own objects: what waited for that is done, and what is
    /// named no longer waits.
    pub(super) fn announced(&mut self, id: GroupId, named: BTreeSet<GroupKind>, cx: &mut Context<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        if !app.owned_kinds.announced(named) {
            return;
        }
        self.apps.touch(id);
        if !self.apps.is_synced() {
            return;
        }
        // Somebody else may have named what the spec does not speak of any more.
        self.choose_kinds(id, cx);
        let Some(app) = self.apps.get(id) else { return };
        for object in app.members.objects() {
            self.look_at_owners(object, cx);
        }
    }

    /// Follows no longer the kinds of which an Application owned something, as far as it has let go of all.
    pub(super) fn leave_kinds(&mut self, id: GroupId, cx: &mut Context<'_>) {
        let Some(app) = self.apps.get_mut(id) else { return };
        let mut owned_kinds = mem::take(&mut app.owned_kinds);
        let owned = self.owned.get(app.uid());
        let left = |kind: &GroupKind| {
            let Some((id, feed)) = app.feed_of(kind).and_then(|id| Some((id, cx.feeds.get(id)?))) else {
                return Left::Perhaps;
            };
            match feed.unreadable {
                Some(Unreadable::NotServed) => Left::Gone,
                None if feed.listed && !owned.is_some_and(|owned| owned.has_of(id, kind)) => Left::Nothing,
                Some(_) | None => Left::Perhaps,
            }
        };
        let again = owned_kinds.drop_what_is_over(|kind| app.may_own(kind), left, cx.now);
        if let Some(again) = again {
            cx.queue.schedule(again, app.publication.timer());
        }
        app.owned_kinds = owned_kinds;
        let left: Vec<_> = app.leaving.extract_if(.., |kind, _| !app.owned_kinds.contains(kind)).collect();
        for (_, feed) in left {
            self.release_feed(feed, id, cx);
        }
    }

    pub(super) fn release_feed(&mut self, feed: FeedId, id: GroupId, cx: &mut Context<'_>) {
        if self.apps.leave(feed, id, cx.feeds) {
            // Nobody counts these any more; only a change of their owners may still be asked for.
            for object in cx.feeds.all(feed) {
                if let (Some(stored), Some(feed)) = (cx.feeds.object(object), cx.feeds.get(feed)) {
                    cx.queue.want(ownership::slot(&feed.cluster, &feed.kind, &stored.name), None);
                    self.accept(&feed.kind, &stored.name);
                }
            }
        }
    }
}
