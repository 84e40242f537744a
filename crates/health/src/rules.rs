//! Descriptions of all rules, and the page of them in the docs.

use std::fmt::Write as _;

use crate::{
    builtin,
    generic::{
        phase,
        polarity::{self, Polarity},
        replicas, words,
    },
    reasons,
    verdict::{Rule, Source},
};

/// Applied by the engine to a Service of a group: it needs more than the object.
pub const SERVICE_ENDPOINTS: Rule =
    Rule { source: Source::Builtin, id: std::borrow::Cow::Borrowed(SERVICE_ENDPOINTS_ID) };

const SERVICE_ENDPOINTS_ID: &str = "ServiceEndpoints";

const SERVICE_ENDPOINTS_TEXT: &str = "In a group, a Service that is `Ready` and has a selector: `InProgress` if none of its \
                                      EndpointSlices has a ready endpoint, unless all workloads of the group are scaled \
                                      to zero.";

/// A rule with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// The set that the rule belongs to.
    pub source: Source,
    /// The name in that set: `apps/Deployment`, `generation`.
    pub id: &'static str,
    /// The description, in Markdown.
    pub description: String,
}

/// All built-in rules by group and kind, then the generic rules in order of evaluation.
pub fn rules() -> Vec<RuleText> {
    let builtin =
        builtin_texts().map(|(id, description)| RuleText { source: Source::Builtin, id, description });
    let generic = GENERIC.iter().map(|(id, text)| RuleText {
        source: Source::Generic,
        id,
        description: (*text).to_owned(),
    });
    builtin.chain(generic).collect()
}

fn builtin_texts() -> impl Iterator<Item = (&'static str, String)> {
    let mut texts: Vec<_> = builtin::all().map(|rule| (rule.id, rule.description())).collect();
    texts.push((SERVICE_ENDPOINTS_ID, SERVICE_ENDPOINTS_TEXT.to_owned()));
    texts.sort_by_key(|(id, _)| id.rsplit_once('/').unwrap_or(("", id)));
    texts.into_iter()
}

/// Generic rules in order of evaluation.
const GENERIC: &[(&str, &str)] = &[
    ("deletion", "`Terminating` if `metadata.deletionTimestamp` is set."),
    (
        "suspended",
        "`Suspended` if `spec.suspend`, `spec.suspended`, `spec.pause` or `spec.paused`, or `paused` in `spec.updateStrategy`, \
         is true. Evaluated before the generation: controllers do not observe suspended objects. After the generation, \
         also if a flag in the status says so: `paused`, `suspended`, `hibernated`. A suspended object \
         blocks its group if its status reports a failure, if `Ready` or `Available` is not True for another reason, \
         if fewer replicas or parts are ready than wanted, or if it was still in progress.",
    ),
    (
        "generation",
        "`InProgress` if `status.observedGeneration`, as a number or a string, is older than `metadata.generation`. A \
         condition with an older `observedGeneration` counts as not reported yet.",
    ),
    ("stalled", "`Failed` if condition `Stalled` is True; `InProgress` if `Reconciling` is True."),
    (
        "ready",
        "Condition `Ready`. True: `Ready`, unless another condition or the phase reports a failure or a suspension, or \
         `Available` or `Healthy` is False. False or Unknown: `Failed` if the reason, the beginning of the message or \
         another condition means failure; otherwise `InProgress`.",
    ),
    (
        "conditions",
        "The worst of the other conditions by polarity, and of the conditions in `parents`, `ancestors`, `listeners` and \
         every other list or map in the status.",
    ),
    (
        "phase",
        "An error in the status; else `status.phase`, `state`, `health` and similar fields; else, or beside a good phase, a \
         flag such as `status.ready`. The worst of phase and conditions decides. A kind that runs to completion is `Ready` only when \
         completed.",
    ),
    (
        "replicas",
        "`InProgress` if fewer replicas are updated or ready than wanted, also if a phase or a condition is `Ready`; \
         otherwise `Ready`.",
    ),
    (
        "contradiction",
        "Instead of `Ready` by a condition, phase or counter. `Failed` if the status has, at any depth, a text about an error, a \
         counter, list or flag of failures, a failed condition or phase of a part, or a condition of unknown polarity whose \
         reason or message tells a failure; or a label with a failed state. `InProgress` if a part is not ready, or a current \
         value is not the desired one.",
    ),
    ("unreported", "`InProgress` without a status, with an empty one, or with an empty list of conditions."),
    (
        "none",
        "`Unknown`, reason `NoRule`. An object without a status whose kind has no status subresource is `Ready`, reason \
         `NoStatusExpected`.",
    ),
];

