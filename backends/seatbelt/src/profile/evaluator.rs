//! A reader of profiles that decides as the system is documented to: of the rules that speak of an
//! operation and an object, the last one. It knows the few forms that are written here and no other.

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Ordinary,
    Block,
    Character,
}

/// What an operation is done to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Object<'a> {
    File(&'a str, Node),
    /// A socket of the file system, by its path.
    Unix(&'a str),
    /// A socket of the Internet families.
    Internet,
    /// A process, and whether it belongs to the run.
    Process(bool),
}

/// One parenthesis, word or literal of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Word(String),
    Literal(String),
    Pattern(String),
    List(Vec<Form>),
}

/// Reads every form of a text.
pub(super) fn read(text: &str) -> Result<Vec<Form>, String> {
    let mut rest = text.chars().peekable();
    let mut stack: Vec<Vec<Form>> = vec![Vec::new()];
    while let Some(c) = rest.next() {
        let form = match c {
            ' ' | '\n' => continue,
            '(' => {
                stack.push(Vec::new());
                continue;
            }
            ')' => Form::List(stack.pop().ok_or("a parenthesis too many")?),
            '"' => Form::Literal(literal(&mut rest)?),
            '#' if rest.next_if_eq(&'"').is_some() => Form::Pattern(literal(&mut rest)?),
            c if c.is_ascii_alphanumeric() || c == '\'' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || "-*?".contains(*c)) {
                    word.push(c);
                }
                Form::Word(word)
            }
            other => return Err(format!("{other:?} begins nothing")),
        };
        stack.last_mut().ok_or("a parenthesis too many")?.push(form);
    }
    match (stack.pop(), stack.is_empty()) {
        (Some(forms), true) => Ok(forms),
        _ => Err("a parenthesis too few".to_owned()),
    }
}

/// The rest of a literal whose first quote was read.
fn literal(rest: &mut impl Iterator<Item = char>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match rest.next().ok_or("a literal without end")? {
            '"' => return Ok(text),
            '\\' => match rest.next() {
                Some(c @ ('"' | '\\')) => text.push(c),
                other => return Err(format!("an unknown escape: {other:?}")),
            },
            c if c.is_control() => return Err(format!("{c:?} in a literal")),
            c => text.push(c),
        }
    }
}

/// The rules of a profile, those included that only recent systems know.
pub(super) fn rules(text: &str) -> Vec<Vec<Form>> {
    let forms = read(text).unwrap();
    assert_eq!(forms[0], list(&["version", "1"]), "the version comes first");
    forms[1..].iter().map(rule).collect()
}

fn list(words: &[&str]) -> Form {
    Form::List(words.iter().map(|word| Form::Word((*word).to_owned())).collect())
}

fn rule(form: &Form) -> Vec<Form> {
    let Form::List(parts) = form else {
        panic!("{form:?} is no rule")
    };
    match &parts[..] {
        [Form::Word(word), _, rule @ Form::List(_)] if word == "when" => self::rule(rule),
        [Form::Word(word), ..] if word == "allow" || word == "deny" => parts.clone(),
        _ => panic!("{form:?} is no rule"),
    }
}

/// Whether a profile allows an operation, which is never a family.
pub(super) fn allows(text: &str, operation: &str, object: Object<'_>) -> bool {
    assert!(!operation.ends_with('*'));
    let rules = rules(text);
    let speaking = rules.iter().rfind(|rule| speaks(rule, operation, object));
    let decision = speaking.expect("the default speaks of everything");
    decision[0] == Form::Word("allow".to_owned())
}

fn speaks(rule: &[Form], operation: &str, object: Object<'_>) -> bool {
    let mut operations = rule[1..].iter().filter_map(|form| match form {
        Form::Word(word) => Some(word.as_str()),
        _ => None,
    });
    let filters: Vec<_> = rule[1..].iter().filter(|form| !matches!(form, Form::Word(_))).collect();
    let of_it = |word: &str| match word.strip_suffix('*') {
        Some(family) => operation.starts_with(family),
        None => word == operation || word == "default",
    };
    operations.any(of_it) && (filters.is_empty() || filters.iter().any(|filter| passes(filter, object)))
}

fn passes(filter: &Form, object: Object<'_>) -> bool {
    let Form::List(parts) = filter else {
        panic!("{filter:?} is no filter")
    };
    let path = match object {
        Object::File(path, _) | Object::Unix(path) => Some(path),
        Object::Internet | Object::Process(_) => None,
    };
    let (Form::Word(kind), Some(argument)) = (&parts[0], parts.get(1)) else {
        panic!("{filter:?} is no filter")
    };
    assert_eq!(parts.len(), 2, "{filter:?}");
    match (kind.as_str(), argument) {
        ("literal", Form::Literal(text)) => path == Some(text),
        ("subpath", Form::Literal(text)) => path.is_some_and(|path| {
            let beneath = text.trim_end_matches('/');
            path == text || path.strip_prefix(beneath).is_some_and(|rest| rest.starts_with('/'))
        }),
        ("regex", Form::Pattern(pattern)) => {
            assert_eq!(pattern, "^/dev/ttys[0-9]+$", "the one pattern there is");
            let number = path.and_then(|path| path.strip_prefix("/dev/ttys"));
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        }
        ("vnode-type", Form::Word(word)) => match object {
            Object::File(_, node) => match word.as_str() {
                "BLOCK-DEVICE" => node == Node::Block,
                "CHARACTER-DEVICE" => node == Node::Character,
                other => panic!("{other} is unknown"),
            },
            _ => false,
        },
        ("local" | "remote", Form::Word(word)) => {
            assert_eq!(word, "unix-socket");
            matches!(object, Object::Unix(_))
        }
        ("target", Form::Word(word)) => {
            assert_eq!(word, "same-sandbox");
            matches!(object, Object::Process(true))
        }
        _ => panic!("{filter:?} is no filter"),
    }
}
