//! The clauses of a statement.

use bellwether_api::{Expression, OrderBy, StatusCollectorSpec};
use sqlparser::{
    ast::{
        Distinct, Expr, GroupByExpr, LimitClause, OrderByKind, OrderBySort, Query, Select, SelectFlavor,
        SelectItem, SetExpr, Spanned as _, Statement as Parsed, TableFactor, Value, ValueWithSpan,
    },
    dialect::GenericDialect,
    parser::{Parser, ParserError},
    tokenizer::Location,
};

use crate::{
    MAX_LIMIT, Statement,
    cel::Cel,
    columns::{Column, Content, combined, named, push},
    error::SqlError,
    expression,
    source::Source,
};

/// The columns of `SELECT *`.
const ALL: &[(&str, &str)] = &[
    ("cluster", "inventory.name"),
    ("namespace", "obj.metadata.namespace"),
    ("name", "obj.metadata.name"),
    ("health", "propagation.health"),
    ("progress", "propagation.progress"),
    ("stale", "propagation.stale"),
    ("status", "returned.status"),
];

pub(crate) fn translate(source: &Source) -> Result<Statement, SqlError> {
    let query = parse(source)?;
    let select = match *query.body {
        SetExpr::Select(ref select) => select,
        SetExpr::SetOperation { op, .. } => return Err(unsupported(query.span().start, &op.to_string())),
        ref other => return Err(unsupported(other.span().start, "this form of query")),
    };
    reject_other_clauses(&query, select)?;
    let filter = select.selection.as_ref().map(expression::translate).transpose().map_err(|error| {
        // SQL does not know them there either.
        let alias = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                (error.text == format!("unknown column {:?}", alias.value)).then_some(alias)
            }
            _ => None,
        });
        match alias {
            Some(_) => {
                SqlError { hint: None, ..error }.hint("WHERE needs the expression itself, not its name")
            }
            None => error,
        }
    })?;
    let mut columns = columns(select)?;
    let shown = columns.len();
    let groups = groups(select, &columns)?;
    let order_by = order_by(&query, &mut columns, groups.as_deref())?;
    let (limit, offset) = limit(&query)?;
    let mut spec = StatusCollectorSpec {
        filter: filter.map(|cel| Expression::cel(cel.text)),
        order_by,
        limit: i64::try_from(limit.unwrap_or(MAX_LIMIT).min(MAX_LIMIT)).unwrap_or(i64::MAX),
        ..StatusCollectorSpec::default()
    };
    let combines = groups.is_some() || columns.iter().any(|column| column.content.is_aggregate());
    let mut groups = groups.unwrap_or_default();
    for column in &columns {
        match &column.content {
            Content::Plain(cel) if !combines => spec.select.push(named(column, cel)),
            Content::Plain(cel) => {
                let Some(position) = groups.iter().position(|group| group == cel) else {
                    return Err(ungrouped(column));
                };
                groups.remove(position);
                spec.group_by.push(named(column, cel));
            }
            Content::Aggregate { function, subject } => {
                spec.combined_fields.push(combined(column, *function, subject.as_ref()));
            }
        }
    }
    let names: Vec<_> = columns.iter().take(shown).map(|column| column.name.clone()).collect();
    // Groups that SELECT does not show.
    for group in groups {
        push(&mut columns, Content::Plain(group.clone()), None, Location { line: 0, column: 0 })?;
        spec.group_by.extend(columns.last().map(|column| named(column, &group)));
    }
    Ok(Statement { from: source.from.clone(), spec, columns: names, limit, offset })
}

fn parse(source: &Source) -> Result<Query, SqlError> {
    let parsed = Parser::new(&GenericDialect {})
        .with_tokens_with_locations(source.tokens.clone())
        .parse_statements()
        .map_err(|error| match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => SqlError::of_parser(&text),
            ParserError::RecursionLimitExceeded => SqlError::of_parser("the statement is nested too deeply"),
        })?;
    let mut statements = parsed.into_iter();
    match (statements.next(), statements.next()) {
        (Some(Parsed::Query(query)), None) => Ok(*query),
        (Some(first), None) => Err(SqlError::at(first.span().start, "only SELECT is supported")
            .hint("a query reads clusters and changes nothing")),
        (Some(_), Some(second)) => {
            Err(SqlError::at(second.span().start, "only one statement at a time is supported"))
        }
        (None, _) => Err(SqlError::of_parser("no statement")),
    }
}

fn unsupported(at: Location, what: &str) -> SqlError {
    SqlError::at(at, format!("{what} is not supported"))
        .hint("a StatusCollector is one SELECT over one kind of objects")
}

