//! Selects the variables that a child gets.
//!
//! Agents and checks run code that strangers may have written, so they get an allow-list: what programs
//! need to find other programs, the user's language, the network and their toolchains. Secrets and the
//! runner's own variables are not on it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

/// Names that are passed on.
const NAMES: &[&str] = &[
    // The user and the session.
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "TZ",
    // Tools check these to see whether a person can answer, test runners whether to write snapshots.
    "CI",
    "DEBIAN_FRONTEND",
    // The network. Programs read proxy settings in either case.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "FTP_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "ftp_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    // C and C++.
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    // Rust.
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUSTFLAGS",
    // Go.
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPROXY",
    "GOFLAGS",
    "GOTOOLCHAIN",
    // Java and its relatives.
    "JAVA_HOME",
    "JDK_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "KOTLIN_HOME",
    "SBT_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ANDROID_NDK_HOME",
    // JavaScript.
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "COREPACK_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "DENO_INSTALL",
    "NODE_PATH",
    // Python.
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "UV_CACHE_DIR",
    "PIPX_HOME",
    "POETRY_HOME",
    "pythonLocation",
    "Python_ROOT_DIR",
    "Python3_ROOT_DIR",
    // Ruby, PHP, .NET, Swift, Haskell, Elixir, Dart.
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "BUNDLE_GEMFILE",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "COMPOSER_HOME",
    "DOTNET_ROOT",
    "DOTNET_CLI_HOME",
    "NUGET_PACKAGES",
    "SWIFT_PATH",
    "GHCUP_INSTALL_BASE_PREFIX",
    "CABAL_DIR",
    "STACK_ROOT",
    "MIX_HOME",
    "HEX_HOME",
    "FLUTTER_ROOT",
    "PUB_CACHE",
    // Version managers and package managers for all of them.
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "MISE_CONFIG_DIR",
    "SDKMAN_DIR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_CELLAR",
    "HOMEBREW_REPOSITORY",
    "NIX_PATH",
    "NIX_PROFILES",
];

/// Prefixes of names that are passed on. Runners set `JAVA_HOME_21_X64` and `GOROOT_1_24_X64` in
/// addition to the plain names.
const PREFIXES: &[&str] = &["LC_", "XDG_", "JAVA_HOME_", "GOROOT_"];

/// Prefixes of names that are never passed on, even on request: with these variables the runner accepts
/// commands and provides tokens.
const NEVER: &[&str] = &["GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_"];

/// Suffixes of names that hold secrets, even if their prefix is on the list.
const SECRET_SUFFIXES: &[&str] = &[
    "_TOKEN",
    "_API_KEY",
    "_SECRET",
    "_PASSWORD",
    "_ACCESS_KEY",
    "_PRIVATE_KEY",
    "_CREDENTIALS",
];

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
        .filter(|(name, _)| is_passed_on(name, extra) && seen.insert(name))
        .cloned()
        .collect();
    let mut refused: Vec<String> = Vec::new();
    for name in extra.iter().filter(|name| is_the_runners(name)) {
        if !refused.contains(name) {
            refused.push(name.clone());
        }
    }
    Environment { variables, refused }
}

fn is_passed_on(name: &OsStr, extra: &[String]) -> bool {
    // A requested name is always valid UTF-8.
    let Some(name) = name.to_str() else {
        return false;
    };
    if is_the_runners(name) {
        return false;
    }
    let listed = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    (listed && !is_secret(name)) || extra.iter().any(|extra| extra == name)
}

fn is_the_runners(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NEVER.iter().any(|prefix| name.starts_with(prefix))
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
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
