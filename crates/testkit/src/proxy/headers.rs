//! Headers on their way through: what belongs to one connection alone stays behind.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

const OF_ONE_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what is about the connection and not about the message.
pub(super) fn strip_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_ONE_CONNECTION) {
        headers.remove(name);
    }
}

/// Makes a client's headers those of a request to the API server whose body is at hand.
pub(super) fn for_upstream(headers: &mut HeaderMap, host: HeaderValue) {
    strip_connection(headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(EXPECT);
    headers.insert(HOST, host);
    // Faults count lines, so there must be lines: no compression, and JSON wherever the client would take it.
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
    fn what_belongs_to_the_connection_stays_behind() {
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
    fn api_servers_are_asked_for_lines() {
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
