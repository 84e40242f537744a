//! Faults around the status of a HealthRule: kill -9 and lost responses.
//!
//! Every controller of a cluster writes this status, so the test has a cluster of its own.

use std::time::Instant;

use anyhow::{Result, ensure};
use bellwether_testkit::{Fault, Requests, Verb, eventually};
use http::Method;
use serde_json::{Value, json};

use super::{FaultFixture, TIMEOUT, dead_api_servers::cluster, recovered};
use crate::controller::condition;

const RULES: &str = "/apis/bellwether.dev/v1alpha1/healthrules";
const STATUS: &str = "healthrules.bellwether.dev/status";

/// After kill -9 before or after the write, or a lost response, the status is written once.
#[tokio::test]
async fn a_healthrule_status_is_written_once() -> Result<()> {
    let cluster = cluster("rules").await?;
    let rounds = [
        ("kill -9 before a rule's status", Fault::HalfOpen { after_lines: 0 }),
        ("kill -9 after a rule's status", Fault::HoldResponse),
        ("answer lost to a rule's status", Fault::LoseResponse),
    ];
    for (round, (name, fault)) in rounds.into_iter().enumerate() {
        let fixture = FaultFixture::in_cluster(&cluster, "rules").await?;
        let (is_written, is_killed) = (round > 0, round < 2);
        let mut controller = fixture.controller().await?;
        let fault = fixture.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), fault);
        let rule = format!("round-{round}");
        fixture.namespace.request(Method::POST, RULES, &health_rule(&rule)).await?;
        fault.struck(1).await;
        if is_written {
            fault.done(1).await;
        }
        if is_killed {
            controller.program.kill();
            fault.lift();
            fixture.proxy.forget();
            controller = fixture.controller().await?;
        }
        let since = Instant::now();
        let read =
            async || fixture.namespace.request(Method::GET, &format!("{RULES}/{rule}"), &Value::Null).await;
        let is_active = async || Ok(condition(&read().await?["status"], "Valid")["reason"] == "Active");
        eventually(TIMEOUT, "the rule is Active", is_active).await?;
        recovered(name, since, Instant::now())?;
        fixture.fence().await?;
        if is_killed {
            let writes = fixture.count(Verb::Patch, STATUS);
            ensure!(writes == usize::from(!is_written), "{name}: the next controller writes {writes} times");
        }
        fixture.check_invariants(controller, 3).await?;
    }
    Ok(())
}

/// A rule for a kind that the API server does not serve.
fn health_rule(name: &str) -> Value {
    json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "HealthRule",
        "metadata": { "name": name },
        "spec": {
            "for": { "group": "example.com", "kind": format!("Of{}", name.replace('-', "")) },
            "cel": [{ "when": "true", "state": "Ready" }],
        },
    })
}
