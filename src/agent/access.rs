//! Chooses the model, its address and the key, from only a name and the variables that are set.

use super::models::{self, Price};
use sprag_domain::settings::variables::BASE_URL;
use sprag_domain::suggest::nearest;
use std::fmt;
use std::sync::LazyLock;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// OpenAI's *chat completions*, which most servers speak.
    Chat,
    /// OpenAI's *responses*.
    Responses,
    /// Anthropic's *messages*.
    Messages,
    /// Google's *generateContent*.
    Gemini,
}

/// A key. It never shows in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn of(key: String) -> Self {
        Self(key)
    }

    /// The key in clear text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How to reach a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The provider's name.
    pub provider: &'static str,
    /// Its wire format.
    pub wire: WireFormat,
    /// The base URL, without a slash at its end.
    pub base: String,
    /// The provider's name of the model.
    pub model: String,
    /// The key, if one is needed.
    pub key: Option<Secret>,
    /// The model's context window, in tokens.
    pub window_tokens: usize,
    /// The longest response, in tokens.
    pub response_tokens: usize,
    /// Its price, if known.
    pub price: Option<Price>,
}

/// The provider and its key variables, for messages to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The variables that can hold its key.
    pub keys: &'static [&'static str],
}

impl<'a> Account<'a> {
    /// The account at the provider with this name.
    pub fn of(provider: &'a str) -> Self {
        Self {
            provider,
            keys: named(provider).map_or(&[], |known| &known.keys),
        }
    }
}

/// Why no model can be reached, and the remedies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAccess {
    /// The reason, as a lowercase fragment.
    pub message: String,
    /// The remedies, one line each.
    pub hints: Vec<String>,
    /// Whether neither a variable nor a name selects a model.
    pub nothing_set: bool,
}

impl NoAccess {
    fn of(message: String, hint: String) -> Self {
        Self {
            message,
            hints: vec![hint],
            nothing_set: false,
        }
    }
}

struct Provider {
    name: &'static str,
    wire: WireFormat,
    base: &'static str,
    /// The default model.
    model: Option<&'static str>,
    /// The variables for its key in order of precedence. Empty if it needs no key.
    keys: Vec<&'static str>,
}

/// The providers, in the order in which their keys are looked for if no provider is named: the name, the wire
/// format, the base URL, the default model, and the variables for the key.
///
/// The second one of OpenAI is for servers that also support the newer format. GitHub closed its service on
/// 30 July 2026; it must be named explicitly, and stays for those who can still reach it.
const TABLE: &str = "
    anthropic messages https://api.anthropic.com/v1 claude-sonnet-5-5 ANTHROPIC_API_KEY
    openai responses https://api.openai.com/v1 gpt-6.1-sol OPENAI_API_KEY
    gemini gemini https://generativelanguage.googleapis.com/v1beta gemini-3.8-flash GEMINI_API_KEY GOOGLE_API_KEY
    openai-responses responses https://api.openai.com/v1 - OPENAI_API_KEY
    openrouter chat https://openrouter.ai/api/v1 - OPENROUTER_API_KEY
    deepseek chat https://api.deepseek.com/v1 - DEEPSEEK_API_KEY
    groq chat https://api.groq.com/openai/v1 - GROQ_API_KEY
    mistral chat https://api.mistral.ai/v1 - MISTRAL_API_KEY
    xai chat https://api.x.ai/v1 - XAI_API_KEY
    ollama chat http://127.0.0.1:11434/v1 -
    compatible chat - -
    github chat https://models.github.ai/inference - GITHUB_TOKEN";

static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    let rows = TABLE.lines().map(str::split_whitespace);
    let providers = rows.filter_map(|mut row| {
        Some(Provider {
            name: row.next()?,
            wire: match row.next()? {
                "messages" => WireFormat::Messages,
                "responses" => WireFormat::Responses,
                "gemini" => WireFormat::Gemini,
                "chat" => WireFormat::Chat,
                _ => return None,
            },
            base: row.next()?.trim_matches('-'),
            model: row.next().filter(|model| *model != "-"),
            keys: row.collect(),
        })
    });
    providers.collect()
});

