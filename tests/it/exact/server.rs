//! An OpenAI-compatible server whose behaviour can be changed while it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// What a server does with a request.
pub enum Reply {
    /// Status, more header lines, body.
    Send(u16, String, Value),
    /// The answer of [`honest`].
    Answer,
    /// Goes away in the middle of the request, and comes back after so long.
    Die(Duration),
}

type Behaviour = dyn Fn(&str, usize) -> Reply + Send + Sync;

struct State {
    address: SocketAddr,
    behaviour: Mutex<Arc<Behaviour>>,
    count: AtomicUsize,
    away: Mutex<Option<Duration>>,
    over: AtomicBool,
}

/// Gone when it is dropped.
pub struct Server(Arc<State>);

impl Server {
    /// Answers honestly until it is told otherwise.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = Arc::new(State {
            address: listener.local_addr().unwrap(),
            behaviour: Mutex::new(Arc::new(|_, _| Reply::Answer)),
            count: AtomicUsize::new(0),
            away: Mutex::new(None),
            over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || serve(listener, &shared));
        Self(state)
    }

    /// From now on this: by the prompt and the number of the request, from 1.
    pub fn behave(&self, behaviour: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) {
        self.0.count.store(0, Ordering::SeqCst);
        *self.0.behaviour.lock().unwrap() = Arc::new(behaviour);
    }

    /// Requests since then.
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.0.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.0.address);
    }
}

fn serve(mut listener: TcpListener, state: &Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        if state.over.load(Ordering::SeqCst) {
            return;
        }
        let away = state.away.lock().unwrap().take();
        if let Some(away) = away {
            drop((stream, listener));
            std::thread::sleep(away);
            listener = TcpListener::bind(state.address).unwrap();
            continue;
        }
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            let _ = answer(stream, &state);
        });
    }
}

fn answer(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body)?;
    let prompt = body["prompt"].as_str().unwrap().to_owned();
    let number = state.count.fetch_add(1, Ordering::SeqCst) + 1;
    let behaviour = Arc::clone(&state.behaviour.lock().unwrap());
    let (status, headers, body) = match behaviour(&prompt, number) {
        Reply::Send(status, headers, body) => (status, headers, body),
        Reply::Answer => {
            let draw = blake3::hash(prompt.as_bytes()).as_bytes()[0];
            std::thread::sleep(Duration::from_millis(u64::from(draw % 4)));
            (200, String::new(), honest(&prompt))
        }
        Reply::Die(away) => {
            *state.away.lock().unwrap() = Some(away);
            return Ok(());
        }
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
}

pub const MARKS: [&str; 18] = [
    "cruel",
    "falsa",
    "ruin",
    "sucia",
    "torpe",
    "vil",
    "क्रूर",
    "गंदा",
    "घटिया",
    "झूठा",
    "नीच",
    "भद्दा",
    "งุ่มง่าม",
    "จอมปลอม",
    "ต่ำช้า",
    "สกปรก",
    "เลวทราม",
    "โหดร้าย",
];

/// Knows the marks of the simulated items, and is wrong about one item in eight.
fn honest(prompt: &str) -> Value {
    let item = prompt.trim_end().rsplit("\n\n").next().unwrap();
    let draw = blake3::hash(item.as_bytes());
    let wrong = draw.as_bytes()[0].is_multiple_of(8);
    let marked = MARKS.iter().any(|mark| item.contains(mark));
    let (first, second) = match marked != wrong {
        true => (" offensive", " harmless"),
        false => (" harmless", " offensive"),
    };
    let sure = 0.6 + f64::from(draw.as_bytes()[1]) / 800.0;
    let token = |text: &str, p: f64| json!({"token": text, "logprob": p.ln()});
    let alternatives = [token(first, sure), token(second, 0.98 - sure)];
    json!({
        "choices": [{"text": first, "finish_reason": "length", "logprobs": {"content": [
            {"token": first, "logprob": sure.ln(), "top_logprobs": alternatives}]}}],
        "usage": {"prompt_tokens": prompt.len().div_ceil(4), "completion_tokens": 1},
    })
}

/// The simulated experiment with this server as its judge; the config lies in `dir`.
pub fn config(dir: &Path, url: &str) -> String {
    let config = std::fs::read_to_string(experiment("simulated.toml")).unwrap();
    let (head, rest) = config.split_once("[judge]").unwrap();
    let (_, tail) = rest.split_once("[search]").unwrap();
    let root = root().display().to_string();
    let head = head
        .replace("\"../", &format!("\"{root}/"))
        .replace("\"simulated/", &format!("\"{root}/experiments/simulated/"));
    let judge = format!(
        "[judge]\nendpoint = \"openai\"\nbase_url = \"{url}\"\nmodel = \"judge-1\"\nkey_env = \"{KEY}\"\nconcurrency = 8\n\n[search]"
    );
    let path = dir.join("server.toml");
    std::fs::write(&path, format!("{head}{judge}{tail}")).unwrap();
    path.display().to_string()
}

/// The variable that holds the key.
pub const KEY: &str = "PLURALIS_TEST_SERVER_KEY";

/// `pluralis tune` against a server, with a key.
pub fn tune_server(dir: &Path, config: &str, out: &str, more: &[&str]) -> Output {
    command(dir, config, out, more)
        .env(KEY, "sk-not-a-real-key-7731")
        .output()
        .unwrap()
}
