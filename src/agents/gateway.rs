//! The providers whose keys can stay with Sprag: their variables, URLs, requests and errors.

use serde_json::{Value, json};
use sprag_agent::access::Secret;
use sprag_agent::access::WireFormat::{self, Chat, Gemini, Messages, Responses};

/// A model provider whose key can stay with Sprag.
#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name.
    pub name: &'static str,
    /// Its name in OpenTelemetry's conventions.
    pub convention: &'static str,
    /// The variables that hold a key, and the header for each.
    pub(super) keys: &'static [(&'static str, KeyHeader)],
    /// The variables with the base URL of another server, in order of precedence.
    pub(super) bases: &'static [&'static str],
    /// Its own base URL, without a slash at its end.
    pub(super) base: &'static str,
    /// The prefix that paths of [`Self::endpoints`] have at the gateway but not at the provider.
    pub(super) prefix: &'static str,
    /// The known paths, and the wire format of their responses. `{model}` stands for one name.
    endpoints: &'static [(&'static str, Option<WireFormat>)],
    /// The format of its errors.
    errors: Errors,
}

/// The format of a provider's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errors {
    Anthropic,
    OpenAi,
    Google,
}

/// The header with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    ApiKey,
    /// `x-goog-api-key: KEY`.
    Google,
}

impl KeyHeader {
    /// All headers.
    pub const ALL: [Self; 3] = [Self::Bearer, Self::ApiKey, Self::Google];

    /// The header's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bearer => "authorization",
            Self::ApiKey => "x-api-key",
            Self::Google => "x-goog-api-key",
        }
    }

    /// The header's value for a key.
    pub fn value(self, key: &str) -> String {
        match self {
            Self::Bearer => format!("Bearer {key}"),
            Self::ApiKey | Self::Google => key.to_owned(),
        }
    }

    /// The key in a value of the header.
    pub fn key(self, value: &str) -> Option<&str> {
        match self {
            Self::Bearer => value.strip_prefix("Bearer "),
            Self::ApiKey | Self::Google => Some(value),
        }
    }
}

/// Anthropic.
pub static ANTHROPIC: Provider = Provider {
    name: "anthropic",
    convention: "anthropic",
    keys: &[
        ("ANTHROPIC_API_KEY", KeyHeader::ApiKey),
        ("ANTHROPIC_AUTH_TOKEN", KeyHeader::Bearer),
    ],
    bases: &["ANTHROPIC_BASE_URL"],
    base: "https://api.anthropic.com",
    prefix: "",
    endpoints: &[
        ("/v1/messages", Some(Messages)),
        ("/v1/messages/count_tokens", None),
        ("/v1/models", None),
        ("/v1/models/{model}", None),
    ],
    errors: Errors::Anthropic,
};

/// OpenAI.
pub static OPENAI: Provider = Provider {
    name: "openai",
    convention: "openai",
    keys: &[
        ("OPENAI_API_KEY", KeyHeader::Bearer),
        ("CODEX_API_KEY", KeyHeader::Bearer),
    ],
    bases: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
    base: "https://api.openai.com/v1",
    prefix: "/v1",
    endpoints: &[
        ("/responses", Some(Responses)),
        ("/responses/compact", Some(Responses)),
        ("/chat/completions", Some(Chat)),
        ("/models", None),
        ("/models/{model}", None),
    ],
    errors: Errors::OpenAi,
};

/// Google.
pub static GEMINI: Provider = Provider {
    name: "gemini",
    convention: "gcp.gemini",
    keys: &[
        ("GEMINI_API_KEY", KeyHeader::Google),
        ("GOOGLE_API_KEY", KeyHeader::Google),
    ],
    bases: &["GOOGLE_GEMINI_BASE_URL"],
    base: "https://generativelanguage.googleapis.com",
    prefix: "",
    endpoints: &[
        ("/v1beta/models/{model}:generateContent", Some(Gemini)),
        ("/v1beta/models/{model}:streamGenerateContent", Some(Gemini)),
        ("/v1beta/models/{model}:countTokens", None),
        ("/v1beta/models", None),
        ("/v1beta/models/{model}", None),
    ],
    errors: Errors::Google,
};

/// The providers whose keys can stay with Sprag.
pub(super) static PROVIDERS: &[&Provider] = &[&ANTHROPIC, &OPENAI, &GEMINI];

/// A known request of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint<'p> {
    /// The path after the provider's base URL.
    pub path: &'p str,
    /// The wire format of its response, or `None` if the request is free.
    pub wire: Option<WireFormat>,
    /// The model in the path.
    pub model: Option<&'p str>,
}

impl Provider {
    /// An error with this status and text in the provider's format.
    pub fn error(&self, status: u16, message: &str) -> Value {
        error(self.errors, status, message)
    }

    /// The provider's endpoint for a path at the gateway, or `None` if the provider does not have it.
    pub fn endpoint<'p>(&self, path: &'p str) -> Option<Endpoint<'p>> {
        let path = path.strip_prefix(self.prefix)?;
        let is_name = |name: &str| {
            let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
            !name.is_empty() && name.chars().all(of_name) && name != "." && name != ".."
        };
        self.endpoints.iter().find_map(|(known, wire)| {
            let model = match known.split_once("{model}") {
                None => (path == *known).then_some(None)?,
                Some((before, after)) => {
                    let name = path.strip_prefix(before)?.strip_suffix(after)?;
                    Some(name).filter(|name| is_name(name)).map(Some)?
                }
            };
            Some(Endpoint {
                path,
                wire: *wire,
                model,
            })
        })
    }
}

/// How to make the agents of a CLI use the gateway.
#[derive(Debug, Clone, Copy)]
pub struct BehindGateway {
    /// The provider of its key.
    pub provider: &'static Provider,
    /// Words in its arguments and its own configuration which show that it uses another provider.
    pub elsewhere: &'static str,
    /// Returns the arguments that are needed besides the variables, for the URL of the gateway.
    pub args: fn(&str) -> Vec<String>,
}

/// The keys that stay with Sprag, and their server.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The provider.
    pub provider: &'static Provider,
    /// The base URL of the server, without a slash at its end.
    pub upstream: String,
    /// The variables that held a key, its header, and the key.
    pub keys: Vec<(&'static str, KeyHeader, Secret)>,
}

/// An error in the format of most servers.
pub fn plain_error(status: u16, message: &str) -> Value {
    error(Errors::OpenAi, status, message)
}

fn error(form: Errors, status: u16, message: &str) -> Value {
    let (kind, word) = match status {
        401 => ("authentication_error", "UNAUTHENTICATED"),
        404 => ("not_found_error", "NOT_FOUND"),
        500.. => ("api_error", "UNAVAILABLE"),
        _ => ("invalid_request_error", "INVALID_ARGUMENT"),
    };
    match form {
        Errors::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Errors::OpenAi => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
        }
        Errors::Google => json!({"error": {"code": status, "message": message, "status": word}}),
    }
}
