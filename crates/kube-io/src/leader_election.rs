//! Leader election by a Lease: runs the [`Election`] against an API server.

mod settings;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::Client;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{sleep_until, timeout_at},
};

pub use self::settings::LeaseSettings;
use self::settings::record;
use crate::write::{CallError, call};
use bellwether_engine::ResourceVersion;
use bellwether_wire::{
    ErrorClass, Verb,
    election::{Election, LeaseStep, MAX_LEASE_DURATION},
    restore_detector::{RestoreDetector, Seen},
};
use tracing::{debug, info, warn};

/// The attempts on conflicts with other writers.
const RELEASE_ATTEMPTS: usize = 3;

const MIN_RETRY: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    Standby {
        /// The leader, if it is known.
        holder: Option<String>,
    },
    Leading {
        since: Timestamp,
        /// The renew deadline. A renewal changes it without waking the receivers.
        until: Instant,
    },
}

impl Leadership {
    /// False after the deadline, so that a process that was paused does not rely on an old value.
    pub fn leads_at(&self, now: Instant) -> bool {
        self.time_left(now).is_some()
    }

    /// The time until the renew deadline; `None` for a stand-by.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Leading { until, .. } => until.checked_duration_since(now).filter(|left| !left.is_zero()),
            Self::Standby { .. } => None,
        }
    }
}

/// One candidate of a leader election. Dropping it does not release the Lease: another process leads only
/// after the Lease has expired.
#[must_use = "the candidate gives up when this is dropped"]
pub struct LeaderElector {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    restored: watch::Receiver<u64>,
}

impl LeaderElector {
    /// Takes part in the election until the elector is released or dropped. The last value of the receiver is
    /// always `Standby`.
    ///
    /// Must be called within a tokio runtime.
    pub fn start(client: Client, mut settings: LeaseSettings) -> (watch::Receiver<Leadership>, Self) {
        settings.duration = settings.duration.min(MAX_LEASE_DURATION);
        settings.renew_deadline = settings.renew_deadline.min(settings.duration * 2 / 3);
        settings.retry = settings.retry.min(settings.renew_deadline / 4).max(MIN_RETRY);
        let (sender, leadership) = watch::channel(Leadership::Standby { holder: None });
        let (restored_sender, restored) = watch::channel(0);
        let candidate = Candidate {
            client,
            election: Election::new(&settings.identity, settings.duration, settings.renew_deadline),
            leadership: LeadershipSender(sender),
            restores: RestoreDetector::default(),
            restored: restored_sender,
            is_failing: false,
            settings,
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(candidate.run(stopped));
        (leadership, Self { stop: Some(stop), task, restored })
    }

    /// Changes when the resourceVersion of the Lease went back: the cluster was restored from a backup. A
    /// stand-by reads the Lease, too, and notices it as soon as the leader.
    pub fn restored(&self) -> watch::Receiver<u64> {
        self.restored.clone()
    }

    /// Ends the candidacy and releases the Lease, so that another process can lead at once. All writes of the
    /// leader must have ended before.
    pub async fn release(mut self) {
        // Both fail only if the task has ended already.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = (&mut self.task).await;
    }
}

impl Drop for LeaderElector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends `Standby` when dropped.
struct LeadershipSender(watch::Sender<Leadership>);

impl Drop for LeadershipSender {
    fn drop(&mut self) {
        self.0.send_replace(Leadership::Standby { holder: None });
    }
}

struct Candidate {
    client: Client,
    settings: LeaseSettings,
    election: Election,
    leadership: LeadershipSender,
    restores: RestoreDetector,
    restored: watch::Sender<u64>,
    /// Whether the last attempt failed. Only the first of several failures in a row is logged.
    is_failing: bool,
}

/// The result of one attempt to release the Lease.
enum Release {
    Released,
    /// Another process holds the Lease, or none does.
    NotHeld,
    /// Another process has written the Lease meanwhile.
    Conflict,
}

impl Candidate {
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        tokio::select! {
            () = self.run_election() => {}
            _ = stopped => self.release().await,
        }
    }

    async fn run_election(&mut self) {
        loop {
            let attempted = match self.election.leads_until() {
                // A leader must not wait for a response beyond its deadline.
                Some(end) => timeout_at(end.into(), self.attempt()).await,
                None => Ok(self.attempt().await),
            };
            let now = Instant::now();
            let mut next = now + self.settings.retry.mul_f64(rand::random_range(0.9..1.1));
            if let Ok(Some(end)) = attempted {
                next = next.min(end);
            }
            if let Some(end) = self.election.leads_until() {
                next = next.min(end);
            }
            self.publish(now);
            sleep_until(next.into()).await;
            self.publish(Instant::now());
        }
    }

