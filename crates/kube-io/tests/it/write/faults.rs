//! What goes wrong on the way.

use std::time::Duration;

use anyhow::Result;
use bellwether_engine::Outcome;
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::*;

const STATUS: &str = "applications.bellwether.dev/status";

/// The status writes of one test.
fn writes(stage: &Stage) -> Requests {
    Requests::of(Verb::Patch, STATUS).namespace(&stage.namespace)
}

#[tokio::test]
async fn a_lost_answer_is_a_failure_and_the_repeat_a_conflict() -> Result<()> {
    let stage = Stage::set("lost").await?;
    let proxy = FaultProxy::before(stage.cluster).await?;
    let client = stage.cluster.admin().via(proxy.address()).client().await?;
    let application = stage.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let what = What::applications();

    let fault = proxy.inject(writes(&stage).times(1), Fault::LoseResponse);
    let why = failed(stage.perform_as(&client, &what, "web", &change, PATIENCE).await)?;
    assert!(why.starts_with("the API server gave no answer: "), "{why}");
    assert_eq!(fault.strikes(), 1);
    let written = stage.applications().get("web").await?;
    assert_eq!(written.status.as_ref().and_then(|status| status.progress), Some(50));

    let again = stage.perform_as(&client, &what, "web", &change, PATIENCE).await;
    assert_eq!(again, Outcome::Conflict.into());
    assert_eq!(stage.applications().get("web").await?, written);
    Ok(())
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure() -> Result<()> {
    let stage = Stage::set("cut").await?;
    let proxy = FaultProxy::before(stage.cluster).await?;
    let client = stage.cluster.admin().via(proxy.address()).client().await?;
    let application = stage.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let _fault = proxy.inject(writes(&stage), Fault::CutMidLine { after_lines: 0 });
    let why = failed(stage.perform_as(&client, &What::applications(), "web", &change, PATIENCE).await)?;
    assert!(why.starts_with("the API server's answer broke off: "), "{why}");
    Ok(())
}

#[rstest]
#[case::too_many(StatusCode::TOO_MANY_REQUESTS, Some(3))]
#[case::unavailable(StatusCode::SERVICE_UNAVAILABLE, Some(1))]
#[case::timeout(StatusCode::GATEWAY_TIMEOUT, None)]
#[case::error(StatusCode::INTERNAL_SERVER_ERROR, None)]
#[case::bad_gateway(StatusCode::BAD_GATEWAY, None)]
#[tokio::test]
async fn a_busy_server_says_when_to_come_back(
    #[case] answer: StatusCode,
    #[case] seconds: Option<u64>,
) -> Result<()> {
    let stage = Stage::set("busy").await?;
    let proxy = FaultProxy::before(stage.cluster).await?;
    let client = stage.cluster.admin().via(proxy.address()).client().await?;
    let application = stage.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));

    let retry_after = seconds.map(Duration::from_secs);
    let _fault = proxy.inject(writes(&stage), Fault::Answer { status: answer, retry_after });
    let ended = stage.perform_as(&client, &What::applications(), "web", &change, PATIENCE).await;
    assert_eq!(ended.retry_after, retry_after);
    failed(ended)?;
    assert_eq!(proxy.count(&writes(&stage)), 1, "it is tried once");
    Ok(())
}

#[tokio::test]
async fn silence_ends_in_time() -> Result<()> {
    let stage = Stage::set("silence").await?;
    let proxy = FaultProxy::before(stage.cluster).await?;
    let client = stage.cluster.admin().via(proxy.address()).client().await?;
    let application = stage.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let what = What::applications();

    let fault = proxy.inject(writes(&stage), Fault::HoldResponse);
    let within = Duration::from_millis(1500);
    let why = failed(stage.perform_as(&client, &what, "web", &change, within).await)?;
    assert_eq!(why, "the API server gave no answer within 1.5s");
    // The API server did it all the same; nothing is overwritten by the repeat.
    fault.done(1).await;
    fault.lift();
    let again = stage.perform_as(&client, &what, "web", &change, PATIENCE).await;
    assert_eq!(again, Outcome::Conflict.into());
    Ok(())
}

#[tokio::test]
async fn where_nobody_listens_it_fails_at_once() -> Result<()> {
    let stage = Stage::set("nobody").await?;
    let nowhere = FaultProxy::before(stage.cluster).await?.address();
    let client = stage.cluster.admin().via(nowhere).client().await?;
    let why = failed(stage.perform_as(&client, &What::pods(), "web", &create(pod("web")), PATIENCE).await)?;
    assert!(why.contains("refused"), "{why}");
    Ok(())
}
