//! The directories where common tools store downloads and build results, and where they install
//! programs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The directories of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// A program of the tool. If it is installed, missing directories are created. `None`: they are
    /// always created.
    pub program: Option<&'static str>,
    /// The variable that names the base directory; empty if there is none.
    pub variable: &'static str,
    /// The default base directory, relative to the home directory; empty for none.
    pub base: &'static str,
    /// The writable entries below it; all of it if empty.
    pub below: &'static [&'static str],
}

const fn row(
    program: Option<&'static str>,
    variable: &'static str,
    base: &'static str,
    below: &'static [&'static str],
) -> Cache {
    Cache {
        program,
        variable,
        base,
        below,
    }
}

/// The directories outside of the work tree that agents, checks and hooks may write.
pub static CACHES: &[Cache] = &[
    row(None, "XDG_CACHE_HOME", ".cache", &[]),
    row(
        Some("cargo"),
        "CARGO_HOME",
        ".cargo",
        &[
            "registry",
            "git",
            ".package-cache",
            ".package-cache-mutate",
            ".global-cache",
        ],
    ),
    row(None, "CARGO_TARGET_DIR", "", &[]),
    row(Some("npm"), "npm_config_cache", ".npm", &[]),
    row(Some("yarn"), "YARN_CACHE_FOLDER", ".yarn", &["berry/cache"]),
    row(
        Some("bun"),
        "BUN_INSTALL_CACHE_DIR",
        ".bun/install/cache",
        &[],
    ),
    row(Some("pnpm"), "", ".local/share/pnpm/store", &[]),
    row(None, "DENO_DIR", "", &[]),
    row(Some("go"), "GOPATH", "go", &["pkg"]),
    row(None, "GOCACHE", "", &[]),
    row(None, "GOMODCACHE", "", &[]),
    row(None, "UV_CACHE_DIR", "", &[]),
    row(
        Some("gradle"),
        "GRADLE_USER_HOME",
        ".gradle",
        &[
            "caches",
            "daemon",
            "native",
            "notifications",
            "wrapper",
            "workers",
            ".tmp",
            "jdks",
        ],
    ),
    row(Some("mvn"), "", ".m2", &["repository", "wrapper"]),
    row(Some("sbt"), "", ".sbt", &["boot"]),
    row(Some("sbt"), "", ".ivy2", &["cache", "local"]),
    row(Some("dotnet"), "NUGET_PACKAGES", ".nuget/packages", &[]),
    row(Some("dotnet"), "", ".local/share/NuGet", &[]),
    row(Some("composer"), "COMPOSER_HOME", ".composer", &["cache"]),
    row(Some("bundle"), "", ".bundle", &["cache"]),
    row(Some("cabal"), "CABAL_DIR", ".cabal", &["packages", "store"]),
    row(
        Some("stack"),
        "STACK_ROOT",
        ".stack",
        &["pantry", "snapshots"],
    ),
    row(Some("mix"), "HEX_HOME", ".hex", &["packages", "cache.ets"]),
    row(Some("dart"), "PUB_CACHE", ".pub-cache", &["hosted", "git"]),
    row(Some("ccache"), "CCACHE_DIR", ".ccache", &[]),
    row(Some("docker"), "DOCKER_CONFIG", ".docker", &["buildx"]),
    row(Some("uv"), "", ".local/share/uv", &[]),
    row(
        Some("pipenv"),
        "WORKON_HOME",
        ".local/share/virtualenvs",
        &[],
    ),
    row(Some("hatch"), "", ".local/share/hatch", &[]),
    row(Some("pdm"), "", ".local/share/pdm", &[]),
];

/// Further directories where `setup` may install tools.
pub static TOOLS: &[Cache] = &[
    row(None, "VIRTUAL_ENV", "", &[]),
    row(None, "pythonLocation", "", &[]),
    row(None, "CONDA_PREFIX", "", &[]),
    row(Some("pip"), "", ".local", &["bin", "lib"]),
    row(Some("cargo"), "CARGO_HOME", ".cargo", &["bin"]),
    row(Some("rustup"), "RUSTUP_HOME", ".rustup", &[]),
    row(Some("go"), "GOPATH", "go", &["bin"]),
    row(None, "GOBIN", "", &[]),
    row(None, "PNPM_HOME", "", &[]),
    row(None, "GEM_HOME", "", &[]),
    row(None, "NVM_DIR", "", &[]),
];

/// A directory or file of a table on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is created if it does not exist.
    pub made: bool,
}

/// The paths of a table for a child with these variables.
pub fn places(
    table: &[Cache],
    env: &[(OsString, OsString)],
    home: Option<&Path>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<Place> {
    let value = |name: &str| -> Option<&OsStr> {
        let found = env.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_os_str())
    };
    let mut places = Vec::new();
    for cache in table {
        let named = value(cache.variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let usual = || {
            home.filter(|_| !cache.base.is_empty())
                .map(|home| home.join(cache.base))
        };
        let Some(base) = named.or_else(usual) else {
            continue;
        };
        let made = cache.program.is_none_or(&is_there);
        let all = cache.below.is_empty();
        places.extend(all.then(|| Place {
            path: base.clone(),
            made,
        }));
        places.extend(cache.below.iter().map(|name| Place {
            path: base.join(name),
            // A name with a dot is a file, which is not created.
            made: made && !name.contains('.'),
        }));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_names_a_directory_wins_over_the_home() {
        let env = [
            ("CARGO_HOME".into(), "/cargo".into()),
            ("GOPATH".into(), "relative".into()),
        ];
        let table = [
            row(
                Some("cargo"),
                "CARGO_HOME",
                ".cargo",
                &["registry", ".lock"],
            ),
            row(Some("go"), "GOPATH", "go", &["pkg"]),
            row(None, "GOCACHE", "", &[]),
        ];
        let found = places(&table, &env, Some(Path::new("/home/a")), |program| {
            program == "cargo"
        });
        let place = |path: &str, made| Place {
            path: path.into(),
            made,
        };
        let expected = [
            place("/cargo/registry", true),
            place("/cargo/.lock", false),
            place("/home/a/go/pkg", false),
        ];
        assert_eq!(found, expected);
        assert_eq!(places(&table[1..], &env, None, |_| true), []);
    }

    #[test]
    fn no_cache_is_a_directory_of_programs() {
        for cache in CACHES {
            let all = cache.below.iter().chain([&cache.base]);
            for name in all {
                assert!(!name.ends_with("bin"), "{name}");
            }
        }
    }
}
