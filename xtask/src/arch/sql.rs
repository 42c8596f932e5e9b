//! Just enough of SQL's lexis to tell which tables a text names. Good for the three dialects that the stores speak.

use std::collections::BTreeSet;

/// What a text of SQL names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Names where only a table can stand, without common table expressions and functions.
    pub(crate) tables: BTreeSet<String>,
    /// Every unquoted or quoted word that no dot precedes.
    pub(crate) words: BTreeSet<String>,
    /// Tables that it creates, temporary ones aside.
    pub(crate) created: BTreeSet<String>,
    /// Tables that it drops or renames away.
    pub(crate) removed: BTreeSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// A keyword or identifier, in lower case.
    Word(String),
    Symbol(char),
}

/// Reads `sql`, one or several statements.
pub(crate) fn names(sql: &str) -> Names {
    let tokens = tokens(sql);
    let mut names = Names::default();
    let mut dotted = false;
    for token in &tokens {
        match token {
            Token::Word(word) if !dotted => _ = names.words.insert(word.clone()),
            _ => {}
        }
        dotted = *token == Token::Symbol('.');
    }
    let common = common_table_expressions(&tokens);
    let mut reader = Reader { tokens: &tokens, at: 0, openers: Vec::new(), names: &mut names };
    while reader.step() {}
    names.tables.retain(|table| !common.contains(table) && !belongs_to_the_engine(table));
    names
}

/// The catalogues of the engines belong to no module.
fn belongs_to_the_engine(table: &str) -> bool {
    ["sqlite_", "pragma_", "pg_", "information_schema"].iter().any(|prefix| table.starts_with(prefix))
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    /// For each open parenthesis, the word before it.
    openers: Vec<Option<&'a str>>,
    names: &'a mut Names,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> bool {
        let Some(token) = self.tokens.get(self.at) else { return false };
        let before = self.at.checked_sub(1).and_then(|index| self.word(index));
        self.at += 1;
        match token {
            Token::Symbol('(') => self.openers.push(before),
            Token::Symbol(')') => _ = self.openers.pop(),
            Token::Symbol(_) => {}
            Token::Word(word) => match word.as_str() {
                "from" if before != Some("distinct") && !self.in_special_function() => self.source(),
                "join" => self.source(),
                "into" | "references" => self.target(),
                "update" if !matches!(before, Some("do" | "for" | "on" | "key")) => self.update(),
                "table" => self.table(),
                _ => {}
            },
        }
        true
    }

    fn word(&self, index: usize) -> Option<&'a str> {
        match self.tokens.get(index) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn next_is(&self, symbol: char) -> bool {
        self.tokens.get(self.at) == Some(&Token::Symbol(symbol))
    }

    fn skip(&mut self, words: &[&str]) {
        while self.word(self.at).is_some_and(|word| words.contains(&word)) {
            self.at += 1;
        }
    }

    /// `extract(epoch from moment)` and its like name no table.
    fn in_special_function(&self) -> bool {
        matches!(self.openers.last(), Some(Some("extract" | "trim" | "substring" | "overlay" | "position")))
    }

    /// The name at this place without its schema.
    fn name(&mut self) -> Option<String> {
        let mut name = self.word(self.at)?;
        self.at += 1;
        while self.next_is('.') {
            self.at += 1;
            name = self.word(self.at)?;
            self.at += 1;
        }
        // A partition: its table's name and a place for its number.
        let name = if self.next_is('{') { name.trim_end_matches('_') } else { name };
        Some(name.to_owned())
    }

    /// What rows come from: a table, unless it is a subquery or a function.
    fn source(&mut self) {
        self.skip(&["lateral", "only"]);
        if let Some(name) = self.name()
            && !self.next_is('(')
        {
            self.names.tables.insert(name);
        }
    }

    fn target(&mut self) {
        if let Some(name) = self.name() {
            self.names.tables.insert(name);
        }
    }

    fn update(&mut self) {
        if self.word(self.at) == Some("or") {
            self.at += 2;
        }
        self.skip(&["only"]);
        self.target();
    }

    /// `create table`, `drop table` and `alter table … rename to …`.
    fn table(&mut self) {
        let verb = |distance: usize| self.at.checked_sub(distance).and_then(|index| self.word(index));
        let (verb, temporary) = match (verb(2), verb(3)) {
            (Some("temp" | "temporary"), verb) => (verb, true),
            (verb, _) => (verb, false),
        };
        self.skip(&["if", "not", "exists", "only"]);
        let Some(name) = self.name() else { return };
        match verb {
            Some("create") if !temporary => _ = self.names.created.insert(name.clone()),
            Some("drop") => _ = self.names.removed.insert(name.clone()),
            Some("alter") if self.word(self.at) == Some("rename") && self.word(self.at + 1) == Some("to") => {
                self.names.removed.insert(name.clone());
                self.at += 2;
                if let Some(new) = self.name() {
                    self.names.created.insert(new.clone());
                    self.names.tables.insert(new);
                }
            }
            _ => {}
        }
        if !temporary {
            self.names.tables.insert(name);
        }
    }
}

