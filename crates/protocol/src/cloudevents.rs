//! CloudEvents 1.0 in JSON (structured and batched), mapped onto events of ours.
//!
//! | CloudEvents | here |
//! |---|---|
//! | `type` | `type`, in lower case |
//! | `source` | `source` |
//! | `source` and `id` | `deduplication_key`: `ce:<source>:<id>` |
//! | `subject`, `time`, `dataschema`, `datacontenttype` | `correlation`, under the same names (`application/json` goes without saying) |
//! | `data` | `payload`; what is no object is put under `data` in one |
//! | `data_base64` | `payload`, under the same name |
//! | extension `channel` | `channel` |
//! | extension `audience` | `audience`, separated by commas |
//! | other extensions | `correlation`, under the same names |

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::{ChannelRef, DeduplicationKey, EventType, PrincipalId, Timestamp};
use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::body::{diagnose, push_segment, utf8};
use crate::parse::{check_count, check_event};
use crate::payload::check_payload;
use crate::{Correlation, EventInput, InvalidBody, Label, PublishLimits};

/// How many events a CloudEvents body holds, which its media type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudEventsMode {
    /// `application/cloudevents+json`: one.
    Structured,
    /// `application/cloudevents-batch+json`: an array.
    Batch,
}

impl CloudEventsMode {
    /// The media type of one event.
    pub const STRUCTURED_MEDIA_TYPE: &'static str = "application/cloudevents+json";
    /// The media type of several events.
    pub const BATCH_MEDIA_TYPE: &'static str = "application/cloudevents-batch+json";

    /// The mode of a media type without parameters, compared without regard to case.
    pub fn of_media_type(essence: &str) -> Option<Self> {
        if essence.eq_ignore_ascii_case(Self::STRUCTURED_MEDIA_TYPE) {
            return Some(Self::Structured);
        }
        essence.eq_ignore_ascii_case(Self::BATCH_MEDIA_TYPE).then_some(Self::Batch)
    }
}

/// Reads CloudEvents as a publish request.
///
/// # Errors
/// What is wrong first, with a pointer into the CloudEvents body, such as `/3/type`.
pub fn parse_cloudevents(bytes: &[u8], mode: CloudEventsMode, limits: &PublishLimits) -> Result<Vec<EventInput>, InvalidBody> {
    let text = utf8(bytes)?;
    match mode {
        CloudEventsMode::Structured => {
            let attributes = read_attributes(text, "")?;
            Ok(vec![map_event(attributes, limits, "")?])
        }
        CloudEventsMode::Batch => {
            let elements = read_batch(text)?;
            check_count(elements.len(), limits, "")?;
            let mapped = elements.into_iter().enumerate().map(|(index, element)| {
                let place = format!("/{index}");
                map_event(read_attributes(element.get(), &place)?, limits, &place)
            });
            mapped.collect()
        }
    }
}

/// The members of one CloudEvent, in their texts.
struct Attributes(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Attributes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a CloudEvent object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attributes, A::Error> {
                let mut members = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value::<Box<RawValue>>()?;
                    if members.contains_key(&name) {
                        return Err(serde::de::Error::custom(format_args!("duplicate member `{name}`")));
                    }
                    members.insert(name, value);
                }
                Ok(Attributes(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// The elements of a batch, in their texts.
struct Elements(Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array;

        impl<'de> Visitor<'de> for Array {
            type Value = Elements;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of CloudEvents")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Elements, A::Error> {
                let mut read = Vec::new();
                while let Some(element) = elements.next_element()? {
                    read.push(element);
                }
                Ok(Elements(read))
            }
        }

        deserializer.deserialize_seq(Array)
    }
}

fn read_attributes(text: &str, place: &str) -> Result<BTreeMap<String, Box<RawValue>>, InvalidBody> {
    match serde_json::from_str::<Attributes>(text) {
        Ok(Attributes(members)) => Ok(members),
        Err(_) => match diagnose::<Attributes>(text) {
            Ok(Attributes(members)) => Ok(members),
            Err(fault) => Err(fault.under(place)),
        },
    }
}

fn read_batch(text: &str) -> Result<Vec<Box<RawValue>>, InvalidBody> {
    serde_json::from_str::<Elements>(text).map(|Elements(read)| read).map_err(|error| {
        let whole = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        InvalidBody::new("", if whole { "an array of CloudEvents".to_owned() } else { format!("not JSON: {error}") })
    })
}

/// One CloudEvent on its way: what is taken from it is gone, so that the rest are extensions.
struct Source<'a> {
    members: BTreeMap<String, Box<RawValue>>,
    place: &'a str,
}

impl Source<'_> {
    fn fault(&self, name: &str, detail: impl Into<String>) -> InvalidBody {
        let mut pointer = self.place.to_owned();
        push_segment(&mut pointer, name);
        InvalidBody::new(pointer, detail)
    }

    /// A member that is given; `null` stands for none (CloudEvents JSON format, section 2.2).
    fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.members.remove(name).filter(|value| value.get() != "null")
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, InvalidBody> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match serde_json::from_str::<String>(value.get()) {
            Ok(text) if !text.is_empty() => Ok(Some(text)),
            _ => Err(self.fault(name, "a text that is not empty")),
        }
    }

    fn required(&mut self, name: &str) -> Result<String, InvalidBody> {
        self.text(name)?.ok_or_else(|| self.fault(name, format!("missing attribute `{name}`")))
    }
}

