//! SQLite gives the same answers to the queries that both can express.

use std::fmt::Write as _;

use bellwether_api::{
    Aggregator, CombinedField, Expression, NamedExpression, OrderBy, StatusCollectorSpec, TypedValue,
};
use bellwether_tables::Collector;
use proptest::{collection::vec, option, prelude::*, sample::select};
use rusqlite::{Connection, types::Value as Sql};
use serde_json::{Map, Value as Json, json};

use crate::sample::{NamedTable, reports};

/// The same filter in our language and in SQL.
const FILTERS: [(&str, &str); 8] = [
    ("returned.status.a > 1", "a > 1"),
    ("returned.status.a <= returned.status.b", "a <= b"),
    ("!(returned.status.a == returned.status.b)", "NOT (a = b)"),
    ("returned.status.a < returned.status.b || returned.status.c == 'x'", "a < b OR c = 'x'"),
    ("returned.status.a != 0 && returned.status.c != 'x'", "a <> 0 AND c <> 'x'"),
    ("returned.status.c in ['x', 'y']", "c IN ('x', 'y')"),
    ("returned.status.c >= 'X'", "c >= 'X'"),
    ("returned.status.a != null", "a IS NOT NULL"),
];

/// The functions that SQL has for every type; the others are for `a` and `b`, which are numbers.
const FOR_ALL: [Aggregator; 3] = [Aggregator::Count, Aggregator::Min, Aggregator::Max];
const FOR_NUMBERS: [Aggregator; 2] = [Aggregator::Sum, Aggregator::Avg];

#[derive(Debug)]
struct Query {
    spec: StatusCollectorSpec,
    sql: String,
}

/// One of the columns `a`, `b` and `c`: as CEL, or as a tree.
fn column() -> impl Strategy<Value = (Expression, &'static str)> {
    (select(vec!["a", "b", "c"]), any::<bool>()).prop_map(|(name, is_tree)| (read(name, is_tree), name))
}

fn read(name: &str, is_tree: bool) -> Expression {
    if is_tree {
        Expression::path(&format!("$.status.{name}"))
    } else {
        Expression::cel(format!("returned.status.{name}"))
    }
}

/// A function with its argument, and the same in SQL.
fn field() -> impl Strategy<Value = (Aggregator, Option<Expression>, String)> {
    let all = (select(&FOR_ALL[..]), column())
        .prop_map(|(function, (subject, name))| (function, Some(subject), format!("{function:?}({name})")));
    let numbers = (select(&FOR_NUMBERS[..]), select(vec!["a", "b"]), any::<bool>()).prop_map(
        |(function, name, is_tree)| (function, Some(read(name, is_tree)), format!("{function:?}({name})")),
    );
    prop_oneof![all, numbers, Just((Aggregator::Count, None, "COUNT(*)".to_owned()))]
}

fn query() -> impl Strategy<Value = Query> {
    let columns = prop_oneof![
        1 => (vec(column(), 1..4), Just(vec![]), Just(true)),
        3 => (vec(column(), 0..3), vec(field(), 1..5), Just(false)),
    ];
    let order = vec((any::<prop::sample::Index>(), any::<bool>()), 0..3);
    (option::of(select(&FILTERS[..])), columns, order, 1_i64..6).prop_map(
        |(filter, (columns, fields, is_select), order, limit)| {
            let names: Vec<_> = (0..columns.len() + fields.len()).map(|index| format!("c{index}")).collect();
            let sql_columns: Vec<_> = columns.iter().map(|(_, name)| (*name).to_owned()).collect();
            let sql_fields = fields.iter().map(|(.., sql)| sql.clone());
            let mut sql = format!(
                "SELECT {} FROM t",
                sql_columns.iter().cloned().chain(sql_fields).collect::<Vec<_>>().join(", ")
            );
            if let Some((_, filter)) = filter {
                write!(sql, " WHERE {filter}").unwrap();
            }
            if !is_select && !columns.is_empty() {
                write!(sql, " GROUP BY {}", sql_columns.join(", ")).unwrap();
            }
            let mut order_by: Vec<OrderBy> = Vec::new();
            let mut sql_order = Vec::new();
            for (index, descending) in order {
                let index = index.index(names.len());
                if order_by.iter().all(|own| own.column != names[index]) {
                    order_by.push(OrderBy { column: names[index].clone(), descending });
                    sql_order.push(format!("{} {}", index + 1, if descending { "DESC" } else { "ASC" }));
                }
            }
            let default = if is_select { vec!["cluster".to_owned()] } else { sql_columns };
            sql_order.extend(default);
            if !sql_order.is_empty() {
                write!(sql, " ORDER BY {}", sql_order.join(", ")).unwrap();
            }
            let columns: Vec<_> = columns
                .into_iter()
                .zip(&names)
                .map(|((def, _), name)| NamedExpression { name: name.clone(), def: Some(def) })
                .collect();
            let combined_fields = fields
                .into_iter()
                .zip(&names[columns.len()..])
                .map(|((type_, subject, _), name)| CombinedField { name: name.clone(), type_, subject })
                .collect();
            let (select, group_by) = if is_select { (columns, vec![]) } else { (vec![], columns) };
            let filter = filter.map(|(cel, _)| Expression::cel(cel));
            Query {
                spec: StatusCollectorSpec { filter, group_by, combined_fields, select, order_by, limit },
                sql,
            }
        },
    )
}

