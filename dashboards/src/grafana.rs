//! A dashboard as it is described, and as Grafana reads it (classic JSON, schema 39: Grafana 10.4 and later).

use serde_json::{Value, json};

/// Grafana's grid is so wide.
const COLUMNS: u8 = 24;
/// The schema of Grafana 10.4; later ones read it and bring it up to date by themselves.
const SCHEMA: u8 = 39;

/// One dashboard.
#[derive(Debug)]
pub(crate) struct Dashboard {
    /// What its address ends in, and the name of its file.
    pub(crate) uid: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    /// Where the shown time begins when it is opened without one; it ends now.
    pub(crate) from: &'static str,
    pub(crate) variables: Vec<Variable>,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) rows: Vec<Row>,
}

/// A heading and the panels under it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) title: &'static str,
    pub(crate) panels: Vec<Panel>,
}

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

/// Marks on the time axis of every panel.
#[derive(Debug)]
pub(crate) struct Annotation {
    pub(crate) name: &'static str,
    pub(crate) color: &'static str,
    /// Marked is the time in which it gives something above 0.
    pub(crate) expr: String,
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    pub(crate) scene: Scene,
}

/// A simulated server on which something is to be seen: what the tests start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Scene {
    pub(crate) scenario: &'static str,
    pub(crate) nic: &'static str,
    /// The port to look at.
    pub(crate) device: &'static str,
}

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
    texts: &'static [(&'static str, &'static str, &'static str)],
    none: Option<&'static str>,
    link: Option<Link>,
    repeat: Option<&'static str>,
    overrides: Vec<Override>,
    /// The smallest step between two points.
    step: Option<&'static str>,
}

/// From which value on something is worth a look.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limits {
    /// The colour from each value on; what is below the first is green.
    From(&'static [(f64, &'static str)]),
    /// There is no value of which that could be said: it is measured against its own past, or is what the job makes of it.
    None,
}

/// How a panel is drawn.
#[derive(Debug)]
pub(crate) enum View {
    Lines,
    /// Counts of an interval.
    Bars,
    /// One number, the last.
    Number,
    /// The worst few as horizontal bars.
    Ranking,
    /// Cumulative buckets over time.
    Heatmap,
    /// What state each series was in.
    Timeline,
    /// A table of these columns, ordered by one of them.
    Table(Vec<Column>, Order),
}

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
    texts: &'static [(&'static str, &'static str, &'static str)],
    link: Option<Link>,
    width: Option<u16>,
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

/// A link from a series or a row, which carries the time and all that is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) title: &'static str,
    pub(crate) uid: &'static str,
    /// The labels, or in a table the columns, that tell the node and the port.
    pub(crate) node: Option<&'static str>,
    pub(crate) device: Option<&'static str>,
}

