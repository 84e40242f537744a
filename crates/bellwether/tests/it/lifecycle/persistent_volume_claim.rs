//! PersistentVolumeClaim and its PersistentVolume: pending, bound, lost, in use during deletion.

use anyhow::Result;

use super::Story;

const CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  storageClassName: ''
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
";

const USER: &str = "
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  schedulerName: the-story
  containers: [{name: server, image: 'shop/db:1'}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
";

#[tokio::test]
async fn persistent_volume_claim() -> Result<()> {
    let mut story = Story::begin("claim").await?;
    let (data, namespace) = ("persistentvolumeclaim/data", story.namespace.clone());
    // PersistentVolumes and StorageClasses are cluster-scoped.
    let volume = format!("persistentvolume/{namespace}");
    let volume_manifest = format!(
        "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {namespace}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  hostPath: {{path: /nowhere}}
  claimRef: {{namespace: {namespace}, name: data}}
"
    );
    let class_manifest = format!(
        "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {namespace}}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
"
    );
    story.apply(CLAIM).await?;
    story.is("no matching volume", data, "InProgress Pending").await?;
    story.apply(&volume_manifest).await?;
    story.is("volume created", data, "Ready Bound").await?;
    story.is("its volume", &volume, "Ready Bound").await?;
    story.kubectl(&format!("delete --wait=false {volume}")).await?;
    story.is("volume deleted", &volume, "Terminating").await?;
    story.release(&volume).await?;
    story.is("volume removed", data, "Failed Lost").await?;

    story.apply(USER).await?;
    story.bind("pod/user").await?;
    story.kubectl("delete --wait=false persistentvolumeclaim/data").await?;
    story.is("deleted while a Pod uses it", data, "Terminating").await?;
    story.kubectl("delete pod/user").await?;
    story.is_gone("Pod removed", data).await?;

    story.apply(&class_manifest).await?;
    let of_class = CLAIM.replace("''", &namespace).replace("name: data", "name: later");
    story.apply(&of_class).await?;
    story
        .is("another, of a class that waits for a Pod", "persistentvolumeclaim/later", "InProgress Pending")
        .await?;
    story.kubectl(&format!("delete storageclass/{namespace}")).await?;
    story.end("persistent_volume_claim");
    Ok(())
}
