//! The headers of a request, as far as signatures are concerned.

use super::WebhookRejection;

/// Names and values of a request's headers. Names are compared without regard to case; values that are no text are left out.
#[derive(Clone, Debug, Default)]
pub struct WebhookHeaders<'a>(Vec<(&'a str, &'a str)>);

impl<'a> FromIterator<(&'a str, &'a str)> for WebhookHeaders<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(headers: T) -> Self {
        Self(headers.into_iter().collect())
    }
}

impl<'a> WebhookHeaders<'a> {
    /// The value of a header that has to be there, once: of two it would be unclear which was signed.
    pub(super) fn one(&self, name: &'static str) -> Result<&'a str, WebhookRejection> {
        let mut values = self.0.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
        let value = values.next().ok_or(WebhookRejection::Missing(name))?;
        if values.next().is_some() { Err(WebhookRejection::Malformed(name)) } else { Ok(value) }
    }

    /// Whether a header is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(found, _)| found.eq_ignore_ascii_case(name))
    }
}
