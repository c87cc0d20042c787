use super::*;

/// Variables and their values.
type Set<'a> = &'a [(&'a str, &'a str)];

fn chosen(model: Option<&str>, set: &[(&str, &str)]) -> Result<Access, NoAccess> {
    choose(model, &|name| {
        let found = set.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn line(model: Option<&str>, set: &[(&str, &str)]) -> String {
    match chosen(model, set) {
        Ok(it) => format!(
            "{} {:?} {} {} {}",
            it.provider,
            it.wire,
            it.base,
            it.model,
            it.key.as_ref().map_or("-", Secret::reveal)
        ),
        Err(why) => why.message,
    }
}

#[test]
fn the_model_or_the_keys_decide() {
    let token = ("GITHUB_TOKEN", "t");
    let server = (BASE_URL, "http://127.0.0.1:1/v1/");
    let cases: &[(Option<&str>, Set<'_>, &str)] = &[
        (
            None,
            &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "a")],
            "anthropic Messages https://api.anthropic.com/v1 claude-sonnet-5-5 a",
        ),
        (
            Some("gpt-5-mini"),
            &[("OPENAI_API_KEY", " k\n")],
            "openai Responses https://api.openai.com/v1 gpt-5-mini k",
        ),
        (
            Some("gemini/g"),
            &[("GOOGLE_API_KEY", "k"), ("OPENAI_API_KEY", "o")],
            "gemini Gemini https://generativelanguage.googleapis.com/v1beta g k",
        ),
        (
            Some("openrouter/a/b"),
            &[("OPENROUTER_API_KEY", "k")],
            "openrouter Chat https://openrouter.ai/api/v1 a/b k",
        ),
        (None, &[token], "the built-in agent has no model to ask"),
        (
            Some("github/openai/gpt-4.1"),
            &[token],
            "github Chat https://models.github.ai/inference openai/gpt-4.1 t",
        ),
        (
            Some("github/x/y"),
            &[token, server],
            "github Chat http://127.0.0.1:1/v1 x/y -",
        ),
        (
            Some("m"),
            &[token, server],
            "compatible Chat http://127.0.0.1:1/v1 m -",
        ),
        (
            Some("org/m"),
            &[("OPENAI_API_KEY", "k"), server],
            "openai Chat http://127.0.0.1:1/v1 org/m k",
        ),
        (
            Some("org/m"),
            &[("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "k"), server],
            "openai Chat http://127.0.0.1:1/v1 org/m k",
        ),
        (
            Some("org/m"),
            &[("ANTHROPIC_API_KEY", "k"), server],
            "compatible Chat http://127.0.0.1:1/v1 org/m -",
        ),
        (
            Some("anthropic/m"),
            &[],
            "the built-in agent has no key for anthropic",
        ),
        (
            Some("ollama/m"),
            &[],
            "ollama Chat http://127.0.0.1:11434/v1 m -",
        ),
        (
            None,
            &[server],
            "SPRAG_BASE_URL names a server but no model",
        ),
        (
            Some("m"),
            &[(BASE_URL, "models.example.com")],
            "SPRAG_BASE_URL is not an http or https URL",
        ),
        (
            None,
            &[("OPENAI_API_KEY", " ")],
            "the built-in agent has no model to ask",
        ),
        (
            None,
            &[("GEMINI_API_KEY", " "), ("GOOGLE_API_KEY", "k")],
            "gemini Gemini https://generativelanguage.googleapis.com/v1beta gemini-3.8-flash k",
        ),
    ];
    for (model, set, expected) in cases {
        assert_eq!(line(*model, set), *expected, "{model:?} {set:?}");
    }
}

#[test]
fn addresses_are_read_from_the_variables_of_the_providers_own_tools() {
    let server = (BASE_URL, "http://127.0.0.1:1/v1/");
    let cases: &[(Option<&str>, Set<'_>, &str)] = &[
        (
            None,
            &[
                ("ANTHROPIC_API_KEY", "a"),
                ("ANTHROPIC_BASE_URL", "https://h/x/"),
            ],
            "anthropic Messages https://h/x/v1 claude-sonnet-5-5 a",
        ),
        (
            Some("openai/m"),
            &[
                ("OPENAI_API_KEY", "k"),
                ("OPENAI_BASE_URL", "https://h/v1"),
                ("ANTHROPIC_BASE_URL", "https://other"),
            ],
            "openai Chat https://h/v1 m k",
        ),
        (
            Some("openai/m"),
            &[
                ("OPENAI_API_KEY", "k"),
                ("OPENAI_BASE_URL", "https://eu.api.openai.com/v1"),
            ],
            "openai Responses https://eu.api.openai.com/v1 m k",
        ),
        (
            Some("x-ai/m"),
            &[("OPENROUTER_API_KEY", "k")],
            "openrouter Chat https://openrouter.ai/api/v1 x-ai/m k",
        ),
        (
            Some("openai-responses/m"),
            &[("OPENAI_API_KEY", "k"), ("OPENAI_API_BASE", "https://h/v1")],
            "openai-responses Responses https://h/v1 m k",
        ),
        (
            Some("gemini/m"),
            &[
                ("GEMINI_API_KEY", "k"),
                ("GOOGLE_GEMINI_BASE_URL", "https://h/v1beta"),
            ],
            "gemini Gemini https://h/v1beta m k",
        ),
        (
            Some("openai/m"),
            &[
                ("OPENAI_API_KEY", "k"),
                ("OPENAI_BASE_URL", "https://own"),
                server,
            ],
            "openai Chat http://127.0.0.1:1/v1 m k",
        ),
        (
            Some("openai/m"),
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "localhost:1")],
            "OPENAI_BASE_URL is not an http or https URL",
        ),
        (
            Some("antropic/m"),
            &[("ANTHROPIC_API_KEY", "a")],
            "antropic is not a known model provider",
        ),
        (
            Some("openai/m"),
            &[("GROQ_API_KEY", "k")],
            "the built-in agent has no key for openai",
        ),
    ];
    for (model, set, expected) in cases {
        assert_eq!(line(*model, set), *expected, "{model:?} {set:?}");
    }
}

#[test]
fn a_key_is_not_shown() {
    let access = chosen(None, &[("OPENAI_API_KEY", "very-secret")]).unwrap();
    assert!(!format!("{access:?}").contains("very-secret"));
}

#[test]
fn windows_and_prices_are_known_at_the_provider_alone() {
    let key = ("OPENAI_API_KEY", "k");
    let at_home = chosen(Some("openai/gpt-6.1-sol"), &[key]).unwrap();
    assert_eq!(
        (at_home.window_tokens, at_home.response_tokens),
        (272_000, LONG_RESPONSE)
    );
    assert_eq!(at_home.price.map(|price| price.output), Some(10.0));
    let server = (BASE_URL, "http://h/v1");
    for (model, set) in [
        ("openai/gpt-6.1-sol", &[key, server] as Set<'_>),
        ("openai/new", &[key]),
    ] {
        let it = chosen(Some(model), set).unwrap();
        assert_eq!(
            (it.window_tokens, it.response_tokens, it.price),
            (WINDOW, RESPONSE, None)
        );
    }
}

#[test]
fn every_default_is_a_model_that_is_known() {
    for provider in PROVIDERS.iter() {
        let known = provider
            .model
            .map(|model| models::find(provider.name, model));
        assert_ne!(known, Some(None), "{}", provider.name);
    }
}
