//! The network allow-list: what is reached by the proxy, and what cannot be reached past it.

use crate::support::has;
use crate::support::http::{Reply, Request, Response, Server};
use crate::support::project::{Project, Run, plan};
use crate::support::user::User;
use serde_json::{Value, json};
use sprag::domain::output_schema::OutputSchema;
use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A project whose children are confined as the defaults say, and a server of this machine.
struct World {
    project: Project,
    port: u16,
    asked: Arc<Mutex<Vec<Request>>>,
    _server: Server,
}

/// Its check is the script `check.sh`.
fn world(check: &str) -> World {
    let mut project = Project::new(&[
        ("a.txt", "broken\n"),
        ("check.sh", check),
        ("plan.yaml", &plan("sh check.sh")),
    ]);
    project.env("SPRAG_SANDBOX", "auto");
    let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
    let of_server = Arc::clone(&asked);
    let server = Server::start(move |request| {
        of_server.lock().unwrap().push(request.clone());
        Reply::Answer(Response {
            status: 200,
            body: b"hello".to_vec(),
            ..Response::default()
        })
    })
    .unwrap();
    let port = server.url().rsplit(':').next().unwrap().parse().unwrap();
    World {
        project,
        port,
        asked,
        _server: server,
    }
}

impl World {
    fn run(&self, script: &str, args: &[&str]) -> Run {
        self.project.run(&self.project.agent(script), args)
    }

    /// The same as some user; `None` where that user cannot reach the project.
    fn run_as(&self, user: User, script: &str, args: &[&str]) -> Option<Run> {
        let agent = self.project.agent(script);
        let all = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        let notes = self.project.outside("").display().to_string();
        let all = all.into_iter().chain(args.iter().copied());
        let all: Vec<&str> = all.chain(["--sandbox-write", &notes]).collect();
        user.sprag(&self.project, &all)
    }

    fn paths(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|it| it.target.clone()).collect()
    }
}

const FIXED: &str = "grep -q fixed a.txt\n";

fn network(run: &Run) -> &Value {
    &run.summary["sandbox"]["network"]
}

