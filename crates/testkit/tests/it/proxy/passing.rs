//! Without a fault, the proxy behaves like an API server.

use anyhow::Result;
use bellwether_testkit::{FaultProxy, Kubectl, Requests, Verb, eventually, rule, shared};
use http::{Request, StatusCode, Version, header};
use http_body_util::BodyExt;
use k8s_openapi::api::{authentication::v1::SelfSubjectReview, core::v1::ConfigMap};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::json;

use super::{Fixture, SOON, config_map, names, next, soon, watch};

#[tokio::test]
async fn the_api_server_sees_the_client_and_not_the_proxy() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("passing").await?;
    let proxy = FaultProxy::before(cluster).await?;
    let clients =
        [cluster.user("alice")?, cluster.service_account(&namespace, "robot").await?, cluster.user("bob")?];
    for client in &clients {
        let reviews: Api<SelfSubjectReview> = Api::all(client.via(proxy.address()).client().await?);
        let review = soon(reviews.create(&PostParams::default(), &SelfSubjectReview::default())).await??;
        let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
        assert_eq!(user.as_deref(), Some(client.user()));
    }
    let seen: Vec<String> = proxy.requests().into_iter().map(|request| request.user).collect();
    assert_eq!(seen, clients.map(|client| client.user().to_owned()));
    Ok(())
}

#[tokio::test]
async fn the_rights_of_the_client_apply() -> Result<()> {
    let fixture = Fixture::new("passing").await?;
    // No other test grants this user anything in the shared cluster.
    let carol = fixture.cluster.user("carol")?;
    fixture
        .cluster
        .grant(&carol, Some(&fixture.namespace), vec![rule(&["get"], "", &["configmaps"])])
        .await?;
    fixture.create("one").await?;
    let client = carol.via(fixture.proxy.address()).client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &fixture.namespace);
    eventually(SOON, "carol may get", async || Ok(maps.get("one").await.is_ok())).await?;
    let refused = soon(maps.list(&ListParams::default())).await?.expect_err("list was not granted");
    assert!(refused.to_string().contains(r#"User "carol" cannot list resource "configmaps""#), "{refused}");
    Ok(())
}

#[tokio::test]
async fn every_request_is_recorded_and_counted() -> Result<()> {
    let fixture = Fixture::new("passing").await?;
    let maps = &fixture.through;
    soon(maps.create(&PostParams::default(), &config_map("one")?)).await??;
    soon(maps.create(&PostParams::default(), &config_map("two")?)).await??;
    assert!(soon(maps.create(&PostParams::default(), &config_map("two")?)).await?.is_err());
    let change = Patch::Merge(json!({ "data": { "key": "new" } }));
    soon(maps.patch("one", &PatchParams::default(), &change)).await??;
    soon(maps.get("one")).await??;
    soon(maps.list(&ListParams::default().fields("metadata.name=two"))).await??;
    names(maps).await?;
    let events = watch(maps, "0").await?;
    soon(maps.delete("one", &DeleteParams::default())).await??;
    soon(fixture.client.apiserver_version()).await??;

    let maps_of = |verb| Requests::of(verb, "configmaps").namespace(&fixture.namespace);
    let count = |which: Requests| fixture.proxy.count(&which);
    assert_eq!(count(maps_of(Verb::Create)), 3);
    assert_eq!(count(maps_of(Verb::Patch)), 1);
    assert_eq!(count(maps_of(Verb::Get).name("one")), 1);
    assert_eq!(count(maps_of(Verb::List)), 2);
    assert_eq!(count(maps_of(Verb::List).name("two")), 1);
    assert_eq!(count(maps_of(Verb::Watch)), 1);
    assert_eq!(count(maps_of(Verb::Delete).user("admin")), 1);
    assert_eq!(count(maps_of(Verb::Delete).user("alice")), 0);
    assert_eq!(count(Requests::all().resource("configmaps").verb(Verb::Create).verb(Verb::Patch)), 4);
    assert_eq!(count(Requests::all()), 10);

    let requests = fixture.proxy.requests();
    let statuses: Vec<_> = requests.iter().map(|it| it.status.map_or(0, |status| status.as_u16())).collect();
    assert_eq!(statuses, [201, 201, 409, 200, 200, 200, 200, 200, 200, 200]);
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert!(requests.iter().all(|request| !request.struck && request.version == Version::HTTP_11));
    assert_eq!(requests[7].uri.split('?').next(), fixture.path("").strip_suffix('?'));
    assert_eq!((requests[9].uri.as_str(), &requests[9].call.resource), ("/version", &None));

    fixture.proxy.forget();
    assert_eq!(count(Requests::all()), 0);
    drop(events);
    Ok(())
}

#[tokio::test]
async fn events_are_forwarded_at_once() -> Result<()> {
    let fixture = Fixture::new("passing").await?;
    let mut events = watch(&fixture.through, &fixture.now().await?).await?;
    for name in ["one", "two", "three"] {
        fixture.create(name).await?;
        assert_eq!(next(&mut events).await?, format!("added {name}"));
    }
    Ok(())
}

#[tokio::test]
async fn each_header_is_forwarded_once() -> Result<()> {
    let fixture = Fixture::new("passing").await?;
    let ask = async |path: &str| -> Result<_> {
        let request = Request::get(path).header(header::ACCEPT_ENCODING, "gzip").body(Body::empty())?;
        Ok(soon(fixture.client.send(request)).await??)
    };
    let response = ask(&fixture.path("")).await?;
    for name in ["audit-id", "content-type", "date", "content-length", "x-kubernetes-pf-flowschema-uid"] {
        assert_eq!(response.headers().get_all(name).iter().count(), 1, "{name}: {:?}", response.headers());
    }
    let length: usize = response.headers()["content-length"].to_str()?.parse()?;
    assert_eq!(soon(response.into_body().collect()).await??.to_bytes().len(), length);

    // The API server sends a warning header for a deprecated API.
    let warning = ask("/api/v1/componentstatuses").await?;
    assert_eq!(warning.headers().get_all("warning").iter().count(), 1, "{:?}", warning.headers());
    Ok(())
}

#[tokio::test]
async fn an_upgrade_is_not_implemented() -> Result<()> {
    let fixture = Fixture::new("passing").await?;
    let request = Request::get(format!("/api/v1/namespaces/{}/pods/web/exec?command=sh", fixture.namespace))
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .body(Body::empty())?;
    let response = soon(fixture.client.send(request)).await??;
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    let body = soon(response.into_body().collect()).await??.to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("does not support upgraded connections"));
    Ok(())
}

