//! What the dashboards ask.

use crate::grafana::{Dashboard, Scene};
use serde_json::Value;

/// Something that is drawn, and what it asks.
pub(crate) struct Drawn {
    pub(crate) place: String,
    pub(crate) questions: Vec<Question>,
    /// Whether it may be all zeros.
    pub(crate) quiet: bool,
}

/// Something to ask, and where it has to give something.
pub(crate) struct Question {
    pub(crate) expr: String,
    pub(crate) instant: bool,
    pub(crate) scene: Scene,
}

pub(crate) fn drawn(dashboard: &Dashboard) -> Vec<Drawn> {
    let marks = dashboard.annotations.iter().map(|mark| Drawn {
        place: format!("{}, {}", dashboard.uid, mark.name),
        questions: vec![Question {
            expr: mark.expr.clone(),
            instant: false,
            scene: mark.scene,
        }],
        quiet: false,
    });
    let panels = dashboard.rows.iter().flat_map(|row| &row.panels);
    let panels = panels.map(|panel| Drawn {
        place: format!("{}, {}", dashboard.uid, panel.title),
        questions: panel
            .queries
            .iter()
            .map(|query| Question {
                expr: query.expr.clone(),
                instant: query.instant,
                scene: query.scene.unwrap_or(panel.scene),
            })
            .collect(),
        quiet: panel.quiet,
    });
    marks.chain(panels).collect()
}

/// All numbers of an answer.
pub(crate) fn values(answer: &[Value]) -> impl Iterator<Item = f64> {
    let points = answer.iter().flat_map(|series| {
        let one = std::slice::from_ref(&series["value"]);
        series["values"].as_array().map_or(one, Vec::as_slice)
    });
    let numbers = points.filter_map(|point| point[1].as_str()?.parse().ok());
    numbers.filter(|number: &f64| number.is_finite())
}
