//! Pages of lists.

use protocol::Page;
use reqwest::Method;
use serde::de::DeserializeOwned;

use crate::transport::{Call, Transport};
use crate::{Client, ClientError};

/// Which page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// The `next_cursor` of the page before; `None` for the first page.
    pub cursor: Option<String>,
    /// The most items; `None` leaves it to the server, which also caps it.
    pub limit: Option<u32>,
}

impl PageRequest {
    pub(super) fn apply(&self, call: Call) -> Call {
        call.query("cursor", self.cursor.as_ref()).query("limit", self.limit)
    }
}

pub(super) async fn page<T: DeserializeOwned>(transport: &Transport, path: &[&str], page: &PageRequest) -> Result<Page<T>, ClientError> {
    transport.answer(page.apply(transport.call(Method::GET, path))).await
}

impl Client {
    /// Reads every page of a list: `fetch` reads one. Meant for lists that people look at, which fit in memory.
    ///
    /// # Errors
    /// The first error of `fetch`.
    pub async fn all_pages<T, F: Future<Output = Result<Page<T>, ClientError>>>(
        &self,
        mut fetch: impl FnMut(PageRequest) -> F,
    ) -> Result<Vec<T>, ClientError> {
        let mut items = Vec::new();
        let mut request = PageRequest::default();
        loop {
            let page = fetch(request).await?;
            items.extend(page.items);
            match page.next_cursor {
                Some(cursor) => request = PageRequest { cursor: Some(cursor), limit: None },
                None => return Ok(items),
            }
        }
    }
}