#[tokio::test]
async fn kubectl_works_through_it_over_http_2() -> Result<()> {
    let fixture = Fixture::new("passing").await?;
    let kubectl =
        Kubectl::new(&fixture.cluster.admin().via(fixture.proxy.address()))?.in_namespace(&fixture.namespace);
    soon(kubectl.ok(&["create", "configmap", "one"])).await??;
    let listed = soon(kubectl.ok(&["get", "configmaps", "-o", "name"])).await??;
    assert_eq!(listed, "configmap/one\n");
    let table = soon(kubectl.ok(&["get", "configmaps"])).await??;
    assert!(table.starts_with("NAME"), "{table}");

    let wait = ["wait", "configmap/one", "--for=jsonpath={.data.key}=new", "--timeout=5m"];
    let (waited, changed) = tokio::join!(soon(kubectl.ok(&wait)), async {
        let watches = Requests::of(Verb::Watch, "configmaps");
        eventually(SOON, "kubectl watches", async || Ok(fixture.proxy.count(&watches) > 0)).await?;
        fixture.change("one").await
    });
    changed?;
    assert_eq!(waited??, "configmap/one condition met\n");

    let requests = fixture.proxy.requests();
    assert!(requests.iter().all(|request| request.version == Version::HTTP_2), "{requests:#?}");
    assert_eq!(fixture.proxy.count(&Requests::all().user_agent("kubectl/")), requests.len(), "{requests:#?}");
    Ok(())
}
