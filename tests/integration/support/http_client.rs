//! A plain HTTP client for tests of the servers: one connection, kept open.

use super::proc::HUNG;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A client with the headers that it sends with every request.
pub struct Client {
    address: String,
    headers: Vec<(String, String)>,
    stream: Option<BufReader<TcpStream>>,
    patience: Duration,
}

/// What came back.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub text: String,
    /// The text as JSON; `null` where it is none.
    pub json: Value,
}

impl Received {
    /// The value of a header, by its name in lower case; empty without one.
    pub fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

impl Client {
    /// A client of the server at `http://HOST:PORT` that shows this token.
    pub fn with_token(url: &str, token: &str) -> Self {
        let mut client = Self::new(url);
        client.set("authorization", &format!("Bearer {token}"));
        client
    }

    /// A client without a token.
    pub fn new(url: &str) -> Self {
        let mut client = Self {
            address: url.trim_start_matches("http://").to_owned(),
            headers: Vec::new(),
            stream: None,
            patience: HUNG,
        };
        client.set("user-agent", "tests");
        client.set("accept", "application/vnd.github+json");
        client
    }

    /// Sets a header of every later request; an empty value takes it away.
    pub fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Limits how long later connections may be silent, for a server that does not answer.
    pub fn limit_silence(&mut self, patience: Duration) {
        self.patience = patience;
        self.stream = None;
    }

    /// `GET`.
    pub fn get(&mut self, target: &str) -> Received {
        self.send("GET", target, &Value::Null).unwrap()
    }

    /// `POST` of JSON.
    pub fn post(&mut self, target: &str, body: &Value) -> Received {
        self.send("POST", target, body).unwrap()
    }

    /// `PATCH` of JSON.
    pub fn patch(&mut self, target: &str, body: &Value) -> Received {
        self.send("PATCH", target, body).unwrap()
    }

    /// A request; an error where no whole answer comes.
    pub fn send(&mut self, method: &str, target: &str, body: &Value) -> io::Result<Received> {
        let sent = self.try_send(method, target, body);
        if sent.is_err() {
            self.stream = None;
        }
        sent
    }

    fn try_send(&mut self, method: &str, target: &str, body: &Value) -> io::Result<Received> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        if !body.is_empty() {
            head += &format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
        }
        if self.stream.is_none() {
            let stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(self.patience))?;
            self.stream = Some(BufReader::new(stream));
        }
        let Some(stream) = &mut self.stream else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        stream
            .get_mut()
            .write_all(format!("{head}\r\n{body}").as_bytes())?;
        read(stream)
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Received> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Received {
        status,
        headers,
        json: serde_json::from_str(&text).unwrap_or(Value::Null),
        text,
    })
}
