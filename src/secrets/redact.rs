//! Redacts secrets in everything that leaves the run.

use crate::domain::pattern::Pattern;
use crate::secrets::views::View;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// The replacement for a secret.
pub const MASK: &str = "***";

/// Minimum length in bytes of a redacted secret. Shorter ones occur in ordinary text.
pub const MIN_SECRET_BYTES: usize = 8;

/// Removes known secrets in the usual encodings, and everything that looks like a token of a well-known
/// service, from texts, in time linear in the text. A truncated, reversed or spelled out secret is not found.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
    /// The same secrets for texts in which characters are escaped or interrupted.
    hidden: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = self.known.as_ref().map_or(0, AhoCorasick::patterns_len);
        write!(out, "Redactor({patterns} patterns)")
    }
}

impl Redactor {
    /// Creates a redactor for these secrets: in clear text, in Base64 at any offset and hexadecimal (both
    /// also wrapped), in Base32 and as a list of bytes, with any characters escaped as in URLs, JSON, HTML and
    /// Markdown, and with line breaks or sequences of terminals between them. Each long line of a multi-line secret
    /// counts as a secret too.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known = BTreeSet::new();
        let mut hidden = BTreeSet::new();
        let secrets = secrets.into_iter().map(str::trim);
        for secret in secrets.filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
            let forms: Vec<String> = secrets_apart(secret).flat_map(forms).collect();
            let views = forms
                .iter()
                .flat_map(|form| View::all(form.as_bytes(), false));
            hidden.extend(views.map(|view| view.bytes));
            known.extend(forms);
            known.extend(pieces(secret));
        }
        hidden.retain(|form: &Vec<u8>| form.len() >= MIN_SECRET_BYTES);
        Self {
            known: automaton(&known, MatchKind::LeftmostLongest),
            hidden: automaton(&hidden, MatchKind::LeftmostLongest),
        }
    }

    /// The text without secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.known.iter().flat_map(|known| known.find_iter(text));
        let known = masked(text, found.map(|found| found.range()).collect(), false);
        let shown = match self.places(&known) {
            places if places.is_empty() => known,
            places => Cow::Owned(masked(&known, places, true).into_owned()),
        };
        match shown {
            Cow::Borrowed(text) => without_tokens(text),
            Cow::Owned(text) => Cow::Owned(without_tokens(&text).into_owned()),
        }
    }

    /// The places of secrets whose characters are escaped or interrupted in a text.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let text = text.as_bytes();
        let Some(hidden) = self.hidden.as_ref().filter(|_| View::concerns(text)) else {
            return Vec::new();
        };
        let views = View::all(text, false);
        if !views.iter().any(|view| hidden.is_match(&view.bytes)) {
            return Vec::new();
        }
        let views = View::all(text, true);
        let places = views.iter().flat_map(|view| {
            let found = hidden.find_iter(&view.bytes);
            found.filter_map(|found| view.place(&found.range()))
        });
        places.collect()
    }

    /// The same for bytes. Text that is not UTF-8 is changed only if it contains a secret.
    pub fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let text = String::from_utf8_lossy(bytes);
        match self.redact(&text) {
            Cow::Borrowed(_) => Cow::Borrowed(bytes),
            Cow::Owned(redacted) => Cow::Owned(redacted.into_bytes()),
        }
    }

    /// Redacts every text in a JSON value, including the names of fields. Returns whether there were any
    /// secrets.
    pub fn redact_json(&self, value: &mut Value) -> bool {
        walk(value, &|text| self.redact(text))
    }

    /// Redacts every text in the serialized form of a value, so that a new field of the type is redacted like
    /// the others. If there was a secret, fields that are not serialized are lost.
    ///
    /// # Errors
    /// When the type cannot be deserialized from its own serialized form.
    pub fn redacted<'v, T>(&self, value: &'v T) -> serde_json::Result<Cow<'v, T>>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        let mut clean = serde_json::to_value(value)?;
        if !self.redact_json(&mut clean) {
            return Ok(Cow::Borrowed(value));
        }
        // Read from text like everything that is stored: a second reader of these types would make the program
        // 100 KB larger.
        let read = |clean: &Value| serde_json::from_slice(&serde_json::to_vec(clean)?);
        let clean = read(&clean).or_else(|_| {
            // If a secret equals a word of the format itself, such as `cancelled`, those words are kept.
            let mut clean = serde_json::to_value(value)?;
            walk(&mut clean, &|text| {
                if is_word_of_a_format(text) {
                    Cow::Borrowed(text)
                } else {
                    self.redact(text)
                }
            });
            read(&clean)
        });
        clean.map(Cow::Owned)
    }
}

