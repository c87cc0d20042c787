//! The directories where common tools store downloads and build results, and where they install
//! programs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The directories of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// A program of the tool. If it is installed or the base directory exists, missing directories are created. Without
    /// one they are always created.
    pub program: &'static str,
    /// The variable that names the base directory; empty if there is none.
    pub variable: &'static str,
    /// The default base directory, relative to the home directory; empty for none.
    pub base: &'static str,
    /// The writable entries below it, separated by spaces; all of it if empty.
    pub below: &'static str,
    /// Those of them that are files, such as locks. An empty one is created like a directory.
    pub files: &'static str,
}

impl Cache {
    const fn with(self, files: &'static str) -> Self {
        Self { files, ..self }
    }
}

const fn row(
    program: &'static str,
    variable: &'static str,
    base: &'static str,
    below: &'static str,
) -> Cache {
    Cache {
        program,
        variable,
        base,
        below,
        files: "",
    }
}

/// The directories outside of the work tree that agents, checks and hooks may write.
pub static CACHES: &[Cache] = &[
    row("", "XDG_CACHE_HOME", ".cache", ""),
    row("cargo", "CARGO_HOME", ".cargo", "registry git")
        .with(".package-cache .package-cache-mutate .global-cache"),
    row("rustup", "RUSTUP_HOME", ".rustup", "tmp"),
    row("", "CARGO_TARGET_DIR", "", ""),
    row("npm", "npm_config_cache", ".npm", ""),
    row("yarn", "YARN_CACHE_FOLDER", ".yarn", "berry/cache"),
    row("bun", "BUN_INSTALL_CACHE_DIR", ".bun/install/cache", ""),
    row("pnpm", "", ".local/share/pnpm/store", ""),
    row("", "DENO_DIR", "", ""),
    row("go", "GOPATH", "go", "pkg"),
    row("", "GOCACHE", "", ""),
    row("", "GOMODCACHE", "", ""),
    row("", "UV_CACHE_DIR", "", ""),
    row(
        "gradle",
        "GRADLE_USER_HOME",
        ".gradle",
        "caches daemon native notifications wrapper workers .tmp jdks",
    ),
    row("mvn", "", ".m2", "repository wrapper"),
    row("sbt", "", ".sbt", "boot"),
    row("sbt", "", ".ivy2", "cache local"),
    row("dotnet", "NUGET_PACKAGES", ".nuget/packages", ""),
    row("dotnet", "", ".local/share/NuGet", ""),
    row("composer", "COMPOSER_HOME", ".composer", "cache"),
    row("bundle", "", ".bundle", "cache"),
    row("cabal", "CABAL_DIR", ".cabal", "packages store"),
    row("stack", "STACK_ROOT", ".stack", "pantry snapshots"),
    row("mix", "HEX_HOME", ".hex", "packages").with("cache.ets"),
    row("dart", "PUB_CACHE", ".pub-cache", "hosted git"),
    row("ccache", "CCACHE_DIR", ".ccache", ""),
    row("docker", "DOCKER_CONFIG", ".docker", "buildx"),
    row("uv", "", ".local/share/uv", ""),
    row("pipenv", "WORKON_HOME", ".local/share/virtualenvs", ""),
    row("hatch", "", ".local/share/hatch", ""),
    row("pdm", "", ".local/share/pdm", ""),
];

/// Further directories where `setup` may install tools.
pub static TOOLS: &[Cache] = &[
    row("", "VIRTUAL_ENV", "", ""),
    row("", "pythonLocation", "", ""),
    row("", "CONDA_PREFIX", "", ""),
    row("pip", "", ".local", "bin lib"),
    row("cargo", "CARGO_HOME", ".cargo", "bin"),
    row("rustup", "RUSTUP_HOME", ".rustup", ""),
    row("go", "GOPATH", "go", "bin"),
    row("", "GOBIN", "", ""),
    row("", "PNPM_HOME", "", ""),
    row("", "GEM_HOME", "", ""),
    row("", "NVM_DIR", "", ""),
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
        // A wrapper in the repository may be the only program of a tool.
        let made = cache.program.is_empty() || is_there(cache.program) || base.is_dir();
        let place = |path: PathBuf, is_file: bool| Place {
            path,
            made,
            is_file,
        };
        let is_whole = cache.below.is_empty() && cache.files.is_empty();
        places.extend(is_whole.then(|| place(base.clone(), false)));
        let directories = cache.below.split_whitespace();
        places.extend(directories.map(|name| place(base.join(name), false)));
        let files = cache.files.split_whitespace();
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
            row("cargo", "CARGO_HOME", ".cargo", "registry").with(".lock"),
            row("go", "GOPATH", "go", "pkg"),
            row("", "GOCACHE", "", ""),
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
        // The directory of a tool that only a wrapper in the repository starts.
        let home = tempfile::tempdir().unwrap();
        for (is_there, made) in [(false, false), (true, true)] {
            if is_there {
                fs::create_dir(home.path().join(".gradle")).unwrap();
            }
            let table = [row("gradle", "", ".gradle", "wrapper")];
            let found = places(&table, &[], Some(home.path()), |_| false);
            assert_eq!(found[0].made, made);
        }
    }

    #[test]
    fn no_cache_is_a_directory_of_programs() {
        for cache in CACHES {
            let below = cache.below.split_whitespace();
            let all = below.chain(cache.files.split_whitespace());
            let all = all.chain([cache.base]);
            for name in all {
                assert!(!name.ends_with("bin"), "{name}");
            }
        }
    }
}
