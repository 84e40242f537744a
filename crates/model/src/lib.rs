//! What Bellwether keeps of a Kubernetes object, and how it is read from bytes.
//!
//! An object arrives as JSON from an API server, or as YAML from a file. A [`Plan`] says which of its fields somebody
//! needs; [`Object::from_json`] reads those, and only those, in one pass. The result borrows its text from the bytes, so
//! reading an object costs little more than walking over it.
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
//! assert!(object.at("spec.template").is_none(), "nobody asked for it");
//! # Ok::<_, bellwether_model::DecodeError>(())
//! ```

mod decode;
mod json;
mod object;
mod plan;
mod state;
pub mod text;
mod value;

pub use decode::{DecodeError, ObjectSeed, read_json};
pub use object::Object;
pub use plan::Plan;
pub use state::{ConditionStatus, State};
pub use value::{Map, Value};
