//! A look at the write-ahead log before the engine recovers it.
//!
//! The engine takes a log up to its first damaged frame and drops the rest, because that is what a power cut leaves behind: one transaction that
//! was being written. A frame that was damaged later drops durable transactions in the same way, in silence. The two can be told apart: each
//! commit is made durable before the next one begins, so behind a torn transaction there are never two more complete ones.
//!
//! Source: the file format page of SQLite, "The Write-Ahead Log".

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The checksums' byte order is the lowest bit of the magic number.
const MAGIC: u32 = 0x377f_0682;
/// Commits behind a broken frame that show it was broken after it had been durable.
const PROOF: usize = 2;

/// Whether the log at `path` is damaged before its end, so that recovering it would lose durable commits. An absent log is not.
pub(crate) fn is_broken_inside(path: &Path) -> std::io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut header = [0; HEADER];
    if !fill(&mut reader, &mut header)? {
        return Ok(false);
    }
    let Some(log) = Log::read(&header) else { return Ok(false) };
    log.is_broken_inside(&mut reader)
}

/// The running checksum of a log.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sum(u32, u32);

struct Log {
    big_endian: bool,
    page_size: usize,
    salt: [u8; 8],
    start: Sum,
}

impl Log {
    /// The header, when it is a valid one; else the engine ignores the whole log, which then holds nothing durable.
    fn read(header: &[u8; HEADER]) -> Option<Self> {
        let word = |index: usize| big_endian_word(header, index);
        let magic = word(0)?;
        if magic & !1 != MAGIC {
            return None;
        }
        let salt = header.get(16..24)?.try_into().ok()?;
        let start = Sum(word(6)?, word(7)?);
        let log = Self { big_endian: magic & 1 == 1, page_size: usize::try_from(word(2)?).ok()?, salt, start };
        let sound = log.sum(Sum(0, 0), header.get(..24)?) == start && (512..=65536).contains(&log.page_size);
        sound.then_some(log)
    }

    fn is_broken_inside(&self, reader: &mut impl Read) -> std::io::Result<bool> {
        let mut frame = vec![0; FRAME_HEADER + self.page_size];
        let mut sum = self.start;
        let mut broken = false;
        let mut commits_behind = 0;
        while fill(reader, &mut frame)? {
            let Some(found) = self.frame(sum, &frame) else { break };
            if !found.chained {
                // Also what an earlier round of the log left there: none of it continues anything of this round.
                broken = true;
                commits_behind = 0;
            } else if broken && found.commits {
                commits_behind += 1;
            }
            if commits_behind >= PROOF {
                return Ok(true);
            }
            sum = found.stored;
        }
        Ok(false)
    }

    fn frame(&self, before: Sum, frame: &[u8]) -> Option<Frame> {
        let stored = Sum(big_endian_word(frame, 4)?, big_endian_word(frame, 5)?);
        let same_round = frame.get(8..16)? == self.salt;
        let chained = same_round && self.sum(self.sum(before, frame.get(..8)?), frame.get(FRAME_HEADER..)?) == stored;
        Some(Frame { chained, commits: big_endian_word(frame, 1)? != 0, stored })
    }

    fn sum(&self, start: Sum, bytes: &[u8]) -> Sum {
        let (pairs, _) = bytes.as_chunks::<8>();
        pairs.iter().fold(start, |Sum(first, second), &[a, b, c, d, e, f, g, h]| {
            let word = |bytes| if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
            let first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
            Sum(first, second.wrapping_add(word([e, f, g, h])).wrapping_add(first))
        })
    }
}

struct Frame {
    /// It is of the present round of the log, and its checksum continues that of the frame before it.
    chained: bool,
    /// It ends a transaction.
    commits: bool,
    stored: Sum,
}

fn big_endian_word(bytes: &[u8], index: usize) -> Option<u32> {
    bytes.get(index * 4..index * 4 + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Fills `buffer`; `false` when the file ends before.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<bool> {
    match reader.read_exact(buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        outcome => outcome.map(|()| true),
    }
}
