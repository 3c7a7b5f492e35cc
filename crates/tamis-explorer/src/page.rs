//! The page with its module, in one file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const TEMPLATE: &str = include_str!("../page.html");
/// Built by `cargo xtask explorer`.
const MODULE: &[u8] = include_bytes!("../explorer.wasm");
const PLACE: &str = "MODULE_IN_BASE64";

/// The page, which needs no other file and no server.
///
/// ```
/// let page = tamis_explorer::page();
/// assert!(page.starts_with("<!doctype html>"));
/// // WebAssembly begins with these bytes.
/// assert!(page.contains("AGFzbQEAAAA"));
/// ```
pub fn page() -> String {
    TEMPLATE.replacen(PLACE, &STANDARD.encode(MODULE), 1)
}
