//! Databases, search, queues, streams, batch processing.

use bellwether_model::{
    ConditionStatus::{False, True},
    State::{Failed, InProgress, Ready, Suspended, Unknown},
};

use super::{complete, rule};
use crate::builtin::{
    Evaluator, KindRule,
    clause::{self, BuiltinClause, Otherwise, condition, fewer, has, is, lacks, no_condition, part_is, some},
};
use crate::{read::Reader, reasons, verdict::Verdict};

pub(super) const RULES: &[KindRule] = &[
    // PostgreSQL.
    complete(
        "acid.zalan.do/postgresql",
        &[
            is("status.PostgresClusterStatus", &["Running"], Ready),
            is(
                "status.PostgresClusterStatus",
                &["CreateFailed", "UpdateFailed", "SyncFailed", "DeleteFailed", "Invalid"],
                Failed,
            ),
        ],
        InProgress,
    ),
    rule(
        "postgresql.cnpg.io/Cluster",
        &[
            condition("cnpg.io/hibernation", True, Suspended).nothing_runs(),
            is(
                "status.phase",
                &[
                    "Cluster is unrecoverable and needs manual intervention",
                    "Cannot upgrade",
                    "Failed to upgrade",
                    "Not enough disk space",
                    "Unable to create required cluster objects",
                    "Cluster has incomplete or invalid image catalog",
                ],
                Failed,
            ),
            is("status.phase", &["Cluster upgrade delayed", "Waiting for user action"], Suspended),
            condition("ContinuousArchiving", False, Failed),
            is("status.phase", &["Cluster in healthy state"], Ready),
        ],
    ),
    // Elastic reports health as green, yellow or red.
    KindRule {
        id: "elasticsearch.k8s.elastic.co/Elasticsearch",
        description: "`Failed` if red or invalid; `InProgress` if yellow, while changes are applied or data \
                      is migrated, or with fewer available nodes than `spec.nodeSets` wants, or without a \
                      health; `Ready` if green; otherwise `Unknown`.",
        reads: &["spec.nodeSets.count", "status"],
        evaluator: Evaluator::Function(elasticsearch),
    },
    complete("kibana.k8s.elastic.co/Kibana", ELASTIC, Unknown),
    complete("beat.k8s.elastic.co/Beat", ELASTIC, Unknown),
    complete("agent.k8s.elastic.co/Agent", ELASTIC, Unknown),
    complete("apm.k8s.elastic.co/ApmServer", ELASTIC, Unknown),
    complete("enterprisesearch.k8s.elastic.co/EnterpriseSearch", ELASTIC, Unknown),
    complete("logstash.k8s.elastic.co/Logstash", ELASTIC, Unknown),
    complete("maps.k8s.elastic.co/ElasticMapsServer", ELASTIC, Unknown),
    // MinIO reports sentences.
    complete(
        "minio.min.io/Tenant",
        &[
            is("status.currentState", &["Initialized"], Ready),
            is(
                "status.currentState",
                &[
                    "Another MinIO Tenant already exists in the namespace",
                    "Different versions across MinIO Pools",
                    "Pool Decommissioning Not Allowed",
                    "Statefulset not controlled by operator",
                    "Tenant credentials are not set properly",
                    "Tenant has encryption keys that are not valid",
                ],
                Failed,
            ),
        ],
        InProgress,
    ),
    rule("k8s.mariadb.com/MariaDB", &[no_condition("Ready", InProgress)]),
    rule("mariadb.mmontes.io/MariaDB", &[no_condition("Ready", InProgress)]),
    KindRule {
        id: "cassandra.rook.io/Cluster",
        description: "`Ready` if all members of all racks are ready; otherwise `InProgress`.",
        reads: &["status.racks"],
        evaluator: Evaluator::Function(cassandra),
    },
    // Ceph: the phase is from the operator, the health from the storage cluster.
    rule("ceph.rook.io/CephCluster", CEPH),
    rule("ceph.rook.io/*", CEPH),
    // Percona keeps a history of states in the conditions. Only `state` is current.
    rule("pxc.percona.com/*", PERCONA),
    rule("psmdb.percona.com/*", PERCONA),
    rule("ps.percona.com/*", PERCONA),
    rule("pgv2.percona.com/*", PERCONA),
    // RabbitMQ.
    rule("rabbitmq.com/RabbitmqCluster", &[condition("ReconcileSuccess", False, Failed)]),
    // Kafka: a connector is RUNNING even if its tasks fail.
    rule(
        "platform.confluent.io/Connector",
        &[
            some("status.failedTasksCount", Failed),
            is("status.connectorState", &["FAILED"], Failed),
            is("status.connectorState", &["PAUSED", "STOPPED"], Suspended).nothing_runs(),
        ],
    ),
    rule(
        "kafka.strimzi.io/KafkaConnector",
        &[
            part_is("status.connectorStatus.tasks", "state", &["FAILED"], Failed),
            is("status.connectorStatus.connector.state", &["FAILED"], Failed),
            is("status.connectorStatus.connector.state", &["PAUSED", "STOPPED"], Suspended).nothing_runs(),
        ],
    ),
    rule(
        "flink.apache.org/FlinkDeployment",
        &[
            has("status.error", Failed),
            is("status.jobManagerDeploymentStatus", &["ERROR"], Failed),
            is("status.jobStatus.state", &["FAILED", "FAILING"], Failed),
            is("status.lifecycleState", &["FAILED"], Failed),
            is("status.jobStatus.state", &["FINISHED"], Ready),
            is("status.jobStatus.state", &["SUSPENDED"], Suspended).nothing_runs(),
            is(
                "status.jobStatus.state",
                &["CREATED", "INITIALIZING", "RECONCILING", "RESTARTING", "CANCELLING"],
                InProgress,
            ),
            is("status.jobManagerDeploymentStatus", &["READY"], Ready),
            is(
                "status.jobManagerDeploymentStatus",
                &["DEPLOYED_NOT_READY", "DEPLOYING", "MISSING"],
                InProgress,
            ),
        ],
    ),
    rule(
        "sparkoperator.k8s.io/SparkApplication",
        &[
            is("status.applicationState.state", &["COMPLETED", "RUNNING"], Ready),
            is(
                "status.applicationState.state",
                &["FAILED", "SUBMISSION_FAILED", "FAILING", "INVALIDATING"],
                Failed,
            ),
            is(
                "status.applicationState.state",
                &["NEW", "SUBMITTED", "PENDING_RERUN", "SUCCEEDING", "UNKNOWN"],
                InProgress,
            ),
        ],
    ),
    rule(
        "ray.io/RayCluster",
        &[
            is("status.state", &["ready"], Ready),
            is("status.state", &["failed", "unhealthy"], Failed),
            is("status.state", &["suspended"], Suspended).nothing_runs(),
            lacks("status.state", InProgress),
        ],
    ),
    rule(
        "ray.io/RayService",
        &[
            is("status.serviceStatus", &["Running"], Ready),
            is(
                "status.serviceStatus",
                &["FailedToGetOrCreateRayCluster", "FailedServeDeploy", "FailedUpdateService"],
                Failed,
            ),
            is("status.serviceStatus", &["WaitForServeDeploymentReady", "Restarting", ""], InProgress),
        ],
    ),
    rule(
        "ray.io/RayJob",
        &[
            is("status.jobStatus", &["FAILED", "STOPPED"], Failed),
            is("status.jobDeploymentStatus", &["Failed"], Failed),
            is("status.jobDeploymentStatus", &["Complete"], Ready),
            is("status.jobStatus", &["SUCCEEDED"], Ready),
            is("status.jobDeploymentStatus", &["Suspended"], Suspended).nothing_runs(),
            is(
                "status.jobDeploymentStatus",
                &["Initializing", "Running", "Waiting", "Retrying", ""],
                InProgress,
            ),
        ],
    ),
    rule(
        "mysql.oracle.com/InnoDBCluster",
        &[
            is("status.cluster.status", &["ONLINE"], Ready),
            is(
                "status.cluster.status",
                &["ONLINE_PARTIAL", "OFFLINE", "NO_QUORUM", "SPLIT_BRAIN", "INVALID"],
                Failed,
            ),
            is("status.cluster.status", &["INITIALIZING", "PENDING", "UNKNOWN", "FINALIZING"], InProgress),
        ],
    ),
    rule(
        "datadoghq.com/DatadogMetric",
        &[condition("Error", True, Failed), condition("Valid", False, Failed)],
    ),
];