fn reject_other_clauses(query: &Query, select: &Select) -> Result<(), SqlError> {
    let start = select.span().start;
    if let Some(with) = &query.with {
        return Err(unsupported(with.span().start, "WITH"));
    }
    if let Some(having) = &select.having {
        return Err(SqlError::at(having.span().start, "HAVING is not supported")
            .hint("filter rows with WHERE, or order by the aggregate and use LIMIT"));
    }
    if !select.named_window.is_empty() || select.qualify.is_some() {
        return Err(unsupported(start, "WINDOW"));
    }
    if let [_, second, ..] = &*select.from {
        return Err(unsupported(second.span().start, "a second table"));
    }
    if let Some(table) = select.from.first() {
        if let Some(join) = table.joins.first() {
            return Err(unsupported(join.relation.span().start, "JOIN"));
        }
        match &table.relation {
            TableFactor::Table { alias: Some(alias), .. } => {
                return Err(SqlError::at(alias.name.span.start, "an alias after FROM is not supported")
                    .hint("write paths such as status.phase without it"));
            }
            TableFactor::Table { args: None, .. } => {}
            TableFactor::Derived { .. } => {
                return Err(unsupported(table.relation.span().start, "a subquery"));
            }
            other => return Err(unsupported(other.span().start, "this form of FROM")),
        }
    }
    let others = [
        (query.fetch.is_some(), "FETCH"),
        (!query.locks.is_empty() || query.for_clause.is_some(), "FOR"),
        (query.settings.is_some(), "SETTINGS"),
        (query.format_clause.is_some(), "FORMAT"),
        (!query.pipe_operators.is_empty(), "|>"),
        (select.top.is_some(), "TOP"),
        (select.exclude.is_some(), "EXCLUDE"),
        (select.into.is_some(), "INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.value_table_mode.is_some() || select.select_modifiers.is_some(), "this form of SELECT"),
        (select.flavor != SelectFlavor::Standard, "FROM before SELECT"),
    ];
    match others.iter().find(|(is_there, _)| *is_there) {
        Some((_, what)) => Err(unsupported(start, what)),
        None => Ok(()),
    }
}

fn columns(select: &Select) -> Result<Vec<Column>, SqlError> {
    let mut columns = Vec::new();
    for item in &select.projection {
        let at = item.span().start;
        match item {
            SelectItem::UnnamedExpr(expression) => push(&mut columns, Content::of(expression)?, None, at)?,
            SelectItem::ExprWithAlias { expr, alias } => {
                push(&mut columns, Content::of(expr)?, Some(alias.value.clone()), at)?;
            }
            SelectItem::Wildcard(_) => {
                for (name, cel) in ALL {
                    push(&mut columns, Content::Plain(Cel::primary(*cel)), Some((*name).to_owned()), at)?;
                }
            }
            _ => {
                return Err(SqlError::at(at, "this form of column is not supported")
                    .hint("write expressions and names: inventory.name AS cluster"));
            }
        }
    }
    Ok(columns)
}

/// The values of GROUP BY, or of SELECT DISTINCT; None without either.
fn groups(select: &Select, columns: &[Column]) -> Result<Option<Vec<Cel>>, SqlError> {
    let distinct = match &select.distinct {
        Some(Distinct::Distinct) => true,
        Some(Distinct::On(_)) => return Err(unsupported(select.span().start, "DISTINCT ON")),
        Some(Distinct::All) | None => false,
    };
    let expressions = match &select.group_by {
        GroupByExpr::Expressions(expressions, modifiers) if modifiers.is_empty() => expressions,
        other => return Err(unsupported(other.span().start, "this form of GROUP BY")),
    };
    if distinct {
        let is_plain = expressions.is_empty() && !columns.iter().any(|column| column.content.is_aggregate());
        let of = |column: &Column| match &column.content {
            Content::Plain(cel) => Some(cel.clone()),
            Content::Aggregate { .. } => None,
        };
        return if is_plain {
            Ok(Some(columns.iter().filter_map(of).collect()))
        } else {
            Err(SqlError::at(select.span().start, "DISTINCT with GROUP BY or aggregates is not supported")
                .hint("GROUP BY gives each group once"))
        };
    }
    if expressions.is_empty() {
        return Ok(None);
    }
    let mut groups = Vec::new();
    for expression in expressions {
        let group = match referenced(expression, columns)? {
            Some(index) => match &columns[index].content {
                Content::Plain(cel) => cel.clone(),
                Content::Aggregate { .. } => {
                    return Err(SqlError::at(
                        expression.span().start,
                        "GROUP BY cannot contain an aggregate",
                    ));
                }
            },
            None => match Content::of(expression)? {
                Content::Plain(cel) => cel,
                Content::Aggregate { .. } => {
                    return Err(SqlError::at(
                        expression.span().start,
                        "GROUP BY cannot contain an aggregate",
                    ));
                }
            },
        };
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(Some(groups))
}

/// The column that a name or a number in GROUP BY or ORDER BY stands for.
fn referenced(expression: &Expr, columns: &[Column]) -> Result<Option<usize>, SqlError> {
    match expression {
        Expr::Identifier(name) => {
            let exact = columns.iter().position(|column| column.name == name.value);
            let similar = || columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name.value));
            Ok(exact.or_else(similar))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), span }) => {
            let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let known = index.filter(|index| *index < columns.len());
            known.map(Some).ok_or_else(|| {
                SqlError::at(span.start, format!("column {number} does not exist")).hint(format!(
                    "SELECT has {} column{}",
                    columns.len(),
                    if columns.len() == 1 { "" } else { "s" }
                ))
            })
        }
        _ => Ok(None),
    }
}

