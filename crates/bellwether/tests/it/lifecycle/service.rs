//! Service: ClusterIP, NodePort, LoadBalancer, headless, ExternalName.

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
    story.is("ClusterIP", web, "Ready").await?;
    story.patch(web, json!({ "spec": { "type": "NodePort" } })).await?;
    story.is("NodePort", web, "Ready").await?;
    story.patch(web, json!({ "spec": { "type": "LoadBalancer" } })).await?;
    story.is("LoadBalancer without address", web, "InProgress").await?;
    story.report(web, json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.10" }] } })).await?;
    story.is("LoadBalancer with IP address", web, "Ready").await?;
    story.report(web, json!({ "loadBalancer": { "ingress": [{ "hostname": "web.example.com" }] } })).await?;
    story.is("LoadBalancer with hostname", web, "Ready AddressAssigned 100% address web").await?;
    story.report(web, json!({ "loadBalancer": { "ingress": null } })).await?;
    story.is("address removed", web, "InProgress").await?;
    story.kubectl("delete --wait=false service/web").await?;
    story.is("deleted", web, "Terminating").await?;
    story.release(web).await?;
    story.is_gone("finalizer removed", web).await?;
    story.kubectl("create service clusterip headless --clusterip=None").await?;
    story.is("headless", "service/headless", "Ready").await?;
    story.kubectl("create service externalname outside --external-name=example.com").await?;
    story.is("ExternalName", "service/outside", "Ready").await?;
    story.end("service");
    Ok(())
}
