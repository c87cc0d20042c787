//! Selects the variables that a child gets.
//!
//! Agents and checks run code that strangers may have written, so they get an allow-list: what programs
//! need to find other programs, the user's language, the network and their toolchains. Secrets and the
//! runner's own variables are not on it.

use crate::domain::text::{begins_with_word, has_word};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

/// Names that are passed on: those of the user and the session, what tools read to see whether a person can answer
/// and test runners whether to write snapshots, the network (programs read proxy settings in either case), and the
/// toolchains, each line for one family.
const NAMES: &str = "
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM NO_COLOR TMPDIR TZ
    CI DEBIAN_FRONTEND
    HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY NO_PROXY http_proxy https_proxy all_proxy ftp_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS
    GIT_SSL_CAINFO
    CC CXX CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH
    RUSTFLAGS RUSTDOCFLAGS RUST_BACKTRACE RUST_TEST_THREADS GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOENV GOFLAGS
    GOINSECURE GOMAXPROCS GONOPROXY GONOSUMDB GOPRIVATE GOPROXY GOSUMDB GOTOOLCHAIN GOVCS CGO_ENABLED
    JAVA_HOME JAVA_TOOL_OPTIONS JDK_HOME JDK_JAVA_OPTIONS GRADLE_OPTS MAVEN_ARGS MAVEN_OPTS MAVEN_HOME M2_HOME
    GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME SBT_HOME ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME
    NVM_DIR NVM_BIN FNM_DIR VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR DENO_INSTALL NODE_PATH
    VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE pythonLocation Python_ROOT_DIR
    Python3_ROOT_DIR
    GEM_HOME GEM_PATH COMPOSER_HOME NUGET_PACKAGES SWIFT_PATH GHCUP_INSTALL_BASE_PREFIX CABAL_DIR STACK_ROOT
    MIX_HOME HEX_HOME FLUTTER_ROOT PUB_CACHE
    SDKMAN_DIR NIX_PATH NIX_PROFILES
";

/// Prefixes of names that are passed on, in either case. Runners set `JAVA_HOME_21_X64` and `GOROOT_1_24_X64` in
/// addition to the plain names. The others configure toolchains, and a machine's guards are among them: without
/// `RUSTUP_AUTO_INSTALL=0` a check installs a toolchain that the machine's owner has refused.
const PREFIXES: &str = "
    LC_ XDG_ JAVA_HOME_ GOROOT_ ASDF_ BUNDLE_ CARGO_ COREPACK_ DOTNET_ HOMEBREW_ MISE_ NPM_CONFIG_ PIPX_ PIP_
    PNPM_CONFIG_ POETRY_ PYENV_ RBENV_ RUSTUP_ UV_ YARN_
";

/// Prefixes of names that are never passed on, even on request: with these variables the runner accepts
/// commands and provides tokens.
const NEVER: &[&str] = &["GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_"];

/// Parts of names that hold secrets, even if their prefix is on the list.
const SECRET_PARTS: &str = "AUTH CREDENTIAL PASSPHRASE PASSWORD SECRET TOKEN";

/// Suffixes of such names.
const SECRET_SUFFIXES: &[&str] = &["_KEY", "_PASS"];

/// A child's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The variables, in the order of the process environment, each name once.
    pub variables: Vec<(OsString, OsString)>,
    /// Requested names that are never passed on, for a warning.
    pub refused: Vec<String>,
}

/// Selects the allow-listed variables and the `extra` names from the process environment. If a name
/// occurs twice, the first value counts, as with `getenv`.
pub fn environment(base: &[(OsString, OsString)], extra: &[String]) -> Environment {
    let mut seen = HashSet::new();
    let variables = base
        .iter()
        .filter(|(name, value)| is_passed_on(name, value, extra) && seen.insert(name))
        .cloned()
        .collect();
    let mut told = HashSet::new();
    let refused = extra
        .iter()
        .filter(|name| is_the_runners(name) && told.insert(*name))
        .cloned()
        .collect();
    Environment { variables, refused }
}

fn is_passed_on(name: &OsStr, value: &OsStr, extra: &[String]) -> bool {
    // A requested name is always valid UTF-8.
    let Some(name) = name.to_str() else {
        return false;
    };
    if is_the_runners(name) {
        return false;
    }
    // npm reads its own in lower case.
    let upper = name.to_ascii_uppercase();
    let by_prefix = || begins_with_word(PREFIXES, &upper) && !has_password(&upper, value);
    ((has_word(NAMES, name) || by_prefix()) && !is_secret(&upper))
        || extra.iter().any(|extra| extra == name)
}

/// Whether the value holds a password: the URL of a private index, or what Bundler takes for a host.
fn has_password(name: &str, value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let is_login = value
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .is_some_and(|authority| authority.contains('@'));
    is_login || (name.starts_with("BUNDLE_") && name.contains("__"))
}

fn is_the_runners(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NEVER.iter().any(|prefix| name.starts_with(prefix))
}

