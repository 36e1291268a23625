//! English names of the languages and countries that the supported data sets cover, and aliases.

const LANGUAGES: &[(&str, &str)] = &[
    ("am", "Amharic"),
    ("ar", "Arabic"),
    ("bn", "Bengali"),
    ("ca", "Catalan"),
    ("cs", "Czech"),
    ("da", "Danish"),
    ("de", "German"),
    ("el", "Greek"),
    ("en", "English"),
    ("es", "Spanish"),
    ("eu", "Basque"),
    ("fa", "Persian"),
    ("fi", "Finnish"),
    ("fil", "Filipino"),
    ("fr", "French"),
    ("gl", "Galician"),
    ("gu", "Gujarati"),
    ("ha", "Hausa"),
    ("he", "Hebrew"),
    ("hi", "Hindi"),
    ("hu", "Hungarian"),
    ("id", "Indonesian"),
    ("ig", "Igbo"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("km", "Khmer"),
    ("kn", "Kannada"),
    ("ko", "Korean"),
    ("lo", "Lao"),
    ("ml", "Malayalam"),
    ("mr", "Marathi"),
    ("ms", "Malay"),
    ("my", "Burmese"),
    ("ne", "Nepali"),
    ("nl", "Dutch"),
    ("no", "Norwegian"),
    ("pa", "Punjabi"),
    ("pl", "Polish"),
    ("pt", "Portuguese"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("si", "Sinhala"),
    ("so", "Somali"),
    ("sv", "Swedish"),
    ("sw", "Swahili"),
    ("ta", "Tamil"),
    ("te", "Telugu"),
    ("th", "Thai"),
    ("tl", "Tagalog"),
    ("tr", "Turkish"),
    ("uk", "Ukrainian"),
    ("ur", "Urdu"),
    ("vi", "Vietnamese"),
    ("yo", "Yoruba"),
    ("zh", "Chinese"),
    ("zu", "Zulu"),
];

/// Region code and names; the first name is the one shown.
const REGIONS: &[(&str, &[&str])] = &[
    ("AE", &["United Arab Emirates", "UAE"]),
    ("AR", &["Argentina"]),
    ("AU", &["Australia"]),
    ("BD", &["Bangladesh"]),
    ("BR", &["Brazil"]),
    ("CA", &["Canada"]),
    ("CH", &["Switzerland"]),
    ("CL", &["Chile"]),
    ("CN", &["China"]),
    ("CO", &["Colombia"]),
    ("CZ", &["Czechia"]),
    ("DE", &["Germany"]),
    ("EG", &["Egypt"]),
    ("ES", &["Spain"]),
    ("ET", &["Ethiopia"]),
    ("FI", &["Finland"]),
    ("FR", &["France"]),
    ("GB", &["United Kingdom", "UK"]),
    ("GR", &["Greece"]),
    ("ID", &["Indonesia"]),
    ("IL", &["Israel"]),
    ("IN", &["India"]),
    ("IR", &["Iran"]),
    ("IT", &["Italy"]),
    ("JP", &["Japan"]),
    ("KE", &["Kenya"]),
    ("KR", &["South Korea", "Korea"]),
    ("LK", &["Sri Lanka"]),
    ("MA", &["Morocco"]),
    ("MM", &["Myanmar"]),
    ("MX", &["Mexico"]),
    ("MY", &["Malaysia"]),
    ("NG", &["Nigeria"]),
    ("NL", &["Netherlands", "The Netherlands"]),
    ("NO", &["Norway"]),
    ("NP", &["Nepal"]),
    ("PE", &["Peru"]),
    ("PH", &["Philippines"]),
    ("PK", &["Pakistan"]),
    ("PL", &["Poland"]),
    ("PT", &["Portugal"]),
    ("RO", &["Romania"]),
    ("RU", &["Russia"]),
    ("SA", &["Saudi Arabia"]),
    ("SE", &["Sweden"]),
    ("SG", &["Singapore"]),
    ("TH", &["Thailand"]),
    ("TR", &["Turkey", "Türkiye"]),
    ("TW", &["Taiwan"]),
    ("TZ", &["Tanzania"]),
    ("UA", &["Ukraine"]),
    ("US", &["United States", "USA", "US"]),
    ("VN", &["Vietnam", "Viet Nam"]),
    ("ZA", &["South Africa"]),
];

pub(super) fn language_name(code: &str) -> Option<&'static str> {
    LANGUAGES
        .iter()
        .find(|(c, _)| *c == code)
        .map(|(_, name)| *name)
}

pub(super) fn region_name(code: &str) -> Option<&'static str> {
    REGIONS
        .iter()
        .find(|(c, _)| *c == code)
        .map(|(_, names)| names[0])
}

pub(super) fn region_code(name: &str) -> Option<&'static str> {
    let name = name.trim();
    REGIONS
        .iter()
        .find(|(code, names)| {
            code.eq_ignore_ascii_case(name) || names.iter().any(|n| n.eq_ignore_ascii_case(name))
        })
        .map(|(code, _)| *code)
}

/// Data sets sometimes put a country code where a language code belongs.
pub(super) fn language_alias(code: &str) -> String {
    match code.trim().to_lowercase().as_str() {
        "vn" => "vi".into(),
        "kr" => "ko".into(),
        "jp" => "ja".into(),
        other => other.into(),
    }
}

/// The known tag that a text most likely means: its parts are read as codes or as English names of
/// languages and countries, misspelt ones included.
pub(super) fn nearest_tag(text: &str) -> Option<String> {
    use crate::text::nearest;
    let text: String = text
        .chars()
        .filter(|c| !crate::text::is_invisible(*c))
        .take(80)
        .collect();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != ' ')
        .flat_map(|part| {
            let pieces = part.split(' ').filter(move |piece| *piece != part);
            std::iter::once(part).chain(pieces)
        })
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let language = |word: &str| {
        let code = LANGUAGES.iter().find(|(c, _)| c.eq_ignore_ascii_case(word));
        let name = || {
            let near = nearest(word, LANGUAGES.iter().map(|(_, name)| *name))?;
            LANGUAGES.iter().find(|(_, name)| *name == near)
        };
        let long = word.chars().count() > 3;
        code.or_else(|| long.then(name).flatten())
            .map(|(code, _)| *code)
    };
    let region = |word: &str| {
        let known = || {
            let names = REGIONS.iter().flat_map(|(_, names)| names.iter().copied());
            // `Brazilian` is nearer to Brazil than to anything else.
            let near = nearest(word, names.clone()).or_else(|| {
                names
                    .clone()
                    .find(|n| n.len() > 4 && word.to_lowercase().starts_with(&n.to_lowercase()))
            })?;
            region_code(near)
        };
        region_code(word).or_else(|| (word.chars().count() > 3).then(known).flatten())
    };
    let tag = |language: &str, region: Option<&str>| match region {
        Some(region) => format!("{language}-{region}"),
        None => language.to_owned(),
    };
    if let Some((at, found)) = words
        .iter()
        .enumerate()
        .find_map(|(i, w)| Some((i, language(w)?)))
    {
        let rest = words.iter().enumerate().filter(|(i, _)| *i != at);
        return Some(tag(found, rest.map(|(_, w)| *w).find_map(region)));
    }
    // Codes that stand together: `esMX`.
    let code: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    [2, 3].into_iter().find_map(|at| {
        let (first, rest) = code.split_at_checked(at)?;
        let found = region_code(rest)?;
        Some(tag(language(first)?, Some(found)))
    })
}
