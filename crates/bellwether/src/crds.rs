//! `bellwether crds`: the CRDs as text.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use bellwether_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use crate::cli::CrdFormat;

/// A manifest, and the name of the file that it goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The file's name.
    pub file_name: String,
    /// The document.
    pub yaml: String,
}

/// Every CRD as a manifest.
pub fn manifests() -> Result<Vec<Manifest>> {
    crds()
        .iter()
        .map(|crd| Ok(Manifest { file_name: format!("{}.yaml", name(crd)), yaml: yaml(crd)? }))
        .collect()
}

pub(crate) fn print(format: CrdFormat) -> Result<String> {
    let mut text = String::new();
    match format {
        CrdFormat::Yaml => {
            for manifest in manifests()? {
                write!(text, "---\n{}", manifest.yaml)?;
            }
        }
        CrdFormat::Json => {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds() });
            writeln!(text, "{list:#}")?;
        }
        CrdFormat::Name => {
            for crd in crds() {
                writeln!(text, "customresourcedefinition.apiextensions.k8s.io/{}", name(&crd))?;
            }
        }
    }
    Ok(text)
}

fn name(crd: &CustomResourceDefinition) -> &str {
    crd.metadata.name.as_deref().unwrap_or_default()
}

fn yaml(crd: &CustomResourceDefinition) -> Result<String> {
    serde_saphyr::to_string(crd).with_context(|| format!("cannot write the CRD {} as YAML", name(crd)))
}
