//! The rules that a dashboard holds to, as Grafana reads it.

use serde_json::Value;
use std::collections::BTreeSet;

/// Units of Grafana that are used; another is a mistake or belongs here.
const UNITS: [&str; 15] = [
    "none",
    "percentunit",
    "pps",
    "cps",
    "reqps",
    "bps",
    "bytes",
    "s",
    "celsius",
    "suffix:dBm",
    "amp",
    "volt",
    "sci",
    "dateTimeAsIso",
    "short",
];
/// What every dashboard lets choose, so that each link can carry it.
const CHOICES: [&str; 5] = ["datasource", "cluster", "node", "device", "priority"];

/// Where an expression stands, and the expression: of queries and of annotations.
pub(crate) fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let targets = panels(dashboard).flat_map(|panel| {
        list(&panel["targets"]).map(move |target| (text(&panel["title"]), text(&target["expr"])))
    });
    let marks =
        list(&dashboard["annotations"]["list"]).map(|mark| (text(&mark["name"]), text(&mark["expr"])));
    targets.chain(marks).collect()
}

/// What is wrong with it; `uids` are those of all dashboards.
pub(crate) fn faults(dashboard: &Value, uids: &[&str]) -> Vec<String> {
    let mut faults = Faults {
        at: text(&dashboard["uid"]),
        found: Vec::new(),
    };
    head(&mut faults, dashboard);
    choices(&mut faults, dashboard);
    links(&mut faults, dashboard, uids);
    for panel in panels(dashboard) {
        described(&mut faults, panel);
        queries(&mut faults, panel);
        panel_links(&mut faults, panel, uids);
    }
    layout(&mut faults, dashboard);
    faults.found
}

struct Faults {
    at: String,
    found: Vec<String>,
}