/// The names in `with name as (…)` and `with name(columns) as (…)`.
fn common_table_expressions(tokens: &[Token]) -> BTreeSet<String> {
    let word = |index: Option<usize>| match index.and_then(|index| tokens.get(index)) {
        Some(Token::Word(word)) => Some(word.as_str()),
        _ => None,
    };
    let mut found = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(keyword) = token else { continue };
        let mut next = at + 1;
        while matches!(word(Some(next)), Some("not" | "materialized")) {
            next += 1;
        }
        if keyword != "as" || tokens.get(next) != Some(&Token::Symbol('(')) {
            continue;
        }
        let named = match at.checked_sub(1).and_then(|before| tokens.get(before)) {
            // The words between the parentheses are columns: the name stands before the opening one.
            Some(Token::Symbol(')')) => {
                let opening = tokens.iter().take(at).rposition(|token| *token == Token::Symbol('('));
                word(opening.and_then(|opening| opening.checked_sub(1)))
            }
            _ => word(at.checked_sub(1)),
        };
        found.extend(named.map(str::to_owned));
    }
    found
}

fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut characters = sql.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek().copied()) {
            ('-', Some('-')) => _ = characters.by_ref().find(|character| *character == '\n'),
            ('/', Some('*')) => {
                let mut last = ' ';
                characters.by_ref().find(|&character| std::mem::replace(&mut last, character) == '*' && character == '/');
            }
            ('\'', _) => _ = characters.by_ref().find(|character| *character == '\''),
            ('"' | '`', _) => tokens.push(Token::Word(characters.by_ref().take_while(|next| *next != character).collect())),
            ('[', _) => _ = characters.by_ref().find(|character| *character == ']'),
            // Parameters: ?1, :name, @name, $1, and PostgreSQL's casts ::type.
            ('?' | ':' | '@' | '$', _) => while characters.next_if(|next| in_word(*next) || *next == ':').is_some() {},
            _ if in_word(character) => {
                let mut word = character.to_ascii_lowercase().to_string();
                while let Some(next) = characters.next_if(|next| in_word(*next)) {
                    word.push(next.to_ascii_lowercase());
                }
                if !character.is_ascii_digit() {
                    tokens.push(Token::Word(word));
                }
            }
            _ if character.is_whitespace() => {}
            _ => tokens.push(Token::Symbol(character)),
        }
    }
    tokens
}

fn in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::names;

    fn tables(sql: &str) -> Vec<String> {
        names(sql).tables.into_iter().collect()
    }

    #[test]
    fn tables_are_found_where_a_table_stands() {
        for (sql, expected) in [
            ("SELECT a FROM tokens WHERE b = 'FROM grants'", &["tokens"][..]),
            ("select 1 from main.\"tokens\" as t join `grants` g on g.a = t.a -- from spaces\n", &["grants", "tokens"]),
            ("INSERT OR IGNORE INTO tokens (a) VALUES (?1) ON CONFLICT DO UPDATE SET a = excluded.a", &["tokens"]),
            ("UPDATE OR FAIL tokens SET a = (SELECT max(x) FROM grants)", &["grants", "tokens"]),
            ("DELETE FROM tokens WHERE a IS DISTINCT FROM b RETURNING a", &["tokens"]),
            ("SELECT a FROM tokens FOR UPDATE SKIP LOCKED", &["tokens"]),
            ("SELECT extract(epoch FROM moment), trim(both FROM x) FROM tokens", &["tokens"]),
            ("SELECT value FROM json_each(?1) AS j, tokens; /* from spaces */ SELECT name FROM sqlite_schema", &[]),
            ("SELECT a FROM (SELECT a FROM tokens) AS inner_rows", &["tokens"]),
            ("CREATE TABLE a (b INTEGER REFERENCES tokens (id) ON UPDATE CASCADE)", &["a", "tokens"]),
        ] {
            assert_eq!(tables(sql), expected, "{sql}");
        }
    }

    #[test]
    fn common_table_expressions_are_not_tables() {
        let sql = "WITH RECURSIVE due AS (SELECT 1 FROM scheduled_events), more(a, b) AS NOT MATERIALIZED (SELECT * FROM due)
                   INSERT INTO event_log SELECT * FROM more JOIN due";
        assert_eq!(tables(sql), ["event_log", "scheduled_events"]);
    }

    #[test]
    fn words_hold_every_name_but_columns_behind_a_dot_and_parameters() {
        let words = names("SELECT t.channels, :grants, ?2, x::spaces FROM json_each(?1) t, tokens").words;
        assert!(words.contains("tokens"));
        for absent in ["channels", "grants", "spaces"] {
            assert!(!words.contains(absent), "{absent}");
        }
    }

    #[test]
    fn created_and_removed_tables_are_told_apart() {
        let found = names(
            "CREATE TABLE IF NOT EXISTS a (x); CREATE TEMP TABLE t (x); DROP TABLE IF EXISTS b; ALTER TABLE c RENAME TO d;
             ALTER TABLE e ADD COLUMN f TEXT; ALTER TABLE g RENAME COLUMN to_a TO b2;",
        );
        assert_eq!(found.created.into_iter().collect::<Vec<_>>(), ["a", "d"]);
        assert_eq!(found.removed.into_iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(found.tables.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "g"]);
    }
}
