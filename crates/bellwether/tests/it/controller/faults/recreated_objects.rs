//! Objects deleted and recreated while a watch is down (missed deletes, new UIDs).

use std::time::{Duration, Instant};

use anyhow::Result;
use bellwether_testkit::{Fault, Injected, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::{
    MEMBERS, OWN, SHOP, STATUS, Stage,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS},
};

impl Stage<'_> {
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
    let stage = Stage::set("missed").await?;
    let controller = stage.looked_after_shop().await?;
    let deaf = stage.deaf_to(&[MEMBERS]).await;
    stage.land.delete(DEPLOYMENTS, "db").await?;
    let _expired = stage.expire(MEMBERS);
    let since = Instant::now();
    deaf.end(&stage.proxy).await;
    stage.recovers("missed delete", since, (1, 1)).await?;
    stage.ends_well(controller, 6).await
}

/// What happens to the watch events of the deletion and the recreation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum News {
    Heard,
    Held,
    Lost,
}

#[rstest]
#[case::heard("deleted and created again", News::Heard)]
#[case::held("deleted and created again, events held", News::Held)]
#[case::lost("deleted and created again, events lost", News::Lost)]
#[tokio::test]
async fn another_object_has_the_name(#[case] name: &str, #[case] news: News) -> Result<()> {
    let stage = Stage::set("again").await?;
    let controller = stage.looked_after_shop().await?;
    let deaf = match news {
        News::Heard => None,
        News::Held | News::Lost => Some(stage.deaf_to(&[MEMBERS]).await),
    };
    stage.land.delete(DEPLOYMENTS, "db").await?;
    stage.land.deployment("db", SHOP).await?;
    stage.land.is_ready("db", true).await?;
    let _expired = (news == News::Lost).then(|| stage.expire(MEMBERS));
    let since = Instant::now();
    match deaf {
        Some(deaf) if news == News::Held => deaf.hear(),
        Some(deaf) => deaf.end(&stage.proxy).await,
        None => {}
    }
    stage.recovers(name, since, (2, 2)).await?;
    stage.is_owned("db").await?;
    stage.ends_well(controller, 8).await
}

/// The controller does not know yet that an Application was deleted and recreated. It must not write the
/// status of the old UID to the new one.
#[tokio::test]
async fn another_application_has_the_name() -> Result<()> {
    let stage = Stage::set("again-own").await?;
    let controller = stage.looked_after_shop().await?;
    let deaf = stage.deaf_to(&[OWN]).await;
    stage.land.delete(APPLICATIONS, SHOP).await?;
    let second = stage.land.application(SHOP, json!({})).await?["metadata"]["uid"].take();
    let of_the_first =
        stage.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), Fault::Delay(Duration::ZERO));
    stage.land.is_ready("db", true).await?;
    of_the_first.done(1).await;
    let said_of = |uid: &str| stage.observer.statuses(SHOP).iter().filter(|seen| seen.uid == uid).count();
    assert_eq!(said_of(second.as_str().unwrap_or_default()), 0);

    let since = Instant::now();
    deaf.hear();
    stage.recovers("Application deleted and created again", since, (2, 2)).await?;
    for name in ["web", "db"] {
        stage.is_owned(name).await?;
    }
    stage.ends_well(controller, 12).await
}
