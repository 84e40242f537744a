//! 429 with Retry-After, and 5xx for many requests: an overloaded API server.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Fault, Injected, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::{
    super::condition, FaultFixture, MEMBERS, SHOP, STATUS, in_lines, namespace_actions::PODS,
    observer::Observer, recovered, write_kinds::WriteKind,
};

/// The Retry-After of the injected 429.
const RETRY_AFTER: Duration = Duration::from_secs(3);

const BUSY: Fault = Fault::Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: Some(RETRY_AFTER) };

impl FaultFixture<'_> {
    /// Checks that a list that hangs was not repeated in a loop before its kind was reported. A request
    /// lasts until its timeout, of a minute.
    fn did_not_wait_for(&self, resource: &str) {
        let lists = self.count(Verb::List, resource);
        assert!(lists <= 2, "{lists} lists of {resource}");
    }

    /// Checks that the controller waited for Retry-After before it repeated the request.
    fn waited_for_retry_after(&self) -> Result<()> {
        let asked = self.proxy.requests();
        let struck = asked.iter().position(|asked| asked.struck).context("no request was struck")?;
        let (struck, later) = (&asked[struck], &asked[struck + 1..]);
        let again =
            later.iter().find(|asked| asked.call == struck.call).context("the request was not repeated")?;
        let waited = again.at.duration_since(struck.at).unsigned_abs();
        ensure!(waited >= RETRY_AFTER, "it repeated the request after {waited:?}");
        Ok(())
    }
}

/// The watch restarts after Retry-After, without a relist.
#[tokio::test]
async fn watches_are_too_many() -> Result<()> {
    let fixture = FaultFixture::new("busy-watch").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.proxy.forget();
    let busy = fixture.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), BUSY);
    fixture.proxy.cut_all().await;
    busy.struck(1).await;
    let since = Instant::now();
    fixture.namespace.set_ready("db", true).await?;
    fixture.recovers("429 for a watch, of 3 s", since, (2, 2)).await?;
    fixture.waited_for_retry_after()?;
    assert_eq!(fixture.count(Verb::List, MEMBERS), 0, "nothing was lost");
    fixture.check_invariants(controller, 2).await
}

#[rstest]
#[case::lists("429 for a list, of 3 s", Requests::of(Verb::List, MEMBERS))]
#[case::discovery("429 for discovery, of 3 s", Requests::all().path("/api"))]
#[tokio::test]
async fn questions_at_the_start_are_too_many(#[case] name: &str, #[case] questions: Requests) -> Result<()> {
    let fixture = FaultFixture::new("busy-start").await?;
    fixture.shop().await?;
    let busy = fixture.proxy.inject(questions.times(1), BUSY);
    let controller = fixture.launch(&["--leader-elect=false"])?;
    busy.struck(1).await;
    let since = Instant::now();
    fixture.recovers(name, since, (2, 1)).await?;
    fixture.waited_for_retry_after()?;
    fixture.check_invariants(controller, 5).await
}

#[tokio::test]
async fn statuses_are_too_many() -> Result<()> {
    let fixture = FaultFixture::new("busy-status").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.proxy.forget();
    let busy = fixture.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), BUSY);
    let since = Instant::now();
    fixture.namespace.set_ready("db", true).await?;
    busy.struck(1).await;
    fixture.recovers("429 for a status, of 3 s", since, (2, 2)).await?;
    fixture.waited_for_retry_after()?;
    fixture.check_invariants(controller, 2).await
}

/// The controller writes the status at once, and the owner reference after Retry-After.
#[tokio::test]
async fn changes_of_owners_are_too_many() -> Result<()> {
    let fixture = FaultFixture::new("busy-owners").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.proxy.forget();
    let busy = fixture.proxy.inject(Requests::of(Verb::Patch, MEMBERS).times(1), BUSY);
    let since = Instant::now();
    fixture.namespace.deployment("mail", SHOP).await?;
    busy.struck(1).await;
    let at = fixture.is_owned("mail").await?;
    recovered("429 for owners, of 3 s", since, at)?;
    fixture.counts_are(SHOP, (3, 1)).await?;
    fixture.waited_for_retry_after()?;
    fixture.check_invariants(controller, 3).await
}

