//! What one snapshot costs beside `git status --porcelain -uall` and beside the fingerprint that
//! earlier tools take: `git diff HEAD | sha256sum` and the sha256 of every untracked file.
//!
//! `cargo bench --bench snapshot [-- 1k 10k 100k untracked cold]`; without a name, all of them.
//! The sides take turns, so that a busy machine slows each of them: read the ratios.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measuring program: it starts git itself, prints, and gives up at the first surprise"
)]

use nix::sys::resource::{UsageWho, getrusage};
use sprag::git::{Environment, Exempt, Repo, discover};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A repository to be measured in.
struct Case {
    name: &'static str,
    title: &'static str,
    files: usize,
    modified: usize,
    untracked: usize,
    rounds: usize,
    cold: bool,
}

const WARM: Case = Case {
    name: "",
    title: "",
    files: 0,
    modified: 100,
    untracked: 0,
    rounds: 11,
    cold: false,
};

const CASES: [Case; 6] = [
    Case {
        name: "1k",
        title: "1,000 files, 20 modified",
        files: 1_000,
        modified: 20,
        rounds: 101,
        ..WARM
    },
    Case {
        name: "10k",
        title: "10,000 files, 50 modified",
        files: 10_000,
        modified: 50,
        rounds: 41,
        ..WARM
    },
    Case {
        name: "100k",
        title: "100,000 files, 100 modified",
        files: 100_000,
        ..WARM
    },
    Case {
        name: "untracked",
        title: "100,000 files, 100 modified, 20,000 untracked",
        files: 100_000,
        untracked: 20_000,
        ..WARM
    },
    Case {
        name: "cold",
        title: "10,000 files, 50 modified, index without valid stat data",
        files: 10_000,
        modified: 50,
        cold: true,
        ..WARM
    },
    Case {
        name: "cold",
        title: "100,000 files, 100 modified, index without valid stat data",
        files: 100_000,
        rounds: 3,
        cold: true,
        ..WARM
    },
];

const FILE_BYTES: usize = 2_000;
const FILES_PER_DIRECTORY: usize = 20;
const PRIOR: &str = "git diff HEAD | sha256sum; \
    git ls-files -o --exclude-standard -z | xargs -0 -r sha256sum | sha256sum";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["memory-of-status", root] => return print_peaks(|| Fixture::at(root).status()),
        ["memory-of-snapshot", root] => return print_peaks(|| Fixture::at(root).reopen_and_look()),
        _ => {}
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let known = |name: &str| CASES.iter().any(|case| case.name == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        panic!("no such case: {unknown} (1k, 10k, 100k, untracked, cold)");
    }
    print_machine();
    for case in &CASES {
        if wanted.is_empty() || wanted.iter().any(|name| *name == case.name) {
            println!("\n{}", case.title);
            let dir = tempfile::tempdir().unwrap();
            let ground = Fixture::make(dir.path(), case);
            if case.cold {
                ground.measure_cold(case);
            } else {
                ground.measure_warm(case);
            }
        }
    }
    println!(
        "\nms: median over the rounds. ratio: median over the rounds of the time beside that of git status in the same round.\n\
         memory: peak resident set of a process that does nothing else; of the snapshot, its own and that of its largest git,\n\
         as if both fell on one moment."
    );
}

fn print_machine() {
    let git = Command::new("git").arg("--version").output().unwrap();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    println!(
        "{}, {} CPUs, Linux {}, load {}",
        String::from_utf8_lossy(&git.stdout).trim(),
        std::thread::available_parallelism().unwrap(),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").trim(),
    );
}

/// A repository `repo`, a home and a run directory below one root.
struct Fixture {
    root: PathBuf,
    environment: Vec<(&'static str, std::ffi::OsString)>,
}

impl Fixture {
    fn at(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref().to_path_buf();
        let environment = vec![
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", root.clone().into_os_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("LC_ALL", "C".into()),
        ];
        Self { root, environment }
    }

