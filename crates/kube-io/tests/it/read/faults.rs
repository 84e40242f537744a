//! Faults of reads: 410 Gone and relist, broken connections, half-open watches, 429 with Retry-After, 5xx, a
//! crash of the API server.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Cluster, Fault, Part, Requests, StatusCode, Verb, eventually};
use rstest::rstest;

use super::{ReaderFixture, SOON, lists, short_watches, watches};

#[tokio::test]
async fn a_watch_that_breaks_within_an_event_resumes_before_it() -> Result<()> {
    let mut fixture = ReaderFixture::new("faults").await?;
    let fault = fixture.proxy.inject(watches().times(1), Fault::CutMidLine { after_lines: 1 });
    fixture.watch_maps(&[]).await?;
    fault.struck(1).await;
    fixture.create("a").await?;
    fixture.expect_object("a", "old").await?;
    fixture.create("b").await?;
    fixture.expect_object("b", "old").await?;
    assert_eq!((fixture.list_count(), fixture.watch_count()), (1, 2));
    Ok(())
}

/// A fault at the start of a watch, and whether a relist must follow.
#[rstest]
#[case::expired(Fault::ErrorEvent(StatusCode::GONE), true)]
#[case::expired_at_once(Fault::Answer { status: StatusCode::GONE, retry_after: None }, true)]
#[case::an_error(Fault::ErrorEvent(StatusCode::INTERNAL_SERVER_ERROR), false)]
#[case::an_error_at_once(Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None }, false)]
#[case::too_many(Fault::Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: None }, false)]
#[case::bad_request(Fault::Answer { status: StatusCode::BAD_REQUEST, retry_after: None }, false)]
#[case::not_found(Fault::Answer { status: StatusCode::NOT_FOUND, retry_after: None }, false)]
#[case::half_open(Fault::HalfOpen { after_lines: 0 }, false)]
#[tokio::test]
async fn only_410_gone_leads_to_a_relist(#[case] fault: Fault, #[case] is_gone: bool) -> Result<()> {
    let mut fixture = ReaderFixture::with_settings("faults", short_watches).await?;
    let fault = fixture.proxy.inject(watches().times(1), fault);
    fixture.watch_maps(&[]).await?;
    fault.struck(1).await;
    if is_gone {
        fixture.expect_list(&[]).await?;
    }
    eventually(SOON, "another watch has started", async || Ok(fixture.watch_count() >= 2)).await?;
    fixture.create("a").await?;
    fixture.expect_object("a", "old").await?;
    assert_eq!(fixture.list_count(), if is_gone { 2 } else { 1 });
    Ok(())
}

#[tokio::test]
async fn an_expired_continue_token_restarts_the_list() -> Result<()> {
    let mut fixture = ReaderFixture::with_settings("faults", |settings| settings.page_size = 1).await?;
    fixture.create("a").await?;
    fixture.create("b").await?;
    let _first = fixture.proxy.inject(lists().times(1), Fault::Delay(Duration::ZERO));
    let expired = Fault::Answer { status: StatusCode::GONE, retry_after: None };
    let _second = fixture.proxy.inject(lists().times(1), expired);
    fixture.watch(super::MAPS, "", "ConfigMap");
    fixture.expect_events(&["maps: served as v1/configmaps", "maps: listing"]).await?;
    fixture.expect_object("a", "old").await?;
    fixture.expect_list(&["a", "b"]).await
}

/// A fault of the first three lists.
#[rstest]
#[case::cut(Fault::CutMidLine { after_lines: 0 })]
#[case::silent(Fault::HalfOpen { after_lines: 0 })]
#[case::lost(Fault::LoseResponse)]
#[case::errors(Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None })]
#[case::unauthorized(Fault::Answer { status: StatusCode::UNAUTHORIZED, retry_after: None })]
#[tokio::test]
async fn a_list_is_retried_until_it_succeeds(#[case] fault: Fault) -> Result<()> {
    let mut fixture = ReaderFixture::new("faults").await?;
    fixture.create("a").await?;
    let fault = fixture.proxy.inject(lists().times(3), fault);
    fixture.watch_maps(&["a"]).await?;
    assert_eq!((fault.strikes(), fixture.list_count()), (3, 4));
    Ok(())
}