fn denied(run: &Run) -> Vec<&str> {
    let denied = network(run)["denied"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter();
    denied.map(|it| it["host"].as_str().unwrap()).collect()
}

/// A function that notes under a name whether something succeeded.
const TRY: &str = r#"try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name reached"; else echo "$name not"; fi >> $OUT/tries; }
"#;

#[test]
fn what_is_allowed_is_reached_and_what_is_not_is_named() {
    let world = world(FIXED);
    let port = world.port;
    let script = format!(
        r#"code() {{ curl -s -o /dev/null -w '%{{http_code}} %{{http_connect}}\n' "$@" >> $OUT/codes; }}
        code http://127.0.0.1:{port}/plain
        code -p http://127.0.0.1:{port}/tunnel
        code http://localhost:{port}/by-name
        code http://LOCALHOST:{port}/by-another-name
        code http://not-allowed.example.invalid/
        code https://tunnelled.example.invalid/
        code http://169.254.169.254/latest/meta-data
        code --noproxy '' 'http://[::1]:{port}/'
        echo fixed > a.txt"#
    );
    let args = [
        "--network-allow",
        "127.0.0.1",
        "--network-allow",
        "localhost",
    ];
    let run = world.run(&script, &args).expect(0);
    // What `localhost` stands for is allowed by itself.
    let expected = [
        "200 000", "200 200", "200 000", "200 000", "403 000", "000 403", "403 000", "403 000",
    ];
    assert_eq!(world.project.notes("codes"), expected, "{}", network(&run));
    let paths = ["/plain", "/tunnel", "/by-name", "/by-another-name"];
    assert_eq!(world.paths(), paths);
    let hosts = [
        "169.254.169.254",
        "[::1]",
        "not-allowed.example.invalid",
        "tunnelled.example.invalid",
    ];
    assert_eq!(denied(&run), hosts);
    assert_eq!(network(&run)["allow"], json!(["127.0.0.1", "localhost"]));
    let mut events = run.events.iter();
    let event = events.find(|it| it["event"] == "network.denied").unwrap();
    assert_eq!(event["hosts"], network(&run)["denied"]);
    let report = std::fs::read_to_string(run.dir.as_ref().unwrap().join("report.md")).unwrap();
    for host in hosts {
        let host = host.trim_matches(['[', ']']);
        assert!(run.stdout.contains(host), "{}", run.stdout);
        let plain = report.replace('\\', "");
        assert!(plain.contains(host), "{report}");
    }
    for (name, value) in [
        ("summary", vec![run.summary.clone()]),
        ("event", run.events.clone()),
    ] {
        let schema = world.project.sprag(&["schema", name]).expect(0).stdout;
        let schema = OutputSchema::parse(&schema).unwrap();
        for value in value {
            let judged = schema.judge(value);
            assert!(judged.is_ok(), "{judged:?}");
        }
    }
}

#[test]
fn a_name_that_leads_to_this_machine_is_refused() {
    let world = world(FIXED);
    let port = world.port;
    let script =
        format!("curl -s --noproxy '' http://localhost:{port}/ > $OUT/answer; echo fixed > a.txt");
    let run = world
        .run(&script, &["--network-allow", "localhost"])
        .expect(0);
    let answer = world.project.notes("answer").join(" ");
    assert!(answer.contains("which is not public"), "{answer}");
    assert!(world.paths().is_empty());
    assert_eq!(denied(&run), ["localhost"]);
}

#[test]
fn what_is_asked_for_decides_and_not_what_a_header_says() {
    let world = world(FIXED);
    let port = world.port;
    let script = format!(
        r#"ask() {{ bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"${{HTTP_PROXY##*:}}"'; printf "$0" >&3; head -1 <&3' "$1" >> $OUT/answers; }}
        ask 'GET http://me:secret@127.0.0.1:{port}/asked HTTP/1.1\r\nHost: other.example.invalid\r\nConnection: close\r\n\r\n'
        ask 'GET http://other.example.invalid/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n'
        ask 'CONNECT other.example.invalid:443 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n'
        ask 'GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n'
        ask 'GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n'
        echo fixed > a.txt"#
    );
    let run = world
        .run(&script, &["--network-allow", "127.0.0.1"])
        .expect(0);
    let answers = world.project.notes("answers");
    let codes: Vec<&str> = answers
        .iter()
        .filter_map(|it| it.split(' ').nth(1))
        .collect();
    // The last two ask the server itself, which forwards nothing without a token.
    assert_eq!(codes, ["200", "403", "403", "200", "401"], "{answers:?}");
    assert_eq!(world.paths(), ["/asked"]);
    let asked = world.asked.lock().unwrap();
    let host = format!("127.0.0.1:{port}");
    assert_eq!(asked[0].header("host"), Some(host.as_str()));
    assert!(!format!("{:?}", asked[0]).contains("secret"));
    assert_eq!(denied(&run), ["other.example.invalid"]);
}

#[test]
fn nothing_but_the_proxy_is_reached_from_a_network_of_its_own() {
    for user in User::all() {
        for sandbox in ["auto", "require:2", "require:3"] {
            from_a_network_of_its_own(user, sandbox);
        }
    }
}

fn from_a_network_of_its_own(user: User, sandbox: &str) {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let udp_port = udp.local_addr().unwrap().port();
    let v6 = TcpListener::bind("[::1]:0").ok();
    let v6_port = v6.as_ref().map_or(9, |it| it.local_addr().unwrap().port());
    let checked = TcpListener::bind("127.0.0.1:0").unwrap();
    let check = format!(
        "{FIXED}! bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}'\n",
        checked.local_addr().unwrap().port()
    );
    let world = world(&check);
    let port = world.port;
    let script = format!(
        r#"{TRY}
        try unset env -u http_proxy -u HTTP_PROXY curl -s -m 5 --noproxy '*' http://127.0.0.1:{port}/direct
        try tcp bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
        try v6 bash -c 'exec 3<>/dev/tcp/::1/{v6_port}'
        try outside bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
        try inner unshare --user --map-root-user --net bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
        try entered nsenter --net=/proc/1/ns/net bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
        try parents nsenter --net=/proc/$PPID/ns/net bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
        bash -c 'echo leak > /dev/udp/127.0.0.1/{udp_port}'
        try dns bash -c 'echo leak > /dev/udp/192.0.2.53/53'
        try host /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)'
        try proxy curl -s -m 60 "$HTTPS_PROXY/"
        try own bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"${{HTTPS_PROXY##*:}}"
        echo fixed > a.txt"#
    );
    let args = ["--network-allow", "example.com", "--sandbox", sandbox];
    let Some(run) = world.run_as(user, &script, &args) else {
        return;
    };
    let how = network(&run)["enforced"].clone();
    if how != "namespace" {
        eprintln!("SKIPPED: {user:?} is given no network of its own at `{sandbox}`: {how}");
        return;
    }
    let run = run.expect(0);
    let expected = [
        "unset not",
        "tcp not",
        "v6 not",
        "outside not",
        "inner not",
        "entered not",
        "parents not",
        "dns not",
        "host not",
        "proxy reached",
        "own reached",
    ];
    let tries = world.project.notes("tries");
    assert_eq!(tries, expected, "{user:?}, {sandbox}: {}", run.stdout);
    assert!(world.paths().is_empty());
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram has left");
    has(&run.stdout, "enforced by a separate network namespace");
}

/// Tries ways out that Landlock does not know, and notes each that works.
const WAYS_OUT: &str = r#"
import ctypes, socket, sys
port, to_udp = int(sys.argv[1]), int(sys.argv[2])
def attempt(name, way):
    try:
        way()
        print(name)
    except OSError:
        pass
