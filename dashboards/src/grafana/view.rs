//! How a panel is drawn.

use super::{Column, Limits, Order, merge, table};
use serde_json::{Value, json};

/// A share of nearly nothing is where "any" begins; a line for it would lie on the axis.
const LEAST_LINE: f64 = 1e-6;

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
    /// How many samples a second fell into each band of a share, from cumulative buckets.
    Heatmap,
    /// What state each series was in.
    Timeline,
    /// A table of these columns, ordered by one of them.
    Table(Vec<Column>, Order),
}

impl View {
    pub(super) fn plugin(&self) -> &'static str {
        match self {
            Self::Lines | Self::Bars => "timeseries",
            Self::Number => "stat",
            Self::Ranking => "bargauge",
            Self::Heatmap => "heatmap",
            Self::Timeline => "state-timeline",
            Self::Table(..) => "table",
        }
    }

    pub(super) fn color(&self) -> &'static str {
        match self {
            Self::Lines | Self::Bars => "palette-classic",
            _ => "thresholds",
        }
    }

    /// `few`: so few lines that the area below them can be filled.
    pub(super) fn drawing(&self, limits: Limits, few: bool) -> Value {
        let style = match self {
            Self::Lines => json!({ "drawStyle": "line", "fillOpacity": if few { 12 } else { 0 } }),
            Self::Bars => {
                json!({ "drawStyle": "bars", "fillOpacity": 70, "stacking": { "mode": "normal", "group": "A" } })
            }
            Self::Timeline => return json!({ "fillOpacity": 80, "lineWidth": 0 }),
            Self::Table(..) => {
                return json!({ "align": "auto", "cellOptions": { "type": "auto" }, "minWidth": 60, "filterable": false });
            }
            Self::Number | Self::Ranking | Self::Heatmap => return json!({}),
        };
        let lines = limits.first().is_some_and(|first| first > LEAST_LINE);
        let mut drawing = json!({
            "lineWidth": 1,
            "showPoints": "never",
            "spanNulls": false,
            "thresholdsStyle": { "mode": if lines { "dashed" } else { "off" } },
        });
        merge(&mut drawing, style);
        drawing
    }

    pub(super) fn options(&self) -> Value {
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
                "valueMode": "color", "namePlacement": "auto", "sizing": "manual", "minVizHeight": 12, "maxVizHeight": 28, "minVizWidth": 8,
            }),
            Self::Heatmap => json!({
                "calculate": false,
                "cellGap": 1,
                "color": { "mode": "scheme", "scheme": "Spectral", "steps": 64, "reverse": true, "exponent": 0.5, "fill": "dark-orange" },
                "filterValues": { "le": 1e-9 },
                "legend": { "show": true },
                "tooltip": { "mode": "single", "yHistogram": true, "show": true },
                "yAxis": { "axisPlacement": "left", "reverse": false, "unit": "percentunit" },
                "rowsFrame": { "layout": "auto" },
                "cellValues": { "unit": "cps" },
                "showValue": "never",
            }),
            Self::Timeline => json!({
                "mergeValues": true, "showValue": "never", "alignValue": "left", "rowHeight": 0.85, "legend": legend,
                "tooltip": { "mode": "single", "sort": "none" },
            }),
            Self::Table(_, order) => table::options(*order),
        }
    }
}
