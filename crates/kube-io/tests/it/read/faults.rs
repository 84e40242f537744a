//! What goes wrong on the way to an API server, and is made good.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Cluster, Fault, Part, Requests, StatusCode, Verb, eventually};
use rstest::rstest;

use super::{SOON, Stage, lists, short_watches, watches};

#[tokio::test]
async fn a_watch_that_is_cut_within_a_line_goes_on_before_it() -> Result<()> {
    let mut stage = Stage::set("faults").await?;
    let fault = stage.proxy.inject(watches().times(1), Fault::CutMidLine { after_lines: 1 });
    stage.follow_maps(&[]).await?;
    fault.struck(1).await;
    stage.create("a").await?;
    stage.tells_of("a", "old").await?;
    stage.create("b").await?;
    stage.tells_of("b", "old").await?;
    assert_eq!((stage.lists(), stage.watches()), (1, 2));
    Ok(())
}

/// What happens to a watch that begins, and whether everything must be listed after it.
#[rstest]
#[case::expired(Fault::ErrorEvent(StatusCode::GONE), true)]
#[case::expired_at_once(Fault::Answer { status: StatusCode::GONE, retry_after: None }, true)]
#[case::an_error(Fault::ErrorEvent(StatusCode::INTERNAL_SERVER_ERROR), false)]
#[case::an_error_at_once(Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None }, false)]
#[case::too_many(Fault::Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: None }, false)]
#[case::refused(Fault::Answer { status: StatusCode::BAD_REQUEST, retry_after: None }, false)]
#[case::absent_for_a_moment(Fault::Answer { status: StatusCode::NOT_FOUND, retry_after: None }, false)]
#[case::half_open(Fault::HalfOpen { after_lines: 0 }, false)]
#[tokio::test]
async fn only_what_is_lost_is_listed_again(#[case] fault: Fault, #[case] lost: bool) -> Result<()> {
    let mut stage = Stage::set_with("faults", short_watches).await?;
    let fault = stage.proxy.inject(watches().times(1), fault);
    stage.follow_maps(&[]).await?;
    fault.struck(1).await;
    if lost {
        stage.tells_list(&[]).await?;
    }
    eventually(SOON, "another watch has begun", async || Ok(stage.watches() >= 2)).await?;
    stage.create("a").await?;
    stage.tells_of("a", "old").await?;
    assert_eq!(stage.lists(), if lost { 2 } else { 1 });
    Ok(())
}

#[tokio::test]
async fn a_list_that_expires_on_the_way_begins_again() -> Result<()> {
    let mut stage = Stage::set_with("faults", |settings| settings.page_size = 1).await?;
    stage.create("a").await?;
    stage.create("b").await?;
    let _first = stage.proxy.inject(lists().times(1), Fault::Delay(Duration::ZERO));
    let expired = Fault::Answer { status: StatusCode::GONE, retry_after: None };
    let _second = stage.proxy.inject(lists().times(1), expired);
    stage.follow(super::MAPS, "", "ConfigMap");
    stage.tells(&["maps: served as v1/configmaps", "maps: listing"]).await?;
    stage.tells_of("a", "old").await?;
    stage.tells_list(&["a", "b"]).await
}

/// What happens to the first lists.
#[rstest]
#[case::cut(Fault::CutMidLine { after_lines: 0 })]
#[case::silent(Fault::HalfOpen { after_lines: 0 })]
#[case::lost(Fault::LoseResponse)]
#[case::errors(Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None })]
#[case::refused(Fault::Answer { status: StatusCode::UNAUTHORIZED, retry_after: None })]
#[tokio::test]
async fn a_list_is_asked_for_until_it_comes(#[case] fault: Fault) -> Result<()> {
    let mut stage = Stage::set("faults").await?;
    stage.create("a").await?;
    let fault = stage.proxy.inject(lists().times(3), fault);
    stage.follow_maps(&["a"]).await?;
    assert_eq!((fault.strikes(), stage.lists()), (3, 4));
    Ok(())
}

