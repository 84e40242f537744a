//! The life of a cluster of the inventory: connects it, probes it, and exchanges its credentials.
//!
//! API servers send bookmarks once a minute, but a cluster may count as stale after ten seconds. So it is probed
//! whenever nothing else has arrived for [`RemoteSettings::probe_interval`]. The probe reads the uid of the namespace
//! `kube-system`, and so notices a cluster that was rebuilt under the same name.

use std::{mem, sync::Arc, time::Duration};

use bellwether_wire::{ErrorClass, Verb};
use rand::Rng as _;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use crate::{
    client_switch::{Access, ClientSwitch},
    clock::now,
    connected_cluster::{Identified, Reporter},
    identity::{Identity, identity},
    read::ReaderSettings,
    write::{CallError, call},
};

const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The identity is read at least once in so many intervals: while watches are busy, and while it is forbidden.
const IDENTITY_INTERVALS: u32 = 12;

/// A cluster that has not listed all kinds after this time does not delay others any longer.
const CONNECT_TIME: Duration = Duration::from_mins(1);

/// The interval of checks whether all kinds are listed.
const CONNECT_CHECK: Duration = Duration::from_millis(100);

/// Shared by all clusters of the inventory.
#[derive(Clone)]
pub(crate) struct RemoteSettings {
    pub(crate) reader: ReaderSettings,
    /// How many clusters may connect at once.
    pub(crate) connecting: Arc<Semaphore>,
    pub(crate) probe_interval: Duration,
}

/// What was logged last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeState {
    Responding,
    Unauthorized,
    Unreachable,
}

pub(crate) struct RemoteCluster {
    switch: ClientSwitch,
    /// What the inventory has for this cluster; `None` until it has a valid kubeconfig.
    accesses: watch::Receiver<Option<Access>>,
    /// The access whose failure was logged last.
    failed: Option<Access>,
    identified: Identified,
    /// When the identity was last requested; `None` if it must be requested now.
    asked: Option<Instant>,
    /// Whether the right to read the identity is missing.
    is_forbidden: bool,
    state: Option<ProbeState>,
    /// Notified when a lost connection is back.
    reconnected: Arc<Notify>,
    settings: RemoteSettings,
}

impl RemoteCluster {
    pub(crate) fn new(
        switch: ClientSwitch,
        accesses: watch::Receiver<Option<Access>>,
        identified: Identified,
        reconnected: Arc<Notify>,
        settings: RemoteSettings,
    ) -> Self {
        let (failed, asked, is_forbidden, state) = (None, None, false, None);
        Self { switch, accesses, failed, identified, asked, is_forbidden, state, reconnected, settings }
    }

    /// Permits the reader to begin. Runs until the inventory drops its sender.
    pub(crate) async fn run(mut self, permit: watch::Sender<bool>, reporter: &Reporter) {
        let first = self.accesses.wait_for(Option::is_some).await;
        let Some(access) = first.ok().and_then(|access| access.clone()) else { return };
        self.connect(access, &permit, reporter).await;
        loop {
            let interval = jittered(self.settings.probe_interval);
            tokio::select! {
                changed = self.accesses.changed() => if changed.is_err() { return },
                () = self.reconnected.notified() => self.asked = None,
                () = sleep(interval) => {
                    if !self.must_identify() && self.has_heard_within(interval) && !self.has_other_access() {
                        continue;
                    }
                }
            }
            self.exchange(reporter).await;
            self.probe(reporter).await;
        }
    }

    /// Completes when all kinds are listed, or when the cluster does not respond.
    async fn connect(&mut self, access: Access, permit: &watch::Sender<bool>, reporter: &Reporter) {
        // The semaphore is never closed.
        let Ok(_connecting) = Arc::clone(&self.settings.connecting).acquire_owned().await else { return };
        info!(server = &*access.server, "connecting to cluster");
        self.switch.set(access);
        permit.send_replace(true);
        if self.probe(reporter).await {
            let reader = &self.identified.reader;
            let all_listed = async {
                while !(reader.has_discovered() && reader.counters().are_feeds_known()) {
                    sleep(CONNECT_CHECK).await;
                }
            };
            let _ = timeout(CONNECT_TIME, all_listed).await;
        }
    }

    fn must_identify(&self) -> bool {
        let interval = self.settings.probe_interval * IDENTITY_INTERVALS;
        self.asked.is_none_or(|asked| asked.elapsed() >= interval)
    }

