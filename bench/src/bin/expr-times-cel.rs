//! Measures the time of the crate `cel` to compile an expression and to evaluate it for all rows.

use std::{hint::black_box, sync::Arc};

use anyhow::{Result, anyhow};
use bellwether_bench::{median, report_expressions};
use bellwether_model::{Map, Object};
use cel::{Context, Env, Program};
use serde_json::{Value as Json, json};

fn main() -> Result<()> {
    let env = Arc::new(Env::stdlib());
    report_expressions(|text, rows| {
        let program = env.compile(text)?;
        let rows = rows.iter().map(|row| bind(&env, row)).collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "values": rows.iter().map(|row| value(&program, row)).collect::<Result<Vec<_>>>()?,
            "compile_ns": median(|| env.compile(text)),
            "ns": median(|| {
                for row in &rows {
                    let _ = black_box(program.execute(row));
                }
            }),
        }))
    })
}

/// Binds each field of an object to a variable. With values of `serde_json`, integers would become unsigned,
/// which the expressions do not expect.
fn bind(env: &Arc<Env>, row: &Object<'_>) -> Result<Context<'static, 'static>> {
    let mut context = Context::with_env(Arc::clone(env));
    for (name, value) in row.fields().as_map().into_iter().flat_map(Map::iter) {
        context.add_variable(name, value)?;
    }
    Ok(context)
}

fn value(program: &Program, row: &Context<'_, '_>) -> Result<Json> {
    let value = program.execute(row)?;
    value.json().map_err(|error| anyhow!("{error}"))
}
