//! Applications: members in one namespace, selected by labels.
//!
//! `index.rs` finds the Applications that an object may belong to, and `membership.rs` counts it.
//! `ownership.rs`, `dependencies.rs` and `health_check_pod.rs` each implement one part of the spec.
//! `readiness.rs` decides the state; `status.rs` and `objects.rs` render the status. Applications of
//! `app.k8s.io` are converted on input (`manifest.rs`) and have their own status (`app_k8s_io.rs`).

mod app_k8s_io;
mod application_state;
mod below;
mod dependencies;
mod health_check_pod;
mod health_check_state;
mod index;
mod kinds;
mod manifest;
mod membership;
mod objects;
mod owned_kinds;
mod ownership;
mod readiness;
mod status;
mod stored_below;
mod unresolved;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_api::{ApplicationStatus, ConditionStatus};
use jiff::{SignedDuration, Timestamp};

use crate::{
    condition_types::STALLED,
    dependency_graph::DependencyGraph,
    dialect::Dialect,
    effect::{Slot, Write},
    effect_queue::Timer,
    event::Outcome,
    facts::{Facts, OwnObject, ResourceVersion},
    feeds::{Feeds, ObjectId},
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    grouping_context::GroupingContext,
    id::{FeedId, GroupKind, NamespacedName, ObjectKey},
    members::MemberId,
    overwrite_backoff::OverwriteBackoff,
    publication::CONFLICT_TIMEOUT,
    registry::{GroupId, Registry},
    stats::{EngineStats, GroupSamples},
    view::{Group, GroupRelation, GroupStatus},
};

use application_state::ApplicationState;
use below::BelowMembers;
use index::MemberIndex;
use manifest::ApplicationManifest;
use membership::{adopt_stored_times, stored_since, upsert_member};
use ownership::{Owned, record_owners};
use stored_below::StoredBelow;

pub use below::FAILED_AFTER;
pub use health_check_state::HEALTH_CHECK_LABEL;

#[derive(Debug, Default)]
pub(crate) struct Applications {
    apps: Registry<ApplicationState>,
    by_uid: HashMap<Box<str>, GroupId>,
    index: MemberIndex,
    dependencies: DependencyGraph,
    /// The Applications of which an object is a member.
    memberships: HashMap<ObjectId, Box<[GroupId]>>,
    /// Objects with an owner reference to an Application, by its uid.
    owned: HashMap<Box<str>, Owned>,
    below: BelowMembers,
    /// Since the last flush. What Pods say may rest on a time that has not come yet.
    is_clock_set_back: bool,
    /// Objects whose owner references could not be written, with the Applications that report it.
    failed_owner_writes: BTreeMap<(GroupKind, NamespacedName), BTreeSet<GroupId>>,
    /// Objects whose reference to their Application another writer changed.
    owner_overwrites: HashMap<ObjectId, OverwriteBackoff>,
}

impl Grouping for Applications {
    fn handles(&self, kind: OwnKind) -> bool {
        matches!(kind, OwnKind::Application(_))
    }

