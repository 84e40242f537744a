//! Which requests a fault strikes: those that are meant, and no others.

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

use super::{Stage, config_map, names, next, soon, watch};

const AWAY: Fault = Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };

#[tokio::test]
async fn discovery_alone_fails() -> Result<()> {
    let stage = Stage::set("choice").await?;
    let fault = stage.proxy.inject(Requests::all().path("/apis"), AWAY);
    assert!(soon(stage.client.list_api_groups()).await?.is_err());
    assert!(soon(stage.client.list_api_group_resources("apps/v1")).await?.is_err());
    assert_eq!(fault.strikes(), 2);

    soon(stage.client.list_core_api_versions()).await??;
    soon(stage.client.apiserver_version()).await??;
    let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), &stage.namespace);
    soon(deployments.list(&ListParams::default())).await??;
    assert_eq!(fault.strikes(), 2);
    assert_eq!(stage.proxy.count(&Requests::all().path("/apis")), 2);
    assert_eq!(stage.proxy.count(&Requests::all().path("/apis/apps")), 1);
    assert_eq!(stage.proxy.count(&Requests::all().path("/")), 4);

    fault.lift();
    soon(stage.client.list_api_groups()).await??;
    Ok(())
}

#[tokio::test]
async fn one_program_alone_fails() -> Result<()> {
    let stage = Stage::set("choice").await?;
    let ask = async |agent| -> Result<_> {
        let request = Request::get(stage.path("")).header(header::USER_AGENT, agent).body(Body::empty())?;
        Ok(soon(stage.client.send(request)).await??.status())
    };
    let robots = Requests::all().user_agent("robot/");
    let _fault = stage.proxy.inject(robots.clone(), AWAY);
    assert_eq!(ask("robot/1.0 (linux)").await?, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("controller/1.0").await?, StatusCode::OK);
    assert_eq!((stage.proxy.count(&robots), stage.proxy.count(&Requests::all())), (1, 2));
    Ok(())
}

#[tokio::test]
async fn writes_alone_fail() -> Result<()> {
    let stage = Stage::set("choice").await?;
    stage.create("one").await?;
    let fault = stage.proxy.inject(Requests::writes(), AWAY);
    let maps = &stage.through;
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    let change = Patch::Merge(json!({ "data": { "key": "new" } }));
    let mut one = soon(maps.get("one")).await??;
    assert!(soon(maps.create(&post, &config_map("two")?)).await?.is_err());
    one.data = None;
    assert!(soon(maps.replace("one", &post, &one)).await?.is_err());
    assert!(soon(maps.patch("one", &PatchParams::default(), &change)).await?.is_err());
    assert!(soon(maps.delete("one", &delete)).await?.is_err());
    assert!(soon(maps.delete_collection(&delete, &ListParams::default())).await?.is_err());
    assert_eq!((fault.strikes(), stage.proxy.count(&Requests::writes())), (5, 5));

    assert_eq!(names(maps).await?, ["one"]);
    assert_eq!(next(&mut watch(maps, "0").await?).await?, "added one");
    fault.lift();
    soon(maps.delete("one", &delete)).await??;
    Ok(())
}
