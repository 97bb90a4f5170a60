//! What happens in the process, counted by the `prometheus` crate. Each series has its line written in advance: the crate's
//! own vectors, registry and encoder make all names anew for each scrape.

use super::number::Number;
use super::text::{self, Format, Headers};
use prometheus::{Gauge, IntCounter, IntGauge};
use std::sync::{Arc, PoisonError, RwLock};

/// All series of one family, by the values of its labels.
pub(crate) struct Counted<M>(Arc<All<M>>);

struct All<M> {
    family: &'static catalog::Family,
    name: String,
    headers: Headers,
    /// In the order of their values.
    series: RwLock<Vec<Series<M>>>,
}

struct Series<M> {
    values: Vec<String>,
    prefix: String,
    metric: M,
}

/// A kind of metric of the `prometheus` crate.
pub(crate) trait Metric: Clone + Send + Sync + 'static {
    /// One that is at zero.
    ///
    /// # Errors
    /// If the name is none.
    fn new(name: &str, help: &str) -> prometheus::Result<Self>;

    /// Its value now.
    fn number(&self) -> Number;
}

impl Metric for IntCounter {
    fn new(name: &str, help: &str) -> prometheus::Result<Self> {
        Self::new(name, help)
    }

    fn number(&self) -> Number {
        Number::count(self.get())
    }
}

impl Metric for IntGauge {
    fn new(name: &str, help: &str) -> prometheus::Result<Self> {
        Self::new(name, help)
    }

    fn number(&self) -> Number {
        Number::Float(self.get() as f64)
    }
}

impl Metric for Gauge {
    fn new(name: &str, help: &str) -> prometheus::Result<Self> {
        Self::new(name, help)
    }

    fn number(&self) -> Number {
        Number::Float(self.get())
    }
}

impl<M: Metric> Counted<M> {
    /// The family of this name of the catalogue, without a series yet.
    pub(crate) fn new(name: &str) -> Self {
        let family = catalog::family(name).expect("the catalogue has what is counted");
        Self(Arc::new(All {
            family,
            name: format!("{}{name}", text::PREFIX),
            headers: Headers::of(family),
            series: RwLock::default(),
        }))
    }

    /// The series with these values, in the order of the catalogue's labels. It is shown from now on.
    pub(crate) fn with(&self, values: &[&str]) -> M {
        let All { series, .. } = &*self.0;
        let known = series.read().unwrap_or_else(PoisonError::into_inner);
        if let Ok(at) = find(&known, values) {
            return known[at].metric.clone();
        }
        drop(known);
        let mut known = series.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been quicker.
        let at = find(&known, values).unwrap_or_else(|at| {
            known.insert(at, self.0.begin(values));
            at
        });
        known[at].metric.clone()
    }
}

fn find<M>(known: &[Series<M>], values: &[&str]) -> Result<usize, usize> {
    known.binary_search_by(|series| {
        series
            .values
            .iter()
            .map(String::as_str)
            .cmp(values.iter().copied())
    })
}

impl<M: Metric> All<M> {
    fn begin(&self, values: &[&str]) -> Series<M> {
        let labels = self.family.labels.iter().copied().zip(values.iter().copied());
        let mut prefix = String::new();
        text::prefix(&self.name, text::suffix(self.family.kind), labels, &mut prefix);
        Series {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            prefix,
            metric: M::new(&self.name, self.family.help).expect("the catalogue's names are valid"),
        }
    }
}

impl<M> Clone for Counted<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A family as an exposition sees it.
pub(crate) trait Shown: Send + Sync {
    /// Its name in the catalogue.
    fn name(&self) -> &'static str;

    /// Its series in the order of their labels; nothing if there are none yet.
    fn write(&self, format: Format, out: &mut String);
}

impl<M: Metric> Shown for Counted<M> {
    fn name(&self) -> &'static str {
        self.0.family.name
    }

    fn write(&self, format: Format, out: &mut String) {
        let all = self.0.series.read().unwrap_or_else(PoisonError::into_inner);
        if !all.is_empty() {
            out.push_str(self.0.headers.of_format(format));
        }
        for series in &*all {
            out.push_str(&series.prefix);
            series.metric.number().write(out);
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_one_however_often_it_is_asked_for_and_they_come_in_order() {
        let requests = Counted::<IntCounter>::new("http_requests");
        let text = |counted: &Counted<IntCounter>| {
            let mut out = String::new();
            counted.write(Format::Text, &mut out);
            out
        };
        assert_eq!(text(&requests), "");
        requests.with(&["/readyz", "503"]).inc();
        requests.with(&["/metrics", "200"]).inc();
        requests.clone().with(&["/readyz", "503"]).inc();
        assert_eq!(
            text(&requests).lines().skip(2).collect::<Vec<_>>(),
            [
                "rocewatch_http_requests_total{path=\"/metrics\",status=\"200\"} 1",
                "rocewatch_http_requests_total{path=\"/readyz\",status=\"503\"} 2",
            ]
        );
    }

    #[test]
    fn gauges_have_no_suffix_and_may_fall() {
        let waiting = Counted::<IntGauge>::new("push_waiting");
        waiting.with(&["webhook", "a \"b\""]).set(7);
        waiting.with(&["webhook", "a \"b\""]).set(-2);
        let mut out = String::new();
        waiting.write(Format::Text, &mut out);
        assert!(
            out.ends_with("\nrocewatch_push_waiting{to=\"webhook\",receiver=\"a \\\"b\\\"\"} -2\n"),
            "{out}"
        );
    }
}
