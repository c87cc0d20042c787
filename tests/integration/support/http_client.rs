//! A plain HTTP client for tests of the servers: one connection, kept open.

use super::proc::HUNG;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A client with the headers that it sends with every request.
pub struct Client {
    address: String,
    headers: Vec<(String, String)>,
    stream: Option<BufReader<TcpStream>>,
}

/// What came back.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    pub text: String,
    /// The text as JSON; `null` where it is none.
    pub json: Value,
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

    /// `GET`.
    pub fn get(&mut self, target: &str) -> Received {
        self.send("GET", target, &Value::Null).unwrap()
    }

    /// `POST` of JSON.
    pub fn post(&mut self, target: &str, body: &Value) -> Received {
        self.send("POST", target, body).unwrap()
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
            stream.set_read_timeout(Some(HUNG))?;
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
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Received {
        status,
        json: serde_json::from_str(&text).unwrap_or(Value::Null),
        text,
    })
}
