//! What a ring carries: identifiers and a line about the item, never a field of a payload.
