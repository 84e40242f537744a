//! Leading by a Lease: the [`Election`] on a real API server.

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
use super::call::{CallError, call};
use bellwether_wire::{
    ErrorClass, Verb,
    election::{Election, LONGEST_SILENCE, LeaseStep},
};

/// How often a release is tried: others may write to the Lease at the same moment.
const TRIES_TO_RELEASE: usize = 3;

/// Whatever is asked for: an API server has other things to do.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);

/// Whether this process leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It stands by.
    Standby {
        /// Who leads instead, as far as is known.
        holder: Option<String>,
    },
    /// It leads.
    Leading {
        /// Since when.
        since: Timestamp,
        /// Until when, unless the Lease is renewed. That moves it, and nobody is woken for it while it lasts.
        until: Instant,
    },
}

impl Leadership {
    /// Whether this process leads at this moment. A process that was stopped and goes on is not fooled by what was said
    /// before.
    pub fn leads_at(&self, now: Instant) -> bool {
        self.left_at(now).is_some()
    }

    /// For how long it leads from this moment on, if nothing else happens; nothing if it does not lead.
    pub fn left_at(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Leading { until, .. } => until.checked_duration_since(now).filter(|left| !left.is_zero()),
            Self::Standby { .. } => None,
        }
    }
}

/// Takes part in the election. What is received says at any time whether this process leads; it ends as standby.
///
/// It must be called from within a runtime, on which the campaign runs until it is released or dropped.
pub fn campaign(client: Client, mut settings: LeaseSettings) -> (watch::Receiver<Leadership>, Campaign) {
    settings.duration = settings.duration.min(LONGEST_SILENCE);
    settings.renew_deadline = settings.renew_deadline.min(settings.duration);
    settings.retry = settings.retry.min(settings.renew_deadline / 4).max(SHORTEST_RETRY);
    let (sender, leadership) = watch::channel(Leadership::Standby { holder: None });
    let candidate = Candidate {
        client,
        election: Election::new(&settings.identity, settings.duration, settings.renew_deadline),
        announced: LeadershipSender(sender),
        trouble: false,
        settings,
    };
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(candidate.run(stopped));
    (leadership, Campaign { stop: Some(stop), task })
}

/// A campaign that is under way. Dropped, it ends at once, and another leads only when the Lease has run out.
#[must_use = "the campaign ends when this is dropped"]
pub struct Campaign {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Campaign {
    /// Ends the campaign and gives the Lease up, so that another may lead at once. First end what only a leader may do.
    pub async fn release(mut self) {
        // A campaign that has ended already needs no word and has nothing to say.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = (&mut self.task).await;
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What others are told. However it ends, they are told that it has.
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
    announced: LeadershipSender,
    /// Whether the last attempt failed. People are told of the first failure and of the end, not of every one between.
    trouble: bool,
}

impl Candidate {
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        tokio::select! {
            () = self.compete() => {}
            _ = stopped => self.release().await,
        }
    }

    async fn compete(&mut self) {
        loop {
            let looked = match self.election.leads_until() {
                // A leader must not wait for an answer any longer than it leads.
                Some(end) => timeout_at(end.into(), self.look()).await,
                None => Ok(self.look().await),
            };
            let now = Instant::now();
            let mut next = now + self.settings.retry.mul_f64(rand::random_range(0.9..1.1));
            if let Ok(Some(end)) = looked {
                next = next.min(end);
            }
            if let Some(end) = self.election.leads_until() {
                next = next.min(end);
            }
            self.announce(now);
            sleep_until(next.into()).await;
            self.announce(Instant::now());
        }
    }

    /// Looks at the Lease and does what is to be done; if that is to wait, says until when at the latest.
    async fn look(&mut self) -> Option<Instant> {
        match self.attempt().await {
            Ok(wait) => {
                if std::mem::take(&mut self.trouble) {
                    tracing::info!("the Lease {} can be reached again", self.settings.place());
                }
                wait
            }
            Err(why) => {
                if !std::mem::replace(&mut self.trouble, true) {
                    tracing::warn!(
                        "no way to lead by the Lease {}: {why}; it is tried on",
                        self.settings.place()
                    );
                }
                None
            }
        }
    }

