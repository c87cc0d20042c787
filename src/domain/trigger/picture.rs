//! The pictures in the text of an issue: which addresses are fetched, and which bytes are a picture.

use super::clean;
use crate::pattern::Pattern;
use pulldown_cmark::{Event, Options, Parser, Tag};

/// The maximum number of pictures of an issue.
pub const MAX_PICTURES: usize = 8;

/// The maximum size of a picture in bytes.
pub const MAX_PICTURE_BYTES: usize = 5 << 20;

/// The domain of the hosts on which github.com keeps files of users.
const FILES: &str = ".githubusercontent.com";

/// The host that shows files of other hosts.
const RELAY: &str = "camo.githubusercontent.com";

/// The addresses of the pictures that people see in a text, in order and each once.
pub fn addresses(body: &str) -> Vec<String> {
    let body = clean::clean(body);
    let mut found: Vec<String> = Vec::new();
    let mut add = |address: &str| {
        if !found.iter().any(|known| known == address) {
            found.push(address.to_owned());
        }
    };
    for event in Parser::new_ext(&body, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Image { dest_url, .. }) => add(&dest_url),
            Event::Html(html) | Event::InlineHtml(html) => {
                let tags = IMAGE.captures_iter(&html);
                tags.filter_map(|tag| tag.name("address"))
                    .for_each(|address| add(address.as_str()));
            }
            _ => {}
        }
    }
    found
}

/// The element with which GitHub's editor inserts a picture.
static IMAGE: Pattern =
    Pattern::new(r#"(?i)<img\s(?:[^<>]*\s)?src\s*=\s*["']?(?<address>[^"'\s<>]+)"#);

/// Whether an address is on a host of this GitHub server, over its scheme.
pub fn is_on_github(address: &str, server_url: &str) -> bool {
    let parts = |url: &str| {
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        Some((scheme.to_owned(), host.to_ascii_lowercase()))
    };
    let (Some((scheme, host)), Some((own_scheme, own_host))) = (parts(address), parts(server_url))
    else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let is_file = own_host == "github.com" && host.ends_with(FILES) && host != RELAY;
    scheme == own_scheme && (host == own_host || (is_file && host.chars().all(is_name)))
}

/// The media type that the first bytes of a file say, if it is a picture of a kind that models read.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', rest @ ..] if rest.get(4..8) == Some(b"WEBP") => {
            Some("image/webp")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{addresses, is_on_github, media_type};

    #[test]
    fn only_pictures_that_people_see_are_found() {
        let body = "![a](https://github.com/user-attachments/assets/1)\n\n\
                    <img width=\"9\" alt=\"x\" src=\"https://github.com/user-attachments/assets/2\" />\n\n\
                    text <img src=https://a.invalid/3.png> ![again](https://github.com/user-attachments/assets/1)\n\n\
                    <!-- ![hidden](https://github.com/hidden) -->\n`![code](https://github.com/code)`\n\
                    [a link](https://github.com/link) ![](relative.png)";
        assert_eq!(
            addresses(body),
            [
                "https://github.com/user-attachments/assets/1",
                "https://github.com/user-attachments/assets/2",
                "https://a.invalid/3.png",
                "relative.png",
            ]
        );
    }

    #[test]
    fn only_hosts_of_github_are_its_own() {
        let server = "https://github.com";
        for own in [
            "https://github.com/user-attachments/assets/1",
            "https://GitHub.com/o/r/assets/1/2",
            "https://private-user-images.githubusercontent.com/1?jwt=x",
            "https://user-images.githubusercontent.com/1/2.png",
        ] {
            assert!(is_on_github(own, server), "{own}");
        }
        for other in [
            "http://github.com/user-attachments/assets/1",
            "https://github.com@a.invalid/1.png",
            "https://github.com:1/1.png",
            "https://github.com.a.invalid/1.png",
            "https://a.invalid/github.com/1.png",
            "https://a.invalid\\.githubusercontent.com/1.png",
            "https://a.invalid:1@x.githubusercontent.com/1.png",
            "https://camo.githubusercontent.com/1/2",
            "//github.com/1.png",
            "relative.png",
            "file:///etc/passwd",
            "",
        ] {
            assert!(!is_on_github(other, server), "{other}");
        }
        let enterprise = "https://git.acme.invalid";
        assert!(is_on_github(
            "https://git.acme.invalid/user-attachments/assets/1",
            enterprise
        ));
        assert!(!is_on_github(
            "https://x.githubusercontent.com/1",
            enterprise
        ));
    }

    #[test]
    fn the_bytes_say_what_a_picture_is() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\nx"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg xmlns='x'/>", None),
            (b"<!doctype html>", None),
            (b"", None),
        ] {
            assert_eq!(media_type(bytes), expected);
        }
    }
}
