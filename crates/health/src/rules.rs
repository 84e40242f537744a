//! All rules, for people to read.

use std::fmt::Write as _;

use crate::{
    builtin,
    generic::{phase, polarity, replicas, words},
    verdict::Source,
};

/// A rule as it is told to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// Where it comes from.
    pub source: Source,
    /// Its name there.
    pub id: &'static str,
    /// What it says.
    pub says: String,
}

/// Every rule that comes with Bellwether: the built-in ones by group and kind, then the generic ones in their order.
pub fn rules() -> Vec<RuleText> {
    let builtin =
        builtin::all().map(|rule| RuleText { source: Source::Builtin, id: rule.id, says: rule.in_words() });
    let generic =
        GENERIC.iter().map(|(id, says)| RuleText { source: Source::Generic, id, says: (*says).to_owned() });
    builtin.chain(generic).collect()
}

/// The generic rules in the order in which they are asked.
const GENERIC: &[(&str, &str)] = &[
    ("deletion", "An object with `metadata.deletionTimestamp` is Terminating, whatever else it says."),
    (
        "suspended",
        "Suspended when `spec.suspend`, `spec.suspended`, `spec.pause` or `spec.paused` is true. This goes before the \
         generation, because a controller does not look at what is suspended.",
    ),
    (
        "generation",
        "InProgress when `status.observedGeneration`, a number or a number written as text, is behind \
         `metadata.generation`. A condition with an `observedGeneration` that is behind counts as not known yet.",
    ),
    ("stalled", "Failed when the condition `Stalled` is True; InProgress when `Reconciling` is True."),
    (
        "ready",
        "The condition `Ready`: True is Ready, unless another condition or the phase says outright that it fails or is \
         stopped, or `Available` or `Healthy` is False. False or Unknown is \
         InProgress with its reason and message, and Failed where the reason, the beginning of the message or another \
         condition says that it will not mend itself.",
    ),
    (
        "conditions",
        "The other conditions by their polarity, and those of `parents`, `ancestors`, `listeners` and every other list or \
         map in the status whose entries have conditions: the worst of them.",
    ),
    (
        "phase",
        "An error in the status; else the words of `status.phase`, `state`, `health` and fields named like them; else a \
         flag such as `status.ready`. The worst of these and of the conditions is believed; of a kind \
         that runs to an end, only the end is Ready.",
    ),
    (
        "replicas",
        "Counters of replicas: ready and updated, against those that are wanted. Also where a phase or conditions say that \
         all is well.",
    ),
    (
        "unreported",
        "InProgress when there is a spec and no status, or an empty list of conditions: nobody has reported on it yet.",
    ),
    (
        "none",
        "Unknown, reason `NoRule`. An object without a status whose kind has no status subresource is Ready, reason \
         `NoStatusExpected`.",
    ),
];

/// Where Bellwether says something else than a project that people may come from.
struct Deviation {
    peer: &'static str,
    situation: &'static str,
    they_say: &'static str,
    we_say: &'static str,
    because: &'static str,
}