const ELASTIC: &[BuiltinClause] = &[
    is("status.phase", &["Invalid"], Failed),
    is("status.health", &["red"], Failed),
    is("status.phase", &["ApplyingChanges", "MigratingData", "NodeShutdownStalled"], InProgress),
    is("status.health", &["yellow"], InProgress),
    fewer("status.availableNodes", "status.expectedNodes", InProgress),
    is("status.health", &["green"], Ready),
    lacks("status.health", InProgress),
];

const PERCONA: &[BuiltinClause] = &[
    is("status.state", &["ready"], Ready),
    is("status.state", &["error"], Failed),
    // All Pods are deleted.
    is("status.state", &["paused"], Suspended).nothing_runs(),
    is("status.state", &["initializing", "stopping", ""], InProgress),
];

const CEPH: &[BuiltinClause] = &[
    is("status.phase", &["Failure", "Error"], Failed),
    is("status.state", &["Error"], Failed),
    is("status.phase", &["Progressing", "Connecting", "Updating"], InProgress),
    is("status.ceph.health", &["HEALTH_ERR", "HEALTH_WARN"], Failed),
    is("status.ceph.health", &["HEALTH_OK"], Ready),
    is("status.phase", &["Connected", "Ready"], Ready),
];

fn elasticsearch(o: &Reader<'_>) -> Verdict {
    let verdict = clause::evaluate(ELASTIC, Otherwise::Is(Unknown), o);
    let wanted = o.items("spec.nodeSets").fold(0_i64, |sum, set| sum.saturating_add(set.count("count")));
    let available = o.count("status.availableNodes");
    if verdict.state == Ready && available < wanted {
        let message = format!("{available} of {wanted} nodes available");
        return Verdict::in_progress(reasons::too_few("availableNodes"), message).progress(available, wanted);
    }
    verdict
}

fn cassandra(o: &Reader<'_>) -> Verdict {
    let racks = o.at("status.racks").entries();
    let (members, ready) = racks.iter().fold((0_i64, 0_i64), |(members, ready), rack| {
        (members.saturating_add(rack.count("members")), ready.saturating_add(rack.count("readyMembers")))
    });
    let message = format!("{ready} of {members} members ready");
    let verdict = match members {
        0 => Verdict::not_observed(),
        _ if ready < members => Verdict::in_progress(reasons::MEMBERS_NOT_READY, message),
        _ => Verdict::ready(reasons::MEMBERS_READY, message),
    };
    if members == 0 { verdict } else { verdict.progress(ready, members) }
}