/// The controller retries the dry run of the health-check Pod after Retry-After.
#[tokio::test]
async fn pods_are_too_many() -> Result<()> {
    let fixture = FaultFixture::new("busy-pod").await?;
    let struck = fixture.struck(WriteKind::PodDryRun, BUSY).await?;
    let since = Instant::now();
    let at = fixture.is_done(WriteKind::PodDryRun).await?;
    recovered("429 for a Pod, of 3 s", since, at)?;
    fixture.waited_for_retry_after()?;
    fixture.check_invariants(struck.controller, 20).await?;
    fixture.is_done_once(WriteKind::PodDryRun)
}

fn storm(fixture: &FaultFixture<'_>, requests: Requests) -> Injected {
    fixture
        .proxy
        .inject(requests, Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None })
}

fn reads() -> Requests {
    Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch)
}

/// 5xx while the watches run: the published status stays, and the controller catches up without a relist.
#[rstest]
#[case::of_reads("5xx for all reads", reads(), 20)]
#[case::of_writes("5xx for all writes", Requests::writes(), 4)]
#[case::of_everything("5xx for everything", Requests::all(), 20)]
#[tokio::test]
async fn a_storm_of_errors(
    #[case] name: &str,
    #[case] requests: Requests,
    #[case] strikes: usize,
) -> Result<()> {
    let fixture = FaultFixture::new("storm").await?;
    let controller = fixture.controlled_shop().await?;
    let before = fixture.observer.statuses(SHOP).len();
    let storm = storm(&fixture, requests);
    fixture.proxy.cut_all().await;
    fixture.namespace.deployment("mail", SHOP).await?;
    for name in ["db", "mail"] {
        fixture.namespace.set_ready(name, true).await?;
    }
    storm.struck(strikes).await;
    assert_eq!(fixture.observer.statuses(SHOP).len(), before, "the published status stays");
    let since = Instant::now();
    storm.lift();
    fixture.recovers(name, since, (3, 3)).await?;
    assert_eq!(fixture.count(Verb::List, MEMBERS), 1, "nothing was lost");
    fixture.is_owned("mail").await?;
    fixture.check_invariants(controller, 30).await
}

/// 5xx at startup, before discovery has succeeded.
#[tokio::test]
async fn a_storm_of_errors_over_discovery() -> Result<()> {
    let fixture = FaultFixture::new("storm-start").await?;
    fixture.shop().await?;
    let storm = storm(&fixture, Requests::all().path("/api"));
    let controller = fixture.launch(&["--leader-elect=false"])?;
    storm.struck(6).await;
    assert!(fixture.observer.statuses(SHOP).is_empty());
    let since = Instant::now();
    storm.lift();
    fixture.recovers("5xx for discovery at the start", since, (2, 1)).await?;
    fixture.check_invariants(controller, 5).await
}

const FAILING: Fault = Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None };
/// The list is never answered.
const HANGING: Fault = Fault::HalfOpen { after_lines: 0 };

