//! Helpers of the fuzz targets.

use bellwether_model::{Object, Plan};

/// An object with values of every type.
pub fn sample() -> Object<'static> {
    const JSON: &[u8] = br#"{"apiVersion":"acme.io/v1","kind":"Widget","metadata":{"name":"w","generation":3,
        "labels":{"app.kubernetes.io/name":"web"},"creationTimestamp":"2026-01-02T03:04:05Z"},
        "spec":{"replicas":3,"ratio":0.5,"paused":false,"memory":"250Mi","list":[3,1,2],"nothing":null},
        "status":{"phase":"Up","observedGeneration":2,"conditions":[
            {"type":"Ready","status":"True","message":"it is up"},{"type":"Degraded","status":"False"}]}}"#;
    Object::from_json(JSON, &Plan::whole()).expect("a valid object").to_static()
}
