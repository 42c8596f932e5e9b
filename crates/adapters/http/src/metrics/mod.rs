//! What `/metrics` shows: every name in one enum, values from the counters of whoever does the work.
//!
//! Label sets are bounded: routes, methods, status classes, codes and reasons; never a principal, and tenants only where the source bounds how many.

mod histogram;
mod http;
mod metric;
mod render;
mod sample;

pub use histogram::Histogram;
pub use http::HttpMetrics;
pub use metric::{Metric, MetricKind};
pub use sample::{HistogramSnapshot, MetricSource, Samples};

pub(crate) use render::{EXPOSITION_MEDIA_TYPE, render};