/// A kind whose list keeps failing after a restart degrades what needs it, and holds back nothing else: what
/// is known to be bad is reported, and the controller is ready.
#[rstest]
#[case::fails("500 for one kind from the start", FAILING)]
#[case::hangs("no response for one kind from the start", HANGING)]
#[tokio::test]
async fn one_kind_fails_from_the_start(#[case] name: &str, #[case] fault: Fault) -> Result<()> {
    let fixture = FaultFixture::new("failing-kind").await?;
    let kinds = json!([{ "group": "apps", "kind": "Deployment" }, { "kind": "ServiceAccount" }]);
    fixture.namespace.application(SHOP, json!({ "componentKinds": kinds })).await?;
    fixture.namespace.application("other", json!({ "componentKinds": kinds })).await?;
    fixture.namespace.deployment("web", SHOP).await?;
    fixture.namespace.deployment("fine", "other").await?;
    fixture.namespace.set_ready("web", true).await?;
    fixture.namespace.set_ready("fine", true).await?;
    let controller = fixture.controller().await?;
    fixture.counts_are(SHOP, (1, 1)).await?;
    fixture.counts_are("other", (1, 1)).await?;
    controller.program.kill();

    fixture.namespace.set_ready("web", false).await?;
    let failing = fixture.proxy.inject(Requests::of(Verb::List, "serviceaccounts"), fault);
    let controller = fixture.controller().await?;
    let ready_is = async |application: &'static str, status: &'static str| {
        let is_so = |observer: &Observer| {
            let statuses = observer.statuses(application);
            let last = statuses.last()?;
            (condition(&last.object["status"], "Ready")["status"] == status).then_some(last.at)
        };
        fixture.observer.until(&format!("{application} is {status}"), is_so).await
    };
    ready_is(SHOP, "False").await?;
    ready_is("other", "Unknown").await?;
    if fault == HANGING {
        fixture.did_not_wait_for("serviceaccounts");
    }
    let since = Instant::now();
    failing.lift();
    if fault == HANGING {
        // Otherwise the request goes on until its timeout.
        fixture.proxy.cut_all().await;
    }
    let at = ready_is("other", "True").await?;
    recovered(name, since, at)?;
    ready_is(SHOP, "False").await?;
    controller.program.kill();
    Ok(())
}

/// What is below members need not be readable: Pods that cannot be listed hold back nothing.
#[rstest]
#[case::fails(FAILING)]
#[case::hangs(HANGING)]
#[tokio::test]
async fn pods_fail_from_the_start(#[case] fault: Fault) -> Result<()> {
    let fixture = FaultFixture::new("failing-pods").await?;
    fixture.shop().await?;
    let failing = fixture.proxy.inject(Requests::of(Verb::List, "pods"), fault);
    let controller = fixture.controller().await?;
    fixture.counts_are(SHOP, (2, 1)).await?;
    failing.struck(1).await;
    if fault == HANGING {
        fixture.did_not_wait_for("pods");
    }
    controller.program.kill();
    Ok(())
}

/// A workload that is Failed because of its Pod stays so after a restart, although its Pods cannot be listed.
#[rstest]
#[case::fails(FAILING)]
#[case::hangs(HANGING)]
#[tokio::test]
async fn a_failure_is_not_forgotten_while_pods_fail(#[case] fault: Fault) -> Result<()> {
    let fixture = FaultFixture::new("known-failure").await?;
    let kinds = json!([{ "group": "batch", "kind": "Job" }]);
    fixture.namespace.application(SHOP, json!({ "componentKinds": kinds })).await?;
    fixture.namespace.failing_job("import", SHOP, "import-x").await?;
    let controller = fixture.controller().await?;
    let is = async |state: &str| {
        let is_so = |observer: &Observer| {
            let status = observer.statuses(SHOP).pop()?.object["status"].take();
            (status["state"] == state).then_some(status)
        };
        fixture.observer.until(&format!("{SHOP} is {state}"), is_so).await
    };
    let before = is("Failed").await?;
    assert_eq!(before["objects"][0]["cause"]["name"], "import-x", "{before:#}");
    fixture.ends(controller, 20).await?;

    fixture.proxy.forget();
    let failing = fixture.proxy.inject(Requests::of(Verb::List, "pods"), fault);
    let controller = fixture.controller().await?;
    // Its own Application follows Pods as well, so it has no status before the kind is given up.
    fixture.fence().await?;
    let path = format!("/readyz/applications/{}/{SHOP}", fixture.namespace.name);
    let probe = controller.probed(&path, 503, |probe| probe["state"] == "Failed").await?;
    assert_eq!(probe["since"], before["objects"][0]["since"], "{probe:#}");
    assert_eq!(in_lines(&fixture.writes()), "", "nothing is news");
    failing.lift();
    fixture.proxy.cut_all().await;
    fixture.namespace.delete(PODS, "import-x").await?;
    is("InProgress").await?;
    controller.program.kill();
    Ok(())
}