/// 429: the next request is not before `Retry-After`.
#[rstest]
#[case::lists(lists())]
#[case::watches(watches())]
#[tokio::test]
async fn retry_after_is_honoured(#[case] requests: Requests) -> Result<()> {
    let mut fixture =
        ReaderFixture::with_settings("faults", |settings| settings.backoff.longest = SOON).await?;
    let retry_after = Duration::from_secs(2);
    let busy = Fault::Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: Some(retry_after) };
    let _fault = fixture.proxy.inject(requests.clone().times(1), busy);
    fixture.watch_maps(&[]).await?;
    eventually(SOON, "the request was repeated", async || Ok(fixture.proxy.count(&requests) == 2)).await?;
    fixture.create("a").await?;
    fixture.expect_object("a", "old").await?;

    let requests = fixture.proxy.requests();
    let failed = requests.iter().find(|request| request.struck).context("one request got the fault")?;
    let retry = requests.iter().rfind(|request| request.call == failed.call).context("it was repeated")?;
    assert!(retry.at.duration_since(failed.at).unsigned_abs() >= retry_after);
    assert_eq!(fixture.list_count(), if failed.call.verb == Verb::List { 2 } else { 1 });
    Ok(())
}

#[tokio::test]
async fn server_errors_do_not_invalidate_the_cache() -> Result<()> {
    let mut fixture = ReaderFixture::new("faults").await?;
    fixture.create("a").await?;
    fixture.watch_maps(&["a"]).await?;
    let errors = Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None };
    let fault = fixture.proxy.inject(Requests::all(), errors);
    fixture.proxy.cut_all().await;
    fault.struck(20).await;
    fixture.change("a").await?;
    fault.lift();
    fixture.expect_object("a", "new").await?;
    assert_eq!(fixture.list_count(), 1, "no relist");
    assert!(fixture.reader.counters().errors.get() > 0, "the errors are counted");
    Ok(())
}

#[tokio::test]
async fn a_persistent_error_is_reported() -> Result<()> {
    let mut fixture = ReaderFixture::new("faults").await?;
    let not_allowed = Fault::Answer { status: StatusCode::METHOD_NOT_ALLOWED, retry_after: None };
    let fault = fixture.proxy.inject(lists(), not_allowed);
    fixture.watch(super::MAPS, "", "ConfigMap");
    fixture.expect_events(&["maps: served as v1/configmaps"]).await?;
    let event = fixture.next_event().await?;
    assert!(event.starts_with("maps: failing: ") && event.contains("405 Method Not Allowed"), "{event}");
    fault.lift();
    fixture.expect_events(&["maps: served as v1/configmaps"]).await?;
    fixture.expect_list(&[]).await
}

#[tokio::test]
async fn a_kind_that_cannot_be_watched_is_listed_once() -> Result<()> {
    let mut fixture = ReaderFixture::new("faults").await?;
    let not_allowed = Fault::Answer { status: StatusCode::METHOD_NOT_ALLOWED, retry_after: None };
    let fault = fixture.proxy.inject(watches(), not_allowed);
    fixture.watch_maps(&[]).await?;
    let event = fixture.next_event().await?;
    assert!(event.starts_with("maps: failing: ") && event.contains("405 Method Not Allowed"), "{event}");
    fault.struck(10).await;
    assert_eq!(fixture.list_count(), 1);
    Ok(())
}

#[tokio::test]
async fn an_api_server_crashes_and_restarts() -> Result<()> {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::builder().name("mortal").start().await?));
    let mut fixture = ReaderFixture::for_user(cluster, cluster.admin(), "faults", |_| {}).await?;
    fixture.create("a").await?;
    fixture.watch_maps(&["a"]).await?;
    cluster.kill_part(Part::ApiServer)?;
    eventually(SOON, "the reader has errors", async || Ok(fixture.reader.counters().errors.get() >= 3))
        .await?;
    cluster.start_part(Part::ApiServer).await?;
    fixture.create("b").await?;
    let expected = format!("maps: {}/b old", fixture.namespace);
    loop {
        // The resourceVersion may have expired, so that a relist follows; nothing else may happen.
        let event = fixture.next_event().await?;
        assert!(!["deleted", "failing", "served"].iter().any(|text| event.contains(text)), "{event}");
        if event == expected {
            break;
        }
    }
    fixture.reader.leave(super::MAPS);
    cluster.kill_part(Part::ApiServer)?;
    cluster.kill_part(Part::Etcd)
}