    async fn attempt(&mut self) -> Result<Option<Instant>, String> {
        let lease = self.read().await?;
        let record = lease.as_ref().map(record);
        let step = self.election.observe(record.as_ref(), Instant::now());
        if let LeaseStep::Wait(until) = step {
            return Ok(Some(until));
        }
        let sent = Instant::now();
        let written = self.settings.claim(lease.clone(), step, Timestamp::now());
        if self.write(lease.is_some(), &written).await? {
            self.election.written(sent);
        }
        Ok(None)
    }

    async fn read(&self) -> Result<Option<Lease>, String> {
        match self.ask(Verb::Get.request(&self.settings.path(), Vec::new())).await {
            Ok(lease) => serde_json::from_slice(&lease)
                .map(Some)
                .map_err(|error| format!("the API server's answer is no Lease: {error}")),
            Err(CallError::Api(error)) if error.class == ErrorClass::NotFound => Ok(None),
            Err(error) => Err(self.settings.explain(&error)),
        }
    }

    /// Writes the Lease, unless another did so in the meantime.
    async fn write(&self, is_there: bool, lease: &Lease) -> Result<bool, String> {
        let lease = serde_json::to_vec(lease).map_err(|error| error.to_string())?;
        let request = if is_there {
            Verb::Update.request(&self.settings.path(), lease)
        } else {
            Verb::Create.request(&self.settings.all_path(), lease)
        };
        match self.ask(request).await {
            Ok(_) => Ok(true),
            // It is another's, or it was deleted: both show at the next look.
            Err(CallError::Api(error)) if error.class == ErrorClass::NotFound && is_there => Ok(false),
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

    /// Asks the API server, which has half the time that a leader has.
    async fn ask(&self, request: http::Result<Request<Vec<u8>>>) -> Result<Bytes, CallError> {
        call(&self.client, request, self.settings.renew_deadline / 2).await
    }

    /// Tells the others how it stands, and people if it has changed.
    fn announce(&mut self, now: Instant) {
        let until = self.election.leads_until().filter(|until| now < *until);
        if until.is_none() {
            self.election.step_down();
        }
        let (place, holder) = (self.settings.place(), self.election.leader());
        self.announced.0.send_if_modified(|leadership| match (until, leadership) {
            (Some(until), Leadership::Leading { until: old, .. }) => {
                // Whoever looked in between has seen that nobody led.
                let had_lapsed = *old <= now;
                *old = until;
                had_lapsed
            }
            (Some(until), leadership) => {
                tracing::info!("leads: holds the Lease {place}");
                *leadership = Leadership::Leading { since: Timestamp::now(), until };
                true
            }
            (None, Leadership::Standby { holder: old }) if old.as_deref() == holder => false,
            (None, leadership) => {
                match (&*leadership, holder) {
                    (_, Some(holder)) => tracing::info!("stands by: {holder} holds the Lease {place}"),
                    (Leadership::Leading { .. }, None) => {
                        tracing::warn!("leads no longer: the Lease {place} could not be renewed in time");
                    }
                    (Leadership::Standby { .. }, None) => {}
                }
                *leadership = Leadership::Standby { holder: holder.map(str::to_owned) };
                true
            }
        });
    }

    /// Steps down and, if the Lease is ours, takes our name out of it.
    async fn release(&mut self) {
        self.election.step_down();
        self.announced.0.send_replace(Leadership::Standby { holder: None });
        for _ in 0..TRIES_TO_RELEASE {
            match self.try_to_release().await {
                Ok(true) => return tracing::info!("gave the Lease {} up", self.settings.place()),
                Ok(false) => {}
                Err(why) => {
                    return tracing::warn!(
                        "could not give the Lease {} up: {why}; it runs out by itself",
                        self.settings.place()
                    );
                }
            }
        }
    }

    /// Whether the Lease is no longer ours.
    async fn try_to_release(&self) -> Result<bool, String> {
        let Some(mut lease) = self.read().await? else { return Ok(true) };
        let Some(spec) = lease.spec.as_mut() else { return Ok(true) };
        if spec.holder_identity.as_ref() != Some(&self.settings.identity) {
            return Ok(true);
        }
        spec.holder_identity = Some(String::new());
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        self.write(true, &lease).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_stopped_does_not_believe_what_was_said_before() {
        let now = Instant::now();
        let leading =
            Leadership::Leading { since: Timestamp::UNIX_EPOCH, until: now + Duration::from_secs(1) };
        assert!(leading.leads_at(now));
        assert!(!leading.leads_at(now + Duration::from_secs(1)));
        assert!(!Leadership::Standby { holder: None }.leads_at(now));
    }
}
