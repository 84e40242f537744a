//! Notices a cluster that was restored from a backup, by a small list from time to time.
//!
//! Watches do not show it: see [`restore_detector`](bellwether_wire::restore_detector). A controller with a
//! Lease notices it sooner, because it reads the Lease all the time. A reader without one misses a restore whose
//! versions catch up between two of these lists.

use std::{convert::Infallible, time::Duration};

use bellwether_wire::{
    read_error::ReadError,
    restore_detector::{RestoreDetector, Seen},
};
use tokio::time::sleep;
use tracing::{debug, info};

use super::{ClusterConnection, crd_list};

/// The longest interval between an older list and the next one: a restore must be noticed before the versions
/// have caught up.
const STALE_INTERVAL: Duration = Duration::from_secs(1);

/// The longest interval until the first list, with which all others are compared.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn restore_check(connection: &ClusterConnection) -> Infallible {
    let (mut detector, mut is_forbidden) = (RestoreDetector::default(), false);
    let interval = connection.settings.restore_check_interval;
    let mut restored = connection.restored.subscribe();
    loop {
        // The Lease may have shown it before.
        if restored.has_changed().unwrap_or_default() {
            restored.borrow_and_update();
            detector = RestoreDetector::default();
        }
        let mut pause = interval;
        match crd_list::version(connection).await {
            Ok(version) => match detector.listed(&version) {
                Seen::Current => {}
                Seen::Stale => pause = pause.min(STALE_INTERVAL),
                Seen::Restored => connection.restored(),
            },
            Err(error @ ReadError::Forbidden { .. }) if !is_forbidden => {
                is_forbidden = true;
                info!(
                    %error,
                    "cannot list CustomResourceDefinitions: a restore of the cluster from a backup is not noticed by \
                     this reader. Grant list on customresourcedefinitions in the API group apiextensions.k8s.io"
                );
            }
            Err(error) => debug!(%error, after = ?pause, "cannot list CustomResourceDefinitions: retrying"),
        }
        if !detector.has_read() && !is_forbidden {
            pause = pause.min(FIRST_INTERVAL);
        }
        sleep(pause).await;
    }
}
