//! Who makes a request.

use authz::Caller;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::refusal::{Refusal, unauthenticated};
use crate::services::ApiState;

/// The caller of an operation that is not public.
#[derive(Debug)]
pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<ApiState> for Authenticated {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Refusal> {
        let token = bearer(&parts.headers)?.ok_or_else(unauthenticated)?;
        Ok(Self(state.authorizer.authenticate(token).await?))
    }
}

/// The token of `Authorization: Bearer`; `None` without the header.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(unauthenticated());
    }
    let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(unauthenticated)?;
    let token = token.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() { Ok(Some(token)) } else { Err(unauthenticated()) }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::bearer;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(bearer(&headers(&[value])).unwrap(), Some("abc"), "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn other_schemes_and_two_credentials_are_refused() {
        for values in [&["Basic abc"][..], &["Bearer"], &["Bearer "], &["abc"], &["Bearer a", "Bearer b"]] {
            assert!(bearer(&headers(values)).is_err(), "{values:?}");
        }
    }
}