fn is_secret(name: &str) -> bool {
    SECRET_PARTS.split(' ').any(|part| name.contains(part))
        || SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(base: &[&str], extra: &[&str]) -> (Vec<String>, Vec<String>) {
        let base: Vec<_> = base.iter().map(|name| (name.into(), "v".into())).collect();
        let extra: Vec<String> = extra.iter().map(ToString::to_string).collect();
        let chosen = environment(&base, &extra);
        let passed = chosen
            .variables
            .iter()
            .map(|(name, _)| name.to_str().unwrap().to_owned());
        (passed.collect(), chosen.refused)
    }

    type Names<'a> = &'a [&'a str];

    #[test]
    fn the_list_decides_and_extra_names_add_to_it() {
        let cases: [(Names<'_>, Names<'_>, Names<'_>, Names<'_>); 9] = [
            (
                &[
                    "PATH",
                    "HOME",
                    "LC_ALL",
                    "https_proxy",
                    "NO_PROXY",
                    "XDG_CACHE_HOME",
                ],
                &[],
                &[
                    "PATH",
                    "HOME",
                    "LC_ALL",
                    "https_proxy",
                    "NO_PROXY",
                    "XDG_CACHE_HOME",
                ],
                &[],
            ),
            (
                &["CARGO_HOME", "JAVA_HOME_21_X64", "GOROOT"],
                &[],
                &["CARGO_HOME", "JAVA_HOME_21_X64", "GOROOT"],
                &[],
            ),
            (
                &["EDITOR", "AWS_PROFILE", "SSH_AUTH_SOCK", "NODE_OPTIONS"],
                &[],
                &[],
                &[],
            ),
            (
                &[
                    "CARGO_REGISTRY_TOKEN",
                    "OPENAI_API_KEY",
                    "XDG_API_KEY",
                    "LC_TOKEN",
                ],
                &[],
                &[],
                &[],
            ),
            (
                &["OPENAI_API_KEY", "OTHER_API_KEY"],
                &["OPENAI_API_KEY"],
                &["OPENAI_API_KEY"],
                &[],
            ),
            (
                &["SPRAG_AGENT", "SPRAG_RUN_ID"],
                &["SPRAG_RUN_ID"],
                &["SPRAG_RUN_ID"],
                &[],
            ),
            (
                &[
                    "GITHUB_TOKEN",
                    "RUNNER_TEMP",
                    "ACTIONS_ID_TOKEN_REQUEST_URL",
                    "INPUT_PLAN",
                ],
                &[],
                &[],
                &[],
            ),
            (
                &["GITHUB_TOKEN", "RUNNER_TEMP", "MINE"],
                &["GITHUB_TOKEN", "MINE", "Runner_Temp", "GITHUB_TOKEN"],
                &["MINE"],
                &["GITHUB_TOKEN", "Runner_Temp"],
            ),
            (&["PATH", "PATH"], &["PATH", "ABSENT"], &["PATH"], &[]),
        ];
        for (base, extra, passed, refused) in cases {
            let (got_passed, got_refused) = names(base, extra);
            assert_eq!(
                (got_passed, got_refused),
                (
                    passed.iter().map(ToString::to_string).collect(),
                    refused.iter().map(ToString::to_string).collect(),
                ),
                "{base:?} and {extra:?}"
            );
        }
    }

    #[test]
    fn what_configures_a_toolchain_is_passed_on_without_its_secrets() {
        let passed = [
            ("RUSTUP_AUTO_INSTALL", "0"),
            ("CARGO_NET_OFFLINE", "true"),
            ("UV_OFFLINE", "1"),
            ("PIP_REQUIRE_VIRTUALENV", "1"),
            ("PIP_INDEX_URL", "https://pypi.example.org/simple"),
            ("npm_config_registry", "https://npm.example.org/"),
            ("GOFLAGS", "-mod=vendor"),
            ("GOPROXY", "off"),
            ("GOTOOLCHAIN", "local"),
            ("JAVA_TOOL_OPTIONS", "-Xmx1g"),
            ("BUNDLE_FROZEN", "1"),
        ];
        let kept_back = [
            ("CARGO_REGISTRY_TOKEN", "x"),
            ("CARGO_REGISTRIES_MINE_TOKEN", "x"),
            ("UV_INDEX_MINE_PASSWORD", "x"),
            ("PIP_EXTRA_INDEX_URL", "https://a:b@pypi.example.org/"),
            ("npm_config__auth", "x"),
            ("npm_config_//registry.npmjs.org/:_authToken", "x"),
            ("POETRY_PYPI_TOKEN_MINE", "x"),
            ("BUNDLE_GEMS__EXAMPLE__ORG", "a:b"),
            ("HOMEBREW_GITHUB_API_TOKEN", "x"),
        ];
        let all = passed.iter().chain(&kept_back);
        let base: Vec<_> = all
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let found = environment(&base, &[]).variables;
        assert_eq!(found, base[..passed.len()]);
    }

    #[test]
    fn the_first_of_two_values_counts() {
        let base = [("HOME".into(), "/a".into()), ("HOME".into(), "/b".into())];
        assert_eq!(
            environment(&base, &[]).variables,
            [("HOME".into(), "/a".into())]
        );
    }

    #[test]
    fn a_name_that_is_no_text_is_not_passed_on() {
        use std::os::unix::ffi::OsStringExt as _;
        let base = [(OsString::from_vec(b"LC_\xff".to_vec()), "v".into())];
        assert_eq!(environment(&base, &[]), Environment::default());
    }

    proptest! {
        #[test]
        fn nothing_of_the_runner_ever_passes(
            prefix in prop::sample::select(NEVER), rest in "[A-Z_]{0,12}",
        ) {
            let name = format!("{prefix}{rest}");
            let (passed, refused) = names(&[&name], &[&name]);
            prop_assert_eq!((passed, refused), (vec![], vec![name]));
        }
    }
}
