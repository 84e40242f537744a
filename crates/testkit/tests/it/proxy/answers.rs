//! Faults of whole answers: late, false or lost.

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

use super::{Stage, config_map, names, next, soon, watch};

#[tokio::test]
async fn a_delay_holds_what_it_means_and_nothing_else() -> Result<()> {
    let stage = Stage::set("answers").await?;
    let lists = Requests::of(Verb::List, "configmaps").namespace(&stage.namespace);
    let fault = stage.proxy.inject(lists, Fault::Delay(Duration::from_secs(2)));

    let begin = Instant::now();
    let everything = ListParams::default();
    let (list, created) = tokio::join!(soon(stage.through.list(&everything)), async {
        fault.struck(1).await;
        soon(stage.through.create(&PostParams::default(), &config_map("one")?)).await
    });
    assert!(begin.elapsed() >= Duration::from_secs(2));
    created??;
    assert_eq!(list??.items.len(), 1, "a create is not held, and a held list sees it");

    fault.lift();
    names(&stage.through).await?;
    let struck: Vec<bool> = stage.proxy.requests().iter().map(|request| request.struck).collect();
    assert_eq!(struck, [true, false, false]);
    Ok(())
}

#[tokio::test]
async fn a_false_answer_is_one_that_an_api_server_could_give() -> Result<()> {
    let stage = Stage::set("answers").await?;
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
        let _fault = stage.proxy.inject(Requests::all(), Fault::Answer { status, retry_after: None });
        let Err(Error::Api(answer)) = soon(stage.through.get("one")).await? else {
            anyhow::bail!("{code} was no answer of an API server")
        };
        assert_eq!((answer.code, answer.reason.as_str()), (code, reason));
        assert!(answer.is_failure());
        let details = answer.details.context("it says about what")?;
        assert_eq!((details.name.as_str(), details.kind.as_str()), ("one", "configmaps"));
    }
    Ok(())
}

#[tokio::test]
async fn a_false_answer_does_not_reach_the_api_server() -> Result<()> {
    let stage = Stage::set("answers").await?;
    let busy = Fault::Answer {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(Duration::from_millis(1500)),
    };
    let fault = stage.proxy.inject(Requests::of(Verb::Create, "configmaps"), busy);
    let refused = soon(stage.through.create(&PostParams::default(), &config_map("one")?)).await?;
    assert!(
        matches!(refused, Err(Error::Api(status)) if status.details.as_ref().is_some_and(|it| it.retry_after_seconds == 2))
    );

    let request = Request::post(stage.path("")).body(Body::from(serde_json::to_vec(&config_map("two")?)?))?;
    let response = soon(stage.client.send(request)).await??;
    assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    assert_eq!(fault.strikes(), 2);
    assert_eq!(names(&stage.direct).await?, [""; 0]);
    Ok(())
}

#[tokio::test]
async fn an_error_comes_as_the_one_event_of_a_watch() -> Result<()> {
    let stage = Stage::set("answers").await?;
    stage.create("one").await?;
    let fault = stage.proxy.inject(Requests::all(), Fault::ErrorEvent(StatusCode::GONE));
    assert_eq!(names(&stage.through).await?, ["one"], "a list is no watch");

    let mut events = watch(&stage.through, "0").await?;
    assert_eq!(next(&mut events).await?, "error 410 Expired");
    assert!(soon(events.next()).await?.is_none());
    assert_eq!(fault.strikes(), 1);

    drop(fault);
    let mut events = watch(&stage.through, "0").await?;
    assert_eq!(next(&mut events).await?, "added one");
    Ok(())
}

#[tokio::test]
async fn a_lost_response_leaves_its_deed_behind() -> Result<()> {
    let stage = Stage::set("answers").await?;
    let mut bystander = watch(&stage.through, &stage.now().await?).await?;
    let creates = Requests::of(Verb::Create, "configmaps");
    let fault = stage.proxy.inject(creates.clone().times(1), Fault::LoseResponse);

    let lost = soon(stage.through.create(&PostParams::default(), &config_map("one")?)).await?;
    assert!(matches!(lost, Err(Error::HyperError(_) | Error::Service(_))), "{lost:?}");
    soon(fault.done(1)).await?;
    assert_eq!(names(&stage.direct).await?, ["one"]);
    assert_eq!((fault.strikes(), stage.proxy.count(&creates)), (1, 1), "nobody asked twice");
    let recorded = stage.proxy.requests().into_iter().find(|request| request.struck);
    assert_eq!(recorded.context("the request is on record")?.status, None);

    assert_eq!(next(&mut bystander).await?, "added one", "another connection goes on");
    soon(stage.through.create(&PostParams::default(), &config_map("two")?)).await??;
    Ok(())
}

#[tokio::test]
async fn the_first_fault_with_strikes_left_is_the_one() -> Result<()> {
    let stage = Stage::set("answers").await?;
    let answer = |status| Fault::Answer { status, retry_after: None };
    let lists = Requests::of(Verb::List, "configmaps");
    let first = stage.proxy.inject(lists.clone().times(2), answer(StatusCode::FORBIDDEN));
    let _stranger = stage.proxy.inject(lists.clone().user("alice"), answer(StatusCode::CONFLICT));
    let second = stage.proxy.inject(lists, answer(StatusCode::INTERNAL_SERVER_ERROR));
    let mut codes = Vec::new();
    for _ in 0..4 {
        match soon(stage.through.list(&ListParams::default())).await? {
            Err(Error::Api(status)) => codes.push(status.code),
            other => anyhow::bail!("no answer of an API server: {other:?}"),
        }
    }
    assert_eq!(codes, [403, 403, 500, 500]);
    assert_eq!((first.strikes(), second.strikes()), (2, 2));
    second.lift();
    assert_eq!(names(&stage.through).await?, [""; 0]);
    Ok(())
}