/// The status of a cluster: two numbers that floating point represents exactly, and a string.
fn status() -> impl Strategy<Value = Json> {
    let number =
        || prop_oneof![(-3_i64..4).prop_map(Json::from), (-8_i32..8).prop_map(|n| json!(f64::from(n) / 4.0))];
    let text = select(vec!["x", "y", "z", "X", "", "é"]).prop_map(Json::from);
    let field = |value: BoxedStrategy<Json>| option::weighted(0.8, value);
    (field(number().boxed()), field(number().boxed()), field(text.boxed())).prop_map(|(a, b, c)| {
        let fields = [("a", a), ("b", b), ("c", c)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Json::Object(fields.collect::<Map<_, _>>())
    })
}

fn to_sql(json: &Json) -> Sql {
    match json {
        Json::String(text) => Sql::Text(text.clone()),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| Sql::Real(number.as_f64().expect("a double")), Sql::Integer)
        }
        _ => Sql::Null,
    }
}

/// A value of SQLite, where `1` and `1.0` are the same number.
fn shown(value: &Sql) -> String {
    match value {
        Sql::Null => "null".to_owned(),
        #[expect(clippy::cast_precision_loss)]
        Sql::Integer(number) => format!("{:?}", *number as f64),
        Sql::Real(number) => format!("{number:?}"),
        Sql::Text(text) => format!("{text:?}"),
        Sql::Blob(_) => panic!("no column is a blob"),
    }
}

fn own_shown(value: &TypedValue) -> String {
    match (&value.number, &value.string) {
        (Some(number), _) => format!("{:?}", number.parse::<f64>().unwrap() + 0.0),
        (_, Some(text)) => format!("{text:?}"),
        _ => "null".to_owned(),
    }
}

fn answer(connection: &Connection, sql: &str) -> Vec<Vec<String>> {
    let mut statement = connection.prepare_cached(sql).expect(sql);
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..columns).map(|column| Ok(shown(&row.get::<_, Sql>(column)?))).collect::<Result<Vec<_>, _>>()
    });
    rows.expect(sql).collect::<Result<_, _>>().expect(sql)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_gives_the_same_answers(query in query(), statuses in vec(status(), 0..10)) {
        let connection = Connection::open_in_memory().expect("a database in memory");
        connection.execute_batch("CREATE TABLE t (cluster TEXT, a, b, c)").expect("a table");
        let mut table = NamedTable::new(Collector::compile(&query.spec).expect("a valid collector"));
        for (number, status) in statuses.iter().enumerate() {
            let cluster = format!("cluster-{number}");
            table.upsert(&cluster.as_str().into(), &reports(&cluster, status).row());
            let values = [Sql::Text(cluster), to_sql(&status["a"]), to_sql(&status["b"]), to_sql(&status["c"])];
            connection.execute("INSERT INTO t VALUES (?, ?, ?, ?)", values).expect("a row");
        }
        let mut expected = answer(&connection, &query.sql);
        let result = table.result("any");
        prop_assert_eq!(result.total_rows, i64::try_from(expected.len()).unwrap());
        expected.truncate(usize::try_from(query.spec.limit).unwrap());
        let rows: Vec<Vec<_>> = result.rows.iter().map(|row| row.columns.iter().map(own_shown).collect()).collect();
        prop_assert_eq!(rows, expected, "{}", query.sql);
        prop_assert!(result.row_errors.is_empty() && result.aggregation_errors.is_empty());
    }
}