/// A difference between Bellwether's verdicts and those of another project.
struct Deviation {
    peer: &'static str,
    situation: &'static str,
    theirs: &'static str,
    ours: &'static str,
    because: &'static str,
}

const DEVIATIONS: &[Deviation] = &[
    Deviation {
        peer: "Argo CD",
        situation: "some custom resources with a deletion timestamp",
        theirs: "by their conditions",
        ours: "`Terminating`",
        because: "the conditions are about an object that is being deleted",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a custom resource with an older `observedGeneration` that the script does not check \
                    (RabbitMQ topology)",
        theirs: "by the stale conditions",
        ours: "`InProgress`",
        because: "the conditions are about an older spec",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a route with a stale entry for a parent in `spec.parentRefs`",
        theirs: "ignored",
        ours: "`InProgress`",
        because: "the parent has not reported on this generation",
    },
    Deviation {
        peer: "Argo CD",
        situation: "SpinApp and others: Progressing=True with reason NewReplicaSetAvailable",
        theirs: "Progressing",
        ours: "`Ready`",
        because: "a completed rollout of a Deployment has this condition",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a Ready condition with a status other than True, False or Unknown (Knative operator)",
        theirs: "Degraded",
        ours: "`InProgress`",
        because: "an invalid status is unknown, not a failure",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a FlinkDeployment with a suspended job",
        theirs: "Healthy",
        ours: "`Suspended`",
        because: "a user suspended it",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a CloneSet or StatefulSet of OpenKruise with fewer available replicas than wanted",
        theirs: "Degraded",
        ours: "`InProgress`",
        because: "every rollout begins like this",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a Config Connector resource with an unready dependency; an OpenFaaS function without \
                    replicas",
        theirs: "Suspended",
        ours: "`InProgress`",
        because: "no user suspended it",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a suspended CronJob",
        theirs: "Suspended",
        ours: "`Ready`",
        because: "suspension is its configured state and must not block an application",
    },
    Deviation {
        peer: "Argo CD",
        situation: "an autoscaler without metrics",
        theirs: "Degraded at once",
        ours: "`InProgress`, after 5 minutes `Failed`",
        because: "metrics are often missing during a rollout",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a kind without a rule",
        theirs: "ignored",
        ours: "by the generic rules, else `Unknown`",
        because: "no evidence is not `Ready`",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Pod in phase Failed",
        theirs: "Current",
        ours: "`Failed`",
        because: "it did not complete its work",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Pod in ImagePullBackOff or CreateContainerConfigError",
        theirs: "InProgress",
        ours: "`Failed`",
        because: "it requires a change by a user",
    },
    Deviation {
        peer: "kstatus",
        situation: "a running Job",
        theirs: "Current",
        ours: "`InProgress`, with succeeded completions as progress",
        because: "it is not complete",
    },
    Deviation {
        peer: "kstatus",
        situation: "a suspended Job, a paused Deployment",
        theirs: "Current, or by its counters",
        ours: "`Suspended`",
        because: "a user suspended it before completion",
    },
    Deviation {
        peer: "kstatus releases",
        situation: "a suspended Job, in dialect kstatus",
        theirs: "InProgress, in the last release and in the fork of Flux and Helm",
        ours: "Current, as in the newer tests of kstatus",
        because: "the two contradict each other; Bellwether follows the newer one",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Service of type LoadBalancer or an Ingress without an address",
        theirs: "Current",
        ours: "`InProgress`",
        because: "clients cannot reach it",
    },
    Deviation {
        peer: "kstatus",
        situation: "a claim with a lost volume; a ReplicaSet with ReplicaFailure=True",
        theirs: "InProgress",
        ours: "`Failed`",
        because: "it requires a change by a user",
    },
    Deviation {
        peer: "kstatus",
        situation: "a PodDisruptionBudget with too few healthy Pods",
        theirs: "Current",
        ours: "`InProgress`, with the counters",
        because: "currentHealthy is less than desiredHealthy",
    },
    Deviation {
        peer: "kstatus",
        situation: "a custom resource without a Ready condition",
        theirs: "Current",
        ours: "by its other conditions, phase or counters, else `Unknown`",
        because: "no evidence is not `Ready`",
    },
    Deviation {
        peer: "kstatus",
        situation: "an `observedGeneration` that is a string",
        theirs: "an error",
        ours: "parsed as a number",
        because: "its value is unambiguous",
    },
];