impl Provider {
    /// The variables in which its own tools look for another base URL, and the suffix that Sprag adds to it:
    /// Anthropic's and Google's tools take one without the version.
    fn bases(&self) -> (&'static [&'static str], &'static str) {
        match self.wire {
            WireFormat::Messages => (&["ANTHROPIC_BASE_URL"], "/v1"),
            WireFormat::Responses => (&["OPENAI_BASE_URL", "OPENAI_API_BASE"], ""),
            WireFormat::Gemini => (&["GOOGLE_GEMINI_BASE_URL"], "/v1beta"),
            WireFormat::Chat => (&[], ""),
        }
    }
}

/// The context window of an unknown model, in tokens: most have at least this.
const WINDOW: usize = 128_000;
/// The longest response of an unknown model, in tokens.
const RESPONSE: usize = 16_000;

/// The longest response that is requested from a known model, in tokens. It is enough for a long file and for
/// the reasoning before it.
const LONG_RESPONSE: usize = 32_000;

/// The provider that a job's own token pays for.
const GITHUB: &str = "github";

/// Every variable that affects the choice.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let bases = PROVIDERS.iter().flat_map(|provider| provider.bases().0);
    keys().chain(bases.copied())
}

/// The variables that only Sprag may read.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let keys = PROVIDERS.iter().flat_map(|provider| &provider.keys);
    keys.copied().chain([BASE_URL])
}

/// The variables that messages suggest when no key is set.
pub fn suggested_keys() -> impl Iterator<Item = &'static str> {
    let named = PROVIDERS
        .iter()
        .filter(|provider| !matches!(provider.name, GITHUB | "openai-responses"));
    named.flat_map(|provider| &provider.keys).copied()
}

/// Chooses by `provider/model`, by the keys that are set, and by the URL of a server in Sprag's own variable
/// or in that of the provider's tools. Without any of these, no model can be reached.
///
/// # Errors
/// The missing part.
pub fn choose(
    model: Option<&str>,
    var: &dyn Fn(&str) -> Option<String>,
) -> Result<Access, NoAccess> {
    let base = base_in(&[BASE_URL], "", var)?;
    let (provider, model) = provider_of(model, base.is_some(), var).ok_or_else(nothing_there)?;
    let base = match (base, provider.bases()) {
        (None, (names, end)) => base_in(names, end, var)?,
        (base, _) => base,
    };
    if base.is_none() {
        refuse_misspelt(provider, model)?;
    }
    // The job's token may only be sent to GitHub.
    let key = key_of(provider, var)
        .map(|(_, key)| key)
        .filter(|_| base.is_none() || provider.name != GITHUB);
    if key.is_none() && !provider.keys.is_empty() && base.is_none() {
        return Err(NoAccess::of(
            format!("the built-in agent has no key for {}", provider.name),
            format!("set {}", provider.keys.join(" or ")),
        ));
    }
    let model = model.or(provider.model).ok_or_else(|| {
        let server = match base {
            Some(_) => "SPRAG_BASE_URL names a server but no model".to_owned(),
            None => format!("no model is named for {}", provider.name),
        };
        NoAccess::of(server, format!("add --model {}/MODEL", provider.name))
    })?;
    let wire = match provider.wire {
        // Servers that replace OpenAI's own usually support only the older format.
        WireFormat::Responses
            if provider.name == "openai" && base.as_deref().is_some_and(is_foreign) =>
        {
            WireFormat::Chat
        }
        wire => wire,
    };
    // At another URL, any model may have that name.
    let known = models::find(provider.name, model).filter(|_| base.is_none());
    let base = base.unwrap_or_else(|| provider.base.to_owned());
    Ok(Access {
        provider: provider.name,
        wire,
        base,
        model: model.to_owned(),
        key,
        window_tokens: known.map_or(WINDOW, |known| known.window_tokens),
        response_tokens: known.map_or(RESPONSE, |known| known.response_tokens.min(LONG_RESPONSE)),
        price: known.map(|known| known.price),
    })
}

