//! Names of objects, and of clusters.

/// What a valid name is, after `invalid name: `.
pub const NAME_RULE: &str =
    "use lower-case letters, digits, '-' and '.', starting and ending with a letter or digit";

/// The maximum length of a name, in bytes.
pub const MAX_NAME: usize = 253;

/// Whether the API server accepts this name for an object: an RFC 1123 subdomain.
pub fn is_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(is_legal) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= MAX_NAME && name.split('.').all(is_part)
}
