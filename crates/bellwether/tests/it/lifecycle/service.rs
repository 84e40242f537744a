//! Service: ClusterIP, NodePort, LoadBalancer, headless, ExternalName.

use anyhow::Result;
use serde_json::json;

use super::LifecycleFixture;

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
    let mut fixture = LifecycleFixture::new("service").await?;
    let web = "service/web";
    fixture.apply(SERVICE).await?;
    fixture.is("ClusterIP", web, "Ready").await?;
    fixture.patch(web, json!({ "spec": { "type": "NodePort" } })).await?;
    fixture.is("NodePort", web, "Ready").await?;
    fixture.patch(web, json!({ "spec": { "type": "LoadBalancer" } })).await?;
    fixture.is("LoadBalancer without address", web, "InProgress").await?;
    fixture.report(web, json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.10" }] } })).await?;
    fixture.is("LoadBalancer with IP address", web, "Ready").await?;
    fixture
        .report(web, json!({ "loadBalancer": { "ingress": [{ "hostname": "web.example.com" }] } }))
        .await?;
    fixture.is("LoadBalancer with hostname", web, "Ready AddressAssigned 100% address web").await?;
    fixture.report(web, json!({ "loadBalancer": { "ingress": null } })).await?;
    fixture.is("address removed", web, "InProgress").await?;
    fixture.kubectl("delete --wait=false service/web").await?;
    fixture.is("deleted", web, "Terminating").await?;
    fixture.release(web).await?;
    fixture.is_gone("finalizer removed", web).await?;
    fixture.kubectl("create service clusterip headless --clusterip=None").await?;
    fixture.is("headless", "service/headless", "Ready").await?;
    fixture.kubectl("create service externalname outside --external-name=example.com").await?;
    fixture.is("ExternalName", "service/outside", "Ready").await?;
    fixture.end("service");
    Ok(())
}
