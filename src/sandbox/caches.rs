//! The directories where common tools store downloads and build results, and where they install
//! programs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
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
    /// Those of them that are files, such as locks. An empty one is created like a directory.
    pub files: &'static [&'static str],
}

impl Cache {
    const fn with(self, files: &'static [&'static str]) -> Self {
        Self { files, ..self }
    }
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
        files: &[],
    }
}

/// The directories outside of the work tree that agents, checks and hooks may write.
pub static CACHES: &[Cache] = &[
    row(None, "XDG_CACHE_HOME", ".cache", &[]),
    row(Some("cargo"), "CARGO_HOME", ".cargo", &["registry", "git"]).with(&[
        ".package-cache",
        ".package-cache-mutate",
        ".global-cache",
    ]),
    row(Some("rustup"), "RUSTUP_HOME", ".rustup", &["tmp"]),
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
    row(Some("mix"), "HEX_HOME", ".hex", &["packages"]).with(&["cache.ets"]),
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
    /// Whether it is a file.
    pub is_file: bool,
}

impl Place {
    /// A directory that is created.
    pub fn directory(path: PathBuf) -> Self {
        Self {
            path,
            made: true,
            is_file: false,
        }
    }

    /// Creates it. What is there already stays as it is.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn make(&self) -> io::Result<()> {
        if !self.is_file {
            return fs::create_dir_all(&self.path);
        }
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new("/")))?;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path);
        file.map(drop)
    }
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
        let place = |path: PathBuf, is_file: bool| Place {
            path,
            made,
            is_file,
        };
        let is_whole = cache.below.is_empty() && cache.files.is_empty();
        places.extend(is_whole.then(|| place(base.clone(), false)));
        let directories = cache.below.iter();
        places.extend(directories.map(|name| place(base.join(name), false)));
        let files = cache.files.iter();
        places.extend(files.map(|name| place(base.join(name), true)));
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
            row(Some("cargo"), "CARGO_HOME", ".cargo", &["registry"]).with(&[".lock"]),
            row(Some("go"), "GOPATH", "go", &["pkg"]),
            row(None, "GOCACHE", "", &[]),
        ];
        let found = places(&table, &env, Some(Path::new("/home/a")), |program| {
            program == "cargo"
        });
        let place = |path: &str, made, is_file| Place {
            path: path.into(),
            made,
            is_file,
        };
        let expected = [
            place("/cargo/registry", true, false),
            place("/cargo/.lock", true, true),
            place("/home/a/go/pkg", false, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(places(&table[1..], &env, None, |_| true), []);
    }

    #[test]
    fn no_cache_is_a_directory_of_programs() {
        for cache in CACHES {
            let all = cache.below.iter().chain(cache.files).chain([&cache.base]);
            for name in all {
                assert!(!name.ends_with("bin"), "{name}");
            }
        }
    }
}
