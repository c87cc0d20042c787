//! What a confined child reaches besides the contents of files: what else there is about a file, sockets of
//! other programs, keyrings, terminals and other processes.

use super::*;
use crate::support::user::ORDINARY;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;

/// Sockets with short paths that everybody may connect to, outside of the project.
struct Sockets {
    top: tempfile::TempDir,
    listeners: Vec<UnixListener>,
}

impl Sockets {
    fn new() -> Self {
        let top = tempfile::tempdir_in("/tmp").unwrap();
        let sockets = Self {
            top,
            listeners: Vec::new(),
        };
        sockets.open(sockets.top.path());
        sockets
    }

    fn open(&self, path: &Path) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }

    /// Listens at this path, and returns it.
    fn listen(&mut self, name: &str) -> String {
        let path = self.top.path().join(name);
        let directory = path.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        self.listeners.push(UnixListener::bind(&path).unwrap());
        self.open(directory);
        self.open(&path);
        path.display().to_string()
    }
}

/// A command that prints a word if a socket can be connected to.
fn connect(path: &str, word: &str) -> String {
    format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{path}\"); print(\"{word}\")'\n"
    )
}

#[test]
fn nothing_about_a_file_outside_changes() {
    everywhere(&[3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let victim = project.outside("victim");
        fs::write(&victim, "theirs\n").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o640)).unwrap();
        let about = |path: &Path| {
            let it = path.metadata().unwrap();
            (it.mode(), it.mtime(), it.mtime_nsec())
        };
        let directory = victim.parent().unwrap();
        let before = (about(&victim), directory.metadata().unwrap().mode());
        let agent = format!(
            "for f in {victim} $(dirname {victim}) ~ /proc/self/root{victim}; do\n\
             chmod 777 $f && echo REACHED mode $f; touch -d 2001-01-01 $f && echo REACHED times $f\n\
             chown $(id -u):$(id -g) $f && echo REACHED owner $f\n\
             python3 -c 'import os,sys; os.setxattr(sys.argv[1], \"user.x\", b\"x\")' $f && echo REACHED attribute $f\n\
             python3 -c 'import os,sys; os.fchmod(os.open(sys.argv[1], 0), 0o777)' $f && echo REACHED open $f\n\
             done; ln {victim} hard && echo REACHED link\n\
             mkdir deep; for f in deep \"$TMPDIR/f\" ~/.cache/f; do touch $f && chmod 700 $f && touch -d 2001-01-01 $f && echo INSIDE $f; done\n\
             python3 -c 'import os; os.setxattr(\"deep\", \"user.x\", b\"x\")'; rm -r deep; echo fixed > a.txt",
            victim = victim.display(),
        );
        let Some(run) = run(user, &project, level, &agent, &[]) else {
            return;
        };
        let said = said(&run.expect(0));
        assert!(!said.contains("REACHED"), "{user:?}: {said}");
        for own in ["INSIDE deep", "/f\n", "/.cache/f\n"] {
            assert!(said.contains(own), "{user:?}, {own}: {said}");
        }
        let after = (about(&victim), directory.metadata().unwrap().mode());
        assert_eq!(after, before, "{user:?}");
    });
}

#[test]
fn no_program_outside_is_reached_by_a_socket_but_where_a_place_is_named() {
    everywhere(&[3], |user, level| {
        let project = project(&[]);
        let mut sockets = Sockets::new();
        let closed = sockets.listen("closed/odd name");
        let open = sockets.listen("open/socket");
        let one = sockets.listen("one");
        let reach = connect(&closed, "REACHED");
        project.write(
            "plan.yaml",
            &plan("python3 reach.py || true; grep -q fixed a.txt"),
        );
        let program = reach.split('\'').nth(1).unwrap().replace("; ", "\n");
        project.write("reach.py", &program);
        project.commit_all("plan");
        let agent = [
            &reach,
            &connect(&open, "A DIRECTORY"),
            &connect(&one, "A SOCKET"),
            "python3 -c 'import socket; a, b = socket.socketpair(); s = socket.socket(socket.AF_UNIX)\n\
             s.bind(\"own\"); s.listen(); socket.socket(socket.AF_UNIX).connect(\"own\"); print(\"OWN\")'\n\
             rm own; echo fixed > a.txt",
        ]
        .concat();
        let directory = Path::new(&open).parent().unwrap().display().to_string();
        let more = ["--sandbox-write", &directory, "--sandbox-write", &one];
        let Some(run) = run(user, &project, level, &agent, &more) else {
            return;
        };
        let said = said(&run.expect(0));
        assert!(!said.contains("REACHED"), "{user:?}: {said}");
        for word in ["A DIRECTORY", "A SOCKET", "OWN"] {
            assert!(said.contains(word), "{user:?}, {word}: {said}");
        }
    });
}

