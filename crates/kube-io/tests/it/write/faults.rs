//! Faults of writes: lost responses and conflict (409) on retry, broken connections, 429 with Retry-After,
//! timeouts.

use std::time::Duration;

use anyhow::Result;
use bellwether_engine::Outcome;
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::*;

const STATUS: &str = "applications.bellwether.dev/status";

/// The status writes of the fixture.
fn writes(fixture: &WriterFixture) -> Requests {
    Requests::of(Verb::Patch, STATUS).namespace(&fixture.namespace)
}

#[tokio::test]
async fn a_lost_response_is_a_failure_and_the_retry_a_conflict() -> Result<()> {
    let fixture = WriterFixture::new("lost").await?;
    let proxy = FaultProxy::before(fixture.cluster).await?;
    let client = fixture.cluster.admin().via(proxy.address()).client().await?;
    let application = fixture.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let resource = Resource::applications();

    let fault = proxy.inject(writes(&fixture).times(1), Fault::LoseResponse);
    let why = failure(fixture.perform_as(&client, &resource, "web", &change, REQUEST_TIMEOUT).await)?;
    assert!(why.starts_with("no response from the API server: "), "{why}");
    assert_eq!(fault.strikes(), 1);
    let written = fixture.applications().get("web").await?;
    assert_eq!(written.status.as_ref().and_then(|status| status.progress), Some(50));

    let again = fixture.perform_as(&client, &resource, "web", &change, REQUEST_TIMEOUT).await;
    assert_eq!(again, Outcome::Conflict.into());
    assert_eq!(fixture.applications().get("web").await?, written);
    Ok(())
}

#[tokio::test]
async fn an_incomplete_response_is_a_failure() -> Result<()> {
    let fixture = WriterFixture::new("cut").await?;
    let proxy = FaultProxy::before(fixture.cluster).await?;
    let client = fixture.cluster.admin().via(proxy.address()).client().await?;
    let application = fixture.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let _fault = proxy.inject(writes(&fixture), Fault::CutMidLine { after_lines: 0 });
    let why = failure(
        fixture.perform_as(&client, &Resource::applications(), "web", &change, REQUEST_TIMEOUT).await,
    )?;
    assert!(why.starts_with("incomplete response from the API server: "), "{why}");
    Ok(())
}

#[rstest]
#[case::too_many(StatusCode::TOO_MANY_REQUESTS, Some(3))]
#[case::unavailable(StatusCode::SERVICE_UNAVAILABLE, Some(1))]
#[case::timeout(StatusCode::GATEWAY_TIMEOUT, None)]
#[case::error(StatusCode::INTERNAL_SERVER_ERROR, None)]
#[case::bad_gateway(StatusCode::BAD_GATEWAY, None)]
#[tokio::test]
async fn retry_after_is_returned(#[case] answer: StatusCode, #[case] seconds: Option<u64>) -> Result<()> {
    let fixture = WriterFixture::new("busy").await?;
    let proxy = FaultProxy::before(fixture.cluster).await?;
    let client = fixture.cluster.admin().via(proxy.address()).client().await?;
    let application = fixture.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));

    let retry_after = seconds.map(Duration::from_secs);
    let _fault = proxy.inject(writes(&fixture), Fault::Answer { status: answer, retry_after });
    let ended = fixture.perform_as(&client, &Resource::applications(), "web", &change, REQUEST_TIMEOUT).await;
    assert_eq!(ended.retry_after, retry_after);
    failure(ended)?;
    assert_eq!(proxy.count(&writes(&fixture)), 1, "no retry");
    Ok(())
}

#[tokio::test]
async fn a_request_without_a_response_times_out() -> Result<()> {
    let fixture = WriterFixture::new("silence").await?;
    let proxy = FaultProxy::before(fixture.cluster).await?;
    let client = fixture.cluster.admin().via(proxy.address()).client().await?;
    let application = fixture.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let resource = Resource::applications();

    let fault = proxy.inject(writes(&fixture), Fault::HoldResponse);
    let within = Duration::from_millis(1500);
    let why = failure(fixture.perform_as(&client, &resource, "web", &change, within).await)?;
    assert_eq!(why, "no response from the API server within 1.5s");
    // The API server has carried out the write; the retry overwrites nothing.
    fault.done(1).await;
    fault.lift();
    let again = fixture.perform_as(&client, &resource, "web", &change, REQUEST_TIMEOUT).await;
    assert_eq!(again, Outcome::Conflict.into());
    Ok(())
}

#[tokio::test]
async fn a_refused_connection_fails_at_once() -> Result<()> {
    let fixture = WriterFixture::new("refused").await?;
    let nowhere = FaultProxy::before(fixture.cluster).await?.address();
    let client = fixture.cluster.admin().via(nowhere).client().await?;
    let why = failure(
        fixture.perform_as(&client, &Resource::pods(), "web", &create(pod("web")), REQUEST_TIMEOUT).await,
    )?;
    assert!(why.contains("refused"), "{why}");
    Ok(())
}
