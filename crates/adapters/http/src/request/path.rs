//! Names in paths.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use domain::InvalidId;

use crate::refusal::Refusal;

/// The names that a route's path holds, not yet judged.
#[derive(Debug)]
pub(crate) struct PathNames(RawPathParams);

impl PathNames {
    /// The name at `{parameter}`, in its own form.
    pub(crate) fn name<T: FromStr<Err = InvalidId>>(&self, parameter: &'static str) -> Result<T, Refusal> {
        let text = self.0.iter().find(|(name, _)| *name == parameter).map_or("", |(_, value)| value);
        text.parse().map_err(|invalid: InvalidId| Refusal::invalid(format!("#path/{parameter}"), invalid.expectation))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathNames {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let refuse = |_| Refusal::invalid("#path", "the path is not UTF-8");
        RawPathParams::from_request_parts(parts, state).await.map(Self).map_err(refuse)
    }
}
