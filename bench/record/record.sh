#!/usr/bin/env bash
# Records the objects of the benchmark from a real control plane into ../objects.
#
# In one shell:      cargo xtask cluster up --nodes 2
# In another, with the KUBECONFIG and the kubectl that it names:
#                    KUBECTL=<path of kubectl> bench/record/record.sh
set -euo pipefail
cd "$(dirname "$0")"
kubectl=${KUBECTL:-kubectl}
objects=../objects
now=$(date --utc +%FT%TZ)

k() { "$kubectl" --namespace shop "$@"; }

# Patches the status as its controller or the kubelet would write it: patch_status <resource> <manager> <patch>
patch_status() { k patch "$1" --subresource=status --type=merge --field-manager="$2" --patch="$3" >/dev/null; }

# Saves an object exactly as the API server sends it: save <file> <path below /apis or /api>
save() { k get --raw "$2" >"$objects/$1.json"; }

first_name() { k get "$1" --selector="$2" --output=jsonpath='{.items[0].metadata.name}'; }

container_id() { echo "containerd://$(printf '%s' "$1" | sha256sum | cut -d' ' -f1)"; }

# The status of one running container, as a kubelet writes it.
running() { # name image
  cat <<JSON
{"name":"$1","image":"$2","imageID":"${2%:*}@sha256:$(printf '%s' "$2" | sha256sum | cut -d' ' -f1)",
 "containerID":"$(container_id "$1")","ready":true,"started":true,"restartCount":0,"lastState":{},
 "state":{"running":{"startedAt":"$now"}}}
JSON
}

"$kubectl" create namespace shop
"$kubectl" apply --server-side -f crd.yaml
"$kubectl" wait --for=condition=Established crd/databases.shop.example.com
"$kubectl" apply -f client-side.yaml
"$kubectl" apply --server-side --field-manager=pipeline -f server-side.yaml

k rollout status deployment/catalogue deployment/images statefulset/ledger daemonset/collector --timeout=60s
k wait --for=condition=Complete job/reindex --timeout=60s
k wait --for=condition=Ready pod/importer --timeout=60s
k wait --for=jsonpath='{.status.phase}'=Bound pvc/feed --timeout=60s

# Statuses that a kubelet, a cloud provider or a metrics server would write in a real cluster.
patch_status service/front cloud-controller-manager \
  '{"status":{"loadBalancer":{"ingress":[{"hostname":"front.lb.example.com"},{"ip":"203.0.113.7","ipMode":"VIP"}]}}}'

patch_status pod/ledger-0 kubelet '{"status":{"hostIP":"10.2.0.4","hostIPs":[{"ip":"10.2.0.4"}],"containerStatuses":['"$(
  running ledger registry.example.com/shop/ledger:16.4),$(running exporter registry.example.com/observe/exporter:0.15.0)"']}}'

patch_status pod/importer kubelet '{"status":{"hostIP":"10.2.0.5","hostIPs":[{"ip":"10.2.0.5"}],
  "conditions":[
    {"type":"PodReadyToStartContainers","status":"True","lastProbeTime":null,"lastTransitionTime":"'"$now"'"},
    {"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"'"$now"'"},
    {"type":"Ready","status":"False","lastProbeTime":null,"lastTransitionTime":"'"$now"'",
     "reason":"ContainersNotReady","message":"containers with unready status: [importer]"},
    {"type":"ContainersReady","status":"False","lastProbeTime":null,"lastTransitionTime":"'"$now"'",
     "reason":"ContainersNotReady","message":"containers with unready status: [importer]"},
    {"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"'"$now"'"}],
  "containerStatuses":[{"name":"importer","image":"registry.example.com/shop/importer:0.3.0",
    "imageID":"registry.example.com/shop/importer@sha256:'"$(printf importer | sha256sum | cut -d' ' -f1)"'",
    "containerID":"'"$(container_id importer)"'","ready":false,"started":false,"restartCount":9,
    "state":{"waiting":{"reason":"CrashLoopBackOff",
      "message":"back-off 5m0s restarting failed container=importer pod=importer_shop"}},
    "lastState":{"terminated":{"exitCode":1,"reason":"Error","startedAt":"'"$now"'",
      "finishedAt":"'"$now"'","containerID":"'"$(container_id importer)"'"}}}]}}'

k apply --server-side --field-manager=database-operator -f database.yaml
k apply --server-side --subresource=status --field-manager=database-operator -f database.yaml
large=$(./large-database.sh)
k apply --server-side --field-manager=database-operator -f - <<<"$large"
k apply --server-side --subresource=status --field-manager=database-operator -f - <<<"$large"

namespace=namespaces/shop
save deployment-6k "/apis/apps/v1/$namespace/deployments/catalogue"
save deployment-3k "/apis/apps/v1/$namespace/deployments/images"
save statefulset "/apis/apps/v1/$namespace/statefulsets/ledger"
save daemonset "/apis/apps/v1/$namespace/daemonsets/collector"
save replicaset "/apis/apps/v1/$namespace/replicasets/$(first_name replicasets app=images)"
save pod-running "/api/v1/$namespace/pods/ledger-0"
save pod-crashing "/api/v1/$namespace/pods/importer"
save job "/apis/batch/v1/$namespace/jobs/reindex"
save service "/api/v1/$namespace/services/front"
save persistentvolumeclaim "/api/v1/$namespace/persistentvolumeclaims/feed"
save poddisruptionbudget "/apis/policy/v1/$namespace/poddisruptionbudgets/catalogue"
save custom-ready "/apis/shop.example.com/v1/$namespace/databases/ledger"
save custom-large "/apis/shop.example.com/v1/$namespace/databases/archive"

# Last, because the HPA controller overwrites this status soon: the cluster has no metrics.
patch_status hpa/catalogue kube-controller-manager '{"status":{"currentReplicas":3,"desiredReplicas":3,
  "currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":48,"averageValue":"120m"}}}],
  "conditions":[
    {"type":"AbleToScale","status":"True","lastTransitionTime":"'"$now"'","reason":"ReadyForNewScale",
     "message":"recommended size matches current size"},
    {"type":"ScalingActive","status":"True","lastTransitionTime":"'"$now"'","reason":"ValidMetricFound",
     "message":"the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)"},
    {"type":"ScalingLimited","status":"False","lastTransitionTime":"'"$now"'","reason":"DesiredWithinRange",
     "message":"the desired count is within the acceptable range"}]}}'
save horizontalpodautoscaler "/apis/autoscaling/v2/$namespace/horizontalpodautoscalers/catalogue"
wc --bytes "$objects"/*.json
