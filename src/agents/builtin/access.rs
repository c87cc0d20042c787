//! Which model is asked, where, and with which key: decided from a name and the variables that are
//! set, without a look at anything else.

use super::models::{self, Price};
use crate::domain::suggest::nearest;
use std::fmt;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
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
    /// A key.
    pub fn of(key: String) -> Self {
        Self(key)
    }

    /// The key itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How a model is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The provider's name.
    pub provider: &'static str,
    /// The format it speaks.
    pub wire: Wire,
    /// The address, without a slash at its end.
    pub base: String,
    /// The provider's name of the model.
    pub model: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// The model's window, in tokens.
    pub window_tokens: usize,
    /// The longest response, in tokens.
    pub response_tokens: usize,
    /// What it costs, where that is known.
    pub price: Option<Price>,
}

/// Who answers the requests, as a person is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account<'a> {
    /// The provider's name.
    pub(super) provider: &'a str,
    /// The variables that can hold its key.
    pub(super) keys: &'static [&'static str],
}

impl<'a> Account<'a> {
    pub(super) fn of(provider: &'a str) -> Self {
        let known = PROVIDERS.iter().find(|known| known.name == provider);
        Self {
            provider,
            keys: known.map_or(&[], |known| known.keys),
        }
    }
}

/// Why no model can be reached, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAccess {
    /// Lowercase fragment.
    pub message: String,
    /// One line each.
    pub hints: Vec<String>,
    /// Whether no variable and no name says which model is meant.
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
    wire: Wire,
    base: &'static str,
    /// The variables that hold its key, the first that is set counts; none where none is needed.
    keys: &'static [&'static str],
    /// The variables in which its own tools look for another address, and what stands after that
    /// address.
    bases: (&'static [&'static str], &'static str),
    /// The model where none is named.
    model: Option<&'static str>,
}

/// Anthropic's and Google's tools take an address without the version.
const ANTHROPIC_BASES: (&[&str], &str) = (&["ANTHROPIC_BASE_URL"], "/v1");
const OPENAI_BASES: (&[&str], &str) = (&["OPENAI_BASE_URL", "OPENAI_API_BASE"], "");
const GEMINI_BASES: (&[&str], &str) = (&["GOOGLE_GEMINI_BASE_URL"], "/v1beta");

/// The window of a model that is not known, in tokens: most have as much.
const WINDOW: usize = 128_000;
/// The longest response of such a model, in tokens.
const RESPONSE: usize = 16_000;

/// The longest response that is asked for of a model that is known, in tokens. It holds a long file and
/// what models that reason write before it.
const LONG_RESPONSE: usize = 32_000;

const fn chat(
    name: &'static str,
    base: &'static str,
    keys: &'static [&'static str],
    model: Option<&'static str>,
) -> Provider {
    Provider {
        name,
        wire: Wire::Chat,
        base,
        keys,
        bases: (&[], ""),
        model,
    }
}

/// The providers, in the order in which their keys are looked for where none is named.
const PROVIDERS: &[Provider] = &[
    Provider {
        wire: Wire::Messages,
        bases: ANTHROPIC_BASES,
        ..chat(
            "anthropic",
            "https://api.anthropic.com/v1",
            &["ANTHROPIC_API_KEY"],
            Some("claude-sonnet-5-5"),
        )
    },
    Provider {
        wire: Wire::Responses,
        bases: OPENAI_BASES,
        ..chat(
            "openai",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            Some("gpt-6.1-sol"),
        )
    },
    Provider {
        wire: Wire::Gemini,
        bases: GEMINI_BASES,
        ..chat(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Some("gemini-3.8-flash"),
        )
    },
    // For servers that speak the newer format as well.
    Provider {
        wire: Wire::Responses,
        bases: OPENAI_BASES,
        ..chat(
            "openai-responses",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            None,
        )
    },
    chat(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        None,
    ),
    chat(
        "deepseek",
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_KEY"],
        None,
    ),
    chat(
        "groq",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
        None,
    ),
    chat(
        "mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        None,
    ),
    chat("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], None),
    chat("ollama", "http://127.0.0.1:11434/v1", &[], None),
    chat("compatible", "", &[], None),
    // GitHub closed it on 30 July 2026, so it must be named, and is left to who reaches it all the same.
    chat(
        GITHUB,
        "https://models.github.ai/inference",
        &["GITHUB_TOKEN"],
        None,
    ),
];

/// The provider that a job's own token pays for.
const GITHUB: &str = "github";

/// The variable with the address of a server to be used instead of the provider's own.
pub const BASE_URL: &str = "SPRAG_BASE_URL";

/// Every variable that the choice depends on.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let bases = PROVIDERS.iter().flat_map(|provider| provider.bases.0);
    keys().chain(bases.copied())
}

/// Those of the variables that only Sprag is to see.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let keys = PROVIDERS.iter().flat_map(|provider| provider.keys);
    keys.copied().chain([BASE_URL])
}