fn named(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// The provider, and the model if it is named.
fn provider_of<'m>(
    model: Option<&'m str>,
    has_base: bool,
    var: &dyn Fn(&str) -> Option<String>,
) -> Option<(&'static Provider, Option<&'m str>)> {
    if let Some((name, rest)) = model.and_then(|model| model.split_once('/')) {
        let usable = named(name).filter(|known| !known.base.is_empty() || has_base);
        if let Some(provider) = usable {
            return Some((provider, Some(rest)));
        }
    }
    let others = PROVIDERS.iter().filter(|provider| provider.name != GITHUB);
    let mut by_key = others.filter(|provider| key_of(provider, var).is_some());
    let provider = if has_base {
        let own = by_key.find(|provider| provider.name == "openai");
        own.or_else(|| named("compatible"))
    } else {
        by_key.next()
    };
    Some((provider?, model))
}

/// Whether a base URL does not belong to OpenAI.
fn is_foreign(base: &str) -> bool {
    let host = base.parse::<http::Uri>().ok();
    let host = host.as_ref().and_then(http::Uri::host).unwrap_or_default();
    host != "openai.com" && !host.ends_with(".openai.com")
}

/// The base URL in the first of these variables that is set, without a slash at its end but with this end.
fn base_in(
    names: &[&'static str],
    end: &str,
    var: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, NoAccess> {
    let set = |name: &&'static str| {
        let base = var(name).filter(|base| !base.trim().is_empty())?;
        Some((*name, base))
    };
    let Some((name, base)) = names.iter().find_map(set) else {
        return Ok(None);
    };
    let base = base.trim().trim_end_matches('/');
    let parsed = base.parse::<http::Uri>().ok();
    let usable = parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    });
    if !usable {
        return Err(NoAccess::of(
            format!("{name} is not an http or https URL"),
            "write it like https://models.example.com/v1".into(),
        ));
    }
    Ok(Some(if base.ends_with(end) {
        base.to_owned()
    } else {
        format!("{base}{end}")
    }))
}

/// Refuses a slash in a model's name for these providers, whose models have none: the part before it is an
/// unknown provider.
fn refuse_misspelt(provider: &Provider, model: Option<&str>) -> Result<(), NoAccess> {
    match model.and_then(|model| model.split_once('/')) {
        Some((name, rest)) if provider.model.is_some() => {
            let names = || PROVIDERS.iter().map(|known| known.name);
            let hint = match nearest(name, names()) {
                Some(known) => format!("did you mean --model {known}/{rest}?"),
                None => format!("use one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            let why = format!("{name} is not a known model provider");
            Err(NoAccess::of(why, hint))
        }
        _ => Ok(()),
    }
}

/// The first variable of the provider that contains a key, and the key.
fn key_of(
    provider: &Provider,
    var: &dyn Fn(&str) -> Option<String>,
) -> Option<(&'static str, Secret)> {
    provider.keys.iter().find_map(|name| {
        let value = var(name)?;
        let key = value.trim();
        (!key.is_empty()).then(|| (*name, Secret(key.to_owned())))
    })
}

/// The variable that contains the key of `access`, if there is one.
pub fn key_variable(access: &Access, var: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    access.key.as_ref()?;
    key_of(named(access.provider)?, var).map(|(name, _)| name)
}

fn nothing_there() -> NoAccess {
    let keys: Vec<&str> = suggested_keys().collect();
    NoAccess {
        message: "the built-in agent has no model to ask".into(),
        hints: vec![
            format!("set one of {}", keys.join(", ")),
            format!("or name a server that speaks OpenAI's format with {BASE_URL}"),
        ],
        nothing_set: true,
    }
}

#[cfg(test)]
mod tests;
