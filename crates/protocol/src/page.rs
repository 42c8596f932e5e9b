//! Pages of lists.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// Where the next page begins, to be passed as `cursor`; opaque. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, example = "YWdlbnRfYWxwaGE")]
    pub next_cursor: Option<String>,
}
