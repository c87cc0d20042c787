//! What isolation costs: `cargo bench --bench isolation`.
//!
//! Prints what a child costs at each level of the sandbox and with the network limited, and what the model gateway
//! adds to a request and to a streamed megabyte. What is compared takes turns within a round; the medians of all
//! rounds are printed, and for the gateway the median of the differences within a round.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and gives up loudly"
)]

use sprag::agents::gateway::{KeyHeader, OPENAI, Route};
use sprag::domain::sandbox::Level;
use sprag::gateway::{AllowList, Gateway};
use sprag::http;
use sprag::process::{Cancel, CommandSpec, Input, Limits, run};
use sprag::sandbox::{Network, Policy};
use sprag_agent::access::Secret;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Rounds of children, of requests and of streams.
const CHILDREN: usize = 100;
const REQUESTS: usize = 500;
const STREAMS: usize = 15;

/// The streamed answer, in megabytes of 1,000,000 bytes.
const MEGABYTES: usize = 8;

/// The sizes of an event of a stream that are measured, in bytes.
const EVENTS: [usize; 2] = [200, 2_000];

fn main() -> ExitCode {
    // The children's launcher is this program.
    if let Some(code) = sprag::sandbox::main(std::env::args_os().skip(1)) {
        return code;
    }
    children();
    gateway();
    ExitCode::SUCCESS
}

fn children() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let proxy = Gateway::start(&http::Network::direct(), Some(AllowList::of(&[]))).unwrap();
    let own = proxy.place().map(|socket| Network::Own {
        socket: socket.to_owned(),
        port: proxy.port(),
    });
    let port = Some(Network::Port(proxy.port()));
    let kinds = [
        ("off", None),
        ("level 1", policy(Level::Privileges, None)),
        ("level 2", policy(Level::Files, None)),
        ("level 2, network by port", policy(Level::Files, port)),
        (
            "level 2, network of its own",
            policy(Level::Files, own.clone()),
        ),
        ("level 3", policy(Level::Namespaces, None)),
        (
            "level 3, network of its own",
            policy(Level::Namespaces, own),
        ),
    ];
    let mut times = kinds.each_ref().map(|_| Vec::with_capacity(CHILDREN));
    for _ in 0..CHILDREN {
        for ((_, sandbox), times) in kinds.iter().zip(&mut times) {
            let took = runtime.block_on(child(sandbox.as_ref()));
            times.extend(took);
        }
    }
    println!("| a child that does nothing | ms |\n|---|--:|");
    for ((name, _), times) in kinds.iter().zip(times) {
        match times.len() {
            CHILDREN => println!("| {name} | {:.2} |", ms(median(times))),
            _ => println!("| {name} | not to be had here |"),
        }
    }
}

fn policy(level: Level, network: Option<Network>) -> Option<Policy> {
    let mut policy = Policy::of(level);
    policy.write = vec!["/tmp".into()];
    policy.network = network;
    Some(policy)
}

/// How long a child takes that ends at once; `None` where it cannot be started so.
async fn child(sandbox: Option<&Policy>) -> Option<Duration> {
    let spec = CommandSpec {
        program: "/bin/true".into(),
        args: Vec::new(),
        cwd: "/".into(),
        env: Vec::new(),
        stdin: Input::Null,
        limits: Limits::default(),
        sandbox: sandbox.cloned(),
    };
    let began = Instant::now();
    let ended = run(&spec, &Cancel::new(), &mut |_, _| {}).await;
    let took = began.elapsed();
    ended.exit.is_success().then_some(took)
}

fn gateway() {
    let provider = provider();
    let gateway = Gateway::start(&http::Network::direct(), None).unwrap();
    let account = gateway.account(&Route {
        provider: &OPENAI,
        upstream: format!("http://{provider}/v1"),
        keys: vec![(
            "OPENAI_API_KEY",
            KeyHeader::Bearer,
            Secret::of("sk-benchmark".into()),
        )],
    });
    let through = gateway.url().replace("http://", "");
    let mut direct = Client::new(&provider, "sk-benchmark");
    let mut behind = Client::new(&through, account.token());
    println!("\n| | direct, ms | through the gateway, ms | added, ms |\n|---|--:|--:|--:|");
    let mut both = |name: &str, rounds: usize, size: usize, parts: f64| {
        let (mut one, mut two, mut added) = (Vec::new(), Vec::new(), Vec::new());
        // The first round makes the connections.
        for round in 0..=rounds {
            let (plain, forwarded) = (direct.ask(size), behind.ask(size));
            if round > 0 {
                one.push(plain);
                two.push(forwarded);
                added.push(ms(forwarded) - ms(plain));
            }
        }
        added.sort_by(f64::total_cmp);
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} |",
            ms(median(one)) / parts,
            ms(median(two)) / parts,
            added[added.len() / 2] / parts
        );
    };
    both("a request", REQUESTS, 0, 1.0);
    for size in EVENTS {
        let name = format!("a streamed megabyte, events of {size} bytes");
        both(&name, STREAMS, size, MEGABYTES as f64);
    }
}

/// A provider that answers with a stream of events of the size that a request names, or with a small document.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((_, length)) = head(&mut reader) {
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let size = body.split("\"size\":").nth(1).unwrap();
        let size: usize = size.trim_end_matches('}').parse().unwrap();
        let usage = r#"{"id":"r","usage":{"input_tokens":10,"output_tokens":5}}"#;
        if size == 0 {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
            write!(stream, "{head} {}\r\n\r\n{usage}", usage.len()).unwrap();
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let frame = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\"}\n\n";
        let word = "w".repeat(size - frame.len());
        let event = frame.replace("\"delta\":\"\"", &format!("\"delta\":\"{word}\""));
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        for _ in 0..MEGABYTES * 1_000_000 / event.len() {
            stream.write_all(chunk.as_bytes()).unwrap();
        }
        let last = format!("data: {{\"type\":\"response.completed\",\"response\":{usage}}}\n\n");
        write!(stream, "{:x}\r\n{last}\r\n0\r\n\r\n", last.len()).unwrap();
    }
}

/// One connection that is kept.
struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    key: String,
}

impl Client {
    fn new(address: &str, key: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            reader: BufReader::new(stream.try_clone().unwrap()),
            stream,
            key: key.to_owned(),
        }
    }

    /// How long it takes from the request to the last byte of its answer.
    fn ask(&mut self, size: usize) -> Duration {
        let body = format!(
            "{{\"model\":\"gpt-5.5\",\"stream\":{},\"size\":{size}}}",
            size > 0
        );
        let request = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: model\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        let began = Instant::now();
        self.stream.write_all(request.as_bytes()).unwrap();
        let (first, length) = head(&mut self.reader).unwrap();
        assert!(first.contains(" 200 "), "{first}");
        let mut bytes = vec![0; length.unwrap_or(0)];
        self.reader.read_exact(&mut bytes).unwrap();
        while length.is_none() {
            let mut line = String::new();
            self.reader.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            bytes.resize(size + 2, 0);
            self.reader.read_exact(&mut bytes).unwrap();
            if size == 0 {
                break;
            }
        }
        began.elapsed()
    }
}

/// The first line of a head and the length that it tells; `None` at the end of a connection.
fn head(reader: &mut BufReader<TcpStream>) -> Option<(String, Option<usize>)> {
    let (mut first, mut length) = (None, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Some((first?, length));
        }
        if let Some(("content-length", value)) = line.to_ascii_lowercase().split_once(':') {
            length = Some(value.trim().parse().ok()?);
        }
        first.get_or_insert_with(|| line.to_owned());
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
