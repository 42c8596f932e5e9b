//! The exposition: OpenMetrics text, as Prometheus reads it.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::sample::Value;
use super::{Metric, MetricKind, MetricSource, Samples};

/// The media type of the exposition.
pub(crate) const EXPOSITION_MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The present values of all sources as text.
pub(crate) fn render<'a>(sources: impl IntoIterator<Item = &'a dyn MetricSource>) -> Result<String, fmt::Error> {
    let mut samples = Samples::default();
    for source in sources {
        source.collect(&mut samples);
    }
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(samples)));
    let mut out = String::with_capacity(16 * 1024);
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Scrape(Samples);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (metric, values) in &self.0.families {
            let help = metric.help().trim_end_matches('.');
            let mut family = encoder.encode_descriptor(metric.name(), help, None, metric_type(*metric))?;
            for (labels, value) in values {
                encode(family.encode_family(&labels.as_slice())?, value)?;
            }
        }
        Ok(())
    }
}

const fn metric_type(metric: Metric) -> MetricType {
    match metric.kind() {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
    }
}

fn encode(mut encoder: MetricEncoder<'_>, value: &Value) -> Result<(), fmt::Error> {
    match value {
        Value::Counter(value) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        Value::Gauge(value) => encoder.encode_gauge(value),
        Value::Histogram(histogram) => {
            let unbounded = |(bound, count): &(f64, u64)| (if *bound >= f64::MAX { f64::INFINITY } else { *bound }, *count);
            let buckets: Vec<_> = histogram.buckets.iter().map(unbounded).collect();
            encoder.encode_histogram::<NoLabelSet>(histogram.sum, histogram.count(), &buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::{Method, StatusCode};

    use super::render;
    use crate::metrics::HttpMetrics;

    #[test]
    fn the_exposition_has_one_family_per_metric_and_bounded_labels() {
        let metrics = HttpMetrics::new();
        metrics.answered(&Method::POST, "/v1/events", StatusCode::CREATED, Duration::from_millis(3));
        metrics.answered(&Method::POST, "/v1/whatever/somebody/sends", StatusCode::NOT_FOUND, Duration::from_millis(1));
        let text = render([&metrics as _]).unwrap();
        assert!(text.contains("# TYPE doorstep_http_requests counter\n"), "{text}");
        assert!(text.contains(r#"doorstep_http_requests_total{method="POST",route="/v1/events",status="2xx"} 1"#), "{text}");
        assert!(text.contains(r#"doorstep_http_requests_total{method="POST",route="none",status="4xx"} 1"#), "{text}");
        assert!(text.contains(r#"doorstep_http_request_seconds_bucket{le="0.005",method="POST",route="/v1/events"} 1"#), "{text}");
        assert!(text.contains(r#"le="+Inf""#), "{text}");
        assert!(!text.contains("somebody"), "{text}");
        assert_eq!(text.matches("# TYPE doorstep_http_requests ").count(), 1);
        assert!(text.ends_with("# EOF\n"));
    }
}
