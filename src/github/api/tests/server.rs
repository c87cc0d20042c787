//! A scripted HTTP server on loopback. It records every request, and a function answers it.

use super::super::{Client, Limits, Repo, Settings};
use crate::http::Network;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const TOKEN: &str = "ghp_canary0123456789";

#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub headers: String,
    pub body: Value,
}

impl ReceivedRequest {
    pub fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path.split('?').next() == Some(path)
    }
}

/// How the server answers a request.
pub enum Say {
    /// Status, additional header lines, body.
    Answer(u16, Vec<String>, String),
    /// Closes the connection without a response.
    HangUp,
}

pub fn json(status: u16, body: impl serde::Serialize) -> Say {
    Say::Answer(status, Vec::new(), serde_json::to_string(&body).unwrap())
}

pub fn with(status: u16, headers: &[&str], body: impl serde::Serialize) -> Say {
    let headers = headers.iter().map(|line| (*line).to_owned()).collect();
    Say::Answer(status, headers, serde_json::to_string(&body).unwrap())
}

pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Server {
    pub fn start(answer: impl FnMut(&ReceivedRequest) -> Say + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(Mutex::new(answer));
        let record = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, record) = (Arc::clone(&answer), Arc::clone(&record));
                std::thread::spawn(move || serve(stream, &answer, &record));
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub fn count(&self, method: &str, path: &str) -> usize {
        self.asked()
            .iter()
            .filter(|asked| asked.is(method, path))
            .count()
    }

    pub fn client(&self) -> Client {
        self.client_with(limits())
    }

    /// A client that records its waits instead of waiting.
    pub fn client_with(&self, limits: Limits) -> Client {
        let client = Client::new(
            Settings {
                api_url: self.url.clone(),
                server_url: String::new(),
                token: TOKEN.into(),
                limits,
            },
            &Network::direct(),
        )
        .unwrap();
        *client.inner.waits.lock().unwrap() = Some(Vec::new());
        client
    }

    pub fn repo(&self) -> Repo {
        self.client().repo("octo/hello").unwrap()
    }
}

/// Of time there is enough on the slowest machine.
pub fn limits() -> Limits {
    Limits {
        request: Duration::from_secs(600),
        spacing: Duration::ZERO,
        ..Limits::default()
    }
}

pub fn waits(client: &Client) -> Vec<Duration> {
    client.inner.waits.lock().unwrap().clone().unwrap()
}

fn serve(
    stream: TcpStream,
    answer: &Mutex<impl FnMut(&ReceivedRequest) -> Say>,
    record: &Mutex<Vec<ReceivedRequest>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let asked = request(&mut reader)?;
        record.lock().unwrap().push(asked.clone());
        let say = (answer.lock().unwrap())(&asked);
        match say {
            Say::Answer(status, headers, body) => {
                let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n");
                stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
            }
            Say::HangUp => return None,
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") && headers != "\r\n" {
        reader
            .read_line(&mut headers)
            .ok()
            .filter(|read| *read > 0)?;
    }
    let length = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest {
        method,
        path,
        headers: headers.to_lowercase(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}