    fn make(root: &Path, case: &Case) -> Self {
        let ground = Self::at(root);
        fs::create_dir_all(ground.file("build")).unwrap();
        ground.git(&["init", "-q", "-b", "main"]);
        ground.import(case);
        ground.git(&["reset", "-q", "--hard"]);
        for number in 0..case.files / 10 {
            fs::write(ground.file(&format!("build/o{number}")), content(number)).unwrap();
        }
        for number in 0..case.modified {
            let path = ground.file(&tracked(number * (case.files / case.modified)));
            fs::write(path, content(case.files + number) + "modified\n").unwrap();
        }
        for number in 0..case.untracked {
            let directory = ground.file(&format!("new/d{}", number / 100));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("u{number}")), content(number)).unwrap();
        }
        ground
    }

    /// One commit of all files, in a pack as after a clone.
    fn import(&self, case: &Case) {
        let mut child = self.command("git", &["fast-import", "--quiet"]);
        let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
        let mut stream = std::io::BufWriter::new(child.stdin.take().unwrap());
        let who = "committer Bench <bench@example.invalid> 1700000000 +0000";
        write!(stream, "commit refs/heads/main\n{who}\ndata 4\nbase\n").unwrap();
        let ignore = (".gitignore".to_owned(), "build/\n".to_owned());
        let files = (0..case.files).map(|number| (tracked(number), content(number)));
        for (path, content) in files.chain([ignore]) {
            let length = content.len();
            write!(stream, "M 644 inline {path}\ndata {length}\n{content}\n").unwrap();
        }
        drop(stream);
        assert!(child.wait().unwrap().success());
    }

    fn measure_warm(&self, case: &Case) {
        self.status();
        let repo = self.create();
        let looks = || repo.snapshot(&Exempt::default()).unwrap();
        assert_eq!(looks().changes.len(), case.modified + case.untracked);
        let sides: [(&str, &dyn Fn()); 3] = [
            ("git status --porcelain -uall", &|| self.status()),
            ("snapshot", &|| drop(looks())),
            ("diff HEAD and sha256 (prior)", &|| self.prior()),
        ];
        sides.iter().for_each(|(_, side)| side());
        let times = round_robin(case.rounds, &sides.map(|(_, side)| side));
        for ((name, _), times_of_side) in sides.iter().zip(&times) {
            print_row(name, times_of_side, &times[0]);
        }
        print_row("snapshot beside prior", &times[1], &times[2]);
        self.print_memory();
    }

    /// Before every round all files get a time that no index has seen.
    fn measure_cold(&self, case: &Case) {
        let repo = self.create();
        let look = || drop(repo.snapshot(&Exempt::default()).unwrap());
        let forget = |round: u64| {
            let time = SystemTime::now() - Duration::from_secs(1_000 + round);
            for number in 0..case.files {
                let path = self.file(&tracked(number));
                let file = fs::File::options().append(true).open(path).unwrap();
                file.set_modified(time).unwrap();
            }
        };
        let sides: [&dyn Fn(); 4] = [&|| self.status(), &look, &|| self.status(), &look];
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); sides.len()];
        for round in 1..=case.rounds {
            forget(round as u64);
            for (side, times) in sides.iter().zip(&mut times) {
                times.push(timed(*side));
            }
        }
        print_row("git status, cold", &times[0], &times[0]);
        print_row("snapshot, cold", &times[1], &times[0]);
        print_row("git status, the next", &times[2], &times[2]);
        print_row("snapshot, the next", &times[3], &times[2]);
    }

    fn print_memory(&self) {
        let peaks = |mode: &str| -> Vec<u64> {
            let me = std::env::current_exe().unwrap();
            let root = self.root.to_str().unwrap();
            let mut command = self.command(me.to_str().unwrap(), &[mode, root]);
            let output = command.stdout(Stdio::piped()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect()
        };
        let (status, snapshot) = (peaks("memory-of-status"), peaks("memory-of-snapshot"));
        println!(
            "  memory: git status {:.1} MiB; snapshot {:.1} MiB itself and {:.1} MiB its largest git: {:.2}",
            mebibytes(status[1]),
            mebibytes(snapshot[0]),
            mebibytes(snapshot[1]),
            mebibytes(snapshot[0] + snapshot[1]) / mebibytes(status[1]),
        );
    }

    fn create(&self) -> Repo {
        Repo::create(self.discovered(), &self.root.join("run")).unwrap()
    }

    fn reopen_and_look(&self) {
        let repo = Repo::reopen(self.discovered(), &self.root.join("run")).unwrap();
        repo.snapshot(&Exempt::default()).unwrap();
    }

    fn discovered(&self) -> sprag::git::Real {
        let variables = self.environment.iter();
        let environment =
            Environment::new(variables.map(|(name, value)| ((*name).into(), value.clone())));
        discover(&self.root.join("repo"), &environment).unwrap()
    }

    fn status(&self) {
        self.git(&["status", "--porcelain", "-uall"]);
    }

    fn prior(&self) {
        let mut command = self.command("sh", &["-c", PRIOR]);
        assert!(command.status().unwrap().success());
    }

    fn git(&self, args: &[&str]) {
        assert!(self.command("git", args).status().unwrap().success());
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.file("."));
        command.env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn file(&self, path: &str) -> PathBuf {
        self.root.join("repo").join(path)
    }
}

fn tracked(number: usize) -> String {
    let directory = number / FILES_PER_DIRECTORY;
    format!("d{}/s{}/f{number}.txt", directory / 50, directory % 50)
}

fn content(number: usize) -> String {
    let mut text = String::with_capacity(FILE_BYTES + 64);
    while text.len() < FILE_BYTES {
        let seed = (number + text.len()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text.push_str(&format!("{seed:x} line of file {number}\n"));
    }
    text
}

fn round_robin(rounds: usize, sides: &[&dyn Fn()]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); sides.len()];
    for _ in 0..rounds {
        for (side, times) in sides.iter().zip(&mut times) {
            times.push(timed(side));
        }
    }
    times
}

/// How long `side` takes, in milliseconds.
fn timed(side: &dyn Fn()) -> f64 {
    let began = Instant::now();
    side();
    began.elapsed().as_secs_f64() * 1_000.0
}

fn print_row(name: &str, times: &[f64], beside: &[f64]) {
    let ratios = times.iter().zip(beside).map(|(time, other)| time / other);
    let (time, ratio) = (median(times.iter().copied()), median(ratios));
    println!("  {name:<30} {time:>9.1} ms {ratio:>7.2}");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs `side` alone in this process, and prints in KiB the peak of the process and of its largest child.
fn print_peaks(side: impl Fn()) {
    side();
    let peak = |who| getrusage(who).unwrap().max_rss();
    println!(
        "{} {}",
        peak(UsageWho::RUSAGE_SELF),
        peak(UsageWho::RUSAGE_CHILDREN)
    );
}

fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1_024.0
}
