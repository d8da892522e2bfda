//! Where a store on a server is: reads URLs. Sends nothing and reads no variable.
//!
//! | URL | server |
//! |---|---|
//! | `redis://host:6379/prefix`, `rediss://…` with TLS | Redis and what speaks like it |
//! | `http://host:8080/prefix`, `https://…` | whatever takes GET and PUT: bazel-remote, nginx |
//! | `dav://host/prefix`, `davs://…` with TLS | WebDAV, where folders must be made |
//! | `s3://bucket/prefix?region=…&endpoint=…` | S3 and what speaks like it |
//! | `gcs://bucket/prefix` | Google Cloud Storage |
//! | `azblob://container/prefix?endpoint=…` | Azure Blob Storage |

use url::Url;

/// What a scheme stands for.
struct Scheme {
    name: &'static str,
    /// The service of OpenDAL.
    service: &'static str,
    /// How the rest of the URL says where it is.
    place: Place,
    /// Set in any case.
    fixed: &'static [(&'static str, &'static str)],
    /// What may stand behind a `?`. No credentials: URLs end up in logs.
    options: &'static [&'static str],
}

enum Place {
    /// A host, to be called with another scheme.
    Host(&'static str),
    /// The name of what holds the objects, under this option.
    Container(&'static str),
}

const fn host(name: &'static str, service: &'static str, called: &'static str) -> Scheme {
    Scheme { name, service, place: Place::Host(called), fixed: &[], options: &[] }
}

/// Folders are not made: such servers know none, or make them by themselves.
const PLAIN: &[(&str, &str)] = &[("disable_create_dir", "true")];

const SCHEMES: &[Scheme] = &[
    host("redis", "redis", "redis"),
    host("rediss", "redis", "rediss"),
    Scheme { fixed: PLAIN, ..host("http", "webdav", "http") },
    Scheme { fixed: PLAIN, ..host("https", "webdav", "https") },
    host("dav", "webdav", "http"),
    host("davs", "webdav", "https"),
    Scheme {
        name: "s3",
        service: "s3",
        place: Place::Container("bucket"),
        fixed: &[],
        options: &["region", "endpoint", "enable_virtual_host_style"],
    },
    Scheme {
        name: "gcs",
        service: "gcs",
        place: Place::Container("bucket"),
        fixed: &[],
        options: &["endpoint"],
    },
    Scheme {
        name: "azblob",
        service: "azblob",
        place: Place::Container("container"),
        fixed: &[],
        options: &["endpoint", "account_name"],
    },
];

/// A service of OpenDAL with its options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) service: &'static str,
    pub(super) options: Vec<(String, String)>,
}

impl Address {
    /// Reads a URL. `Err` is a phrase that repeats nothing that may be a secret.
    pub(super) fn parse(text: &str) -> Result<Address, String> {
        let url = Url::parse(text).map_err(|error| format!("it is no URL: {error}"))?;
        let scheme = SCHEMES.iter().find(|scheme| scheme.name == url.scheme()).ok_or_else(|| {
            let known = SCHEMES.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join("`, `");
            format!("no cache is at `{}://`; supported are `{known}`", url.scheme())
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            let help = "put them into `AOTI_CACHE_REMOTE_USERNAME` and `AOTI_CACHE_REMOTE_PASSWORD`";
            return Err(format!("the URL holds credentials; {help}"));
        }
        let named =
            url.host_str().filter(|host| !host.is_empty()).ok_or("the URL names no host or bucket")?;
        let mut options = vec![match scheme.place {
            Place::Container(option) => (option.to_owned(), named.to_owned()),
            Place::Host(called) => {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                ("endpoint".to_owned(), format!("{called}://{named}{port}"))
            }
        }];
        options.push(("root".to_owned(), format!("/{}", url.path().trim_matches('/'))));
        options.extend(scheme.fixed.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        for (name, value) in url.query_pairs() {
            if !scheme.options.contains(&&*name) {
                let known = scheme.options.join("`, `");
                return Err(match known.is_empty() {
                    true => format!("a `{}` URL has no options", scheme.name),
                    false => {
                        format!("`{name}` is no option of a `{}` URL; supported are `{known}`", scheme.name)
                    }
                });
            }
            options.push((name.into_owned(), value.into_owned()));
        }
        Ok(Address { service: scheme.service, options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> String {
        match Address::parse(url) {
            Ok(Address { service, options }) => {
                let options =
                    options.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
                format!("{service}{options}")
            }
            Err(message) => message,
        }
    }

    #[test]
    fn urls_name_services_and_their_places() {
        assert_eq!(read("redis://host:6379/a/b"), "redis endpoint=redis://host:6379 root=/a/b");
        assert_eq!(read("rediss://host"), "redis endpoint=rediss://host root=/");
        let plain = "webdav endpoint=http://[::1]:8080 root=/x disable_create_dir=true";
        assert_eq!(read("http://[::1]:8080/x/"), plain);
        assert_eq!(read("davs://host/"), "webdav endpoint=https://host root=/");
        let s3 = "s3 bucket=Bucket root=/p region=eu endpoint=http://h:1";
        assert_eq!(read("s3://Bucket/p?region=eu&endpoint=http%3A%2F%2Fh%3A1"), s3);
        assert_eq!(read("gcs://bucket"), "gcs bucket=bucket root=/");
        assert_eq!(read("azblob://box/p?account_name=a"), "azblob container=box root=/p account_name=a");
    }

    #[test]
    fn mistakes_are_told_and_secrets_are_not_repeated() {
        for (url, part) in [
            ("host:6379", "no cache is at `host://`"),
            ("nonsense", "it is no URL"),
            ("ftp://host/", "supported are `redis`, `rediss`, `http`"),
            ("redis://user:secret@host/", "holds credentials"),
            ("https://secret@host/", "holds credentials"),
            ("s3://bucket?secret_access_key=secret", "`secret_access_key` is no option of a `s3` URL"),
            ("redis://host?x=secret", "has no options"),
            ("redis:///prefix", "names no host"),
        ] {
            let told = read(url);
            assert!(told.contains(part), "{url}: {told}");
            assert!(!told.replace("secret_access_key", "").contains("secret"), "{told}");
        }
    }
}
