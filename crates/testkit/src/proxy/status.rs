//! `Status` errors as an API server returns them.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};
use serde_json::json;

use super::{
    Body,
    call::{Call, Verb},
};

/// An error with the reason and the details that an API server would set.
pub(super) fn failure(code: StatusCode, call: &Call, message: String) -> Status {
    let resource = call.resource.as_ref();
    Status {
        status: Some("Failure".to_owned()),
        code: Some(code.as_u16().into()),
        reason: reason(code, call.verb).map(str::to_owned),
        message: Some(message),
        details: Some(StatusDetails {
            name: call.name.clone(),
            group: resource.map(|resource| resource.group.clone()).filter(|group| !group.is_empty()),
            kind: resource.map(|resource| resource.plural.clone()),
            ..StatusDetails::default()
        }),
        ..Status::default()
    }
}

/// The error of an API server that has not seen the requested resourceVersion yet.
pub(super) fn too_large_resource_version(asked: u64, current: u64) -> Status {
    Status {
        status: Some("Failure".to_owned()),
        code: Some(StatusCode::GATEWAY_TIMEOUT.as_u16().into()),
        reason: Some("Timeout".to_owned()),
        message: Some(format!("Timeout: Too large resource version: {asked}, current: {current}")),
        details: Some(StatusDetails {
            causes: Some(vec![StatusCause {
                reason: Some("ResourceVersionTooLarge".to_owned()),
                message: Some("Too large resource version".to_owned()),
                field: None,
            }]),
            retry_after_seconds: Some(1),
            ..StatusDetails::default()
        }),
        ..Status::default()
    }
}

pub(super) fn retry_after(mut status: Status, wait: Duration) -> Status {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    status.details.get_or_insert_default().retry_after_seconds = i32::try_from(seconds).ok();
    status
}

/// The error as the response.
pub(super) fn answer(status: &Status) -> Result<Response<Body>> {
    let code = status.code.and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    let mut response = json_response(StatusCode::from_u16(code)?, serde_json::to_vec(status)?);
    if let Some(seconds) = status.details.as_ref().and_then(|details| details.retry_after_seconds) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// The error as the only event of a watch.
pub(super) fn event(status: &Status) -> Result<Response<Body>> {
    let mut line = serde_json::to_vec(&json!({ "type": "ERROR", "object": status }))?;
    line.push(b'\n');
    Ok(json_response(StatusCode::OK, line))
}

/// A response with a JSON document, or with one document in each line.
pub(super) fn json_response(status: StatusCode, document: Vec<u8>) -> Response<Body> {
    let body = Full::new(Bytes::from(document)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn reason(code: StatusCode, verb: Verb) -> Option<&'static str> {
    Some(match code {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::NOT_ACCEPTABLE => "NotAcceptable",
        StatusCode::CONFLICT if verb == Verb::Create => "AlreadyExists",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::GONE => "Expired",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaType",
        StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => return None,
    })
}
