//! Kubeconfig and credentials: contexts, 401 Unauthorized, connection refused, user agent.

use anyhow::{Context as _, Result};
use bellwether_kube_io::client::{ClientError, ClientOptions, Connection};
use bellwether_testkit::{Access, Fault, FaultProxy, Login as Credentials, Requests, StatusCode};
use http::Request;

use super::*;

async fn connect(access: &Access, context: Option<&str>) -> Result<Connection> {
    let file = access.kubeconfig_file()?;
    let login = ClientOptions { kubeconfig: Some(file.to_path_buf()), context: context.map(str::to_owned) };
    Ok(login.connect().await?)
}

#[tokio::test]
async fn a_kubeconfig_selects_the_cluster() -> Result<()> {
    let admin = cluster().await?.admin();
    let connection = connect(admin, None).await?;
    connection.check().await?;
    assert_eq!(connection.namespace, "default");
    assert_eq!(connection.address.to_string(), format!("https://{}/", admin.address));

    connect(admin, Some(&admin.cluster)).await?.check().await?;
    let error = connect(admin, Some("elsewhere")).await.err().context("the context does not exist")?;
    let error = error.to_string();
    assert!(error.starts_with("context \"elsewhere\" not found in kubeconfig /"), "{error}");
    assert!(error.ends_with(&format!(". Set --context to one of {}", admin.cluster)), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_client_has_a_user_agent_and_does_not_retry() -> Result<()> {
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
async fn a_refused_connection_names_the_address() -> Result<()> {
    let cluster = cluster().await?;
    let nowhere = FaultProxy::before(cluster).await?.address();
    let error = connect(&cluster.admin().via(nowhere), None).await?.check().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("cannot connect to the API server at https://{nowhere}/: ")),
        "{message}"
    );
    assert!(message.contains("refused"), "{message}");
    Ok(())
}

#[tokio::test]
async fn rejected_credentials_are_not_reported_as_unreachable() -> Result<()> {
    let admin = cluster().await?.admin();
    let credentials = Credentials::Token { user: "stranger".to_owned(), token: "invalid".to_owned() };
    let stranger = Access { login: credentials, ..admin.clone() };
    let error = connect(&stranger, None).await?.check().await.unwrap_err();
    assert!(matches!(error, ClientError::Unauthorized { .. }), "{error}");
    assert!(error.to_string().contains(": Unauthorized. Log in again"), "{error}");
    Ok(())
}