/// What is different for the series of one query.
#[derive(Debug)]
struct Override {
    query: &'static str,
    properties: Vec<(&'static str, Value)>,
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

    fn json(&self) -> Value {
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
    pub(crate) fn texts(self, texts: &'static [(&'static str, &'static str, &'static str)]) -> Self {
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

    fn json(&self, id: usize, x: u8, y: u16) -> Value {
        let mut panel = json!({
            "id": id,
            "type": self.view.plugin(),
            "title": self.title,
            "description": self.description,
            "datasource": datasource(),
            "gridPos": { "x": x, "y": y, "w": self.width, "h": self.height },
            "targets": self.targets(),
            "fieldConfig": { "defaults": self.defaults(), "overrides": self.overrides() },
            "options": self.view.options(self.unit),
            "transformations": self.view.transformations(self.queries.len()),
        });
        if let Some(variable) = self.repeat {
            set(&mut panel, "repeat", json!(variable));
            set(&mut panel, "repeatDirection", json!("h"));
            set(&mut panel, "maxPerRow", json!(COLUMNS / self.width));
        }
        if let Some(step) = self.step {
            set(&mut panel, "interval", json!(step));
            set(&mut panel, "maxDataPoints", json!(300));
        }
        panel
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

    fn defaults(&self) -> Value {
        let mut defaults = json!({
            "unit": self.unit,
            "thresholds": self.limits.json(),
            "color": { "mode": self.view.color() },
            "custom": self.view.drawing(&self.limits),
            "links": self.link.map(|link| link.json("__field")).into_iter().collect::<Vec<_>>(),
            "mappings": mappings(self.texts),
        });
        if !matches!(self.view, View::Number | View::Table(..) | View::Timeline) {
            set(&mut defaults, "min", json!(0));
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

    pub(crate) fn texts(self, texts: &'static [(&'static str, &'static str, &'static str)]) -> Self {
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

    fn json(&self) -> Value {
        let mut properties = Vec::new();
        let mut property = |id: &str, value: Value| properties.push(json!({ "id": id, "value": value }));
        if let Some(unit) = self.unit {
            property("unit", json!(unit));
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

impl View {
    fn plugin(&self) -> &'static str {
        match self {
            Self::Lines | Self::Bars => "timeseries",
            Self::Number => "stat",
            Self::Ranking => "bargauge",
            Self::Heatmap => "heatmap",
            Self::Timeline => "state-timeline",
            Self::Table(..) => "table",
        }
    }

    fn color(&self) -> &'static str {
        match self {
            Self::Lines | Self::Bars => "palette-classic-by-name",
            _ => "thresholds",
        }
    }

    fn drawing(&self, limits: &Limits) -> Value {
        let style = match self {
            Self::Lines => json!({ "drawStyle": "line", "fillOpacity": 8 }),
            Self::Bars => {
                json!({ "drawStyle": "bars", "fillOpacity": 70, "stacking": { "mode": "normal", "group": "A" } })
            }
            Self::Timeline => return json!({ "fillOpacity": 80, "lineWidth": 0 }),
            Self::Table(..) => {
                return json!({ "align": "auto", "cellOptions": { "type": "auto" }, "filterable": true });
            }
            Self::Number | Self::Ranking | Self::Heatmap => return json!({}),
        };
        let lines = match limits {
            Limits::From(_) => "dashed",
            Limits::None => "off",
        };
        let mut drawing = json!({
            "lineWidth": 1,
            "showPoints": "never",
            "spanNulls": false,
            "thresholdsStyle": { "mode": lines },
        });
        merge(&mut drawing, style);
        drawing
    }

    fn options(&self, unit: &str) -> Value {
        let last = json!({ "calcs": ["lastNotNull"], "fields": "", "values": false });
        let legend = json!({ "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] });
        match self {
            Self::Lines | Self::Bars => json!({
                "legend": legend,
                "tooltip": { "mode": "multi", "sort": "desc" },
            }),
            Self::Number => json!({
                "reduceOptions": last, "colorMode": "value", "graphMode": "area", "justifyMode": "center", "textMode": "auto",
                "wideLayout": true,
            }),
            Self::Ranking => json!({
                "reduceOptions": last, "displayMode": "gradient", "orientation": "horizontal", "showUnfilled": true,
                "valueMode": "color", "namePlacement": "auto", "minVizHeight": 10, "minVizWidth": 8,
            }),
            Self::Heatmap => json!({
                "calculate": false,
                "cellGap": 1,
                "color": { "mode": "scheme", "scheme": "Spectral", "steps": 64, "reverse": true, "exponent": 0.5, "fill": "dark-orange" },
                "filterValues": { "le": 1e-9 },
                "legend": { "show": true },
                "tooltip": { "mode": "single", "yHistogram": true, "show": true },
                "yAxis": { "axisPlacement": "left", "reverse": false, "unit": unit },
                "rowsFrame": { "layout": "auto" },
                "cellValues": { "unit": "short" },
                "showValue": "never",
            }),
            Self::Timeline => json!({
                "mergeValues": true, "showValue": "never", "alignValue": "left", "rowHeight": 0.85, "legend": legend,
                "tooltip": { "mode": "single", "sort": "none" },
            }),
            Self::Table(_, order) => {
                let (column, down) = match order {
                    Order::Up(column) => (column, false),
                    Order::Down(column) => (column, true),
                };
                json!({
                    "showHeader": true,
                    "cellHeight": "sm",
                    "footer": { "show": false, "reducer": ["sum"], "fields": "" },
                    "sortBy": [{ "displayName": column, "desc": down }],
                })
            }
        }
    }

    /// Tables of one query each become one, of which the described columns are left in their order.
    fn transformations(&self, queries: usize) -> Vec<Value> {
        let Self::Table(columns, order) = self else {
            return Vec::new();
        };
        let names = columns
            .iter()
            .map(|column| (column.from.to_owned(), json!(column.title)));
        let at = columns
            .iter()
            .enumerate()
            .map(|(at, column)| (column.from.to_owned(), json!(at)));
        let shown = columns.iter().map(|column| column.title);
        let (column, down) = match order {
            Order::Up(column) => (column, false),
            Order::Down(column) => (column, true),
        };
        let mut steps = vec![
            json!({ "id": "organize", "options": {
                "excludeByName": { "Time": true },
                "renameByName": names.collect::<serde_json::Map<_, _>>(),
                "indexByName": at.collect::<serde_json::Map<_, _>>(),
            }}),
            json!({ "id": "filterFieldsByName", "options": { "include": { "names": shown.collect::<Vec<_>>() } } }),
            json!({ "id": "sortBy", "options": { "fields": {}, "sort": [{ "field": column, "desc": down }] } }),
        ];
        if queries > 1 {
            steps.insert(0, json!({ "id": "merge", "options": {} }));
        }
        steps
    }
}

impl Limits {
    fn json(&self) -> Value {
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
    fn json(self, fields: &str) -> Value {
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

impl Dashboard {
    /// As Grafana imports it. `others` are the dashboards that it links to.
    pub(crate) fn json(&self, others: &[(&'static str, &'static str)]) -> Value {
        json!({
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["rocewatch", "roce"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": true,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": { "from": self.from, "to": "now" },
            "timezone": "browser",
            "links": others.iter().filter(|(uid, _)| *uid != self.uid).map(|(uid, title)| json!({
                "type": "link",
                "title": title,
                "url": format!("/d/{uid}"),
                "keepTime": true,
                "includeVars": true,
                "icon": "dashboard",
                "asDropdown": false,
                "targetBlank": false,
                "tags": [],
                "tooltip": "",
            })).collect::<Vec<_>>(),
            "annotations": { "list": self.annotations.iter().map(Annotation::json).collect::<Vec<_>>() },
            "templating": { "list": std::iter::once(datasource_variable()).chain(self.variables.iter().map(Variable::json)).collect::<Vec<_>>() },
            "panels": self.panels(),
        })
    }

    /// Panels stand beside each other for as long as there is room, rows below each other.
    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let mut y = 0;
        for row in &self.rows {
            let id = panels.len() + 1;
            panels.push(json!({
                "id": id, "type": "row", "title": row.title, "collapsed": false, "panels": [],
                "gridPos": { "x": 0, "y": y, "w": COLUMNS, "h": 1 },
            }));
            y += 1;
            let (mut x, mut height) = (0, 0);
            for panel in &row.panels {
                if x + panel.width > COLUMNS {
                    y += height;
                    (x, height) = (0, 0);
                }
                panels.push(panel.json(panels.len() + 1, x, y));
                x += panel.width;
                height = height.max(u16::from(panel.height));
            }
            y += height;
        }
        panels
    }
}

impl Annotation {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "datasource": datasource(),
            "enable": true,
            "hide": false,
            "iconColor": self.color,
            "expr": self.expr,
            "titleFormat": self.title,
            "textFormat": self.text,
            "tagKeys": "event,severity",
            "step": "",
        })
    }
}

/// An expression with the labels that the choices stand for: `@cluster`, `@node`, `@port`, `@priority`.
pub(crate) fn chosen(expr: &str) -> String {
    let expr = expr.replace("@priority", "@port,priority=~\"$priority\"");
    let expr = expr.replace("@port", "@node,device=~\"$device\"");
    let expr = expr.replace("@node", "@cluster,instance=~\"$node\"");
    expr.replace("@cluster", "cluster=~\"$cluster\"")
}

/// The name of the query at this place of a panel.
pub(crate) fn letter(at: usize) -> char {
    char::from(b'A' + u8::try_from(at).expect("a panel has few queries"))
}

fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn datasource_variable() -> Value {
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

fn mappings(texts: &[(&str, &str, &str)]) -> Vec<Value> {
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

fn set(object: &mut Value, key: &str, value: Value) {
    object[key] = value;
}

fn merge(object: &mut Value, other: Value) {
    if let Value::Object(other) = other {
        for (key, value) in other {
            object[key] = value;
        }
    }
}
