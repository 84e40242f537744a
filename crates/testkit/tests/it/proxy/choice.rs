//! A fault strikes the selected requests and no others.

use anyhow::Result;
use bellwether_testkit::{Fault, Requests, StatusCode};
use http::{Request, header};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::json;

use super::{Fixture, config_map, names, next, soon, watch};

const UNAVAILABLE: Fault = Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };

#[tokio::test]
async fn only_discovery_fails() -> Result<()> {
    let fixture = Fixture::new("choice").await?;
    let fault = fixture.proxy.inject(Requests::all().path("/apis"), UNAVAILABLE);
    assert!(soon(fixture.client.list_api_groups()).await?.is_err());
    assert!(soon(fixture.client.list_api_group_resources("apps/v1")).await?.is_err());
    assert_eq!(fault.strikes(), 2);

    soon(fixture.client.list_core_api_versions()).await??;
    soon(fixture.client.apiserver_version()).await??;
    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    soon(deployments.list(&ListParams::default())).await??;
    assert_eq!(fault.strikes(), 2);
    assert_eq!(fixture.proxy.count(&Requests::all().path("/apis")), 2);
    assert_eq!(fixture.proxy.count(&Requests::all().path("/apis/apps")), 1);
    assert_eq!(fixture.proxy.count(&Requests::all().path("/")), 4);

    fault.lift();
    soon(fixture.client.list_api_groups()).await??;
    Ok(())
}

#[tokio::test]
async fn only_one_user_agent_fails() -> Result<()> {
    let fixture = Fixture::new("choice").await?;
    let ask = async |agent| -> Result<_> {
        let request = Request::get(fixture.path("")).header(header::USER_AGENT, agent).body(Body::empty())?;
        Ok(soon(fixture.client.send(request)).await??.status())
    };
    let robots = Requests::all().user_agent("robot/");
    let _fault = fixture.proxy.inject(robots.clone(), UNAVAILABLE);
    assert_eq!(ask("robot/1.0 (linux)").await?, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("controller/1.0").await?, StatusCode::OK);
    assert_eq!((fixture.proxy.count(&robots), fixture.proxy.count(&Requests::all())), (1, 2));
    Ok(())
}

#[tokio::test]
async fn only_writes_fail() -> Result<()> {
    let fixture = Fixture::new("choice").await?;
    fixture.create("one").await?;
    let fault = fixture.proxy.inject(Requests::writes(), UNAVAILABLE);
    let maps = &fixture.through;
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    let change = Patch::Merge(json!({ "data": { "key": "new" } }));
    let mut one = soon(maps.get("one")).await??;
    assert!(soon(maps.create(&post, &config_map("two")?)).await?.is_err());
    one.data = None;
    assert!(soon(maps.replace("one", &post, &one)).await?.is_err());
    assert!(soon(maps.patch("one", &PatchParams::default(), &change)).await?.is_err());
    assert!(soon(maps.delete("one", &delete)).await?.is_err());
    assert!(soon(maps.delete_collection(&delete, &ListParams::default())).await?.is_err());
    assert_eq!((fault.strikes(), fixture.proxy.count(&Requests::writes())), (5, 5));

    assert_eq!(names(maps).await?, ["one"]);
    assert_eq!(next(&mut watch(maps, "0").await?).await?, "added one");
    fault.lift();
    soon(maps.delete("one", &delete)).await??;
    Ok(())
}
