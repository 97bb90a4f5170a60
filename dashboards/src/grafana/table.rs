//! The columns of a table.

use super::field::{decimals, mappings};
use super::{Limits, Link, Texts};
use serde_json::{Value, json};

/// How a table is ordered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Up(&'static str),
    Down(&'static str),
}

/// A column of a table.
#[derive(Debug)]
pub(crate) struct Column {
    /// A label, or `Value` and the letter of a query (`Value #A`; `Value` where there is one).
    from: &'static str,
    title: &'static str,
    unit: Option<&'static str>,
    limits: Option<Limits>,
    gauge: bool,
    texts: Texts,
    link: Option<Link>,
    width: Option<u16>,
}

impl Order {
    /// The column, and whether the largest is on top.
    fn parts(self) -> (&'static str, bool) {
        match self {
            Self::Up(column) => (column, false),
            Self::Down(column) => (column, true),
        }
    }
}

impl Column {
    pub(crate) fn new(from: &'static str, title: &'static str) -> Self {
        Self {
            from,
            title,
            unit: None,
            limits: None,
            gauge: false,
            texts: &[],
            link: None,
            width: None,
        }
    }

    pub(crate) fn unit(self, unit: &'static str) -> Self {
        Self {
            unit: Some(unit),
            ..self
        }
    }

    /// The number is coloured by these limits.
    pub(crate) fn limits(self, limits: Limits) -> Self {
        Self {
            limits: Some(limits),
            ..self
        }
    }

    /// A share, with a bar as long as it is.
    pub(crate) fn share(self, limits: Limits) -> Self {
        Self {
            gauge: true,
            ..self.unit("percentunit").limits(limits)
        }
    }

    pub(crate) fn texts(self, texts: Texts) -> Self {
        Self { texts, ..self }
    }

    pub(crate) fn link(self, link: Link) -> Self {
        Self {
            link: Some(link),
            ..self
        }
    }

    pub(crate) fn width(self, width: u16) -> Self {
        Self {
            width: Some(width),
            ..self
        }
    }

    pub(super) fn json(&self) -> Value {
        let mut properties = Vec::new();
        let mut property = |id: &str, value: Value| properties.push(json!({ "id": id, "value": value }));
        // Else an empty cell would say what the whole table says when it is empty.
        property("noValue", json!(""));
        if let Some(unit) = self.unit {
            property("unit", json!(unit));
            if let Some(decimals) = decimals(unit) {
                property("decimals", json!(decimals));
            }
        }
        if let Some(limits) = self.limits {
            property("thresholds", limits.json());
        }
        if self.gauge {
            property("min", json!(0));
            property("max", json!(1));
            property(
                "custom.cellOptions",
                json!({ "type": "gauge", "mode": "basic", "valueDisplayMode": "text" }),
            );
        } else if self.limits.is_some() || !self.texts.is_empty() {
            property("custom.cellOptions", json!({ "type": "color-text" }));
        }
        if !self.texts.is_empty() {
            property("mappings", json!(mappings(self.texts)));
        }
        if let Some(link) = self.link {
            property("links", json!([link.json("__data.fields")]));
        }
        if let Some(width) = self.width {
            property("custom.width", json!(width));
        }
        json!({ "matcher": { "id": "byName", "options": self.title }, "properties": properties })
    }
}

pub(super) fn options(order: Order) -> Value {
    let (column, down) = order.parts();
    json!({
        "showHeader": true,
        "cellHeight": "sm",
        "footer": { "show": false, "reducer": ["sum"], "fields": "" },
        "sortBy": [{ "displayName": column, "desc": down }],
    })
}

/// Tables of one query each become one, of which the described columns are left in their order.
pub(super) fn transformations(columns: &[Column], order: Order, queries: usize) -> Vec<Value> {
    let names = columns
        .iter()
        .map(|column| (column.from.to_owned(), json!(column.title)));
    let places = columns
        .iter()
        .enumerate()
        .map(|(at, column)| (column.from.to_owned(), json!(at)));
    let titles: Vec<_> = columns.iter().map(|column| column.title).collect();
    let (column, down) = order.parts();
    let mut steps = vec![
        json!({ "id": "organize", "options": {
            "excludeByName": { "Time": true },
            "renameByName": names.collect::<serde_json::Map<_, _>>(),
            "indexByName": places.collect::<serde_json::Map<_, _>>(),
        }}),
        json!({ "id": "filterFieldsByName", "options": { "include": { "names": titles } } }),
        json!({ "id": "sortBy", "options": { "fields": {}, "sort": [{ "field": column, "desc": down }] } }),
    ];
    if queries > 1 {
        steps.insert(0, json!({ "id": "merge", "options": {} }));
    }
    steps
}