impl Faults {
    fn unless(&mut self, holds: bool, place: &str, rule: &str) {
        if !holds {
            self.found.push(format!("{}, {place}: {rule}", self.at));
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All but the rows.
fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    list(&dashboard["panels"]).filter(|panel| panel["type"] != "row")
}

fn head(faults: &mut Faults, dashboard: &Value) {
    let uid = text(&dashboard["uid"]);
    faults.unless(uid.starts_with("rocewatch-"), "uid", "begins with rocewatch-");
    faults.unless(dashboard["id"].is_null(), "id", "Grafana gives it");
    faults.unless(!text(&dashboard["title"]).is_empty(), "title", "is missing");
    faults.unless(
        !text(&dashboard["description"]).is_empty(),
        "description",
        "is missing",
    );
    faults.unless(
        dashboard["schemaVersion"] == 39,
        "schemaVersion",
        "is that of Grafana 10.4",
    );
    faults.unless(
        list(&dashboard["annotations"]["list"]).count() > 0,
        "annotations",
        "events are marked",
    );
}

fn choices(faults: &mut Faults, dashboard: &Value) {
    let names: Vec<_> = list(&dashboard["templating"]["list"])
        .map(|choice| text(&choice["name"]))
        .collect();
    for name in CHOICES {
        faults.unless(names.iter().any(|found| found == name), name, "is not a variable");
    }
    let used = dashboard.to_string();
    for choice in list(&dashboard["templating"]["list"]) {
        let name = text(&choice["name"]);
        faults.unless(!text(&choice["label"]).is_empty(), &name, "has no label");
        faults.unless(
            !text(&choice["description"]).is_empty(),
            &name,
            "has no description",
        );
        let carried = choice["hide"] == 2;
        let narrows = used.contains(&format!("${name}\\\""))
            || used.contains(&format!("${name}\""))
            || used.contains(&format!("${{{name}"))
            || used.contains(&format!("${name}]"));
        faults.unless(carried || narrows, &name, "is shown and narrows nothing");
        if choice["type"] == "query" {
            faults.unless(
                choice["datasource"]["uid"] == "${datasource}",
                &name,
                "asks a fixed data source",
            );
            faults.unless(choice["refresh"] == 2, &name, "does not follow the shown time");
        }
        if name == "cluster" {
            faults.unless(
                choice["allValue"] == ".*",
                &name,
                "must hold where there is no label cluster",
            );
        }
    }
}

fn links(faults: &mut Faults, dashboard: &Value, uids: &[&str]) {
    let to: BTreeSet<_> = list(&dashboard["links"])
        .inspect(|link| {
            let url = text(&link["url"]);
            faults.unless(link["keepTime"] == true, &url, "the link drops the time");
            faults.unless(link["includeVars"] == true, &url, "the link drops what is chosen");
        })
        .map(|link| text(&link["url"]))
        .collect();
    for uid in uids.iter().filter(|uid| dashboard["uid"] != **uid) {
        faults.unless(to.contains(&format!("/d/{uid}")), uid, "is not linked");
    }
}

fn described(faults: &mut Faults, panel: &Value) {
    let title = text(&panel["title"]);
    let defaults = &panel["fieldConfig"]["defaults"];
    faults.unless(!title.is_empty(), &panel["id"].to_string(), "has no title");
    faults.unless(
        text(&panel["description"]).len() > 15,
        &title,
        "has no description",
    );
    faults.unless(
        UNITS.contains(&text(&defaults["unit"]).as_str()),
        &title,
        "has no unit",
    );
    faults.unless(
        list(&defaults["thresholds"]["steps"])
            .next()
            .is_some_and(|step| step["value"].is_null()),
        &title,
        "has no thresholds",
    );
    faults.unless(
        panel["datasource"]["uid"] == "${datasource}",
        &title,
        "asks a fixed data source",
    );
    if panel["type"] == "timeseries" {
        faults.unless(
            panel["options"]["legend"]["showLegend"] == true,
            &title,
            "has no legend",
        );
    }
    if panel["type"] == "table" {
        let shown = list(&panel["fieldConfig"]["overrides"]).count();
        faults.unless(shown > 0, &title, "has no columns");
    }
}

fn queries(faults: &mut Faults, panel: &Value) {
    let title = text(&panel["title"]);
    let mut letters = BTreeSet::new();
    faults.unless(list(&panel["targets"]).count() > 0, &title, "asks nothing");
    for target in list(&panel["targets"]) {
        let expr = text(&target["expr"]);
        faults.unless(
            letters.insert(text(&target["refId"])),
            &title,
            "two queries have one letter",
        );
        faults.unless(
            target["datasource"]["uid"] == "${datasource}",
            &title,
            "asks a fixed data source",
        );
        faults.unless(
            !text(&target["legendFormat"]).is_empty(),
            &title,
            "a query has no legend",
        );
        faults.unless(
            expr.contains("cluster=~\"$cluster\""),
            &title,
            "does not narrow by cluster",
        );
        faults.unless(
            !expr.contains('@') || expr.contains(" @ "),
            &title,
            "has a placeholder left",
        );
        for fixed in ["instance=\"", "job=\"", "device=\"", "cluster=\"", "priority=\""] {
            faults.unless(
                !expr.contains(fixed),
                &title,
                "names something that is another elsewhere",
            );
        }
        let ranged = target["range"] == true;
        let over_time = expr.contains("rate(") && !expr.contains("[$");
        faults.unless(!over_time, &title, "takes a rate over a fixed time");
        faults.unless(
            ranged != (target["instant"] == true),
            &title,
            "is either a course or a moment",
        );
    }
}

fn panel_links(faults: &mut Faults, panel: &Value, uids: &[&str]) {
    let defaults = list(&panel["fieldConfig"]["defaults"]["links"]);
    let columns = list(&panel["fieldConfig"]["overrides"])
        .flat_map(|one| list(&one["properties"]))
        .filter(|property| property["id"] == "links")
        .flat_map(|property| list(&property["value"]));
    for link in defaults.chain(columns) {
        let url = text(&link["url"]);
        faults.unless(
            uids.iter().any(|uid| url.starts_with(&format!("/d/{uid}?"))),
            &url,
            "goes to no dashboard",
        );
        faults.unless(url.contains("${__url_time_range}"), &url, "drops the time");
        for name in CHOICES {
            let carried =
                url.contains(&format!("${{{name}:queryparam}}")) || url.contains(&format!("&var-{name}="));
            faults.unless(carried, &url, &format!("drops {name}"));
        }
    }
}

/// Nothing lies on anything else, or beside the grid.
fn layout(faults: &mut Faults, dashboard: &Value) {
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in list(&dashboard["panels"]) {
        let title = text(&panel["title"]);
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap_or_default();
        faults.unless(ids.insert(panel["id"].as_u64()), &title, "two panels have one id");
        faults.unless(side("x") + side("w") <= 24, &title, "is beside the grid");
        let cells = (side("x")..side("x") + side("w"))
            .flat_map(|x| (side("y")..side("y") + side("h")).map(move |y| (x, y)));
        let crowded = cells.filter(|cell| !taken.insert(*cell)).count();
        faults.unless(crowded == 0, &title, "lies on another");
    }
}
