//! How many connections a cluster has.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use super::*;

/// Forwards TCP connections, and counts those that are open.
async fn forwarder(to: SocketAddr) -> Result<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, open) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&open);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let open = Arc::clone(&counted);
            tokio::spawn(async move {
                open.fetch_add(1, Ordering::SeqCst);
                if let Ok(mut to) = TcpStream::connect(to).await {
                    let _ = copy_bidirectional(&mut from, &mut to).await;
                }
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    Ok((address, open))
}

#[tokio::test]
async fn all_watches_of_a_cluster_share_a_connection() -> Result<()> {
    let hub = shared::cluster().await?;
    let (address, open) = forwarder(hub.address()).await?;
    let east = ClusterKey::named("east");
    let kinds = ["ConfigMap", "Secret", "Service", "Pod", "Endpoints", "Event", "LimitRange", "PodTemplate"];
    let kinds = kinds.map(|kind| GroupKind::new("", kind));
    let fixture = InventoryFixture::with_engine(
        "connections",
        Engine::of_one_namespace().with_feeds_in(&east, kinds.clone()),
        |_| {},
    )
    .await?;
    let hub_watches = fixture.metric("bellwether_watches_open").unwrap_or_default();
    fixture.register("east", json!({}), &hub.admin().via(address).kubeconfig()).await?;
    fixture.is_read("east").await?;
    eventually(TIMEOUT, "all watches are open, on one connection", async || {
        let watches = fixture.metric("bellwether_watches_open").unwrap_or_default() - hub_watches;
        Ok(watches >= 8.0 && open.load(Ordering::SeqCst) == 1)
    })
    .await
    .with_context(|| format!("open: {}", open.load(Ordering::SeqCst)))?;

    fixture.forget("east").await?;
    eventually(TIMEOUT, "the connection is closed", async || Ok(open.load(Ordering::SeqCst) == 0)).await
}
