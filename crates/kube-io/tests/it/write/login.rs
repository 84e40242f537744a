//! Finding a cluster, and what is said when there is none.

use anyhow::{Context as _, Result};
use bellwether_kube_io::write::{Connection, Login, LoginError};
use bellwether_testkit::{Access, Fault, FaultProxy, Login as Proof, Requests, StatusCode};
use http::Request;

use super::*;

async fn connect(access: &Access, context: Option<&str>) -> Result<Connection> {
    let file = access.kubeconfig_file()?;
    let login = Login { kubeconfig: Some(file.to_path_buf()), context: context.map(str::to_owned) };
    Ok(login.connect().await?)
}

#[tokio::test]
async fn a_kubeconfig_leads_to_its_cluster() -> Result<()> {
    let admin = cluster().await?.admin();
    let connection = connect(admin, None).await?;
    connection.check().await?;
    assert_eq!(connection.namespace, "default");
    assert_eq!(connection.address.to_string(), format!("https://{}/", admin.address));

    connect(admin, Some(&admin.cluster)).await?.check().await?;
    let error = connect(admin, Some("elsewhere")).await.err().context("there is no such context")?;
    let error = error.to_string();
    assert!(error.starts_with("there is no context \"elsewhere\" in /"), "{error}");
    assert!(error.ends_with(&format!(": choose one of {}", admin.cluster)), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_client_says_who_it_is_and_asks_once() -> Result<()> {
    let cluster = cluster().await?;
    let proxy = FaultProxy::before(cluster).await?;
    let connection = connect(&cluster.admin().via(proxy.address()), None).await?;
    let busy = Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };
    let _fault = proxy.inject(Requests::all(), busy);
    let request = Request::get("/version").body(Vec::new())?;
    assert!(connection.client.request_text(request).await.is_err());
    let ours = Requests::all().user_agent(concat!("bellwether/", env!("CARGO_PKG_VERSION")));
    assert_eq!((proxy.count(&ours), proxy.count(&Requests::all())), (1, 1));
    Ok(())
}

#[tokio::test]
async fn where_nobody_answers_the_address_is_said() -> Result<()> {
    let cluster = cluster().await?;
    let nowhere = FaultProxy::before(cluster).await?.address();
    let error = connect(&cluster.admin().via(nowhere), None).await?.check().await.unwrap_err();
    assert!(matches!(error, LoginError::Unreachable { .. }), "{error}");
    let words = error.to_string();
    assert!(words.starts_with(&format!("no API server answers at https://{nowhere}/: ")), "{words}");
    assert!(words.contains("refused"), "{words}");
    Ok(())
}

#[tokio::test]
async fn a_login_that_is_not_accepted_is_told_from_no_answer() -> Result<()> {
    let admin = cluster().await?.admin();
    let proof = Proof::Token { user: "nobody".to_owned(), token: "nonsense".to_owned() };
    let nobody = Access { login: proof, ..admin.clone() };
    let error = connect(&nobody, None).await?.check().await.unwrap_err();
    assert!(matches!(error, LoginError::NotAccepted { .. }), "{error}");
    assert!(error.to_string().ends_with("log in to the cluster again"), "{error}");
    Ok(())
}