fn map_event(members: BTreeMap<String, Box<RawValue>>, limits: &PublishLimits, place: &str) -> Result<EventInput, InvalidBody> {
    let mut source = Source { members, place };
    if source.required("specversion")? != "1.0" {
        return Err(source.fault("specversion", "CloudEvents 1.0 is spoken"));
    }
    let event_type = source.required("type")?.to_lowercase();
    let event_type = EventType::parse(&event_type).map_err(|error| source.fault("type", error.to_string()))?;
    let (origin, id) = (source.required("source")?, source.required("id")?);
    let mut event = EventInput::new(event_type);
    event.deduplication_key = Some(deduplication_key(&origin, &id).map_err(|detail| source.fault("id", detail))?);
    event.source = Some(Label::parse(origin).map_err(|detail| source.fault("source", detail))?);
    if let Some(channel) = source.text("channel")? {
        event.channel = Some(ChannelRef::parse(&channel).map_err(|error| source.fault("channel", error.to_string()))?);
    }
    if let Some(audience) = source.text("audience")? {
        let principals: Result<Vec<_>, _> = audience.split(',').map(|name| PrincipalId::parse(name.trim())).collect();
        event.audience = Some(principals.map_err(|error| source.fault("audience", error.to_string()))?);
    }
    event.payload = payload(&mut source, limits)?;
    event.correlation = correlation(&mut source)?;
    check_event(&event, limits, || place.to_owned()).map_err(|fault| told_of_cloudevent(fault, place))?;
    Ok(event)
}

/// The correlation and the payload have no place of their own in a CloudEvent: their parts are attributes.
fn told_of_cloudevent(mut fault: InvalidBody, place: &str) -> InvalidBody {
    let rest = fault.pointer.strip_prefix(place).unwrap_or_default();
    if let Some(attribute) = rest.strip_prefix("/correlation") {
        fault.pointer = format!("{place}{attribute}");
    }
    fault
}

/// `ce:<source>:<id>`, with `:` and `%` of the id escaped so that no two pairs share a key; the digest of that when it is too long or holds
/// what a key must not.
fn deduplication_key(source: &str, id: &str) -> Result<DeduplicationKey, String> {
    let plain = format!("ce:{source}:{}", id.replace('%', "%25").replace(':', "%3A"));
    DeduplicationKey::parse(&plain).or_else(|_| {
        let digest = ring::digest::digest(&ring::digest::SHA256, plain.as_bytes());
        let mut key = "ce:sha256:".to_owned();
        for byte in digest.as_ref() {
            let _ = write!(key, "{byte:02x}");
        }
        DeduplicationKey::parse(&key).map_err(|error| error.to_string())
    })
}

fn payload(source: &mut Source<'_>, limits: &PublishLimits) -> Result<Option<Box<RawValue>>, InvalidBody> {
    let (data, encoded) = (source.take("data"), source.take("data_base64"));
    let (name, value) = match (data, encoded) {
        (Some(_), Some(_)) => return Err(source.fault("data_base64", "`data` and `data_base64` exclude each other")),
        (None, None) => return Ok(None),
        (Some(data), None) if data.get().starts_with('{') => {
            check_payload(&data, limits, || format!("{}/data", source.place))?;
            return Ok(Some(data));
        }
        (Some(data), None) => ("data", data),
        (None, Some(encoded)) if encoded.get().starts_with('"') => ("data_base64", encoded),
        (None, Some(_)) => return Err(source.fault("data_base64", "a text in Base64")),
    };
    let wrapped =
        RawValue::from_string(format!("{{\"{name}\":{}}}", value.get())).map_err(|error| source.fault(name, error.to_string()))?;
    check_payload(&wrapped, limits, String::new).map_err(|fault| {
        let whole = fault.pointer.is_empty();
        if whole { fault.under(&format!("{}/{name}", source.place)) } else { fault.under(source.place) }
    })?;
    Ok(Some(wrapped))
}

/// What is left: the known attributes that tell what belongs together, and extensions.
fn correlation(source: &mut Source<'_>) -> Result<Option<Correlation>, InvalidBody> {
    let mut entries = BTreeMap::new();
    if let Some(media_type) = source.text("datacontenttype")?.filter(|media_type| media_type != "application/json") {
        entries.insert("datacontenttype".to_owned(), media_type);
    }
    if let Some(time) = source.text("time")? {
        Timestamp::parse(&time).map_err(|detail| source.fault("time", detail))?;
        entries.insert("time".to_owned(), time);
    }
    for (name, value) in std::mem::take(&mut source.members) {
        if value.get() == "null" {
            continue;
        }
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            return Err(source.fault(&name, "no attribute of CloudEvents: names have lowercase letters and digits only"));
        }
        let text = scalar(&value).ok_or_else(|| source.fault(&name, "an attribute is a text, an integer or a boolean"))?;
        entries.insert(name, text);
    }
    Ok((!entries.is_empty()).then(|| entries.into_iter().collect()))
}

/// The text of an attribute's value, which is a text, an integer or a boolean.
fn scalar(value: &RawValue) -> Option<String> {
    match serde_json::from_str::<serde_json::Value>(value.get()).ok()? {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Bool(truth) => Some(truth.to_string()),
        serde_json::Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}