    fn required_kinds(&self) -> &'static [OwnKind] {
        &[OwnKind::Application(Dialect::Bellwether)]
    }

    fn set_failed_after(&mut self, failed_after: Option<SignedDuration>) {
        self.below.failed_after = failed_after;
    }

    fn sync(&mut self, cx: &mut GroupingContext<'_>) {
        for id in self.apps.sync() {
            self.apply_spec(id, cx);
        }
    }

    fn clock_set(&mut self, by: SignedDuration) {
        self.is_clock_set_back |= by.is_negative();
        for app in self.apps.iter_mut() {
            for time in app.check.times().into_iter().flatten() {
                *time = time.checked_add(by).unwrap_or(*time);
            }
            app.owned_kinds.clock_set(by);
            app.publication.clock_set(by);
        }
        // When an Event is due depends on the clock.
        let all = self.apps.ids();
        self.apps.mark_all_dirty(all);
        for overwrites in self.owner_overwrites.values_mut() {
            overwrites.clock_set(by);
        }
    }

    fn group_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        own: &OwnObject,
        cx: &mut GroupingContext<'_>,
    ) {
        let manifest = match own {
            OwnObject::Application(written) => ApplicationManifest::Bellwether(written),
            OwnObject::AppK8sIo(written) => ApplicationManifest::AppK8sIo(written),
            OwnObject::BindingPolicy(_)
            | OwnObject::CombinedStatus(_)
            | OwnObject::HealthRule(_)
            | OwnObject::Rollup(_)
            | OwnObject::StatusCollector(_) => return,
        };
        let ((spec, app_k8s_io), status) = (manifest.spec(), manifest.status());
        let group = GroupRef::new(OwnKind::Application(manifest.dialect()), name.clone());
        let Some(id) = self.apps.id(&group) else {
            let mut app = ApplicationState::new(
                manifest.publication(group.clone(), facts),
                facts.deleting,
                spec,
                app_k8s_io,
            );
            if let Some(status) = status {
                app.owned_kinds.set_published(owned_kinds(status));
                app.stored_since = stored_since(status, &name.namespace);
                app.stored_below = StoredBelow::of(status, &name.namespace);
            }
            let id = self.apps.insert(group, app);
            self.by_uid.insert(facts.uid.clone(), id);
            self.touch_dependents(id);
            return self.apply_spec(id, cx);
        };
        let is_synced = self.apps.is_synced();
        let Some(app) = self.apps.get_mut(id) else { return };
        let is_same = app.spec == spec && app.app_k8s_io == app_k8s_io && app.deleting == facts.deleting;
        app.deleting = facts.deleting;
        if manifest.observe(&mut app.publication, facts, cx.queue) {
            if let Some(status) = status {
                adopt_stored_times(app, status, cx.feeds, cx.now);
                // Members that are not counted yet need the stored times.
                if !is_synced || !app.is_known(cx.feeds) {
                    app.stored_since.extend(stored_since(status, &name.namespace));
                }
            }
            self.apps.mark_dirty(id);
        }
        if let Some(status) = status {
            self.status_below_observed(id, status, cx);
            self.owned_kinds_published(id, owned_kinds(status), cx);
        }
        if !is_same && let Some(app) = self.apps.get_mut(id) {
            app.selector = application_state::selector(&spec, app_k8s_io.as_ref());
            (app.spec, app.app_k8s_io) = (spec, app_k8s_io);
            self.apply_spec(id, cx);
        }
    }

    fn version_changed(&mut self, group: &GroupRef, facts: &Facts) {
        self.apps.version_changed(group, facts);
    }

    fn remove(&mut self, group: &GroupRef, cx: &mut GroupingContext<'_>) {
        let Some(id) = self.apps.id(group) else { return };
        let mut concerned: BTreeSet<_> = self.remove_spec(id).into_iter().collect();
        let Some((_, mut app)) = self.apps.remove(group, cx.queue) else { return };
        let name = &group.name;
        self.by_uid.remove(app.uid());
        if app.dialect() == Dialect::Bellwether {
            self.mark_all_dirty(&self.dependencies.dependents_of(name));
            self.update_cycles(name, &[]);
        }
        // The garbage collector deletes its members and its health-check Pod.
        app.publication.withdraw(cx.queue);
        for (kind, object) in std::mem::take(&mut app.failed_owner_writes).into_keys() {
            let key = (kind, NamespacedName { namespace: Arc::clone(&name.namespace), name: object });
            if let Some(apps) = self.failed_owner_writes.get_mut(&key) {
                apps.remove(&id);
                if apps.is_empty() {
                    self.failed_owner_writes.remove(&key);
                }
            }
        }
        app.check.forget(group, cx.queue);
        // Withdraw pending owner references.
        concerned.extend(self.owned.get(app.uid()).into_iter().flat_map(Owned::members));
        for object in concerned {
            self.reconcile_owners(object, cx);
        }
        let feeds: Vec<_> = app
            .kind_uses
            .values()
            .map(|kind_use| kind_use.feed)
            .chain(app.kinds_to_release.values().copied())
            .collect();
        app.kind_uses.clear();
        self.leave_kinds_below(id, std::mem::take(&mut app.feeds_below), cx);
        for feed in feeds {
            self.release_feed(feed, id, cx);
        }
    }

    fn object_changed(&mut self, object: ObjectId, before: Option<&Facts>, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        let Some(feed) = cx.feeds.get(stored.feed) else { return };
        self.record_owners(stored.feed, object, before, Some(&stored.facts));
        let mut above = self.below.update(object, before, Some(&stored.facts), cx.feeds);
        let member_of = self.member_of(feed, stored);
        for app in self.memberships.remove(&object).unwrap_or_default() {
            if !member_of.contains(&app)
                && let Some(former) = self.apps.get_mut(app)
            {
                former.members.remove(MemberId::Object(object));
                self.apps.mark_dirty(app);
            }
        }
        // An object of the initial list may have been in its state for long; a later one has just appeared.
        let is_new = feed.listed;
        for id in &member_of {
            if let Some(app) = self.apps.get_mut(*id) {
                let context = (&*cx.feeds, &mut *cx.queue, cx.now);
                upsert_member(app, object, stored, feed, is_new, &self.below, context);
                self.apps.mark_dirty(*id);
            }
        }
        if !member_of.is_empty() {
            self.memberships.insert(object, member_of.into());
        }
        let (kind, name) = (feed.kind.clone(), stored.name.clone());
        self.check_presence(&kind, &name, cx);
        self.reconcile_owners(object, cx);
        above.remove(&object);
        self.update_above(above, Some(object), cx);
    }

    /// An owner reference that got a conflict may be tried again with the new resourceVersion.
    fn object_version_changed(&mut self, object: ObjectId, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        let mut memberships = self.memberships.get(&object).into_iter().flatten();
        if stored.facts.application.is_some()
            || !stored.facts.owners.is_empty()
            || memberships.any(|id| self.apps.get(*id).is_some_and(ApplicationState::adds_owner))
        {
            self.reconcile_owners(object, cx);
        }
    }

    fn below_changed(&mut self, member: ObjectId, cx: &mut GroupingContext<'_>) {
        self.update_above([member], None, cx);
    }

    fn before_object_removed(&mut self, object: ObjectId, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        self.record_owners(stored.feed, object, Some(&stored.facts), None);
        let above = self.below.update(object, Some(&stored.facts), None, cx.feeds);
        self.owner_overwrites.remove(&object);
        for app in self.memberships.remove(&object).unwrap_or_default() {
            if let Some(former) = self.apps.get_mut(app) {
                former.members.remove(MemberId::Object(object));
                self.apps.mark_dirty(app);
            }
        }
        self.update_above(above, Some(object), cx);
    }

    fn after_object_removed(&mut self, object: &ObjectKey, cx: &mut GroupingContext<'_>) {
        self.clear_failed_owner_writes(&object.kind, &object.name);
        self.check_presence(&object.kind, &object.name, cx);
    }

    fn feed_changed(&mut self, feed: FeedId, readability: bool, cx: &mut GroupingContext<'_>) {
        for id in self.apps.users(feed) {
            self.update_members_of(id, feed, cx);
            self.apps.mark_dirty(id);
        }
        self.feed_below_changed(feed, cx);
        // Resolved says whether HealthRules can be read, also where no kind is relisted with other rules.
        let rules = GroupKind::bellwether("HealthRule");
        if readability && cx.feeds.get(feed).is_some_and(|feed| feed.kind == rules) {
            let all = self.apps.ids();
            self.apps.mark_all_dirty(all);
        }
        // Owner references of an unreadable kind are not managed.
        if readability {
            for object in cx.feeds.all(feed) {
                self.reconcile_owners(object, cx);
            }
        }
    }

    fn list_started(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        self.apps.users_changed(feed, cx.queue);
    }

    fn list_completed(&mut self, feed: FeedId, _cx: &mut GroupingContext<'_>) {
        self.apps.mark_users_dirty(feed);
    }

    fn feed_dropped(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        for object in cx.feeds.all(feed) {
            if let Some(stored) = cx.feeds.object(object) {
                record_owners(&mut self.owned, feed, object, Some(&stored.facts), None);
                self.below.update(object, Some(&stored.facts), None, cx.feeds);
                self.owner_overwrites.remove(&object);
            }
        }
    }

    fn written(&mut self, slot: &Slot, write: &Write, outcome: &Outcome, cx: &mut GroupingContext<'_>) {
        match write {
            // Not written by this grouping.
            Write::Status { .. } | Write::SetFields { .. } | Write::Apply { .. } => {}
            Write::OwnerReferences { .. } => self.owners_written(&slot.object, write, outcome, cx),
            Write::Create { owner, dry_run, .. } => {
                if let Some(id) = slot.group().and_then(|group| self.apps.id(&group))
                    && let Some(app) = self.apps.get_mut(id).filter(|app| *app.uid() == **owner)
                    && app.check.written(&slot.object.name, *dry_run, outcome, cx.now)
                {
                    self.apps.mark_dirty(id);
                }
            }
            Write::Delete { uid } => {
                let ObjectKey { cluster, kind, name } = &slot.object;
                let found = cx.feeds.find(cluster, kind, name).and_then(|id| cx.feeds.object(id));
                if found.is_none_or(|stored| stored.facts.uid != *uid) {
                    return;
                }
                match outcome {
                    Outcome::Written(_) => {
                        let app = slot.group().and_then(|group| self.apps.id(&group));
                        self.apps.mark_all_dirty(app);
                    }
                    // The watch will show another object of that name; if not, try again.
                    Outcome::Conflict => {
                        if let (Some(group), Ok(time)) = (slot.group(), cx.now.checked_add(CONFLICT_TIMEOUT))
                        {
                            cx.queue.schedule(time, Timer::Group(group));
                        }
                    }
                    Outcome::FieldConflict(_)
                    | Outcome::NotFound
                    | Outcome::Rejected(_)
                    | Outcome::Failed(_) => {}
                }
            }
        }
    }

    fn timer_fired(&mut self, group: &GroupRef) {
        self.apps.timer_fired(group);
    }

    fn retry(&mut self, slot: &Slot, cx: &mut GroupingContext<'_>) {
        let ObjectKey { cluster, kind, name } = &slot.object;
        if let Some(object) = cx.feeds.find(cluster, kind, name) {
            cx.queue.clear_request(slot);
            self.reconcile_owners(object, cx);
        }
    }

    fn flush(&mut self, cx: &mut GroupingContext<'_>) {
        if !self.apps.is_synced() {
            return;
        }
        if std::mem::take(&mut self.is_clock_set_back) {
            let members: Vec<_> = self.memberships.keys().copied().collect();
            self.update_above(members, None, cx);
        }
        while let Some(id) = self.apps.next_dirty(cx.queue) {
            self.update_services(id, cx);
            self.release_kinds(id, cx);
            self.reconcile_health_check(id, cx);
            let Some(app) = self.apps.get_mut(id).filter(|app| app.is_known(cx.feeds)) else { continue };
            // All members are counted, so stored times of other objects are obsolete.
            (app.is_counting, app.stored_since) = (false, HashMap::new());
            if !app.needs_stored_below(cx.feeds) {
                app.stored_below = StoredBelow::default();
            }
            let Some(app) = self.apps.get(id) else { continue };
            // The status of app.k8s.io has no state.
            let state = (app.dialect() == Dialect::Bellwether).then(|| readiness::state(app, cx.feeds));
            let dependencies = self.dependency_statuses(app);
            let mut conditions = view::conditions(app, cx.feeds, &dependencies);
            if let Some(app_k8s_io) = &app.app_k8s_io {
                let (stalled, later) = app_k8s_io::stalled(app, app_k8s_io, cx.feeds, cx.now);
                conditions.push((STALLED, stalled));
                if let Some(later) = later {
                    cx.queue.schedule(later, app.publication.timer());
                }
            }
            let conditions: Vec<_> = conditions
                .into_iter()
                .map(|(type_, statement)| (type_, statement.map(|statement| statement.status)))
                .collect();
            // Ready is the first condition.
            let ready = conditions.first().and_then(|(_, status)| *status);
            if ready != app.last_ready {
                self.touch_dependents(id);
            }
            let Some(app) = self.apps.get_mut(id) else { continue };
            // Others count by their state.
            let is_counted = state.is_none() && app.last_ready.is_some() && ready != app.last_ready;
            app.publication.transitions += u64::from(is_counted);
            app.last_ready = ready;
            let is_urgent = app.owned_kinds.needs_publishing();
            app.publication.request_write(conditions, state, is_urgent, cx.now, cx.queue);
        }
    }

    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        let app = self.apps.named(group)?;
        if !self.apps.is_synced() || !app.is_known(feeds) {
            return None;
        }
        if let Some(app_k8s_io) = &app.app_k8s_io {
            return app.publication.render_write(&app_k8s_io::render(app, app_k8s_io, feeds, now));
        }
        let mut write =
            app.publication.render_write(&status::render(app, feeds, self.dependency_statuses(app), now))?;
        if let Write::Status { owned_kinds, .. } = &mut write {
            *owned_kinds = app.owned_kinds.kinds().cloned().collect();
        }
        Some(write)
    }

    fn status_written(
        &mut self,
        group: &GroupRef,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) -> Option<ResourceVersion> {
        let id = self.apps.id(group)?;
        let version = self.apps.status_written(group, write, outcome, cx);
        if self.apps.get(id).is_some_and(|app| app.owned_kinds.needs_publishing()) {
            self.apps.mark_dirty(id);
        }
        if let (Some(_), Write::Status { owned_kinds, .. }) = (&version, write) {
            self.owned_kinds_published(id, owned_kinds.iter().cloned().collect(), cx);
        }
        version
    }

    fn groups(&self, feeds: &Feeds, _now: Timestamp) -> Vec<Group> {
        self.views(feeds)
    }

    fn group(&self, group: &GroupRef, feeds: &Feeds, _now: Timestamp) -> Option<Group> {
        let app = self.apps.named(group).filter(|app| app.is_known(feeds))?;
        Some(self.view(app, feeds))
    }

    fn group_count(&self) -> usize {
        self.apps.iter().count()
    }

    fn summary(&self, group: &GroupRef, feeds: &Feeds, _now: Timestamp) -> Option<GroupStatus> {
        self.status_summary(group, feeds)
    }

    fn needs(&self, feed: FeedId) -> bool {
        self.apps.uses(feed)
    }

    fn relations(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<GroupRelation> {
        self.all_relations(kind, name, facts)
    }

    fn add_samples(&self, feeds: &Feeds, samples: &mut GroupSamples) {
        for app in self.apps.iter().filter(|app| app.last_ready.is_some()) {
            samples.add(|| view::sample(app, feeds));
        }
    }

    fn add_to_stats(&self, stats: &mut EngineStats) {
        let count = |wanted: ConditionStatus| {
            let statuses = self.apps.iter().map(|app| app.last_ready.unwrap_or(ConditionStatus::Unknown));
            statuses.filter(|status| *status == wanted).count()
        };
        stats.applications =
            [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown].map(count);
        let index_entries = |app: &ApplicationState| {
            let stored = app.stored_since.len() + app.stored_below.len();
            app.members.total() + stored + app.failed_owner_writes.len()
        };
        let apps: usize = self.apps.iter().map(index_entries).sum();
        stats.index_entries += apps
            + self.memberships.len()
            + self.below.len()
            + self.owned.len()
            + self.failed_owner_writes.len()
            + self.apps.feeds();
    }
}

impl Applications {
    /// Annotations and dependencies refer to Applications of `bellwether.dev`.
    fn bellwether_app(&self, name: &NamespacedName) -> Option<GroupId> {
        self.apps.id(&GroupRef::new(OwnKind::Application(Dialect::Bellwether), name.clone()))
    }

    fn mark_all_dirty(&mut self, names: &[NamespacedName]) {
        for name in names {
            let id = self.bellwether_app(name);
            self.apps.mark_all_dirty(id);
        }
    }

    fn touch_dependents(&mut self, id: GroupId) {
        if let Some(app) = self.apps.get(id).filter(|app| app.dialect() == Dialect::Bellwether) {
            self.mark_all_dirty(&self.dependencies.dependents_of(&app.name));
        }
    }
}

/// `status.ownedKinds`.
fn owned_kinds(status: &ApplicationStatus) -> BTreeSet<GroupKind> {
    status.owned_kinds.iter().map(|named| GroupKind::new(&named.group, &named.kind)).collect()
}