/// Chooses by `provider/model`, by the keys that are set, and by the address of a server, be it in Sprag's own
/// variable or in that of the provider's tools. Without any of these there is no access.
///
/// # Errors
/// What is missing.
pub fn choose(
    model: Option<&str>,
    var: &dyn Fn(&str) -> Option<String>,
) -> Result<Access, NoAccess> {
    let base = var(BASE_URL).filter(|base| !base.trim().is_empty());
    if let Some(base) = &base {
        check_url(BASE_URL, base)?;
    }
    let (provider, model) = provider_of(model, base.is_some(), var).ok_or_else(nothing_there)?;
    let base = match base {
        Some(base) => Some(base),
        None => own_base(provider, var)?,
    };
    if base.is_none() {
        refuse_misspelt(provider, model)?;
    }
    // The job's token is for GitHub alone.
    let key = key_of(provider, var).filter(|_| base.is_none() || provider.name != GITHUB);
    if key.is_none() && !provider.keys.is_empty() && base.is_none() {
        return Err(NoAccess::of(
            format!("the built-in agent has no key for {}", provider.name),
            format!("set {}", provider.keys.join(" or ")),
        ));
    }
    let model = model.or(provider.model).ok_or_else(|| {
        NoAccess::of(
            format!("no model is named for {}", provider.name),
            format!("name one: --model {}/MODEL", provider.name),
        )
    })?;
    let wire = match provider.wire {
        // A server that stands in for OpenAI's own mostly speaks the older format alone.
        Wire::Responses if provider.name == "openai" && base.as_deref().is_some_and(is_foreign) => {
            Wire::Chat
        }
        wire => wire,
    };
    // Behind another address there may be anything of that name.
    let known = models::find(provider.name, model).filter(|_| base.is_none());
    let base = base.unwrap_or_else(|| provider.base.to_owned());
    Ok(Access {
        provider: provider.name,
        wire,
        base: base.trim().trim_end_matches('/').to_owned(),
        model: model.to_owned(),
        key,
        window_tokens: known.map_or(WINDOW, |known| known.window_tokens),
        response_tokens: known.map_or(RESPONSE, |known| known.response_tokens.min(LONG_RESPONSE)),
        price: known.map(|known| known.price),
    })
}

/// The provider, and the model if one is named.
fn provider_of<'m>(
    model: Option<&'m str>,
    has_base: bool,
    var: &dyn Fn(&str) -> Option<String>,
) -> Option<(&'static Provider, Option<&'m str>)> {
    if let Some((name, rest)) = model.and_then(|model| model.split_once('/')) {
        let named = PROVIDERS.iter().find(|known| known.name == name);
        let usable = named.filter(|known| !known.base.is_empty() || has_base);
        if let Some(provider) = usable {
            return Some((provider, Some(rest)));
        }
    }
    let mut by_key = PROVIDERS
        .iter()
        .filter(|provider| provider.name != GITHUB)
        .filter(|provider| key_of(provider, var).is_some());
    if has_base {
        let own = by_key.find(|provider| provider.name == "openai");
        let compatible = || PROVIDERS.iter().find(|it| it.name == "compatible");
        return own.or_else(compatible).map(|provider| (provider, model));
    }
    by_key.next().map(|provider| (provider, model))
}

/// Whether an address is of somebody else than OpenAI.
fn is_foreign(base: &str) -> bool {
    let host = base.trim().parse::<hyper::Uri>().ok();
    let host = host.as_ref().and_then(hyper::Uri::host).unwrap_or_default();
    host != "openai.com" && !host.ends_with(".openai.com")
}

/// The address that the provider's own variables name.
fn own_base(
    provider: &Provider,
    var: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, NoAccess> {
    let (names, suffix) = provider.bases;
    let set = |name: &&'static str| {
        let base = var(name).filter(|base| !base.trim().is_empty())?;
        Some((*name, base))
    };
    let Some((name, base)) = names.iter().find_map(set) else {
        return Ok(None);
    };
    check_url(name, &base)?;
    let base = base.trim().trim_end_matches('/');
    Ok(Some(match base.ends_with(suffix) {
        true => base.to_owned(),
        false => format!("{base}{suffix}"),
    }))
}

/// No model of these providers has a slash in its name: what stands before it is a provider that is not
/// known.
fn refuse_misspelt(provider: &Provider, model: Option<&str>) -> Result<(), NoAccess> {
    match model.and_then(|model| model.split_once('/')) {
        Some((name, rest)) if provider.model.is_some() => {
            let names = || PROVIDERS.iter().map(|known| known.name);
            let hint = match nearest(name, names()) {
                Some(known) => format!("did you mean --model {known}/{rest}?"),
                None => format!("use one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            Err(NoAccess::of(
                format!("{name} is no provider of models"),
                hint,
            ))
        }
        _ => Ok(()),
    }
}

fn key_of(provider: &Provider, var: &dyn Fn(&str) -> Option<String>) -> Option<Secret> {
    let set = provider.keys.iter().find_map(|name| var(name));
    let key = set.map(|key| key.trim().to_owned());
    key.filter(|key| !key.is_empty()).map(Secret)
}

/// The variable that has the key of `access`, where it has one.
pub fn key_variable(access: &Access, var: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    access.key.as_ref()?;
    let provider = PROVIDERS.iter().find(|it| it.name == access.provider)?;
    let is_set = |name: &&str| var(name).is_some_and(|key| !key.trim().is_empty());
    provider.keys.iter().copied().find(is_set)
}

fn check_url(variable: &str, url: &str) -> Result<(), NoAccess> {
    let parsed = url.trim().parse::<hyper::Uri>().ok();
    let usable = parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    });
    match usable {
        true => Ok(()),
        false => Err(NoAccess::of(
            format!("{variable} is not an address of http or https"),
            "write it like https://models.example.com/v1".into(),
        )),
    }
}

fn nothing_there() -> NoAccess {
    let keys: Vec<&str> = PROVIDERS
        .iter()
        .filter(|provider| !matches!(provider.name, GITHUB | "openai-responses"))
        .flat_map(|provider| provider.keys)
        .copied()
        .collect();
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
