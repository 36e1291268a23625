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