#[test]
fn an_agent_does_not_reach_the_programs_of_the_session_by_default() {
    for user in User::all() {
        let mut project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let id = match user {
            User::Own => rustix::process::geteuid().as_raw().to_string(),
            User::Ordinary => ORDINARY.to_owned(),
        };
        let mut sockets = Sockets::new();
        let terminals = sockets.listen(&format!("t/tmux-{id}/default"));
        let session = sockets.listen("r/emacs/server");
        let keys = sockets.listen("r/ssh-agent");
        let database = sockets.listen("database");
        project.env("TMUX_TMPDIR", sockets.top.path().join("t"));
        project.env("XDG_RUNTIME_DIR", sockets.top.path().join("r"));
        project.env("SSH_AUTH_SOCK", &keys);
        if user == User::Own {
            project.env("SPRAG_AGENT_ENV", "SSH_AUTH_SOCK");
        }
        let agent = [
            connect(&terminals, "REACHED terminals"),
            connect(&session, "REACHED session"),
            connect(&keys, "KEYS"),
            connect(&database, "DATABASE"),
            "echo fixed > a.txt".to_owned(),
        ]
        .concat();
        let agent = project.agent(&agent);
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        let missing = run.summary["sandbox"]["missing"].as_str().unwrap_or("");
        if !missing.contains("only `sandbox: require` asks for it") {
            eprintln!("SKIPPED: a child cannot have its own mounts here: {missing}");
            continue;
        }
        let said = said(&run.expect(0));
        assert!(!said.contains("REACHED"), "{user:?}: {said}");
        assert!(said.contains("DATABASE"), "{user:?}: {said}");
        assert_eq!(said.contains("KEYS"), user == User::Own, "{said}");
    }
}

/// Asks for what belongs to the user and not to the child: keys, limits of another process, and the input of a
/// terminal.
const CALLS: &str = r#"
import ctypes, fcntl, mmap, os, platform, resource, sys, termios
libc = ctypes.CDLL(None, use_errno=True)
add, request, keyctl = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
USER = -4
def call(name, *arguments):
    if libc.syscall(*arguments) >= 0:
        print("REACHED", name)
call("the user's keyring", keyctl, 0, USER, 1)
call("a new key", add, b"user", b"sprag-test", b"x", 1, USER)
call("a requested key", request, b"user", b"sprag-test", None, 0)
def in_child(what):
    pid = os.fork()
    if pid == 0:
        try:
            what()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
def by_32_bits():
    # keyctl in the numbers of 32-bit programs.
    code = bytes.fromhex("53b82001000031dbb9fcffffffba01000000cd805bc3")
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() >= 0:
        print("REACHED the user's keyring by another interface", flush=True)
if platform.machine() == "x86_64":
    in_child(by_32_bits)
try:
    resource.prlimit(int(sys.argv[1]), resource.RLIMIT_CPU, (1, 1))
    print("REACHED the limits of another process")
except (PermissionError, ProcessLookupError):
    pass
def type_into_a_terminal():
    os.setsid()
    _, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    fcntl.ioctl(terminal, termios.TIOCGWINSZ, b"x" * 8)
    print("TERMINAL", flush=True)
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    print("REACHED the input of a terminal", flush=True)
in_child(type_into_a_terminal)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.prlimit(0, resource.RLIMIT_NOFILE, (32, 32))
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)
print("OWN")
"#;

#[test]
fn keys_limits_of_others_and_the_input_of_terminals_are_out_of_reach() {
    everywhere(&[2, 3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        fs::write(project.outside("calls.py"), CALLS).unwrap();
        let mut victim = Command::new("sleep");
        victim.arg("600");
        if user == User::Ordinary {
            use std::os::unix::process::CommandExt as _;
            victim.uid(65534).gid(65534);
        }
        let mut victim = victim.spawn().unwrap();
        let agent = format!(
            "python3 {} {}; echo fixed > a.txt",
            project.outside("calls.py").display(),
            victim.id()
        );
        let run = run(user, &project, level, &agent, &[]);
        let alive = victim.try_wait().unwrap().is_none();
        victim.kill().unwrap();
        victim.wait().unwrap();
        let Some(run) = run else { return };
        let said = said(&run.expect(0));
        assert!(alive && !said.contains("REACHED"), "{user:?}: {said}");
        let is_whole = said.contains("OWN") && said.contains("TERMINAL");
        assert!(is_whole, "{user:?}: {said}");
    });
}