fn ungrouped(column: &Column) -> SqlError {
    let Content::Plain(cel) = &column.content else { return SqlError::at(column.at, "unknown group") };
    SqlError::at(column.at, format!("{} must be in GROUP BY or in an aggregate", cel.text))
        .hint(format!("add GROUP BY {}", column.name))
}

/// Adds a column for what SELECT does not show.
fn order_by(
    query: &Query,
    columns: &mut Vec<Column>,
    groups: Option<&[Cel]>,
) -> Result<Vec<OrderBy>, SqlError> {
    let Some(order_by) = &query.order_by else { return Ok(Vec::new()) };
    let OrderByKind::Expressions(expressions) = &order_by.kind else {
        return Err(unsupported(order_by.span().start, "ORDER BY ALL"));
    };
    let mut found: Vec<OrderBy> = Vec::new();
    for one in expressions {
        let at = one.expr.span().start;
        let descending = match &one.options.sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(OrderBySort::Using(_)) => return Err(unsupported(at, "ORDER BY … USING")),
        };
        if one.with_fill.is_some() {
            return Err(unsupported(at, "WITH FILL"));
        }
        if one.options.nulls_first == Some(descending) {
            let (where_, order) = if descending { ("last", "descending") } else { ("first", "ascending") };
            return Err(SqlError::at(at, format!("NULL comes {where_} in {order} order"))
                .hint("filter with IS NOT NULL, or order by COALESCE"));
        }
        let index = referenced(&one.expr, columns)?
            .map_or_else(|| ordering_column(&one.expr, columns, groups), Ok)?;
        let column = columns[index].name.clone();
        if !found.iter().any(|order| order.column == column) {
            found.push(OrderBy { column, descending });
        }
    }
    Ok(found)
}

/// The column with the values of an expression in ORDER BY, added if SELECT does not have it.
fn ordering_column(
    expression: &Expr,
    columns: &mut Vec<Column>,
    groups: Option<&[Cel]>,
) -> Result<usize, SqlError> {
    let at = expression.span().start;
    let content = Content::of(expression)?;
    if let Some(index) = columns.iter().position(|column| column.content == content) {
        return Ok(index);
    }
    let combines = groups.is_some() || columns.iter().any(|column| column.content.is_aggregate());
    match &content {
        Content::Plain(cel) if combines && !groups.unwrap_or_default().contains(cel) => {
            Err(SqlError::at(at, format!("{} must be in GROUP BY or in an aggregate", cel.text)))
        }
        Content::Aggregate { .. } if !combines => {
            Err(SqlError::at(at, "an aggregate in ORDER BY needs one in SELECT, or GROUP BY"))
        }
        _ => {
            push(columns, content, None, at)?;
            Ok(columns.len() - 1)
        }
    }
}

fn limit(query: &Query) -> Result<(Option<u64>, u64), SqlError> {
    let (limit, offset) = match &query.limit_clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
        Some(LimitClause::LimitOffset { .. }) => {
            return Err(unsupported(query.span().start, "LIMIT BY"));
        }
    };
    let number = |expression: &Expr, least: u64, what: &str| {
        let number = match expression {
            Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => number.parse::<u64>().ok(),
            _ => None,
        };
        number.filter(|number| *number >= least).ok_or_else(|| {
            SqlError::at(expression.span().start, format!("{what} must be a number of at least {least}"))
        })
    };
    let limit = limit.map(|limit| number(limit, 1, "LIMIT")).transpose()?;
    let offset = offset.map(|offset| number(offset, 0, "OFFSET")).transpose()?;
    Ok((limit, offset.unwrap_or(0)))
}