def connect(family, host, protocol=0):
    socket.socket(family, socket.SOCK_STREAM, protocol).connect((host, port))
def fast_open():
    way = socket.socket()
    way.sendto(b"GET /fast-open HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", 0x20000000, ("127.0.0.1", port))
    way.recv(1)
def ring():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 4, ctypes.create_string_buffer(256)) < 0:
        raise OSError(ctypes.get_errno())
attempt("tcp", lambda: connect(socket.AF_INET, "127.0.0.1"))
attempt("multipath", lambda: connect(socket.AF_INET, "127.0.0.1", 262))
attempt("fast-open", fast_open)
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"leak", ("127.0.0.1", to_udp)))
attempt("udp-by-v6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"leak", ("::ffff:127.0.0.1", to_udp)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("echo", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
attempt("ring", ring)
attempt("local", lambda: socket.socketpair())
attempt("stream", lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 6))
"#;

#[test]
fn without_namespaces_only_the_port_of_the_proxy_is_reached() {
    for user in User::all() {
        for sandbox in ["auto", "require:2"] {
            without_namespaces(user, sandbox);
        }
    }
}

fn without_namespaces(user: User, sandbox: &str) {
    const PYTHON: &str = "/usr/bin/python3";
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let udp_port = udp.local_addr().unwrap().port();
    let mut world = world(FIXED);
    world.project.env("SPRAG_NETWORK_LIMIT", "tcp_port");
    let port = world.port;
    let ways = world.project.outside("ways.py");
    std::fs::write(&ways, WAYS_OUT).unwrap();
    // What works without a sandbox is what is worth trying.
    let ports = [port.to_string(), udp_port.to_string()];
    let Ok(open) = Command::new(PYTHON).arg(&ways).args(&ports).output() else {
        eprintln!("SKIPPED: {PYTHON} is not there");
        return;
    };
    let open = String::from_utf8(open.stdout).unwrap();
    assert!(
        open.starts_with("tcp\n") && open.contains("\nudp\n"),
        "{open}"
    );
    let mut datagram = [0; 8];
    while udp.recv(&mut datagram).is_ok() {}
    world.asked.lock().unwrap().clear();
    let script = format!(
        r#"{TRY}
        {PYTHON} $OUT/ways.py {port} {udp_port} > $OUT/ways
        try tcp bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
        try proxy bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"${{HTTPS_PROXY##*:}}"
        echo fixed > a.txt"#
    );
    let args = ["--network-allow", "example.com", "--sandbox", sandbox];
    let Some(run) = world.run_as(user, &script, &args) else {
        return;
    };
    if network(&run)["enforced"] != "tcp_port" {
        eprintln!("SKIPPED: the Landlock of this kernel knows no ports");
        return;
    }
    let run = run.expect(0);
    let left = world.project.notes("ways");
    assert_eq!(
        left,
        ["local", "stream"],
        "{user:?}, {sandbox}; open: {open}"
    );
    assert_eq!(world.project.notes("tries"), ["tcp not", "proxy reached"]);
    assert!(world.paths().is_empty());
    assert!(udp.recv(&mut datagram).is_err(), "a datagram has left");
    let told = "TCP to the proxy's port is open on any host";
    assert!(run.stdout.contains(told), "{}", run.stdout);
}

#[test]
fn setup_commands_are_limited_too() {
    let world = world(FIXED);
    let port = world.port;
    let out = world.project.outside("setup");
    let plan = format!(
        "setup:\n  - curl -s --noproxy '' http://127.0.0.1:{port}/ > {}\n{}",
        out.display(),
        plan("sh check.sh")
    );
    world.project.write("plan.yaml", &plan);
    world.project.commit_all("a setup command");
    let run = world
        .run("echo fixed > a.txt", &["--network-allow", "deny"])
        .expect(0);
    let answer = world.project.notes("setup").join(" ");
    assert!(answer.contains("not in the allow-list"), "{answer}");
    assert!(world.paths().is_empty());
    assert_eq!(denied(&run), ["127.0.0.1"]);
    assert_eq!(network(&run)["allow"], json!([]));
}

#[test]
fn what_is_not_enforced_is_said() {
    let world = world(FIXED);
    let agent = "echo fixed > a.txt";
    let args = ["--network-allow", "example.com", "--sandbox", "off"];
    let run = world.run(agent, &args).expect(0);
    assert_eq!(network(&run)["enforced"], "nothing");
    assert!(run.stdout.contains("NOT enforced here"), "{}", run.stdout);
    let doctor = world.project.sprag(&[
        "doctor",
        "--network-allow",
        "example.com",
        "--sandbox",
        "off",
    ]);
    has(&doctor.stdout, "NOT enforced here");
    let refused = world
        .run(agent, &["--network-allow", "example.com:443"])
        .expect(2);
    has(&refused.stderr, "without a port");
}
