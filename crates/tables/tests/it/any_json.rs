//! Whatever a spec and its rows contain, nothing panics.

use bellwether_api::StatusCollectorSpec;
use bellwether_tables::Collector;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value as Json, json};

use crate::sample::{NamedTable, Variables};

/// Words that mean something to a collector, so that some of the specs are valid.
const WORDS: [&str; 24] = [
    "op",
    "Path",
    "path",
    "$.status.a",
    "$",
    "args",
    "Equal",
    "Literal",
    "value",
    "returned.status.a",
    "returned",
    "inventory.name",
    "obj[0]",
    "1 +",
    "[[1.0 / 0.0]]",
    "{1: 2}",
    "type(1)",
    "SUM",
    "COUNT",
    "name",
    "a",
    "250Mi",
    "2026-01-01T00:00:00Z",
    "",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        word().prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::Array),
            vec((word(), inner), 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn expression() -> impl Strategy<Value = Json> {
    prop_oneof![3 => word().prop_map(Json::String), 1 => any_json()]
}

fn any_spec() -> impl Strategy<Value = Json> {
    let column = || (word(), expression());
    let function = select(vec!["COUNT", "SUM", "AVG", "MIN", "MAX"]);
    let fields = (
        expression(),
        vec(column(), 0..3),
        vec((word(), function, expression()), 0..3),
        vec(column(), 0..2),
        vec((word(), any::<bool>()), 0..2),
        -1_i64..30,
    );
    fields.prop_map(|(filter, group_by, combined, select, order_by, limit)| {
        let columns = |columns: Vec<(String, Json)>| -> Vec<Json> {
            columns.into_iter().map(|(name, def)| json!({"name": name, "def": def})).collect()
        };
        let combined = combined.into_iter();
        let combined =
            combined.map(|(name, type_, subject)| json!({"name": name, "type": type_, "subject": subject}));
        let order_by = order_by.into_iter();
        let order_by =
            order_by.map(|(column, descending)| json!({"column": column, "descending": descending}));
        json!({
            "filter": filter, "groupBy": columns(group_by), "select": columns(select), "limit": limit,
            "combinedFields": combined.collect::<Vec<_>>(), "orderBy": order_by.collect::<Vec<_>>(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_spec_panics(spec in any_spec(), status in any_json()) {
        let Ok(spec) = serde_json::from_value::<StatusCollectorSpec>(spec) else { return Ok(()) };
        match Collector::compile(&spec) {
            Ok(collector) => {
                let mut table = NamedTable::new(collector);
                let row = Variables::new(&json!({"returned": {"status": status}}));
                table.upsert(&"north".into(), &row.row());
                table.result("any");
            }
            Err(errors) => prop_assert!(!errors.is_empty() && errors.iter().all(|error| error.place.starts_with("spec"))),
        }
    }

    #[test]
    fn no_row_panics(rows in vec(([any_json(), any_json(), any_json(), any_json()], 0_usize..3), 1..5)) {
        let combined: Vec<_> = ["COUNT", "SUM", "AVG", "MIN", "MAX"]
            .into_iter()
            .map(|function| json!({"name": function, "type": function, "subject": "propagation"}))
            .collect();
        for spec in [
            json!({"select": [{"name": "all", "def": {"op": "Path", "path": "$"}}, {"name": "a", "def": "returned.spec.a"}]}),
            json!({
                "filter": "returned.spec.a != 1",
                "groupBy": [{"name": "key", "def": "returned"}, {"name": "inner", "def": "obj.value[0]"}],
                "combinedFields": combined,
                "orderBy": [{"column": "AVG", "descending": true}],
            }),
        ] {
            let spec: StatusCollectorSpec = serde_json::from_value(spec).unwrap();
            let mut table = NamedTable::new(Collector::compile(&spec).unwrap());
            for (values, cluster) in &rows {
                let [inventory, obj, returned, propagation] = values;
                let row = Variables::new(&json!({
                    "inventory": inventory, "obj": obj, "returned": returned, "propagation": propagation,
                }));
                table.upsert(&["", "north", "south"][*cluster].into(), &row.row());
                table.result("any");
            }
            for cluster in ["", "north", "south"] {
                table.remove(cluster);
            }
            prop_assert_eq!(table.result("any").total_rows, 0);
        }
    }
}