    fn has_heard_within(&self, time: Duration) -> bool {
        let heard = self.identified.reader.counters().last_activity();
        heard.is_some_and(|heard| now().passed.saturating_sub(heard) < time)
    }

    fn has_other_access(&self) -> bool {
        *self.accesses.borrow() != self.switch.get()
    }

    /// Returns whether the cluster responds.
    async fn probe(&mut self, reporter: &Reporter) -> bool {
        let Some(Access { client, .. }) = self.switch.get() else { return false };
        if self.is_forbidden && !self.must_identify() {
            let version = call(&client, Verb::Get.request("/version", Vec::new()), PROBE_TIMEOUT).await;
            self.log(version.as_ref().err());
            version.is_ok()
        } else {
            self.asked = Some(Instant::now());
            let identity = identity(&client, PROBE_TIMEOUT).await;
            self.log(identity.as_ref().err());
            match identity {
                Ok(identity) => _ = self.identify(identity, reporter).await,
                Err(_) => return false,
            }
            true
        }
    }

    /// Takes in a response to a probe. Logs changes only.
    fn log(&mut self, error: Option<&CallError>) {
        let state = match error {
            None => ProbeState::Responding,
            error if is_unauthorized(error) => ProbeState::Unauthorized,
            Some(_) => ProbeState::Unreachable,
        };
        let before = self.state.replace(state);
        if state == ProbeState::Unauthorized
            && let Some(Access { rejected, .. }) = self.switch.get()
        {
            rejected.notify_one();
        }
        match error {
            None => {
                self.identified.reader.counters().probed(now());
                if before.is_some_and(|before| before != state) {
                    info!("cluster responds again");
                }
            }
            Some(error) if before == Some(state) => debug!(%error, "cluster does not respond: retrying"),
            Some(error) if state == ProbeState::Unauthorized => {
                warn!(%error, "cluster rejects the credentials: retrying. Update its kubeconfig");
            }
            Some(error) => warn!(%error, "cluster does not respond: retrying"),
        }
    }

    /// Returns whether it is another cluster than before.
    async fn identify(&mut self, identity: Identity, reporter: &Reporter) -> bool {
        let was_forbidden = mem::replace(&mut self.is_forbidden, matches!(identity, Identity::Forbidden(_)));
        match identity {
            Identity::Uid(uid) => return self.identified.report(uid, reporter).await,
            Identity::Forbidden(error) if !was_forbidden => warn!(
                %error,
                "cannot get namespace kube-system: forbidden. A replaced cluster is not detected. Grant the user of the \
                 kubeconfig the verb get on namespaces"
            ),
            Identity::Forbidden(_) | Identity::Unborn => {}
        }
        false
    }

    /// Exchanges the credentials as soon as the new ones work. Until then, the previous ones stay.
    async fn exchange(&mut self, reporter: &Reporter) {
        let Some(before) = self.switch.get() else { return };
        let Some(access) = self.accesses.borrow_and_update().clone().filter(|new| *new != before) else {
            return;
        };
        let identity = identity(&access.client, PROBE_TIMEOUT).await;
        if is_unauthorized(identity.as_ref().err()) {
            access.rejected.notify_one();
        }
        match identity {
            Ok(identity) => {
                let is_comparable = matches!(identity, Identity::Uid(_)) && self.identified.is_known();
                let is_moved = access.server != before.server;
                self.switch.set(access);
                let is_other = self.identify(identity, reporter).await;
                if is_other {
                    // All kinds are listed again already.
                } else if is_moved && !is_comparable {
                    // It may be another cluster.
                    self.identified.reader.relist();
                } else {
                    self.identified.reader.reconnect();
                }
                info!("exchanged the credentials of the cluster");
            }
            // What has never worked is not worth keeping.
            Err(_) if self.identified.reader.counters().last_activity().is_none() => {
                self.switch.set(access);
                self.identified.reader.reconnect();
            }
            Err(error) if self.failed.as_ref() == Some(&access) => {
                debug!(%error, "new kubeconfig still does not work: retrying");
            }
            Err(error) => {
                warn!(%error, "new kubeconfig does not work: keeping the previous one, and retrying");
                self.failed = Some(access);
            }
        }
    }
}

fn is_unauthorized(error: Option<&CallError>) -> bool {
    matches!(error, Some(CallError::Api(error)) if error.class == ErrorClass::Unauthorized)
}

/// Clusters that are added together are not probed together.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(rand::rng().random_range(0.8..1.2))
}