/// The docs page of all rules, in Markdown.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    section(
        &mut page,
        "Generic rules",
        "For kinds without a built-in rule, and where a built-in rule refers to them. The first match decides.",
    );
    table(
        &mut page,
        ["rule", "state"],
        GENERIC.iter().map(|(id, text)| [format!("`{id}`"), (*text).to_owned()]),
    );

    section(
        &mut page,
        "Words",
        "The meaning of words in phases and reasons. `InProgress`, `in-progress` and `IN_PROGRESS` are the same. The worst \
         word of a phrase decides. A negated good word (*not ready*) and words in *-ing* mean `InProgress`.",
    );
    let alone = words::ALONE.iter().map(|(state, words)| (state, words, ", only as the whole phrase"));
    let anywhere = words::WORDS.iter().map(|(state, words)| (state, words, ""));
    table(
        &mut page,
        ["state", "words"],
        anywhere
            .chain(alone)
            .map(|(state, words, note)| [format!("`{state:?}`{note}"), words.replace(' ', ", ")]),
    );
    let _ = writeln!(
        page,
        "\nOnly of phases: `Suspended` if the spec says so (`enabled: false`, `runStrategy: Halted`, `replicas: 0`), else \
         `InProgress`, or `Failed` if the status reports a failure: {}.",
        words::HALTED.join(", ")
    );
    let _ = writeln!(page, "\n`Failed` if negated: {}.", words::FAILED_IF_NEGATED.join(", "));
    let _ = writeln!(page, "\n`InProgress` instead of `Ready` with: {}.", words::QUALIFIERS.join(", "));

    section(
        &mut page,
        "Conditions",
        "A condition type has a polarity, by the whole type or by its last word: `ControlPlaneReady` is positive, \
         `InstallPlanFailed` is negative. Other types are ignored.",
    );
    let all = polarity::ALL.iter().map(|polarity| {
        let types = polarity::TYPES.iter().filter(|(of, _)| of == polarity);
        let types = types.flat_map(|(_, types)| types.iter().map(|kind| (*kind).to_owned()));
        let negated =
            (*polarity == Polarity::Negated).then(|| "a positive type with a negation: NotReady".to_owned());
        let endings = polarity::ENDINGS.iter().filter(|(of, _)| of == polarity);
        let endings = endings.flat_map(|(_, words)| words.split_whitespace().map(|word| format!("…{word}")));
        let [if_true, if_false] = polarity.states().map(str::to_owned);
        [
            format!("{polarity:?}"),
            if_true,
            if_false,
            types.chain(endings).chain(negated).collect::<Vec<_>>().join(", "),
        ]
    });
    table(&mut page, ["polarity", "if True", "if False", "types"], all);
    page.push_str(
        "\n`Available`, `Progressing` and `Degraded` together decide alone; degraded and progressing is `InProgress`. A \
         False condition with `severity` Error is `Failed`, with Warning or Info `InProgress`.\n",
    );

    section(&mut page, "Fields", "The fields that the other generic rules read.");
    table(
        &mut page,
        ["meaning", "names"],
        [
            ["phase: last word of the field name".to_owned(), phase::NAMES.join(", ")],
            ["not a phase: first word of the field name".to_owned(), phase::NOT_CURRENT.join(", ")],
            ["error".to_owned(), phase::ERRORS.join(", ")],
            ["flag".to_owned(), phase::FLAGS.join(", ")],
            [
                "kinds that run to completion: last word of the kind".to_owned(),
                phase::COMPLETING_KINDS.replace(' ', ", "),
            ],
            ["phases of such a kind before completion".to_owned(), phase::NOT_COMPLETE.replace(' ', ", ")],
            ["phases that alone are `InProgress`".to_owned(), phase::STEPS.replace(' ', ", ")],
            ["replicas wanted".to_owned(), replicas::WANTED.join(", ")],
            ["replicas ready".to_owned(), replicas::READY.join(", ")],
        ],
    );

    section(
        &mut page,
        "Built-in rules",
        "By group and kind. The first matching clause decides. By these rules, an object with an older \
         `status.observedGeneration` is never `Ready`.",
    );
    table(
        &mut page,
        ["kind", "state"],
        builtin_texts().map(|(id, description)| [format!("`{id}`"), description]),
    );

    section(&mut page, "Reasons", REASONS);
    table(
        &mut page,
        ["reason", "meaning"],
        reasons::ALL.iter().map(|reason| [format!("`{}`", reason.name), reason.meaning.to_owned()]),
    );
    page.push_str(
        "\nBuilt-in rules also form reasons from the name of the field or condition type that decided:\n\n",
    );
    table(
        &mut page,
        ["reason", "meaning"],
        reasons::FAMILIES.iter().map(|family| [format!("`{}`", family.name), family.meaning.to_owned()]),
    );
    page.push_str(PASSED_ON);

    section(
        &mut page,
        "Differences from Argo CD and kstatus",
        "`bellwether assess --dialect argo` and `--dialect kstatus` return exactly the verdicts of those projects. \
         Bellwether's own verdicts differ from them here:",
    );
    table(
        &mut page,
        ["project", "object", "its verdict", "Bellwether", "because"],
        DEVIATIONS.iter().map(|deviation| {
            [deviation.peer, deviation.situation, deviation.theirs, deviation.ours, deviation.because]
                .map(str::to_owned)
        }),
    );
    page
}

