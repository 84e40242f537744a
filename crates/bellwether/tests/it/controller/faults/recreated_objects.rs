//! Objects deleted and recreated while a watch is down (missed deletes, new UIDs).

use std::time::{Duration, Instant};

use anyhow::Result;
use bellwether_testkit::{Fault, Injected, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::{
    FaultFixture, MEMBERS, OWN, SHOP, STATUS,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS},
};

impl FaultFixture<'_> {
    /// The next watch of a resource fails with 410 Gone.
    fn expire(&self, resource: &str) -> Injected {
        let expired = Fault::ErrorEvent(StatusCode::GONE);
        self.proxy.inject(Requests::of(Verb::Watch, resource).times(1), expired)
    }
}

/// A Deployment is deleted while the watch is down, and the resourceVersion expires: only the relist shows
/// the deletion.
#[tokio::test]
async fn a_delete_is_missed() -> Result<()> {
    let fixture = FaultFixture::new("missed").await?;
    let controller = fixture.controlled_shop().await?;
    let held = fixture.hold_watch_events(&[MEMBERS]).await;
    fixture.namespace.delete(DEPLOYMENTS, "db").await?;
    let _expired = fixture.expire(MEMBERS);
    let since = Instant::now();
    held.discard(&fixture.proxy).await;
    fixture.recovers("missed delete", since, (1, 1)).await?;
    fixture.check_invariants(controller, 6).await
}

/// What happens to the watch events of the deletion and the recreation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EventDelivery {
    Delivered,
    Held,
    Lost,
}

#[rstest]
#[case::delivered("deleted and created again", EventDelivery::Delivered)]
#[case::held("deleted and created again, events held", EventDelivery::Held)]
#[case::lost("deleted and created again, events lost", EventDelivery::Lost)]
#[tokio::test]
async fn another_object_has_the_name(#[case] name: &str, #[case] delivery: EventDelivery) -> Result<()> {
    let fixture = FaultFixture::new("again").await?;
    let controller = fixture.controlled_shop().await?;
    let held = match delivery {
        EventDelivery::Delivered => None,
        EventDelivery::Held | EventDelivery::Lost => Some(fixture.hold_watch_events(&[MEMBERS]).await),
    };
    fixture.namespace.delete(DEPLOYMENTS, "db").await?;
    fixture.namespace.deployment("db", SHOP).await?;
    fixture.namespace.set_ready("db", true).await?;
    let _expired = (delivery == EventDelivery::Lost).then(|| fixture.expire(MEMBERS));
    let since = Instant::now();
    match held {
        Some(held) if delivery == EventDelivery::Held => held.deliver(),
        Some(held) => held.discard(&fixture.proxy).await,
        None => {}
    }
    fixture.recovers(name, since, (2, 2)).await?;
    fixture.is_owned("db").await?;
    fixture.check_invariants(controller, 8).await
}

/// The controller does not know yet that an Application was deleted and recreated. It must not write the
/// status of the old UID to the new one.
#[tokio::test]
async fn another_application_has_the_name() -> Result<()> {
    let fixture = FaultFixture::new("again-own").await?;
    let controller = fixture.controlled_shop().await?;
    let held = fixture.hold_watch_events(&[OWN]).await;
    fixture.namespace.delete(APPLICATIONS, SHOP).await?;
    let second = fixture.namespace.application(SHOP, json!({})).await?["metadata"]["uid"].take();
    let of_the_first =
        fixture.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), Fault::Delay(Duration::ZERO));
    fixture.namespace.set_ready("db", true).await?;
    of_the_first.done(1).await;
    let statuses_of =
        |uid: &str| fixture.observer.statuses(SHOP).iter().filter(|revision| revision.uid == uid).count();
    assert_eq!(statuses_of(second.as_str().unwrap_or_default()), 0);

    let since = Instant::now();
    held.deliver();
    fixture.recovers("Application deleted and created again", since, (2, 2)).await?;
    for name in ["web", "db"] {
        fixture.is_owned(name).await?;
    }
    fixture.check_invariants(controller, 12).await
}
