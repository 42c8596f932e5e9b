//! The rules of delivery, each by its name.

mod window_model;
mod window_rules;
