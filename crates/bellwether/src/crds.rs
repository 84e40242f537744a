//! `bellwether crds`: the CustomResourceDefinitions as YAML or JSON.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use bellwether_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use crate::cli::CrdFormat;

/// A manifest with the name of its file in `deploy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub file_name: String,
    pub yaml: String,
}

/// One manifest for each CRD.
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
