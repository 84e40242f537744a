//! Services of every type.

use anyhow::Result;
use serde_json::json;

use super::Story;

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, finalizers: [example.com/hold]}
spec:
  selector: {app: web}
  ports: [{port: 80}]
";

#[tokio::test]
async fn service() -> Result<()> {
    let mut story = Story::begin("service").await?;
    let web = "service/web";
    story.apply(SERVICE).await?;
    story.is("inside the cluster", web, "Ready").await?;
    story.patch(web, json!({ "spec": { "type": "NodePort" } })).await?;
    story.is("on every node", web, "Ready").await?;
    story.patch(web, json!({ "spec": { "type": "LoadBalancer" } })).await?;
    story.is("with a load balancer", web, "InProgress").await?;
    story.report(web, json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.10" }] } })).await?;
    story.is("which has an address", web, "Ready").await?;
    story.report(web, json!({ "loadBalancer": { "ingress": [{ "hostname": "web.example.com" }] } })).await?;
    story.is("which has a name", web, "Ready AddressAssigned 100% reachable at web").await?;
    story.report(web, json!({ "loadBalancer": { "ingress": null } })).await?;
    story.is("which has lost it", web, "InProgress").await?;
    story.kubectl("delete --wait=false service/web").await?;
    story.is("deleted", web, "Terminating").await?;
    story.release(web).await?;
    story.is_gone("its finalizer has gone", web).await?;
    story.kubectl("create service clusterip headless --clusterip=None").await?;
    story.is("another, without an address of its own", "service/headless", "Ready").await?;
    story.kubectl("create service externalname outside --external-name=example.com").await?;
    story.is("another, for a name outside", "service/outside", "Ready").await?;
    story.end("service");
    Ok(())
}
