//! An HTTP/1.1 server for tests: a thread for each connection, keep-alive, and answers that can be
//! withheld or slow.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `POST`, `GET` …
    pub method: String,
    /// With its query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Without its transfer coding.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The target's path.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The target's query; empty when there is none.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// A response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Without `content-length`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What a handler does with a connection.
pub enum Reply {
    /// It answers.
    Answer(Response),
    /// It answers, waiting this long after each byte of the body.
    Drip(Response, Duration),
    /// It promises the whole answer and closes in the middle of it.
    Broken(Response),
    /// It closes without an answer.
    Close,
    /// It never answers; the connection stays open for as long as the client waits.
    Hang,
}

/// The server. It listens on a free port of the loopback interface until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

impl Server {
    /// Starts a server that answers by `handler`, which is called from many threads at once.
    pub fn start(handler: impl Fn(Request) -> Reply + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let (stop, connections) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let acceptor = thread::spawn({
            let (stop, connections) = (Arc::clone(&stop), Arc::clone(&connections));
            let handler = Arc::new(handler);
            move || accept(&listener, &handler, &stop, &connections)
        });
        Ok(Self {
            address,
            stop,
            connections,
            acceptor: Mutex::new(Some(acceptor)),
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes every connection and refuses new ones from now on.
    pub fn shut_down(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // The acceptor sees the flag when one more connection wakes it.
        let woken = TcpStream::connect(self.address).is_ok();
        let acceptor = lock(&self.acceptor).take();
        if let Some(acceptor) = acceptor.filter(|_| woken) {
            let _ = acceptor.join();
        }
        for connection in lock(&self.connections).drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The guard of a mutex, also after a thread panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(
    listener: &TcpListener,
    handler: &Arc<impl Fn(Request) -> Reply + Send + Sync + 'static>,
    stop: &AtomicBool,
    connections: &Mutex<Vec<TcpStream>>,
) {
    for stream in listener.incoming() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        lock(connections).extend(stream.try_clone());
        let handler = Arc::clone(handler);
        thread::spawn(move || serve(stream, handler.as_ref()));
    }
}

/// Answers requests until the client goes away, which is its own affair.
fn serve(stream: TcpStream, handler: &impl Fn(Request) -> Reply) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = read_request(&mut reader) {
        let bodiless = request.method == "HEAD";
        let written = match handler(request) {
            Reply::Answer(response) => write_response(reader.get_mut(), &response, bodiless),
            Reply::Drip(response, pause) => drip(reader.get_mut(), &response, pause),
            Reply::Broken(response) => {
                let half = response.body.len() / 2;
                let _ = write_head(reader.get_mut(), &response)
                    .and_then(|()| reader.get_mut().write_all(&response.body[..half]));
                break;
            }
            Reply::Close => break,
            Reply::Hang => io::copy(&mut reader, &mut io::sink()).map(drop),
        };
        if written.is_err() {
            break;
        }
    }
    // The server keeps a second handle of each connection, which must not hold it open.
    let _ = reader.get_ref().shutdown(Shutdown::Both);
}

/// The next request; none at the end of the connection.
pub fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let mut request = Request {
        method,
        target,
        headers: read_headers(reader)?,
        body: Vec::new(),
    };
    request.body = read_body(reader, &request)?;
    Ok(Some(request))
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(headers);
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
}

fn read_body(reader: &mut impl BufRead, request: &Request) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let coding = request.header("transfer-encoding").unwrap_or_default();
    if coding.contains("chunked") {
        while let size @ 1.. = read_chunk_size(reader)? {
            reader.by_ref().take(size).read_to_end(&mut body)?;
            reader.read_line(&mut String::new())?;
        }
        reader.read_line(&mut String::new())?;
    } else {
        let length = request.header("content-length");
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.by_ref().take(length).read_to_end(&mut body)?;
    }
    Ok(body)
}

fn read_chunk_size(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    Ok(u64::from_str_radix(digits, 16).unwrap_or(0))
}

fn write_response(stream: &mut TcpStream, response: &Response, bodiless: bool) -> io::Result<()> {
    write_head(stream, response)?;
    if !bodiless {
        stream.write_all(&response.body)?;
    }
    stream.flush()
}

fn write_head(stream: &mut TcpStream, response: &Response) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", response.status);
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    // A 204 has no body, and a length with it confuses clients.
    if response.status != 204 {
        head += &format!("content-length: {}\r\n", response.body.len());
    }
    stream.write_all((head + "\r\n").as_bytes())
}

fn drip(stream: &mut TcpStream, response: &Response, pause: Duration) -> io::Result<()> {
    write_head(stream, response)?;
    for byte in &response.body {
        stream.write_all(&[*byte])?;
        thread::sleep(pause);
    }
    Ok(())
}
