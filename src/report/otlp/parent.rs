//! The outer trace of a run.

/// The trace that a run is a part of: its id, and the id of the parent span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub(super) trace: String,
    pub(super) span: String,
    /// Whether the outer trace is recorded.
    pub is_sampled: bool,
}

impl Parent {
    /// Parses a `traceparent` of W3C Trace Context, or returns `None` if it is invalid.
    pub fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.trim().split('-').collect();
        let is_hex = |part: &str, length: usize| {
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            part.len() == length && part.bytes().all(lower)
        };
        let is_set = |part: &str| part.bytes().any(|byte| byte != b'0');
        let (version, rest) = parts.split_first()?;
        let &[trace, span, flags, ..] = rest else {
            return None;
        };
        let is_known =
            is_hex(version, 2) && *version != "ff" && (*version != "00" || rest.len() == 3);
        let is_one = is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        let flags = u8::from_str_radix(flags, 16).ok()?;
        (is_known && is_one && is_set(trace) && is_set(span)).then(|| Self {
            trace: trace.to_owned(),
            span: span.to_owned(),
            is_sampled: flags & 1 == 1,
        })
    }
}
