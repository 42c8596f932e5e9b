//! Values on their way from whoever counts to the exposition.

use std::collections::BTreeMap;

use super::Metric;

/// A distribution at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramSnapshot {
    /// The sum of all values.
    pub sum: f64,
    /// Upper bound and number of values in the bucket, not cumulative, ascending; the last bound is [`f64::INFINITY`] ([`f64::MAX`] is taken for it).
    pub buckets: Vec<(f64, u64)>,
}

impl HistogramSnapshot {
    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// Whoever counts something. Asked once per scrape; must not block.
pub trait MetricSource: Send + Sync + std::fmt::Debug {
    /// Adds its present values.
    fn collect(&self, samples: &mut Samples);
}

pub(crate) type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(HistogramSnapshot),
}

/// The values of one scrape.
#[derive(Debug, Default)]
pub struct Samples {
    pub(crate) families: BTreeMap<Metric, Vec<(Labels, Value)>>,
}

impl Samples {
    /// A counter's value. Labels: few, and with few values each.
    pub fn counter(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: u64) {
        self.add(metric, labels, Value::Counter(value));
    }

    /// A gauge's value.
    pub fn gauge(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: f64) {
        self.add(metric, labels, Value::Gauge(value));
    }

    /// A histogram's values.
    pub fn histogram(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: HistogramSnapshot) {
        self.add(metric, labels, Value::Histogram(value));
    }

    fn add(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.families.entry(metric).or_default().push((labels, value));
    }
}
