#!/usr/bin/env bash
# Prints a large custom resource: many users in its spec, many partitions in its status.
set -euo pipefail

cat <<YAML
apiVersion: shop.example.com/v1
kind: Database
metadata: { name: archive, namespace: shop, labels: { app.kubernetes.io/name: archive } }
spec:
  engine: { family: postgres, version: "16.4" }
  instances: 3
  users:
YAML
for number in $(seq 1 200); do
  cat <<YAML
    - name: tenant-$number
      schema: tenant_$number
      connections: $((number % 20 + 5))
      passwordFrom: { secret: tenant-$number, key: password }
      grants: [SELECT, INSERT, UPDATE, DELETE]
YAML
done
cat <<YAML
status:
  observedGeneration: 1
  partitions:
YAML
for number in $(seq 1 120); do
  cat <<YAML
    - name: events_p$number
      instance: archive-$((number % 3 + 1))
      rows: $((number * 7919))
      ready: true
      checkedAt: "2026-03-01T03:$(printf '%02d' $((number % 60))):00Z"
YAML
done
cat <<YAML
  conditions:
    - type: Ready
      status: "False"
      observedGeneration: 1
      lastTransitionTime: "2026-03-01T03:00:00Z"
      reason: PartitionsMoving
      message: 118 of 120 partitions are where they belong.
    - type: BackupsCurrent
      status: "True"
      observedGeneration: 1
      lastTransitionTime: "2026-03-01T03:04:12Z"
      reason: BackupCompleted
      message: The last backup is archive-20260301-030000.
YAML
