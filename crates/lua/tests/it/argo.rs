//! Scripts in the style of Argo CD's.

use rstest::rstest;

use super::run_json;

const CONDITIONS: &str = r#"
local hs = { status = "Progressing", message = "Waiting for the controller" }
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type ~= "Ready" then
      goto continue
    end
    if obj.metadata.generation ~= nil and condition.observedGeneration ~= nil
        and condition.observedGeneration ~= obj.metadata.generation then
      hs.message = "Waiting for generation " .. obj.metadata.generation
      return hs
    end
    if condition.status == "True" then
      hs.status = "Healthy"
    elseif condition.status == "False" then
      hs.status = "Degraded"
    end
    hs.message = condition.message or ""
    ::continue::
  end
end
return hs
"#;

const REPLICAS: &str = r#"
local wanted = obj.spec.replicas
local ready = (obj.status or {}).readyReplicas or 0
if wanted == nil then wanted = 1 end
if obj.status ~= nil and table.getn(obj.status.failures or {}) > 0 then
  local names = {}
  for _, failure in pairs(obj.status.failures) do
    table.insert(names, failure.name)
  end
  table.sort(names)
  return { status = "Degraded", message = "Failed: " .. table.concat(names, ", ") }
end
if ready < wanted then
  return { status = "Progressing", message = string.format("%d of %d ready (%d%%)", ready, wanted, 100 * ready / wanted) }
end
return { status = "Healthy", message = tostring(wanted / 1) .. " ready" }
"#;

const SCHEDULE: &str = r#"
local year, month, day, hour, min, sec = string.match(obj.status.lastRun, "(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z")
local last = os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec })
local age = os.time() - last
if age > 3600 then
  return { status = "Degraded", message = "It has not run for " .. math.floor(age / 60) .. " minutes" }
end
return { status = "Healthy", message = "It ran at " .. os.date("!%H:%M", last) }
"#;

const PHASE: &str = r#"
local phases = { Running = "Healthy", Failed = "Degraded", Paused = "Suspended" }
if obj.status == nil then return nil end
local phase = obj.status.phase
if phase:find("^Error") ~= nil then
  return { status = "Degraded", message = phase:gsub("Error: ", "") }
end
if phase == "" then return {} end
return { status = phases[phase] or "Progressing", message = "Phase " .. phase }
"#;

#[rstest]
#[case::ready(
    CONDITIONS,
    r#"{"metadata":{},"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True","message":"ok"}]}}"#,
    "Healthy",
    "ok"
)]
#[case::not_ready(
    CONDITIONS,
    r#"{"metadata":{},"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#,
    "Degraded",
    ""
)]
#[case::outdated(
    CONDITIONS,
    r#"{"metadata":{"generation":3},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}}"#,
    "Progressing",
    "Waiting for generation 3"
)]
#[case::no_status(CONDITIONS, r#"{"metadata":{}}"#, "Progressing", "Waiting for the controller")]
#[case::no_conditions(
    CONDITIONS,
    r#"{"metadata":{},"status":{"conditions":null}}"#,
    "Progressing",
    "Waiting for the controller"
)]
#[case::some_ready(
    REPLICAS,
    r#"{"spec":{"replicas":3},"status":{"readyReplicas":1}}"#,
    "Progressing",
    "1 of 3 ready (33%)"
)]
#[case::all_ready(REPLICAS, r#"{"spec":{"replicas":3},"status":{"readyReplicas":3}}"#, "Healthy", "3 ready")]
#[case::written_as_float(
    REPLICAS,
    r#"{"spec":{"replicas":3.0},"status":{"readyReplicas":3.0}}"#,
    "Healthy",
    "3 ready"
)]
#[case::failures(
    REPLICAS,
    r#"{"spec":{},"status":{"failures":[{"name":"b"},{"name":"a"}]}}"#,
    "Degraded",
    "Failed: a, b"
)]
#[case::recent(SCHEDULE, r#"{"status":{"lastRun":"2026-03-01T12:04:56Z"}}"#, "Healthy", "It ran at 12:04")]
#[case::long_ago(
    SCHEDULE,
    r#"{"status":{"lastRun":"2026-03-01T10:34:56Z"}}"#,
    "Degraded",
    "It has not run for 120 minutes"
)]
#[case::running(PHASE, r#"{"status":{"phase":"Running"}}"#, "Healthy", "Phase Running")]
#[case::other_phase(PHASE, r#"{"status":{"phase":"Other"}}"#, "Progressing", "Phase Other")]
#[case::error_phase(PHASE, r#"{"status":{"phase":"Error: disk full"}}"#, "Degraded", "disk full")]
#[case::nothing_returned(PHASE, "{}", "", "")]
#[case::empty_table_returned(PHASE, r#"{"status":{"phase":""}}"#, "", "")]
#[case::hole_in_list(
    "return { message = obj[1] .. tostring(obj[2]) .. obj[3] .. #obj }",
    r#"["a",null,"c"]"#,
    "",
    "anilc3"
)]
#[case::whole_and_other_numbers(
    "return { message = obj[1] .. ' ' .. obj[2] .. ' ' .. obj[3] }",
    "[9007199254740993, 0.5, 1.0]",
    "",
    "9007199254740993 0.5 1"
)]
fn scripts(#[case] source: &str, #[case] object: &str, #[case] status: &str, #[case] message: &str) {
    let outcome = run_json(source, object).expect("the script runs");
    assert_eq!((outcome.status.as_str(), outcome.message.as_str()), (status, message));
}
