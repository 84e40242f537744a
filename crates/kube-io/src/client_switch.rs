//! A client whose credentials can be exchanged: its users keep it while the clients behind it come and go.

use std::{fmt, sync::Arc};

use http::Request;
use kube::{
    Client,
    client::{Body, ClientBuilder},
};
use tokio::sync::{Notify, watch};
use tower::service_fn;

/// A client for the address and the credentials that the inventory has for a cluster.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) client: Client,
    /// The address of the API server.
    pub(crate) server: Arc<str>,
    /// Differs if anything in the kubeconfig differs.
    pub(crate) fingerprint: u64,
    /// Notified when the API server rejects the credentials.
    pub(crate) rejected: Arc<Notify>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({})", self.server)
    }
}

impl PartialEq for Access {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

#[derive(Clone)]
pub(crate) struct ClientSwitch(watch::Sender<Option<Access>>);

impl ClientSwitch {
    /// Must be called within a tokio runtime. Requests wait for the first [`ClientSwitch::set`].
    pub(crate) fn new() -> (Self, Client) {
        let access = watch::Sender::new(None::<Access>);
        let receiver = access.subscribe();
        let service = service_fn(move |request: Request<Body>| {
            let mut access = receiver.clone();
            async move {
                let access = access.wait_for(Option::is_some).await.ok().and_then(|access| access.clone());
                match access {
                    Some(Access { client, .. }) => client.send(request).await,
                    None => Err(kube::Error::Service("the cluster was removed".into())),
                }
            }
        });
        (Self(access), ClientBuilder::new(service, "default").build())
    }

    /// Requests that have begun end with the client that they began with.
    pub(crate) fn set(&self, access: Access) {
        self.0.send_replace(Some(access));
    }

    pub(crate) fn get(&self) -> Option<Access> {
        self.0.borrow().clone()
    }
}
