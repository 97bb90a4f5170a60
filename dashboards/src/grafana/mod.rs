//! A dashboard as it is described, and as Grafana reads it (classic JSON, schema 39: Grafana 10.4 and later).

mod field;
mod panel;
mod table;
mod variable;
mod view;

pub(crate) use field::{Limits, Link, Texts};
pub(crate) use panel::{DBM, Panel};
pub(crate) use table::{Column, Order};
pub(crate) use variable::{Choice, Variable};
pub(crate) use view::View;

use serde_json::{Value, json};
use variable::datasource_variable;

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

/// Marks on the time axis of every panel.
#[derive(Debug)]
pub(crate) struct Annotation {
    pub(crate) name: &'static str,
    pub(crate) color: &'static str,
    /// Whether it is shown without being asked for.
    pub(crate) shown: bool,
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
            "enable": self.shown,
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