const INTRODUCTION: &str = "# Health rules

<!-- Generated by `cargo xtask generate`. The rules are in crates/health. -->

Order of evaluation, first match: a deletion timestamp; a [user rule](writing-rules.md) for the kind; a built-in rule \
for the kind; the generic rules. An object that no rule can evaluate is `Unknown`, never `Ready`. \
`bellwether explain -f FILE` shows which rule evaluated an object, and the fields that it read.

| state | meaning |
|---|---|
| `Ready` | works as specified, or has completed |
| `InProgress` | not ready yet, may become ready without intervention |
| `Failed` | requires intervention |
| `Suspended` | suspended by a user |
| `Terminating` | being deleted |
| `Unknown` | cannot be evaluated |
";

const REASONS: &str = "The reasons that Bellwether's rules give. Where the meaning begins with a kind, the \
                       reason is for that kind only.";

const PASSED_ON: &str = "
Every other reason is passed on from the object: the reason of the condition, Pod or container that decided; the type \
of a condition without a reason; the value of a phase (`running` becomes `Running`) or of a label. A reason that is \
passed on may equal one of the table; it then has the meaning of the controller that reports it. A verdict by a \
[user rule](writing-rules.md) has the reason of the clause, else the name of the state; by a Lua script, the status \
that the script returns.
";

fn section(page: &mut String, title: &str, text: &str) {
    let _ = writeln!(page, "\n## {title}\n\n{text}\n");
}

fn table<const COLUMNS: usize>(
    page: &mut String,
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) {
    let _ = writeln!(page, "| {} |\n|{}", head.join(" | "), "---|".repeat(COLUMNS));
    for row in rows {
        let _ = writeln!(page, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use bellwether_model::State;

    use super::*;

    #[test]
    fn every_rule_has_a_description() {
        for rule in rules() {
            assert!(rule.description.ends_with('.'), "{}: {:?}", rule.id, rule.description);
        }
    }

    #[test]
    fn every_state_of_a_verdict_is_explained() {
        for state in [
            State::Ready,
            State::InProgress,
            State::Failed,
            State::Suspended,
            State::Terminating,
            State::Unknown,
        ] {
            assert!(page().contains(&format!("| `{state:?}` |")), "{state:?}");
        }
    }
}
