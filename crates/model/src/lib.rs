//! Decodes the fields of a Kubernetes object that Bellwether needs.
//!
//! An object is JSON from an API server or YAML from a file. A [`Plan`] lists the fields to keep;
//! [`Object::from_json`] decodes only those, in one pass. Strings are borrowed from the input, so decoding
//! costs little more than a scan.
//!
//! ```
//! use bellwether_model::{Object, Plan};
//!
//! let plan = Plan::identity().with("spec.replicas").with("status");
//! let bytes = br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},
//!                  "spec":{"replicas":3,"template":{}},"status":{"readyReplicas":1}}"#;
//! let object = Object::from_json(bytes, &plan)?;
//! assert_eq!(object.kind(), "Deployment");
//! assert_eq!(object.at("spec.replicas").and_then(|replicas| replicas.as_int()), Some(3));
//! assert!(object.at("spec.template").is_none(), "not in the plan");
//! # Ok::<_, bellwether_model::DecodeError>(())
//! ```

#![warn(missing_docs)]

mod decode;
mod json;
pub mod name;
mod object;
mod plan;
mod state;
pub mod text;
mod value;

pub use decode::{DecodeError, ObjectSeed, read_json};
pub use object::Object;
pub use plan::{LAST_APPLIED, Plan};
pub use state::{ConditionStatus, State};
pub use value::{Map, Value};