/// Redacts a text, and borrows it if nothing changes.
type Clean<'c> = &'c dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// Redacts every text in a value, including the names of fields. Returns whether any was changed.
fn walk(value: &mut Value, clean: Clean<'_>) -> bool {
    match value {
        Value::String(text) => replace(text, clean),
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |changed, value| walk(value, clean) | changed),
        Value::Object(fields) => {
            let mut changed = false;
            for (mut name, mut value) in std::mem::take(fields) {
                changed |= walk(&mut value, clean) | replace(&mut name, clean);
                fields.insert(name, value);
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn replace(text: &mut String, clean: Clean<'_>) -> bool {
    let Cow::Owned(redacted) = clean(text) else {
        return false;
    };
    *text = redacted;
    true
}

/// Whether a text can be the name of a field or of an enum variant.
fn is_word_of_a_format(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Finds these patterns; `None` if there are none. Each command builds it for texts that are mostly short: an
/// automaton that is faster to search takes longer to build than its searches save. It fails only for more than two
/// thousand million bytes of secrets.
pub(super) fn automaton<P: AsRef<[u8]>>(
    patterns: impl IntoIterator<Item = P>,
    kind: MatchKind,
) -> Option<AhoCorasick> {
    let mut builder = AhoCorasick::builder();
    let builder = builder
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .match_kind(kind);
    let built = builder.build(patterns).ok();
    built.filter(|built| built.patterns_len() > 0)
}

/// The text with these places masked. Adjacent or overlapping places become one mask, so that the number of masks
/// reveals nothing. With `keeps_lines` their line breaks stay, so that every line remains one.
fn masked(text: &str, mut places: Vec<Range<usize>>, keeps_lines: bool) -> Cow<'_, str> {
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    places.sort_by_key(|place| place.start);
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for place in places {
        let start = place.start.max(end);
        let (Some(before), Some(secret)) = (text.get(end..start), text.get(start..place.end))
        else {
            continue;
        };
        out.push_str(before);
        if end == 0 || place.start > end {
            out.push_str(MASK);
        }
        let breaks = secret.chars().filter(|c| matches!(c, '\n' | '\r'));
        out.extend(breaks.filter(|_| keeps_lines));
        end = place.end;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(out)
}

/// A secret and its long lines, each of which is a secret of its own.
pub(crate) fn secrets_apart(secret: &str) -> impl Iterator<Item = &str> {
    let lines = secret.lines().map(str::trim);
    std::iter::once(secret).chain(lines.filter(|line| line.len() >= 2 * MIN_SECRET_BYTES))
}

/// A secret in hexadecimal digits.
pub(crate) fn hexadecimal(secret: &str) -> String {
    secret.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret in the usual encodings, except for escape sequences, which a [`View`] reads.
pub(crate) fn forms(secret: &str) -> Vec<String> {
    let hex = hexadecimal(secret);
    // The forms of pages write blanks like this.
    let plus = secret.replace(' ', "+");
    let mut forms = vec![secret.to_owned(), plus, hex.to_uppercase(), hex];
    for shift in 0..3 {
        forms.extend(base64_forms(secret.as_bytes(), shift));
    }
    // The lines of a longer secret are secrets of their own.
    if secret.len() <= MAX_RARE_BYTES {
        forms.extend(rare_forms(secret));
    }
    forms.retain(|form| form.len() >= MIN_SECRET_BYTES);
    forms
}

/// Length in characters of a piece of a long encoding.
const PIECE: usize = 24;
/// Distance in characters between the starts of two pieces.
const STEP: usize = 8;

/// Pieces of a secret's Base64 and hexadecimal digits, for programs that wrap these into lines (`base64`,
/// `xxd -p`): a line of the usual length contains a whole piece, wherever it starts.
fn pieces(secret: &str) -> Vec<String> {
    let hex = hexadecimal(secret);
    let mut long = vec![hex.to_uppercase(), hex];
    for shift in 0..3 {
        long.extend(base64_forms(secret.as_bytes(), shift));
    }
    long.retain(|form| form.len() >= 2 * PIECE);
    let of_form = |form: &String| {
        let starts = (0..=form.len() - PIECE).step_by(STEP);
        let piece = |at: usize| form.get(at..at + PIECE).map(str::to_owned);
        starts.filter_map(piece).collect::<Vec<String>>()
    };
    long.iter().flat_map(of_form).collect()
}

/// Maximum length in bytes of a secret that is also redacted in rare encodings.
const MAX_RARE_BYTES: usize = 256;

/// A secret in Base64 of UTF-16, in Base32, and as a list of bytes.
fn rare_forms(secret: &str) -> Vec<String> {
    let mut forms = byte_lists(secret.as_bytes());
    let utf_16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    forms.extend((0..3).flat_map(|shift| base64_forms(&utf_16, shift)));
    let base32 = (0..5).map(|shift| base32_form(secret.as_bytes(), shift));
    forms.extend(base32.flat_map(|form| [form.to_lowercase(), form]));
    forms
}

/// The bytes of a secret one by one, as programs print them: `63:61`, `63 61`, `0x63, 0x61`, `[99, 97]`.
fn byte_lists(secret: &[u8]) -> Vec<String> {
    let joined = |each: &dyn Fn(&u8) -> String, between: &str| {
        let all: Vec<String> = secret.iter().map(each).collect();
        all.join(between)
    };
    let mut lists = Vec::new();
    for between in [":", " ", "-", ",0x", ", 0x", " 0x"] {
        lists.push(joined(&|byte| format!("{byte:02x}"), between));
        lists.push(joined(&|byte| format!("{byte:02X}"), between));
    }
    lists.extend([",", ", ", " "].map(|between| joined(&u8::to_string, between)));
    lists
}

/// The Base32 characters that depend only on the secret, if `shift` bytes of a group of five precede it.
fn base32_form(secret: &[u8], shift: usize) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let start = (shift * 8).div_ceil(5) * 5;
    let end = (shift + secret.len()) * 8;
    let bit = |at: usize| {
        let byte = at.checked_div(8)?.checked_sub(shift)?;
        secret.get(byte).map(|byte| (byte >> (7 - at % 8)) & 1)
    };
    let starts = (start..end.saturating_sub(4)).step_by(5);
    let push = |all: u8, bit: u8| (all << 1) | bit;
    let digits = starts.map(|at| (at..at + 5).filter_map(bit).fold(0, push));
    let letters = digits.filter_map(|digit| ALPHABET.get(usize::from(digit)));
    letters.map(|letter| char::from(*letter)).collect()
}

/// The Base64 characters that depend only on the secret, if `shift` bytes of a group of three precede it.
fn base64_forms(secret: &[u8], shift: usize) -> [String; 2] {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(secret);
    let before = [0, 2, 3].get(shift).copied().unwrap_or(0);
    let after = usize::from(!bytes.len().is_multiple_of(3));
    let inner = |text: String| {
        let end = text.len().saturating_sub(after);
        text.get(before..end).unwrap_or_default().to_owned()
    };
    [STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|engine| inner(engine.encode(&bytes)))
}

/// What looks like a token of a well-known service or a private key, except for the values in the
/// documentation of a service.
pub fn tokens_in(text: &str) -> impl Iterator<Item = &str> {
    let found = TOKENS.captures_iter(text);
    let tokens = found
        .filter(|found| found.name("before").is_none())
        .filter_map(|found| Some(found.get(0)?.as_str()));
    tokens.filter(|token| !token.ends_with("EXAMPLE"))
}

fn without_tokens(text: &str) -> Cow<'_, str> {
    TOKENS.replace_all(text, "${before}***${after}")
}

/// The tokens of well-known services, private keys, and passwords in URLs.
static TOKENS: Pattern = Pattern::only_if(TOKEN_FORMS, may_hold_token);

const TOKEN_FORMS: &str = r"(?x)
        \bgh[pousr]_[A-Za-z0-9_]{20,}[A-Za-z0-9_.-]*
        | \bgithub_pat_[A-Za-z0-9_]{20,}
        | \bglpat-[A-Za-z0-9_.-]{20,}
        | \bsk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{16,}
        | \bsk-[A-Za-z0-9]{32,}
        | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
        | \bAIza[A-Za-z0-9_-]{35}
        | \bxox[a-z]-[A-Za-z0-9-]{10,}
        | \bnpm_[A-Za-z0-9]{36}
        | \bhf_[A-Za-z0-9]{30,}
        | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
        | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
        | (?<before>://[^\s/:@]*:)[^\s/@]{3,}(?<after>@)
        ";

/// What is in every token of [`TOKEN_FORMS`], most of them at its beginning.
const SIGNS_OF_TOKENS: &str = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- sk- AKIA ASIA AIza xox npm_ hf_ eyJ \
                               BEGIN ://";

/// Whether a text contains the beginning of a token.
fn may_hold_token(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_first = |at: usize| !text[..at].ends_with(is_word);
    SIGNS_OF_TOKENS.split(' ').any(|sign| match sign {
        "BEGIN" => text.contains(sign),
        "://" => text.contains(sign) && text.contains('@'),
        _ => text.match_indices(sign).any(|(at, _)| is_first(at)),
    })
}

#[cfg(test)]
mod tests;
