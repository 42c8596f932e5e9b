//! REST, SSE and the gateway's WebSocket transport.
//!
//! Architecture invariant: this crate maps. It reads requests strictly, hands them to a use case of the core, and writes answers and problems.
//! It decides nothing that another transport would have to decide again, and knows no store.

mod documents;
mod metrics;
mod refusal;
mod request;
mod router;
mod routes;
mod server;
mod services;
mod settings;
mod websocket;

pub use documents::{asyncapi, openapi, openapi_document};
pub use metrics::{Histogram, HistogramSnapshot, HttpMetrics, Metric, MetricKind, MetricSource, Samples};
pub use router::router;
pub use server::{Listening, serve};
pub use services::{Backup, BackupError, NotReady, Readiness, Services};
pub use settings::Settings;
