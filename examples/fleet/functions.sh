# The shell functions of the steps in README.md.

# on CLUSTER COMMAND…: kubectl in this cluster
on() { cluster=$1; shift; kubectl --context "$cluster" "$@"; }

# reports CLUSTER READY: the status that a Deployment with this many ready replicas would have
reports() {
  on "$1" patch deployment web -n store --subresource=status --type=merge -p "{\"status\":
    {\"observedGeneration\": 1, \"replicas\": 3, \"updatedReplicas\": 3, \"readyReplicas\": $2, \"availableReplicas\": $2}}"
}

# register CLUSTER NAME: lets the controller read this cluster under this name
register() {
  kubectl config view --flatten --minify --context "$1" |
    kubectl create secret generic "$2" -n bellwether-system --from-file=kubeconfig=/dev/stdin
  kubectl label secret "$2" -n bellwether-system bellwether.dev/cluster="$2" location-group=edge region="$2"
}

# result COLLECTOR: its columns and rows in the CombinedStatus of the Deployment
result() {
  kubectl get bwcs -n store -l status.bellwether.dev/name=web -o go-template='
    {{- range .items}}{{range .results}}{{if eq .name "'"$1"'"}}
    {{- range .columnNames}}{{.}}{{"\t"}}{{end}}{{"\n"}}
    {{- range .rows}}{{range .columns}}{{or .string .number .bool .object "-"}}{{"\t"}}{{end}}{{"\n"}}{{end}}
    {{- end}}{{end}}{{end}}'
}
