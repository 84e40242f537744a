//! `bellwether query --controller`: the controller evaluates the collectors.

use std::{env, fs, path::Path, time::Duration};

use bellwether_inspect::fleet::Shape;
use bellwether_kube_io::controller_client::ControllerClient;
use bellwether_server::{NamedSpec, ObjectsRequest, QueryRequest, QueryResponse};
use http::StatusCode;
use serde::Deserialize;
use tokio::runtime::Builder;

use super::{
    INCOMPLETE,
    input::{Input, NamedCollector},
    print::Answer,
    request::{kinds, selector},
};
use crate::{
    cli::Query,
    output::{Outcome, cause},
};

/// The controller waits for clusters itself.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(40);

/// The environment variable: other users of the machine can see command lines, and so a token in them.
const TOKEN: &str = "BELLWETHER_TOKEN";

/// What the controller answers for each kind.
pub(super) struct FromController {
    pub(super) answers: Vec<Answer>,
    pub(super) errors: Vec<String>,
}

/// The error is what to print instead.
pub(super) fn ask(address: &str, command: &Query, input: &Input) -> Result<FromController, Outcome> {
    // The controller parses the selector again; here, an invalid one is wrong usage.
    let kinds = selector(command).and_then(|_| kinds(command, input)).map_err(Outcome::bad_input)?;
    let token = match &command.token_file {
        Some(file) => Some(read_token(file)?),
        None => env::var(TOKEN).ok(),
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unanswered(error.to_string()))?;
    runtime.block_on(async {
        let client = ControllerClient::new(address, token.as_deref())
            .map_err(|error| Outcome::bad_input(error.to_string()))?;
        let (mut answers, mut errors) = (Vec::new(), Vec::new());
        for (kind, names) in kinds {
            let objects = ObjectsRequest {
                kind,
                namespace: command.namespace.clone(),
                names,
                label_selector: command.selector.clone(),
            };
            let request = QueryRequest {
                collectors: input.collectors.iter().map(|named| spec(named, command)).collect(),
                objects,
                one_table: input.shape == Shape::OneTable,
            };
            let response = respond(&client, &request).await?;
            errors.extend(response.errors);
            for (result, named) in response.results.into_iter().zip(input.collectors.iter().cycle()) {
                let offset = command.offset.unwrap_or(named.offset);
                let answer = Answer::from_json(&result, offset).ok_or_else(|| unexpected(&client))?;
                answers.push(answer.with_counts(named.counts()));
            }
        }
        Ok(FromController { answers, errors })
    })
}

fn unanswered(error: String) -> Outcome {
    Outcome { errors: vec![error], code: INCOMPLETE, ..Outcome::default() }
}

fn spec(named: &NamedCollector, command: &Query) -> NamedSpec {
    NamedSpec {
        name: named.name.clone(),
        spec: named.spec.clone(),
        columns: named.columns.clone(),
        limit: Some(command.limit.unwrap_or(named.limit)),
        offset: command.offset.unwrap_or(named.offset),
    }
}

fn read_token(file: &Path) -> Result<String, Outcome> {
    fs::read_to_string(file).map_err(|error| {
        let (file, cause) = (file.display(), cause(&error));
        Outcome::bad_input(format!("cannot read --token-file {file}: {cause}. Name a file with the token"))
    })
}

async fn respond(client: &ControllerClient, request: &QueryRequest) -> Result<QueryResponse, Outcome> {
    #[derive(Deserialize)]
    struct ErrorBody {
        message: String,
    }
    let body = serde_json::to_vec(request).map_err(|error| unanswered(error.to_string()))?;
    let response = client.post("/api/v1/query", body, RESPONSE_TIMEOUT).await;
    let (status, body) = response.map_err(|error| unanswered(error.to_string()))?;
    if status == StatusCode::OK {
        return serde_json::from_slice(&body).map_err(|_| unexpected(client));
    }
    let Ok(ErrorBody { message }) = serde_json::from_slice(&body) else { return Err(unexpected(client)) };
    Err(match status {
        StatusCode::UNAUTHORIZED => unanswered(format!(
            "the controller at {} requires a valid token. Set --token-file or {TOKEN}, with a token from kubectl create \
             token",
            client.address()
        )),
        StatusCode::BAD_REQUEST => Outcome::bad_input(message),
        // The message has the way out.
        _ => unanswered(message),
    })
}

fn unexpected(client: &ControllerClient) -> Outcome {
    unanswered(format!(
        "no controller with bound objects answers at {}. Check the address, and that the controller runs without \
         --watch-namespace",
        client.address()
    ))
}
