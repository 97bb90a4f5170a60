//! A panel: its queries, its fields and its place.

use super::field::{decimals, mappings};
use super::{COLUMNS, Column, Limits, Link, Scene, Texts, View, chosen, datasource, letter, set, table};
use serde_json::{Value, json};

/// With the smallest step of a minute, a day at five minutes: as far as the windows of the recording rules reach.
const MOST_POINTS: u16 = 300;
/// Cells of a heat map are to be seen each.
const MOST_COLUMNS: u16 = 60;

/// Decibels of a milliwatt, which fall below zero.
pub(crate) const DBM: &str = "suffix:dBm";

/// A panel.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) width: u8,
    pub(crate) height: u8,
    pub(crate) unit: &'static str,
    pub(crate) limits: Limits,
    pub(crate) view: View,
    pub(crate) queries: Vec<Query>,
    /// Where it is not empty.
    pub(crate) scene: Scene,
    /// Whether it may be all zeros there: what no scenario plays, such as a cable that is unplugged.
    pub(crate) quiet: bool,
    max: Option<f64>,
    texts: Texts,
    none: Option<&'static str>,
    link: Option<Link>,
    repeat: Option<&'static str>,
    overrides: Vec<Override>,
    /// The smallest step between two points.
    step: Option<&'static str>,
}

/// A query, and how its series are called.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) expr: String,
    pub(crate) legend: &'static str,
    /// Asked once for the end of the shown time, and not for its course.
    pub(crate) instant: bool,
    /// Where it gives something, if that is not where the panel does.
    pub(crate) scene: Option<Scene>,
}

/// What is different for the series of one query.
#[derive(Debug)]
struct Override {
    query: &'static str,
    properties: Vec<(&'static str, Value)>,
}

impl Panel {
    pub(crate) fn new(view: View, title: &'static str, description: &'static str, scene: Scene) -> Self {
        Self {
            title,
            description,
            width: 8,
            height: 8,
            unit: "short",
            limits: Limits::None,
            view,
            queries: Vec::new(),
            scene,
            quiet: false,
            max: None,
            texts: &[],
            none: None,
            link: None,
            repeat: None,
            overrides: Vec::new(),
            step: None,
        }
    }

    pub(crate) fn size(self, width: u8, height: u8) -> Self {
        Self {
            width,
            height,
            ..self
        }
    }

    pub(crate) fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// A share, from 0 to 100 %.
    pub(crate) fn share(self) -> Self {
        self.unit("percentunit").max(1.0)
    }

    pub(crate) fn max(self, max: f64) -> Self {
        Self {
            max: Some(max),
            ..self
        }
    }

    pub(crate) fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Texts and colours that stand for values.
    pub(crate) fn texts(self, texts: Texts) -> Self {
        Self { texts, ..self }
    }

    /// What is shown where there is nothing.
    pub(crate) fn none(self, none: &'static str) -> Self {
        Self {
            none: Some(none),
            ..self
        }
    }

    pub(crate) fn link(self, link: Link) -> Self {
        Self {
            link: Some(link),
            ..self
        }
    }

    /// One panel for each value of the variable, beside each other.
    pub(crate) fn repeat(self, variable: &'static str) -> Self {
        Self {
            repeat: Some(variable),
            ..self
        }
    }

    pub(crate) fn step(self, step: &'static str) -> Self {
        Self {
            step: Some(step),
            ..self
        }
    }

    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// The course of this.
    pub(crate) fn query(self, expr: impl AsRef<str>, legend: &'static str) -> Self {
        self.with(expr.as_ref(), legend, false, None)
    }

    /// The course of this, which is to be seen somewhere else than the rest of the panel.
    pub(crate) fn query_on(self, scene: Scene, expr: impl AsRef<str>, legend: &'static str) -> Self {
        self.with(expr.as_ref(), legend, false, Some(scene))
    }

    /// This at the end of the shown time.
    pub(crate) fn now(self, expr: impl AsRef<str>, legend: &'static str) -> Self {
        self.with(expr.as_ref(), legend, true, None)
    }

    /// This at the end of the shown time, which is to be seen somewhere else than the rest of the panel.
    pub(crate) fn now_on(self, scene: Scene, expr: impl AsRef<str>, legend: &'static str) -> Self {
        self.with(expr.as_ref(), legend, true, Some(scene))
    }

    fn with(mut self, expr: &str, legend: &'static str, instant: bool, scene: Option<Scene>) -> Self {
        self.queries.push(Query {
            expr: chosen(expr),
            legend,
            instant,
            scene,
        });
        self
    }

