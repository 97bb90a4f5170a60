//! What a value looks like and where it leads: limits, texts, links.

use serde_json::{Value, json};

/// Texts and colours that stand for values: value, text, colour.
pub(crate) type Texts = &'static [(&'static str, &'static str, &'static str)];

/// From which value on something is worth a look.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limits {
    /// The colour from each value on; what is below the first is green.
    From(&'static [(f64, &'static str)]),
    /// There is no value of which that could be said: it is measured against its own past, or is what the job makes of it.
    None,
}

/// A link from a series or a row, which carries the time and all that is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) title: &'static str,
    pub(crate) uid: &'static str,
    /// The labels, or in a table the columns, that tell the node and the port.
    pub(crate) node: Option<&'static str>,
    pub(crate) device: Option<&'static str>,
}

impl Limits {
    /// The first of them, if there is one.
    pub(super) fn first(self) -> Option<f64> {
        match self {
            Self::From(steps) => steps.first().map(|(value, _)| *value),
            Self::None => None,
        }
    }

    pub(super) fn json(&self) -> Value {
        let steps = match self {
            Self::From(steps) => *steps,
            Self::None => &[],
        };
        let first = json!({ "color": "green", "value": null });
        let rest = steps
            .iter()
            .map(|(value, color)| json!({ "color": color, "value": value }));
        json!({ "mode": "absolute", "steps": std::iter::once(first).chain(rest).collect::<Vec<_>>() })
    }
}

impl Link {
    /// `fields` is where Grafana finds labels or columns: `__field` or `__data.fields`.
    pub(super) fn json(self, fields: &str) -> Value {
        let mut url = format!(
            "/d/{}?${{__url_time_range}}&${{datasource:queryparam}}&${{cluster:queryparam}}&${{priority:queryparam}}",
            self.uid
        );
        for (variable, field) in [("node", self.node), ("device", self.device)] {
            match field {
                Some(field) => url += &format!("&var-{variable}=${{{fields}.{field}}}"),
                None => url += &format!("&${{{variable}:queryparam}}"),
            }
        }
        json!({ "title": self.title, "url": url })
    }
}

pub(super) fn mappings(texts: Texts) -> Vec<Value> {
    let options: serde_json::Map<_, _> = texts
        .iter()
        .enumerate()
        .map(|(at, (value, text, color))| {
            (
                (*value).to_owned(),
                json!({ "text": text, "color": color, "index": at }),
            )
        })
        .collect();
    if options.is_empty() {
        return Vec::new();
    }
    vec![json!({ "type": "value", "options": options })]
}

/// Shares are told to a hundredth of a percent; other units as Grafana thinks best.
pub(super) fn decimals(unit: &str) -> Option<u8> {
    (unit == "percentunit").then_some(2)
}
