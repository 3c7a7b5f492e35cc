//! Keys of JSON lines: one value per line, the key at a JSON pointer.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

/// Place of the key in each value: a JSON pointer (RFC 6901), as its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonPointer {
    tokens: Vec<String>,
}

impl JsonPointer {
    /// Parses `/user/id`. Text without a slash is a name at the top level;
    /// empty text is the whole value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { tokens: Vec::new() });
        }
        let Some(path) = text.strip_prefix('/') else {
            return match text.contains('/') {
                true => {
                    Err("expected a name, or a pointer such as /user/id"
                        .into())
                }
                false => Ok(Self { tokens: vec![text.into()] }),
            };
        };
        let tokens = path
            .split('/')
            .map(|token| token.replace("~1", "/").replace("~0", "~"))
            .collect();
        Ok(Self { tokens })
    }

    /// Key of the JSON value `line`: the contents of a string, or a number or
    /// a boolean as it is written.
    pub(super) fn key<'a>(
        &self,
        line: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, String> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let found = Walk(&self.tokens)
            .deserialize(&mut json)
            .and_then(|found| json.end().map(|()| found))
            .map_err(|error| {
                format!("expected one JSON value per line: {error}")
            })?;
        let Some(value) = found else {
            return Err(format!(
                "no value at {self} (select the lines that have one, for \
                 example with jq)"
            ));
        };
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'"') => match serde_json::from_str::<Cow<'a, str>>(text) {
                Ok(key) => Ok(key.into_owned().into_bytes().into()),
                Err(error) => Err(format!("at {self}: {error}")),
            },
            Some(b'{' | b'[' | b'n') => Err(format!(
                "expected a string, a number or a boolean at {self}"
            )),
            _ => Ok(text.as_bytes().into()),
        }
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens.iter().try_for_each(|token| {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))
        })
    }
}

/// Walk along the tokens of a pointer. Everything beside the path is parsed
/// and dropped; a number keeps its digits, which a `Value` would round.
struct Walk<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        json: D,
    ) -> Result<Self::Value, D::Error> {
        use serde::Deserialize as _;
        match self.0.split_first() {
            None => <&RawValue>::deserialize(json).map(Some),
            Some((token, rest)) => json.deserialize_any(Step { token, rest }),
        }
    }
}

/// One step of a [`Walk`]: from a value to its member `token`.
struct Step<'p> {
    token: &'p str,
    rest: &'p [String],
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    /// The last of equal names counts.
    fn visit_map<M: MapAccess<'de>>(
        self,
        mut map: M,
    ) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(matches) = map.next_key_seed(Matches(self.token))? {
            if matches {
                found = map.next_value_seed(Walk(self.rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<S: SeqAccess<'de>>(
        self,
        mut sequence: S,
    ) -> Result<Self::Value, S::Error> {
        let wanted = self.token.parse::<usize>().ok();
        let mut found = None;
        for index in 0.. {
            if Some(index) == wanted {
                match sequence.next_element_seed(Walk(self.rest))? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if sequence.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    // Values without members.

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Comparison of a name with a token.
struct Matches<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Matches<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(
        self,
        json: D,
    ) -> Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Matches<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(pointer: &str, line: &str) -> Result<String, String> {
        let pointer = JsonPointer::parse(pointer)?;
        let key = pointer.key(line.as_bytes())?;
        Ok(String::from_utf8(key.into_owned()).unwrap())
    }

    #[test]
    fn keys_are_found_at_pointers() {
        let line = r#"{"id":12345678901234567890123,"u":{"n":"a\"é\n"},
            "l":[true,{"x":-1.0e3}],"a/b":"s","~":"t","id2":null}"#;
        for (pointer, expected) in [
            ("id", "12345678901234567890123"),
            ("/id", "12345678901234567890123"),
            ("/u/n", "a\"é\n"),
            ("/l/0", "true"),
            ("/l/1/x", "-1.0e3"),
            ("/a~1b", "s"),
            ("/~0", "t"),
        ] {
            assert_eq!(key(pointer, line).as_deref(), Ok(expected));
        }
        for pointer in
            ["/id2", "/u", "/l", "/x", "/l/2", "/l/x", "/id/0", "/u/n/m"]
        {
            assert!(key(pointer, line).is_err(), "{pointer}");
        }
        assert_eq!(key("/a", r#"{"a":1,"a":2}"#).as_deref(), Ok("2"));
        assert_eq!(key("/0", "[7]").as_deref(), Ok("7"));
        assert_eq!(key("", " \"x\" ").as_deref(), Ok("x"));
        assert!(JsonPointer::parse("a/b").is_err());
    }

    #[test]
    fn lines_that_are_not_one_value_are_refused() {
        for line in ["", "{", r#"{"a":1} {"a":2}"#, "a", r#"{"a":"\x"}"#] {
            assert!(key("/a", line).is_err(), "{line}");
        }
        let mut line = br#"{"a":"?"}"#.to_vec();
        line[6] = 0xff;
        let pointer = JsonPointer::parse("/a").unwrap();
        assert!(pointer.key(&line).is_err());
        let deep = "[".repeat(100_000);
        assert!(key("/0", &deep).is_err());
    }
}
