//! How a configuration is declared: each key once, with its type, its default and its documentation.

use super::value::Raw;

/// One key, as the reference and the suggestions need it.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// `section.key`.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// What a value looks like.
    pub(crate) expected: &'static str,
    /// The default, as it would be written.
    pub(crate) default: String,
}

/// Why a value was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetError {
    /// There is no such key.
    UnknownKey,
    /// The value is not of the key's kind; says what is expected.
    Expected(&'static str),
}

/// A configuration that can be filled key by key.
pub(crate) trait Schema: Default {
    /// Every key with its default.
    fn keys() -> Vec<Key>;
    /// Sections with their documentation, in order.
    fn sections() -> Vec<(&'static str, &'static str)>;
    /// Sets one key.
    fn set(&mut self, name: &str, raw: &Raw) -> Result<(), SetError>;
    /// The present value of every key, in the order of [`Schema::keys`].
    fn values(&self) -> Vec<(&'static str, String)>;
}

/// Declares the configuration: sections, keys, types, defaults and documentation in one place.
macro_rules! configuration {
    ($(#[$meta:meta])* $config:ident {
        $( $(#[doc = $section_doc:literal])+ $section:ident: $section_type:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr; )*
        } )*
    }) => {
        $(
            $(#[doc = $section_doc])+
            #[derive(Debug, Clone)]
            #[allow(clippy::struct_field_names, clippy::allow_attributes, reason = "fields are named as their keys, which share words in some sections")]
            pub(crate) struct $section_type { $( $(#[doc = $doc])+ pub(crate) $key: $type, )* }

            impl Default for $section_type {
                fn default() -> Self {
                    Self { $( $key: $default, )* }
                }
            }
        )*

        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $config { $( $(#[doc = $section_doc])+ pub(crate) $section: $section_type, )* }

        impl $crate::config::schema::Schema for $config {
            fn keys() -> Vec<$crate::config::schema::Key> {
                let defaults = Self::default();
                vec![ $( $( $crate::config::schema::Key {
                    name: concat!(stringify!($section), ".", stringify!($key)),
                    doc: concat!($($doc, "\n"),+).trim(),
                    expected: <$type as $crate::config::value::Value>::EXPECTED,
                    default: $crate::config::value::Value::show(&defaults.$section.$key),
                }, )* )* ]
            }

            fn sections() -> Vec<(&'static str, &'static str)> {
                vec![ $( (stringify!($section), concat!($($section_doc, "\n"),+).trim()), )* ]
            }

            fn set(&mut self, name: &str, raw: &$crate::config::value::Raw) -> Result<(), $crate::config::schema::SetError> {
                use $crate::config::{schema::SetError, value::Value};
                $( $( if name == concat!(stringify!($section), ".", stringify!($key)) {
                    self.$section.$key = <$type as Value>::from_raw(raw).ok_or(SetError::Expected(<$type as Value>::EXPECTED))?;
                    return Ok(());
                } )* )*
                Err(SetError::UnknownKey)
            }

            fn values(&self) -> Vec<(&'static str, String)> {
                vec![ $( $( (
                    concat!(stringify!($section), ".", stringify!($key)),
                    $crate::config::value::Value::show(&self.$section.$key),
                ), )* )* ]
            }
        }
    };
}

pub(crate) use configuration;
