//! Faults within a response: delayed events, cuts and silence.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bellwether_testkit::{Fault, Requests, Verb};
use futures::{FutureExt, StreamExt};
use kube::api::{ListParams, PostParams};
use serde_json::Value;

use super::{Fixture, arrived, config_map, names, next, nothing_comes, soon, watch};

fn watches() -> Requests {
    Requests::of(Verb::Watch, "configmaps")
}

#[tokio::test]
async fn delayed_events_keep_their_order() -> Result<()> {
    let late = Duration::from_secs(2);
    let fixture = Fixture::new("streams").await?;
    let fault = fixture.proxy.inject(watches(), Fault::DelayEvents(late));
    let since = fixture.now().await?;
    let (mut through, mut direct) =
        (watch(&fixture.through, &since).await?, watch(&fixture.direct, &since).await?);
    assert_eq!(fault.strikes(), 1);

    let begin = Instant::now();
    let expected: Vec<String> = (0..5).map(|index| format!("added {index}")).collect();
    for index in 0..5 {
        fixture.create(&index.to_string()).await?;
    }
    for event in &expected {
        assert_eq!(&next(&mut direct).await?, event);
    }
    for event in &expected {
        assert_eq!(&next(&mut through).await?, event);
        assert!(begin.elapsed() >= late, "{event} arrived too early");
    }
    Ok(())
}

#[tokio::test]
async fn a_cut_watch_gives_whole_events_and_half_a_line() -> Result<()> {
    let fixture = Fixture::new("streams").await?;
    let since = fixture.now().await?;
    for name in ["one", "two", "three"] {
        fixture.create(name).await?;
    }
    let mut bystander = watch(&fixture.through, &since).await?;
    let fault = fixture.proxy.inject(watches(), Fault::CutMidLine { after_lines: 2 });

    let uri = fixture.path(&format!("watch=true&resourceVersion={since}"));
    let (text, whole) = arrived(&fixture.client, &uri).await?;
    assert!(!whole, "the connection broke");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, name) in lines.iter().zip(["one", "two"]) {
        let event: Value = serde_json::from_str(line)?;
        assert_eq!(event["object"]["metadata"]["name"], name);
    }
    assert!(lines[2].starts_with(r#"{"type":"ADDED""#) && !lines[2].ends_with('\n'), "{}", lines[2]);

    let mut events = watch(&fixture.through, &since).await?;
    assert_eq!(next(&mut events).await?, "added one");
    assert_eq!(next(&mut events).await?, "added two");
    while let Some(event) = soon(events.next()).await? {
        assert!(event.is_err(), "a garbled event: {event:?}");
    }
    assert_eq!(fault.strikes(), 2);
    fault.lift();

    let mut events = watch(&fixture.through, &since).await?;
    for event in ["added one", "added two", "added three"] {
        assert_eq!(next(&mut events).await?, event);
        assert_eq!(next(&mut bystander).await?, event, "another connection is not affected");
    }
    Ok(())
}

#[tokio::test]
async fn a_cut_list_is_half_a_list() -> Result<()> {
    let fixture = Fixture::new("streams").await?;
    for index in 0..50 {
        fixture.create(&format!("map-{index}")).await?;
    }
    let path = fixture.path_of_now().await?;
    let (all, whole) = arrived(&fixture.client, &path).await?;
    assert!(whole);

    let fault =
        fixture.proxy.inject(Requests::of(Verb::List, "configmaps"), Fault::CutMidLine { after_lines: 0 });
    let (half, whole) = arrived(&fixture.client, &path).await?;
    assert!(!whole);
    assert_eq!(half, all[..all.len() / 2]);
    assert!(soon(fixture.through.list(&ListParams::default())).await?.is_err());
    fault.lift();
    assert_eq!(names(&fixture.through).await?.len(), 50);
    Ok(())
}

#[tokio::test]
async fn a_half_open_watch_is_silent() -> Result<()> {
    let fixture = Fixture::new("streams").await?;
    let since = fixture.now().await?;
    let mut direct = watch(&fixture.direct, &since).await?;
    let after = |after_lines| fixture.proxy.inject(watches().times(1), Fault::HalfOpen { after_lines });
    let (_now, _later) = (after(0), after(1));
    let (mut mute, mut falling_mute) =
        (watch(&fixture.through, &since).await?, watch(&fixture.through, &since).await?);

    fixture.create("one").await?;
    assert_eq!(next(&mut direct).await?, "added one");
    assert_eq!(next(&mut falling_mute).await?, "added one");
    fixture.create("two").await?;
    assert_eq!(next(&mut direct).await?, "added two");
    let anything = async {
        tokio::select! { it = mute.next() => it, it = falling_mute.next() => it }
    };
    nothing_comes(anything).await
}

#[tokio::test]
async fn a_half_open_request_is_never_answered() -> Result<()> {
    let fixture = Fixture::new("streams").await?;
    let fault =
        fixture.proxy.inject(Requests::of(Verb::Create, "configmaps"), Fault::HalfOpen { after_lines: 0 });
    let (parameters, map) = (PostParams::default(), config_map("one")?);
    nothing_comes(fixture.through.create(&parameters, &map)).await?;
    assert_eq!(fault.strikes(), 1);
    assert!(fault.done(1).now_or_never().is_none(), "the request was not forwarded");
    assert_eq!(names(&fixture.direct).await?, [""; 0]);
    let recorded = fixture.proxy.requests().pop().context("the request is not recorded")?;
    assert_eq!((recorded.status, recorded.struck), (None, true));

    fault.lift();
    soon(fixture.through.create(&parameters, &map)).await??;
    Ok(())
}
