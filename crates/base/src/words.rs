//! Encodes small records as 64-bit words, for the work in progress in saved states.

use crate::codec::CodecError;

/// Collects words in order.
#[derive(Default)]
pub struct WordWriter {
    pub(crate) words: Vec<u64>,
}

impl WordWriter {
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn put(&mut self, word: impl Into<u64>) {
        self.words.push(word.into());
    }

    /// Writes counts, as returned by `counts!`.
    pub fn counts<const N: usize>(&mut self, counts: [u64; N]) {
        self.words.extend(counts);
    }

    /// Writes a length, then each item.
    pub fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T),
    ) {
        self.put(items.len() as u64);
        items.for_each(|item| put(self, item));
    }
}

/// Reads words in the order in which they were written.
pub struct WordReader<'a> {
    words: std::slice::Iter<'a, u64>,
}

impl<'a> WordReader<'a> {
    pub fn new(words: &'a [u64]) -> Self {
        Self { words: words.iter() }
    }

    pub fn get(&mut self) -> Result<u64, CodecError> {
        self.words.next().copied().ok_or_else(damaged)
    }

    pub fn counts<const N: usize>(&mut self) -> Result<[u64; N], CodecError> {
        let mut counts = [0; N];
        for count in &mut counts {
            *count = self.get()?;
        }
        Ok(counts)
    }

    pub fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, CodecError> {
        T::try_from(self.get()?).map_err(|_| damaged())
    }

    pub fn flag(&mut self) -> Result<bool, CodecError> {
        Ok(self.get()? != 0)
    }

    pub fn list<T>(
        &mut self,
        mut get: impl FnMut(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Vec<T>, CodecError> {
        let count = self.get()?;
        if count > self.words.len() as u64 {
            return Err(damaged());
        }
        (0..count).map(|_| get(self)).collect()
    }

    pub fn finish(self) -> Result<(), CodecError> {
        if self.words.len() == 0 { Ok(()) } else { Err(damaged()) }
    }
}

pub fn damaged() -> CodecError {
    CodecError::Damaged("pending".to_owned())
}
