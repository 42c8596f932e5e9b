//! What the HTTP interface counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};

use super::{Histogram, Metric, MetricSource, Samples};

/// Counters of requests and connections. The routes are known from the start, so counting takes no lock.
#[derive(Debug, Default)]
pub struct HttpMetrics {
    routes: HashMap<String, Route>,
    /// Requests that no route matched.
    unmatched: Route,
    connections: AtomicU64,
    refused: AtomicU64,
    waited_events: AtomicU64,
    waited_timeout: AtomicU64,
    commits: Histogram,
}

const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// `1xx` to `5xx`.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// One slot per method, and one for the others.
#[derive(Debug, Default)]
struct Route {
    methods: [Operation; METHODS.len() + 1],
}

#[derive(Debug, Default)]
struct Operation {
    classes: [AtomicU64; CLASSES.len()],
    latency: Histogram,
}

impl HttpMetrics {
    /// Counters for every route of the API.
    pub fn new() -> Self {
        let routes = crate::documents::route_templates();
        Self { routes: routes.into_iter().map(|route| (route, Route::default())).collect(), ..Self::default() }
    }

    pub(crate) fn answered(&self, method: &Method, route: &str, status: StatusCode, elapsed: Duration) {
        let route = self.routes.get(route).unwrap_or(&self.unmatched);
        let slot = METHODS.iter().position(|known| known == method).unwrap_or(METHODS.len());
        let Some(operation) = route.methods.get(slot) else { return };
        if let Some(class) = operation.classes.get(usize::from(status.as_u16() / 100).saturating_sub(1)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        operation.latency.observe(elapsed);
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn committed(&self, elapsed: Duration) {
        self.commits.observe(elapsed);
    }

    pub(crate) fn waited(&self, with_events: bool) {
        let counter = if with_events { &self.waited_events } else { &self.waited_timeout };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl MetricSource for HttpMetrics {
    fn collect(&self, samples: &mut Samples) {
        let mut routes: Vec<_> = self.routes.iter().map(|(name, route)| (name.as_str(), route)).collect();
        routes.sort_by_key(|(name, _)| *name);
        for (name, route) in routes.into_iter().chain([("none", &self.unmatched)]) {
            route.collect(name, samples);
        }
        samples.gauge(Metric::HttpConnections, &[], self.connections.load(Ordering::Relaxed) as f64);
        samples.counter(Metric::HttpConnectionsRefused, &[], self.refused.load(Ordering::Relaxed));
        samples.histogram(Metric::PublishCommitSeconds, &[], self.commits.snapshot());
        samples.counter(Metric::LongPolls, &[("outcome", "events")], self.waited_events.load(Ordering::Relaxed));
        samples.counter(Metric::LongPolls, &[("outcome", "timeout")], self.waited_timeout.load(Ordering::Relaxed));
    }
}

impl Route {
    fn collect(&self, route: &str, samples: &mut Samples) {
        let names = METHODS.iter().map(Method::as_str).chain(["other"]);
        for (method, operation) in names.zip(&self.methods) {
            let latency = operation.latency.snapshot();
            if latency.count() == 0 {
                continue;
            }
            for (class, counter) in CLASSES.iter().zip(&operation.classes) {
                let count = counter.load(Ordering::Relaxed);
                if count > 0 {
                    samples.counter(Metric::HttpRequests, &[("method", method), ("route", route), ("status", class)], count);
                }
            }
            samples.histogram(Metric::HttpRequestSeconds, &[("method", method), ("route", route)], latency);
        }
    }
}
