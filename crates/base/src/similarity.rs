//! Similar words, for "did you mean" hints.

/// Returns the candidate that a person who typed `word` probably meant, if one is close enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate))
        // A threshold of 0.8 accepts a transposed or missing letter and a missing suffix, but not
        // words that share only their first letter.
        .filter(|&(similarity, _)| similarity >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
