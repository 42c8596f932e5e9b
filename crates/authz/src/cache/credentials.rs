//! Tokens that were accepted lately, by the digest of their secret.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::RwLock;

use super::{Freshness, read, write};
use crate::{Caller, TokenHash};

/// An accepted token.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its caller.
    pub(crate) caller: Caller,
    /// Since when that is known.
    pub(crate) freshness: Freshness,
}

/// A digest is as good a hash as any: its first bytes are taken.
#[derive(Default)]
struct DigestPrefix(u64);

impl Hasher for DigestPrefix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks_exact(8).take(1) {
            self.0 = chunk.iter().fold(0, |sum, &byte| (sum << 8) | u64::from(byte));
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

type Map = HashMap<TokenHash, Known, BuildHasherDefault<DigestPrefix>>;

/// A bounded memory of accepted tokens. What was not used for longest goes first, roughly: two halves, of which the older one is dropped when the younger one is full.
#[derive(Debug)]
pub(crate) struct Credentials {
    half: usize,
    maps: RwLock<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    young: Map,
    old: Map,
}

impl Halves {
    fn put(&mut self, hash: TokenHash, known: Known, half: usize) {
        if self.young.len() >= half && !self.young.contains_key(&hash) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&hash);
        self.young.insert(hash, known);
    }
}

impl Credentials {
    /// Room for `max` tokens.
    pub(crate) fn new(max: usize) -> Self {
        Self { half: max.div_ceil(2).max(1), maps: RwLock::default() }
    }

    /// What is remembered under `hash`.
    pub(crate) fn get(&self, hash: &TokenHash) -> Option<Known> {
        let old = {
            let maps = read(&self.maps);
            if let Some(known) = maps.young.get(hash) {
                return Some(known.clone());
            }
            maps.old.get(hash)?.clone()
        };
        self.put(*hash, old.clone());
        Some(old)
    }

    /// Remembers.
    pub(crate) fn put(&self, hash: TokenHash, known: Known) {
        write(&self.maps).put(hash, known, self.half);
    }

    /// Forgets.
    pub(crate) fn remove(&self, hash: &TokenHash) {
        let mut maps = write(&self.maps);
        maps.young.remove(hash);
        maps.old.remove(hash);
    }
}
