//! Measures the bytes of real texts that make a token, and how good the estimate of
//! `src/agent/tokens.rs` is: `measure-tokens DIR`, where each directory in DIR holds the
//! files of one kind (see `collect`). Prints a table in Markdown.
//!
//! Of each file the first four pieces of 6,000 characters are measured, about what a tool shows.

#[path = "../../../src/agent/tokens.rs"]
mod tokens;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use tiktoken_rs::{CoreBPE, cl100k_base, o200k_base};

const PIECE: usize = 6_000;
const SHORTEST: usize = 1_500;
const PIECES: usize = 4;

/// One piece of text as it was measured.
struct Measured {
    bytes: usize,
    o200k: usize,
    cl100k: usize,
    estimated: usize,
}

impl Measured {
    fn worst(&self) -> usize {
        self.o200k.max(self.cl100k)
    }

    fn estimate_by_count(&self) -> f64 {
        self.estimated as f64 / self.worst() as f64
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let top = std::env::args_os()
        .nth(1)
        .ok_or("usage: measure-tokens DIR")?;
    let (o200k, cl100k) = (o200k_base()?, cl100k_base()?);
    println!(
        "| kind | pieces | bytes a token, o200k: 1 %, 5 %, 50 % | cl100k: 1 %, 5 %, 50 % | estimate/count: least, 1 %, 50 %, 95 % |"
    );
    println!("|---|---|---|---|---|");
    let mut all = Vec::new();
    for kind in sorted(Path::new(&top))? {
        let mut pieces = Vec::new();
        for file in sorted(&kind)? {
            pieces.extend(measure(&file, &o200k, &cl100k)?);
        }
        if !pieces.is_empty() {
            let name = kind.file_name().unwrap_or_default().to_string_lossy();
            println!("{}", row(&name, &pieces));
            all.extend(pieces);
        }
    }
    println!("{}", row("all", &all));
    Ok(())
}

fn sorted(dir: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries: Result<Vec<_>, _> = fs::read_dir(dir)?.collect();
    let mut paths: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn measure(
    file: &Path,
    o200k: &CoreBPE,
    cl100k: &CoreBPE,
) -> Result<Vec<Measured>, Box<dyn Error>> {
    let bytes = fs::read(file)?;
    let text: Vec<char> = String::from_utf8_lossy(&bytes).chars().collect();
    let pieces = text.chunks(PIECE).filter(|piece| piece.len() >= SHORTEST);
    let measured = pieces.take(PIECES).map(|piece| {
        let piece: String = piece.iter().collect();
        Measured {
            bytes: piece.len(),
            o200k: o200k.encode_ordinary(&piece).len(),
            cl100k: cl100k.encode_ordinary(&piece).len(),
            estimated: tokens::estimate(&piece),
        }
    });
    Ok(measured.collect())
}

fn row(kind: &str, pieces: &[Measured]) -> String {
    let of = |count: &dyn Fn(&Measured) -> usize, percents: &[usize]| {
        let ratios = pieces.iter().map(|it| it.bytes as f64 / count(it) as f64);
        percentiles(ratios.collect(), percents)
    };
    let estimate = pieces.iter().map(Measured::estimate_by_count).collect();
    format!(
        "| {kind} | {} | {} | {} | {} |",
        pieces.len(),
        of(&|it| it.o200k, &[1, 5, 50]),
        of(&|it| it.cl100k, &[1, 5, 50]),
        percentiles(estimate, &[0, 1, 50, 95]),
    )
}

fn percentiles(mut values: Vec<f64>, percents: &[usize]) -> String {
    values.sort_by(f64::total_cmp);
    let at = |percent: &usize| {
        let index = percent * values.len().saturating_sub(1) / 100;
        format!("{:.2}", values.get(index).copied().unwrap_or(f64::NAN))
    };
    percents.iter().map(at).collect::<Vec<_>>().join(", ")
}
