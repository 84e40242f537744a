//! The metrics of a real controller, against their documentation and the example alert rules.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use regex::Regex;

use super::{
    Controller, ControllerFixture, TIMEOUT, application, condition, config, eventually, shared_controller,
};

const PAGE: &str = include_str!("../../../../../docs/metrics.md");
const TASK: &str = include_str!("../../../../../docs/tasks/alert.md");
const ALERTS: &str = include_str!("../../../../../deploy/alerts/bellwether.yaml");

/// The names of the labels of each metric. Metrics without series have no labels.
fn served(text: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let (family, label) = (Regex::new("^# TYPE ([a-z_]+) ([a-z]+)$")?, Regex::new(r#"([a-z]+)=""#)?);
    let mut metrics = BTreeMap::new();
    for line in text.lines() {
        let Some(found) = family.captures(line) else { continue };
        let name = if &found[2] == "counter" { format!("{}_total", &found[1]) } else { found[1].to_owned() };
        let series = text.lines().filter_map(|line| line.strip_prefix(&format!("{name}{{")));
        let labels = series.flat_map(|rest| label.captures_iter(rest).map(|found| found[1].to_owned()));
        metrics.insert(name.clone(), labels.collect());
    }
    Ok(metrics)
}

/// Waits until the controller has series of a group, and has written.
async fn metrics(controller: &Controller, fixture: &ControllerFixture) -> Result<String> {
    let mut text = String::new();
    let namespace = format!("namespace=\"{}\"", fixture.namespace);
    eventually(TIMEOUT, "the Application has series", async || {
        text = controller.get("/metrics").await?.1;
        Ok(["bellwether_writes_total{", "bellwether_cluster_last_heard_timestamp_seconds{", &namespace]
            .iter()
            .all(|series| text.contains(series)))
    })
    .await?;
    Ok(text)
}

#[tokio::test]
async fn metrics_of_groups() -> Result<()> {
    let (_, controller) = shared_controller().await?;
    let fixture = ControllerFixture::new("metrics").await?;
    fixture.apply(&config("settings", "shop", None)).await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    fixture.status("shop", "it is ready", |status| condition(status, "Ready")["status"] == "True").await?;
    let labels = format!("kind=\"Application\",namespace=\"{}\",name=\"shop\"", fixture.namespace);
    let line = |state: &str| format!("bellwether_group_state{{{labels},state=\"{state}\"}} 1");
    let text = metrics(controller, &fixture).await?;
    assert!(text.contains(&line("Ready")), "{text}");
    assert!(text.contains(&format!("bellwether_group_progress{{{labels}}} 100")), "{text}");
    assert!(text.contains(&format!("bellwether_group_state_since_seconds{{{labels}}} 1")), "{text}");

    // The page and the controller agree.
    let documented =
        Regex::new(r"(?m)^\| `(bellwether_[a-z_]+)(?:\{([a-z,]+)\})?` \| (?:gauge|counter|histogram) \|")?;
    let documented: BTreeMap<_, BTreeSet<String>> = documented
        .captures_iter(PAGE)
        .map(|found| {
            let labels = found.get(2).map_or("", |labels| labels.as_str());
            let labels = labels.split(',').filter(|label| !label.is_empty());
            (found[1].to_owned(), labels.map(str::to_owned).collect())
        })
        .collect();
    assert_eq!(served(&text)?, documented);

    // A component that does not exist.
    fixture.apply(&application("shop", "shop", "  components: {gone: {kind: ConfigMap}}")).await?;
    eventually(TIMEOUT, "the Application is Missing", async || {
        let text = controller.get("/metrics").await?.1;
        Ok(text.contains(&line("Missing")) && !text.contains(&line("Ready")))
    })
    .await?;
    fixture.kubectl("delete bwapp shop").await?;
    eventually(TIMEOUT, "a deleted group has no series", async || {
        Ok(!controller.get("/metrics").await?.1.contains(&labels))
    })
    .await
}

/// The labels that Prometheus adds to every series.
const TARGET_LABELS: [&str; 2] = ["job", "namespace"];

/// Fails if an expression of these alert rules has a metric, label or label value that does not exist.
fn check(alerts: &str, text: &str) -> Result<()> {
    let served = served(text)?;
    let metric = Regex::new(r"(?:by \(([a-z, ]+)\) \()?(bellwether_[a-z_]+)(?:\{([^}]*)\})?")?;
    let label = Regex::new(r#"([a-z]+)!?="([^"]*)""#)?;
    let mut count = 0;
    for line in alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")) {
        for found in metric.captures_iter(line) {
            count += 1;
            let labels = served.get(&found[2]).with_context(|| format!("unknown metric in {line}"))?;
            let selected = found.get(3).map_or("", |selector| selector.as_str());
            for selector in label.captures_iter(selected) {
                ensure!(labels.contains(&selector[1]), "unknown label {} in {line}", &selector[1]);
                let series = format!("{}=\"{}\"", &selector[1], &selector[2]);
                let is_served = text
                    .lines()
                    .filter_map(|line| line.strip_prefix(&format!("{}{{", &found[2])))
                    .any(|labels| labels.contains(&series));
                // A state that no Application has at the moment is not served.
                let mut rows = PAGE.lines().filter(|row| row.starts_with(&format!("| `{}{{", &found[2])));
                let is_documented = rows.any(|row| row.contains(&format!("`{}`", &selector[2])));
                ensure!(is_served || is_documented, "unknown value {} in {line}", &selector[0]);
            }
            let by = found.get(1).map_or("", |by| by.as_str());
            for by in by.split(',').map(str::trim).filter(|by| !by.is_empty()) {
                let is_known = labels.contains(by) || TARGET_LABELS.contains(&by);
                ensure!(is_known, "unknown label {by} in {line}");
            }
        }
    }
    ensure!(count >= 10, "only {count} metrics in the expressions");
    Ok(())
}

/// The task explains every alert.
#[tokio::test]
async fn the_alert_rules_fit_the_metrics() -> Result<()> {
    let (_, controller) = shared_controller().await?;
    let fixture = ControllerFixture::new("alerts").await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    let text = metrics(controller, &fixture).await?;
    check(ALERTS, &text)?;
    let mistakes = [
        ("bellwether_writes_total", "bellwether_write_total"),
        ("{outcome=", "{result="),
        ("outcome=\"rejected\"", "outcome=\"refused\""),
        ("valid=\"false\"", "valid=\"no\""),
        ("state=\"Failed\"", "state=\"failed\""),
        ("reason!=\"forbidden\"", "reason!=\"Forbidden\""),
        ("by (cluster)", "by (clusters)"),
    ];
    for (right, wrong) in mistakes {
        ensure!(ALERTS.contains(right), "no alert has {right}");
        ensure!(check(&ALERTS.replace(right, wrong), &text).is_err(), "{wrong} is not noticed");
    }
    let alert = Regex::new(r"(?m)^ *- alert: (\w+)$")?;
    for alert in alert.captures_iter(ALERTS) {
        ensure!(TASK.contains(&format!("| `{}` |", &alert[1])), "{} is not explained", &alert[1]);
    }
    Ok(())
}