    /// Reads the Lease and writes it if the election says so. Returns the latest time of the next attempt.
    async fn attempt(&mut self) -> Option<Instant> {
        let lease = self.settings.full_name();
        match self.step().await {
            Ok(wait) => {
                if std::mem::take(&mut self.is_failing) {
                    info!(%lease, "lease requests succeed again");
                }
                wait
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    warn!(%lease, after = ?self.settings.retry, %error, "cannot acquire or renew lease: retrying");
                }
                None
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Instant>, String> {
        let lease = self.read().await?;
        let version = lease.as_ref().and_then(|lease| lease.metadata.resource_version.as_deref());
        if version.is_some_and(|version| self.restores.read(&ResourceVersion::new(version)) == Seen::Restored)
        {
            self.restored.send_modify(|times| *times += 1);
        }
        let record = lease.as_ref().map(record);
        let step = self.election.observe(record.as_ref(), Instant::now());
        if let LeaseStep::Wait(until) = step {
            return Ok(Some(until));
        }
        let sent = Instant::now();
        let lease_to_write = self.settings.lease_to_write(lease.clone(), step, Timestamp::now());
        if self.write(lease.is_some(), &lease_to_write).await? {
            self.election.written(sent);
        }
        Ok(None)
    }

    async fn read(&self) -> Result<Option<Lease>, String> {
        match self.send(Verb::Get.request(&self.settings.path(), Vec::new())).await {
            Ok(lease) => serde_json::from_slice(&lease)
                .map(Some)
                .map_err(|error| format!("the response is not a Lease: {error}")),
            Err(CallError::Api(error)) if error.class == ErrorClass::NotFound => Ok(None),
            Err(error) => Err(self.settings.explain(&error)),
        }
    }

    /// Returns false if another process has written the Lease meanwhile.
    async fn write(&self, exists: bool, lease: &Lease) -> Result<bool, String> {
        let lease = serde_json::to_vec(lease).map_err(|error| error.to_string())?;
        let request = if exists {
            Verb::Update.request(&self.settings.path(), lease)
        } else {
            Verb::Create.request(&self.settings.collection_path(), lease)
        };
        match self.send(request).await {
            Ok(_) => Ok(true),
            // Deleted meanwhile: the next attempt creates it.
            Err(CallError::Api(error)) if error.class == ErrorClass::NotFound && exists => Ok(false),
            Err(CallError::Api(error))
                if matches!(
                    error.class,
                    ErrorClass::AlreadyExists | ErrorClass::Conflict | ErrorClass::UidMismatch
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(self.settings.explain(&error)),
        }
    }

    /// The timeout is half of the renew deadline, so that a leader can retry once.
    async fn send(&self, request: http::Result<Request<Vec<u8>>>) -> Result<Bytes, CallError> {
        call(&self.client, request, self.settings.renew_deadline / 2).await
    }

    /// Sends the leadership to the receivers, and logs changes.
    fn publish(&mut self, now: Instant) {
        let until = self.election.leads_until().filter(|until| now < *until);
        if until.is_none() {
            self.election.step_down();
        }
        let (lease, holder) = (self.settings.full_name(), self.election.leader());
        self.leadership.0.send_if_modified(|leadership| match (until, leadership) {
            (Some(until), Leadership::Leading { until: old, .. }) => {
                // Receivers may have seen the deadline pass: wake them.
                let had_lapsed = *old <= now;
                *old = until;
                had_lapsed
            }
            (Some(until), leadership) => {
                info!(%lease, "became leader");
                *leadership = Leadership::Leading { since: Timestamp::now(), until };
                true
            }
            (None, Leadership::Standby { holder: old }) if old.as_deref() == holder => false,
            (None, leadership) => {
                match (&*leadership, holder) {
                    (_, Some(holder)) => info!(%lease, %holder, "waiting for leadership"),
                    (Leadership::Leading { .. }, None) => {
                        warn!(%lease, "lost leadership: the Lease was not renewed in time");
                    }
                    (Leadership::Standby { .. }, None) => {}
                }
                *leadership = Leadership::Standby { holder: holder.map(str::to_owned) };
                true
            }
        });
    }

    /// Steps down and clears the holder of the Lease, if this process holds it.
    async fn release(&mut self) {
        let was_leading = self.election.leads_until().is_some();
        self.election.step_down();
        let lease = self.settings.full_name();
        self.leadership.0.send_replace(Leadership::Standby { holder: None });
        for _ in 0..RELEASE_ATTEMPTS {
            match self.try_to_release().await {
                Ok(Release::Released) => return info!(%lease, "released lease"),
                Ok(Release::NotHeld) => return,
                Ok(Release::Conflict) => {}
                Err(error) if was_leading => {
                    return warn!(%lease, %error, "cannot release lease: it expires on its own");
                }
                Err(error) => return debug!(%lease, %error, "cannot read the Lease"),
            }
        }
    }

    async fn try_to_release(&self) -> Result<Release, String> {
        let Some(mut lease) = self.read().await? else { return Ok(Release::NotHeld) };
        let Some(spec) = lease.spec.as_mut() else { return Ok(Release::NotHeld) };
        if spec.holder_identity.as_ref() != Some(&self.settings.identity) {
            return Ok(Release::NotHeld);
        }
        spec.holder_identity = Some(String::new());
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        Ok(if self.write(true, &lease).await? { Release::Released } else { Release::Conflict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leadership_ends_at_its_deadline() {
        let now = Instant::now();
        let leading =
            Leadership::Leading { since: Timestamp::UNIX_EPOCH, until: now + Duration::from_secs(1) };
        assert!(leading.leads_at(now));
        assert!(!leading.leads_at(now + Duration::from_secs(1)));
        assert!(!Leadership::Standby { holder: None }.leads_at(now));
    }
}
