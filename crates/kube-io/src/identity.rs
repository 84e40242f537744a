//! The identity of a cluster: the uid of its namespace `kube-system`.

use std::time::Duration;

use bellwether_wire::{ErrorClass, Verb};
use kube::Client;
use serde_json::Value;

use crate::write::{CallError, call};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    Uid(Box<str>),
    /// A new cluster does not have the namespace yet.
    Unborn,
    /// The right to get the namespace is missing.
    Forbidden(String),
}

pub(crate) async fn identity(client: &Client, within: Duration) -> Result<Identity, CallError> {
    let request = Verb::GetMetadata.request("/api/v1/namespaces/kube-system", Vec::new());
    match call(client, request, within).await {
        Ok(namespace) => {
            let namespace: Value = serde_json::from_slice(&namespace)
                .map_err(|_| CallError::IncompleteResponse("namespace kube-system is not JSON".to_owned()))?;
            let uid = namespace["metadata"]["uid"].as_str();
            Ok(uid.map_or(Identity::Unborn, |uid| Identity::Uid(uid.into())))
        }
        Err(CallError::Api(error)) => match error.class {
            ErrorClass::Forbidden => Ok(Identity::Forbidden(error.to_string())),
            ErrorClass::NotFound => Ok(Identity::Unborn),
            _ => Err(error.into()),
        },
        Err(error) => Err(error),
    }
}
