//! What can be chosen at the top of a dashboard.

use super::{chosen, datasource, merge, set};
use serde_json::{Value, json};

/// A choice at the top of a dashboard.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) description: &'static str,
    pub(crate) choice: Choice,
    /// Hidden ones are there to be carried on by links, or to repeat a panel by.
    pub(crate) hidden: bool,
}

/// What can be chosen.
#[derive(Debug)]
pub(crate) enum Choice {
    /// One of the values of a label.
    One(&'static str),
    /// Any of the values of a label. All of them is what it starts with, and is the regular expression here, if there is one:
    /// `.*` holds for series without the label as well.
    Any(&'static str, Option<&'static str>),
    /// One of these, the first to begin with.
    Of(&'static [&'static str]),
}

impl Variable {
    pub(crate) fn shown(
        name: &'static str,
        label: &'static str,
        description: &'static str,
        choice: Choice,
    ) -> Self {
        Self {
            name,
            label,
            description,
            choice,
            hidden: false,
        }
    }

    pub(crate) fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }

    pub(super) fn json(&self) -> Value {
        let mut variable = json!({
            "name": self.name,
            "label": self.label,
            "description": self.description,
            "hide": if self.hidden { 2 } else { 0 },
            "skipUrlSync": false,
        });
        let rest = match self.choice {
            Choice::One(query) => query_variable(query),
            Choice::Any(query, all) => {
                let mut rest = query_variable(query);
                set(&mut rest, "multi", json!(true));
                set(&mut rest, "includeAll", json!(true));
                set(
                    &mut rest,
                    "current",
                    json!({ "text": ["All"], "value": ["$__all"] }),
                );
                if let Some(all) = all {
                    set(&mut rest, "allValue", json!(all));
                }
                rest
            }
            Choice::Of(values) => json!({
                "type": "custom",
                "query": values.join(","),
                "options": values.iter().enumerate().map(|(at, value)| json!({
                    "text": value, "value": value, "selected": at == 0,
                })).collect::<Vec<_>>(),
                "current": { "text": values[0], "value": values[0] },
                "multi": false,
                "includeAll": false,
            }),
        };
        merge(&mut variable, rest);
        variable
    }
}

/// Values anew whenever the time range changes, so that what was there then can be chosen.
fn query_variable(query: &str) -> Value {
    let query = chosen(query);
    json!({
        "type": "query",
        "datasource": datasource(),
        "definition": query,
        "query": { "query": query, "refId": "values" },
        "refresh": 2,
        "sort": 1,
        "regex": "",
        "options": [],
        "current": {},
        "multi": false,
        "includeAll": false,
    })
}

pub(super) fn datasource_variable() -> Value {
    json!({
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "description": "The Prometheus that scrapes Rocewatch.",
        "query": "prometheus",
        "regex": "",
        "refresh": 1,
        "options": [],
        "current": {},
        "hide": 0,
        "multi": false,
        "includeAll": false,
        "skipUrlSync": false,
    })
}