const DEVIATIONS: &[Deviation] = &[
    Deviation {
        peer: "Argo CD",
        situation: "an object that is being deleted, for some custom resources",
        they_say: "what its conditions say",
        we_say: "Terminating",
        because: "its conditions are about a thing that is going away",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a custom resource whose controller has not observed the newest generation, where the script does not \
                    look (RabbitMQ's topology)",
        they_say: "what the old conditions say",
        we_say: "InProgress",
        because: "they speak of a spec that is no longer wanted",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a route with a parent entry of an older generation that the spec still names",
        they_say: "it does not count",
        we_say: "InProgress",
        because: "that parent has not answered yet",
    },
    Deviation {
        peer: "Argo CD",
        situation: "SpinApp and others: Progressing is True because of NewReplicaSetAvailable",
        they_say: "Progressing",
        we_say: "Ready",
        because: "this is how a Deployment says that its roll-out is over",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a Ready condition whose status is neither True, False nor Unknown (Knative operator)",
        they_say: "Degraded",
        we_say: "InProgress",
        because: "what nobody can read is unknown, not broken",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a FlinkDeployment whose job is suspended",
        they_say: "Healthy",
        we_say: "Suspended",
        because: "it was stopped on purpose",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a CloneSet or StatefulSet of OpenKruise with fewer available replicas than it wants",
        they_say: "Degraded",
        we_say: "InProgress",
        because: "so begins every roll-out",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a resource of Config Connector that waits for another; an OpenFaaS function without replicas",
        they_say: "Suspended",
        we_say: "InProgress",
        because: "nobody has suspended it",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a suspended CronJob",
        they_say: "Suspended",
        we_say: "Ready",
        because: "it does what its owner asked for, and must not hold up an application",
    },
    Deviation {
        peer: "Argo CD",
        situation: "an autoscaler whose metrics cannot be read",
        they_say: "Degraded at once",
        we_say: "InProgress for 5 minutes, then Failed",
        because: "metrics come and go during every roll-out",
    },
    Deviation {
        peer: "Argo CD",
        situation: "a kind without a rule",
        they_say: "nothing: it does not count",
        we_say: "what the generic rules can tell, else Unknown",
        because: "nobody has earned the green light",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Pod that failed",
        they_say: "Current",
        we_say: "Failed",
        because: "it did not do what it was for",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Pod whose image cannot be pulled or whose container cannot be configured",
        they_say: "InProgress",
        we_say: "Failed",
        because: "it will not mend itself",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Job that runs",
        they_say: "Current",
        we_say: "InProgress, as far as completions have succeeded",
        because: "its work is not done",
    },
    Deviation {
        peer: "kstatus",
        situation: "a suspended Job, a paused Deployment",
        they_say: "Current, or by its counters",
        we_say: "Suspended",
        because: "it was stopped on purpose, and is not done",
    },
    Deviation {
        peer: "kstatus' releases",
        situation: "a suspended Job, in the dialect kstatus",
        they_say: "InProgress, in the last release and in the fork of Flux and Helm",
        we_say: "Current, as kstatus' newer tests say",
        because: "the two contradict each other, and the newer one is followed",
    },
    Deviation {
        peer: "kstatus",
        situation: "a Service of type LoadBalancer or an Ingress without an address",
        they_say: "Current",
        we_say: "InProgress",
        because: "nobody can reach it",
    },
    Deviation {
        peer: "kstatus",
        situation: "a claim whose volume is lost; a ReplicaSet that cannot create Pods",
        they_say: "InProgress",
        we_say: "Failed",
        because: "it will not mend itself",
    },
    Deviation {
        peer: "kstatus",
        situation: "a PodDisruptionBudget with too few healthy Pods",
        they_say: "Current",
        we_say: "InProgress, with the numbers",
        because: "it is ready when currentHealthy reaches desiredHealthy",
    },
    Deviation {
        peer: "kstatus",
        situation: "a custom resource that says nothing, or says it in other conditions than Ready",
        they_say: "Current",
        we_say: "what its conditions, phase or counters mean, else Unknown",
        because: "nobody has earned the green light",
    },
    Deviation {
        peer: "kstatus",
        situation: "an observedGeneration that is written as text",
        they_say: "an error",
        we_say: "the number that it is",
        because: "a number is a number",
    },
];

/// The page of all rules, in Markdown.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    section(
        &mut page,
        "Generic rules",
        "For every kind that has no rule of its own, the first that has something to say.",
    );
    table(
        &mut page,
        ["rule", "what it says"],
        GENERIC.iter().map(|(id, says)| [format!("`{id}`"), (*says).to_owned()]),
    );

    section(
        &mut page,
        "Words",
        "What the words of phases, states and reasons mean, however they are written: `InProgress`, `in-progress` and \
         `IN_PROGRESS` are the same. Of several words in one phrase the worst counts; a good word that is denied \
         (*not ready*) is in progress. Words that end in *-ing* are under way.",
    );
    let alone = words::ALONE.iter().map(|(state, words)| (state, words, " (alone)"));
    let anywhere = words::WORDS.iter().map(|(state, words)| (state, words, ""));
    table(
        &mut page,
        ["state", "words"],
        anywhere
            .chain(alone)
            .map(|(state, words, note)| [format!("{state:?}{note}"), words.replace(' ', ", ")]),
    );
    let _ = writeln!(page, "\nFailed when denied: {}.", words::FAILED_WHEN_DENIED.join(", "));
    let _ = writeln!(page, "\nNot ready with one of these beside it: {}.", words::LIMITS.join(", "));

    section(
        &mut page,
        "Conditions",
        "What a condition type is about: by the whole type, or by its last word (`ControlPlaneReady` is good, \
         `InstallPlanFailed` is bad). A type that is in neither table says nothing about health.",
    );
    let listed = polarity::TYPES.iter().map(|(polarity, types)| [format!("{polarity:?}"), types.join(", ")]);
    let endings = polarity::ENDINGS
        .iter()
        .map(|(polarity, words)| [format!("{polarity:?}"), format!("…{}", words.replace(' ', ", …"))]);
    table(&mut page, ["meaning", "types"], listed.chain(endings));
    page.push_str(
        "\nDone: True ends it. Good: False is a delay unless its reason says otherwise. Sound: False is a failure unless its \
         reason says that it is a delay. Bad: True is a failure. NotGood: True is a failure unless its reason says that it \
         is a delay. UnderWay: True is in progress. Stopped: True is suspended. Leaving: True is terminating. Neutral: it \
         says nothing about health. `Available`, `Progressing` and `Degraded` together decide alone; degraded and \
         progressing is being mended, so in progress. A condition with a `severity` is believed: Error is a failure, \
         Warning and Info are delays.\n",
    );

    section(&mut page, "Fields", "Where the other generic rules look.");
    table(
        &mut page,
        ["what", "fields"],
        [
            ["phase: the last word of a field's name".to_owned(), phase::NAMES.join(", ")],
            ["not a phase: the first word of its name".to_owned(), phase::NOT_NOW.join(", ")],
            ["error".to_owned(), phase::ERRORS.join(", ")],
            ["flag".to_owned(), phase::FLAGS.join(", ")],
            [
                "kinds that run to an end: the last word of the kind".to_owned(),
                phase::RUNS_TO_AN_END.replace(' ', ", "),
            ],
            ["such a kind is not done while it is".to_owned(), phase::NOT_DONE.replace(' ', ", ")],
            ["replicas wanted".to_owned(), replicas::WANTED.join(", ")],
            ["replicas ready".to_owned(), replicas::READY.join(", ")],
        ],
    );

    section(&mut page, "Built-in rules", "By group and kind.");
    table(
        &mut page,
        ["kind", "what it says"],
        builtin::all().map(|rule| [format!("`{}`", rule.id), rule.in_words()]),
    );

    section(
        &mut page,
        "Where others say something else",
        "Whoever comes from Argo CD or kstatus can have their words exactly, with `bellwether assess --dialect argo` or \
         `--dialect kstatus`. Bellwether's own verdicts differ from theirs here:",
    );
    table(
        &mut page,
        ["from", "situation", "they say", "Bellwether says", "because"],
        DEVIATIONS.iter().map(|deviation| {
            [deviation.peer, deviation.situation, deviation.they_say, deviation.we_say, deviation.because]
                .map(str::to_owned)
        }),
    );
    page
}

const INTRODUCTION: &str = "# How Bellwether judges an object

<!-- Generated by `cargo xtask generate`. The rules are in crates/health. -->

The first that applies decides: the object is being deleted; a built-in rule for its kind; the generic \
rules. What nobody can judge is Unknown, never green. `bellwether explain -f FILE` says which rule judged an \
object, and on which fields.

| state | meaning |
|---|---|
| Ready | it does what it is for |
| InProgress | it is on its way |
| Failed | it will not mend itself |
| Suspended | it was suspended on purpose |
| Terminating | it is being deleted |
| Unknown | nobody can tell |
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
    fn every_rule_says_something() {
        for rule in rules() {
            assert!(rule.says.ends_with('.'), "{}: {:?}", rule.id, rule.says);
        }
    }

    #[test]
    fn every_state_that_a_rule_can_give_is_explained() {
        for state in [State::Ready, State::InProgress, State::Failed, State::Suspended, State::Terminating] {
            assert!(page().contains(&format!("| {state:?} |")), "{state:?}");
        }
    }
}
