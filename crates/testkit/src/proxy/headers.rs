//! Rewrites the headers of forwarded messages.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes hop-by-hop headers, including those that the `Connection` header names.
pub(super) fn strip_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Rewrites the headers of a client for a request to the API server whose body is buffered.
pub(super) fn for_upstream(headers: &mut HeaderMap, host: HeaderValue) {
    strip_connection(headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(EXPECT);
    headers.insert(HOST, host);
    // Faults count lines, so bodies must have lines: no compression, and JSON wherever the client accepts it.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(json) = json_only(headers) {
        headers.insert(ACCEPT, json);
    }
}

fn json_only(headers: &HeaderMap) -> Option<HeaderValue> {
    let accepted = headers.get(ACCEPT)?.to_str().ok()?;
    let json: Vec<&str> =
        accepted.split(',').map(str::trim).filter(|kind| kind.starts_with("application/json")).collect();
    if json.is_empty() { None } else { json.join(",").parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let mut passing = headers(&[
            ("connection", "keep-alive, x-private"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("x-private", "1"),
            ("audit-id", "2"),
            ("warning", "299 - \"old\""),
        ]);
        passing.append("warning", HeaderValue::from_static("299 - \"older\""));
        strip_connection(&mut passing);
        let mut expected = headers(&[("audit-id", "2"), ("warning", "299 - \"old\"")]);
        expected.append("warning", HeaderValue::from_static("299 - \"older\""));
        assert_eq!(passing, expected);
    }

    #[test]
    fn the_api_server_is_asked_for_uncompressed_json() {
        let protobuf = "application/vnd.kubernetes.protobuf,application/json;as=Table;v=v1, application/json";
        for (accept, expected) in [
            (protobuf, "application/json;as=Table;v=v1,application/json"),
            ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
            ("*/*", "*/*"),
        ] {
            let mut passing = headers(&[("accept", accept), ("accept-encoding", "gzip"), ("host", "a:1")]);
            for_upstream(&mut passing, HeaderValue::from_static("b:2"));
            assert_eq!(
                passing,
                headers(&[("accept", expected), ("accept-encoding", "identity"), ("host", "b:2")])
            );
        }
    }
}
