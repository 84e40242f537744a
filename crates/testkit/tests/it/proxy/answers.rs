//! Faults of whole responses: delays, errors and lost responses.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bellwether_testkit::{Fault, Requests, StatusCode, Verb};
use futures::StreamExt;
use http::{Request, header};
use kube::{
    Error,
    api::{ListParams, PostParams},
    client::Body,
};

use super::{Fixture, config_map, names, next, soon, watch};

#[tokio::test]
async fn a_delay_affects_only_matching_requests() -> Result<()> {
    let fixture = Fixture::new("answers").await?;
    let lists = Requests::of(Verb::List, "configmaps").namespace(&fixture.namespace);
    let fault = fixture.proxy.inject(lists, Fault::Delay(Duration::from_secs(2)));

    let begin = Instant::now();
    let everything = ListParams::default();
    let (list, created) = tokio::join!(soon(fixture.through.list(&everything)), async {
        fault.struck(1).await;
        soon(fixture.through.create(&PostParams::default(), &config_map("one")?)).await
    });
    assert!(begin.elapsed() >= Duration::from_secs(2));
    created??;
    assert_eq!(list??.items.len(), 1, "a create is not delayed, and a delayed list contains the object");

    fault.lift();
    names(&fixture.through).await?;
    let struck: Vec<bool> = fixture.proxy.requests().iter().map(|request| request.struck).collect();
    assert_eq!(struck, [true, false, false]);
    Ok(())
}

#[tokio::test]
async fn an_injected_error_looks_like_one_of_an_api_server() -> Result<()> {
    let fixture = Fixture::new("answers").await?;
    for (code, reason) in [
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "Conflict"),
        (410, "Expired"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ] {
        let status = StatusCode::from_u16(code)?;
        let _fault = fixture.proxy.inject(Requests::all(), Fault::Answer { status, retry_after: None });
        let Err(Error::Api(answer)) = soon(fixture.through.get("one")).await? else {
            anyhow::bail!("{code} is not a Status of an API server")
        };
        assert_eq!((answer.code, answer.reason.as_str()), (code, reason));
        assert!(answer.is_failure());
        let details = answer.details.context("the Status has no details")?;
        assert_eq!((details.name.as_str(), details.kind.as_str()), ("one", "configmaps"));
    }
    Ok(())
}

#[tokio::test]
async fn an_injected_error_is_not_forwarded_to_the_api_server() -> Result<()> {
    let fixture = Fixture::new("answers").await?;
    let busy = Fault::Answer {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(Duration::from_millis(1500)),
    };
    let fault = fixture.proxy.inject(Requests::of(Verb::Create, "configmaps"), busy);
    let refused = soon(fixture.through.create(&PostParams::default(), &config_map("one")?)).await?;
    assert!(
        matches!(refused, Err(Error::Api(status)) if status.details.as_ref().is_some_and(|it| it.retry_after_seconds == 2))
    );

    let request =
        Request::post(fixture.path("")).body(Body::from(serde_json::to_vec(&config_map("two")?)?))?;
    let response = soon(fixture.client.send(request)).await??;
    assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    assert_eq!(fault.strikes(), 2);
    assert_eq!(names(&fixture.direct).await?, [""; 0]);
    Ok(())
}

#[tokio::test]
async fn an_error_event_is_the_only_event_of_a_watch() -> Result<()> {
    let fixture = Fixture::new("answers").await?;
    fixture.create("one").await?;
    let fault = fixture.proxy.inject(Requests::all(), Fault::ErrorEvent(StatusCode::GONE));
    assert_eq!(names(&fixture.through).await?, ["one"], "a list is not struck");

    let mut events = watch(&fixture.through, "0").await?;
    assert_eq!(next(&mut events).await?, "error 410 Expired");
    assert!(soon(events.next()).await?.is_none());
    assert_eq!(fault.strikes(), 1);

    drop(fault);
    let mut events = watch(&fixture.through, "0").await?;
    assert_eq!(next(&mut events).await?, "added one");
    Ok(())
}

#[tokio::test]
async fn a_write_with_a_lost_response_takes_effect() -> Result<()> {
    let fixture = Fixture::new("answers").await?;
    let mut bystander = watch(&fixture.through, &fixture.now().await?).await?;
    let creates = Requests::of(Verb::Create, "configmaps");
    let fault = fixture.proxy.inject(creates.clone().times(1), Fault::LoseResponse);

    let lost = soon(fixture.through.create(&PostParams::default(), &config_map("one")?)).await?;
    assert!(matches!(lost, Err(Error::HyperError(_) | Error::Service(_))), "{lost:?}");
    soon(fault.done(1)).await?;
    assert_eq!(names(&fixture.direct).await?, ["one"]);
    assert_eq!((fault.strikes(), fixture.proxy.count(&creates)), (1, 1), "the client did not retry");
    let recorded = fixture.proxy.requests().into_iter().find(|request| request.struck);
    assert_eq!(recorded.context("the request is not recorded")?.status, None);

    assert_eq!(next(&mut bystander).await?, "added one", "another connection is not affected");
    soon(fixture.through.create(&PostParams::default(), &config_map("two")?)).await??;
    Ok(())
}

#[tokio::test]
async fn the_oldest_matching_fault_with_strikes_left_strikes() -> Result<()> {
    let fixture = Fixture::new("answers").await?;
    let answer = |status| Fault::Answer { status, retry_after: None };
    let lists = Requests::of(Verb::List, "configmaps");
    let first = fixture.proxy.inject(lists.clone().times(2), answer(StatusCode::FORBIDDEN));
    let _other_user = fixture.proxy.inject(lists.clone().user("alice"), answer(StatusCode::CONFLICT));
    let second = fixture.proxy.inject(lists, answer(StatusCode::INTERNAL_SERVER_ERROR));
    let mut codes = Vec::new();
    for _ in 0..4 {
        match soon(fixture.through.list(&ListParams::default())).await? {
            Err(Error::Api(status)) => codes.push(status.code),
            other => anyhow::bail!("not a Status of an API server: {other:?}"),
        }
    }
    assert_eq!(codes, [403, 403, 500, 500]);
    assert_eq!((first.strikes(), second.strikes()), (2, 2));
    second.lift();
    assert_eq!(names(&fixture.through).await?, [""; 0]);
    Ok(())
}