/// When the API server says when to come back, nobody comes before.
#[rstest]
#[case::lists(lists())]
#[case::watches(watches())]
#[tokio::test]
async fn a_busy_server_is_left_alone(#[case] requests: Requests) -> Result<()> {
    let mut stage = Stage::set_with("faults", |settings| settings.pauses.longest = SOON).await?;
    let wish = Duration::from_secs(2);
    let busy = Fault::Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: Some(wish) };
    let _fault = stage.proxy.inject(requests.clone().times(1), busy);
    stage.follow_maps(&[]).await?;
    eventually(SOON, "it was asked again", async || Ok(stage.proxy.count(&requests) == 2)).await?;
    stage.create("a").await?;
    stage.tells_of("a", "old").await?;

    let asked = stage.proxy.requests();
    let struck = asked.iter().find(|asked| asked.struck).context("one was struck")?;
    let again = asked.iter().rfind(|asked| asked.call == struck.call).context("it was asked again")?;
    assert!(again.at.duration_since(struck.at).unsigned_abs() >= wish);
    assert_eq!(stage.lists(), if struck.call.verb == Verb::List { 2 } else { 1 });
    Ok(())
}

#[tokio::test]
async fn a_storm_of_errors_leaves_everything_as_it_was() -> Result<()> {
    let mut stage = Stage::set("faults").await?;
    stage.create("a").await?;
    stage.follow_maps(&["a"]).await?;
    let errors = Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None };
    let storm = stage.proxy.inject(Requests::all(), errors);
    stage.proxy.cut_all().await;
    storm.struck(20).await;
    stage.change("a").await?;
    storm.lift();
    stage.tells_of("a", "new").await?;
    assert_eq!(stage.lists(), 1, "nothing was lost, so nothing is listed");
    assert!(stage.reader.tally().errors.get() > 0, "it is counted");
    Ok(())
}

#[tokio::test]
async fn an_error_that_stays_is_told() -> Result<()> {
    let mut stage = Stage::set("faults").await?;
    let refused = Fault::Answer { status: StatusCode::METHOD_NOT_ALLOWED, retry_after: None };
    let fault = stage.proxy.inject(lists(), refused);
    stage.follow(super::MAPS, "", "ConfigMap");
    stage.tells(&["maps: served as v1/configmaps"]).await?;
    stage.tells(&["maps: failing: 405 Method Not Allowed, says the fault proxy"]).await?;
    fault.lift();
    stage.tells(&["maps: served as v1/configmaps"]).await?;
    stage.tells_list(&[]).await
}

#[tokio::test]
async fn a_kind_that_can_be_listed_but_not_watched_is_listed_once() -> Result<()> {
    let mut stage = Stage::set("faults").await?;
    let refused = Fault::Answer { status: StatusCode::METHOD_NOT_ALLOWED, retry_after: None };
    let fault = stage.proxy.inject(watches(), refused);
    stage.follow_maps(&[]).await?;
    stage.tells(&["maps: failing: 405 Method Not Allowed, says the fault proxy"]).await?;
    fault.struck(10).await;
    assert_eq!(stage.lists(), 1);
    Ok(())
}

#[tokio::test]
async fn an_api_server_may_die_and_come_back() -> Result<()> {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::builder().name("mortal").start().await?));
    let mut stage = Stage::set_for(cluster, cluster.admin(), "faults", |_| {}).await?;
    stage.create("a").await?;
    stage.follow_maps(&["a"]).await?;
    cluster.kill_part(Part::ApiServer)?;
    eventually(SOON, "that is noticed", async || Ok(stage.reader.tally().errors.get() >= 3)).await?;
    cluster.start_part(Part::ApiServer).await?;
    stage.create("b").await?;
    let expected = format!("maps: {}/b old", stage.namespace);
    loop {
        // The API server may have forgotten what was before; then everything is listed again, and nothing else happens.
        let told = stage.told().await?;
        assert!(!told.contains("gone") && !told.contains("failing") && !told.contains("served"), "{told}");
        if told == expected {
            break;
        }
    }
    stage.reader.leave(super::MAPS);
    cluster.kill_part(Part::ApiServer)?;
    cluster.kill_part(Part::Etcd)
}