#[test]
fn the_terminal_of_the_run_is_not_the_agents() {
    const IN_A_TERMINAL: &str = "import os, pty, sys\n\
        os._exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    everywhere(&[1, 2, 3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let agent = script(
            &project,
            "(echo ESCAPED > /dev/tty) && echo REACHED\n\
             python3 -c 'import pty; pty.spawn([\"sh\", \"-c\", \"echo OWN > /dev/tty\"])' < /dev/null\n\
             echo fixed > a.txt",
        );
        let required = strict(level);
        let args = [
            "run",
            "--plan",
            "plan.yaml",
            "--agent-command",
            &agent,
            "--sandbox",
        ];
        let args: Vec<&str> = args.into_iter().chain([required.as_str()]).collect();
        let Some(inner) = user.command(&project, &args) else {
            return;
        };
        let words = [inner.get_program()]
            .into_iter()
            .chain(inner.get_args())
            .map(|word| word.to_str().unwrap());
        let all: Vec<&str> = ["-c", IN_A_TERMINAL].into_iter().chain(words).collect();
        let mut command = project.program("python3", &all);
        command.env("SPRAG_SANDBOX_LIMIT", level.to_string());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let run = project.finished(&output).expect(0);
        let said = said(&run);
        assert!(
            said.contains("OWN") && !said.contains("REACHED"),
            "{user:?}: {said}"
        );
        assert!(!run.stdout.contains("ESCAPED"), "{user:?}: {}", run.stdout);
    });
}

#[test]
fn a_socket_that_is_hidden_cannot_be_moved_to_where_it_is_not() {
    for user in User::all() {
        let text =
            plan("true").replace("id: fix", "id: first") + "  - id: second\n    title: Second\n";
        let mut project = project(&[("plan.yaml", &text)]);
        let id = match user {
            User::Own => rustix::process::geteuid().as_raw().to_string(),
            User::Ordinary => ORDINARY.to_owned(),
        };
        let mut sockets = Sockets::new();
        let directory = format!("t/tmux-{id}");
        sockets.listen(&format!("{directory}/default"));
        let top = sockets.top.path().to_path_buf();
        sockets.open(&top.join("t"));
        project.env("TMUX_TMPDIR", top.join("t"));
        let reach = |at: &str| connect(&top.join(at).display().to_string(), "REACHED");
        let agent = format!(
            "mv {at} {moved} && echo REACHED; mv {top}/t {top}/u && echo REACHED\n\
             {}{}{}echo x >> \"$SPRAG_TASK_ID\"; echo \"TURN $SPRAG_TASK_ID\"",
            reach(&format!("{directory}/default")),
            reach("t/moved/default"),
            reach(&format!("u/tmux-{id}/default")),
            at = top.join(&directory).display(),
            moved = top.join("t/moved").display(),
            top = top.display(),
        );
        let agent = project.agent(&agent);
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        let missing = run.summary["sandbox"]["missing"].as_str().unwrap_or("");
        if !missing.contains("only `sandbox: require` asks for it") {
            eprintln!("SKIPPED: a child cannot have its own mounts here: {missing}");
            continue;
        }
        let said = said(&run.expect(0));
        let is_at_work = |task: &str| said.contains(&format!("TURN {task}"));
        assert!(
            is_at_work("first") && is_at_work("second"),
            "{user:?}: {said}"
        );
        assert!(!said.contains("REACHED"), "{user:?}: {said}");
    }
}

#[test]
fn terminals_of_others_are_not_there() {
    everywhere(&[3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        // This makes a terminal of the machine.
        let _terminal = fs::File::open("/dev/ptmx").unwrap();
        let agent = "for t in /dev/pts/[0-9]*; do [ -e $t ] && echo REACHED $t; done\n\
                     python3 -c 'import os, pty; print(\"OWN\", os.ttyname(pty.openpty()[1]))'; echo fixed > a.txt";
        let Some(run) = run(user, &project, level, agent, &[]) else {
            return;
        };
        let said = said(&run.expect(0));
        let is_own = said.contains("OWN /dev/pts/0");
        assert!(is_own && !said.contains("REACHED"), "{user:?}: {said}");
    });
}
