//! Pictures in the message with the task, in the form of each API.

use crate::access::WireFormat;
use crate::model_error::ModelError;
use serde_json::{Value, json};

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its media type, such as `image/png`.
    pub media_type: &'static str,
    /// Its bytes in Base64.
    pub base64: String,
}

/// Words in errors of models that take no pictures.
const WORDS: &[&str] = &["image", "vision", "multimodal", "mmproj"];

/// Whether the API refused a request because of its pictures.
pub(super) fn are_refused(error: &ModelError) -> bool {
    matches!(error.status, Some(400..=500)) && error.says(WORDS)
}

/// Adds pictures to the entry of the task. In front of the text, where the end of the entry keeps its place for caches.
pub(super) fn add(wire: WireFormat, entry: &mut Value, pictures: &[Picture]) {
    let url = |picture: &Picture| format!("data:{};base64,{}", picture.media_type, picture.base64);
    let part = |picture: &Picture| match wire {
        WireFormat::Chat => json!({ "type": "image_url", "image_url": { "url": url(picture) } }),
        WireFormat::Responses => json!({ "type": "input_image", "image_url": url(picture) }),
        WireFormat::Messages => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": picture.media_type, "data": picture.base64 },
        }),
        WireFormat::Gemini => {
            json!({ "inlineData": { "mimeType": picture.media_type, "data": picture.base64 } })
        }
    };
    let field = match wire {
        WireFormat::Gemini => "parts",
        _ => "content",
    };
    let said = match entry[field].take() {
        Value::Array(parts) => parts,
        text if wire == WireFormat::Responses => {
            vec![json!({ "type": "input_text", "text": text })]
        }
        text => vec![json!({ "type": "text", "text": text })],
    };
    let parts: Vec<Value> = pictures.iter().map(part).chain(said).collect();
    entry[field] = parts.into();
}