    /// The series of the query with this letter have a unit of their own, on an axis to the right.
    pub(crate) fn right(mut self, query: &'static str, unit: &'static str, label: &'static str) -> Self {
        self.overrides.push(Override {
            query,
            properties: vec![
                ("unit", json!(unit)),
                ("max", Value::Null),
                ("custom.axisPlacement", json!("right")),
                ("custom.axisLabel", json!(label)),
                ("custom.lineStyle", json!({ "fill": "dash", "dash": [6, 4] })),
                ("custom.fillOpacity", json!(0)),
            ],
        });
        self
    }

    /// The series of the query with this letter have this colour.
    pub(crate) fn color(mut self, query: &'static str, color: &'static str) -> Self {
        self.overrides.push(Override {
            query,
            properties: vec![("color", json!({ "mode": "fixed", "fixedColor": color }))],
        });
        self
    }

    pub(super) fn json(&self, id: usize, x: u8, y: u16) -> Value {
        let mut panel = json!({
            "id": id,
            "type": self.view.plugin(),
            "title": self.title,
            "description": self.description,
            "datasource": datasource(),
            "gridPos": { "x": x, "y": y, "w": self.width, "h": self.height },
            "targets": self.targets(),
            "fieldConfig": { "defaults": self.defaults(), "overrides": self.overrides() },
            "options": self.view.options(),
            "transformations": self.transformations(),
        });
        if let Some(variable) = self.repeat {
            set(&mut panel, "repeat", json!(variable));
            set(&mut panel, "repeatDirection", json!("h"));
            set(&mut panel, "maxPerRow", json!(COLUMNS / self.width));
        }
        if let Some(step) = self.step {
            set(&mut panel, "interval", json!(step));
            set(&mut panel, "maxDataPoints", json!(MOST_POINTS));
        }
        if matches!(self.view, View::Heatmap) {
            set(&mut panel, "maxDataPoints", json!(MOST_COLUMNS));
        }
        panel
    }

    fn transformations(&self) -> Vec<Value> {
        match &self.view {
            View::Table(columns, order) => table::transformations(columns, *order, self.queries.len()),
            _ => Vec::new(),
        }
    }

    fn targets(&self) -> Vec<Value> {
        let format = match self.view {
            View::Table(..) => "table",
            View::Heatmap => "heatmap",
            _ => "time_series",
        };
        let target = |(at, query): (usize, &Query)| {
            json!({
                "refId": letter(at),
                "datasource": datasource(),
                "editorMode": "code",
                "expr": query.expr,
                "legendFormat": query.legend,
                "format": format,
                "instant": query.instant,
                "range": !query.instant,
            })
        };
        self.queries.iter().enumerate().map(target).collect()
    }

    /// One or two, each with a name of its own.
    fn has_few_lines(&self) -> bool {
        self.queries.len() < 3 && self.queries.iter().all(|query| !query.legend.contains("{{"))
    }

    fn defaults(&self) -> Value {
        let mut defaults = json!({
            "unit": self.unit,
            "thresholds": self.limits.json(),
            "color": { "mode": self.view.color() },
            "custom": self.view.drawing(self.limits, self.has_few_lines()),
            "links": self.link.map(|link| link.json("__field")).into_iter().collect::<Vec<_>>(),
            "mappings": mappings(self.texts),
        });
        let begins_at_zero = !matches!(self.view, View::Number | View::Table(..) | View::Timeline);
        if begins_at_zero && self.unit != DBM {
            set(&mut defaults, "min", json!(0));
        }
        if let (View::Number | View::Ranking, Some(decimals)) = (&self.view, decimals(self.unit)) {
            set(&mut defaults, "decimals", json!(decimals));
        }
        if let Some(max) = self.max {
            set(&mut defaults, "max", json!(max));
        }
        if let Some(none) = self.none {
            set(&mut defaults, "noValue", json!(none));
        }
        defaults
    }

    fn overrides(&self) -> Vec<Value> {
        let by_query = self.overrides.iter().map(|Override { query, properties }| {
            json!({
                "matcher": { "id": "byFrameRefID", "options": query },
                "properties": properties.iter().map(|(id, value)| json!({ "id": id, "value": value })).collect::<Vec<_>>(),
            })
        });
        let by_column = match &self.view {
            View::Table(columns, _) => columns.as_slice(),
            _ => &[],
        };
        by_query.chain(by_column.iter().map(Column::json)).collect()
    }
}
