//! Plain aligned tables.

/// Lines of an aligned table: the header, then the rows. Cells are made safe to print.
pub(crate) fn render(headers: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(headers.get(column).map(|header| header.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headers.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let header = line(&mut headers.iter().copied());
    std::iter::once(header).chain(rows.iter().map(|row| line(&mut row.iter().map(String::as_str)))).collect()
}

/// `text` on one line and without anything that a terminal would obey: what others have written is shown, never run.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_directional(c) { ' ' } else { c }).collect()
}

/// Marks that reorder what follows them, by which a text can look like another.
const fn is_directional(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// JSON text for a terminal: the control characters that JSON allows in strings as escapes, which mean the same.
pub(crate) fn terminal_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\u{7F}'..='\u{9F}') || is_directional(c) {
            out.push_str("\\u");
            out.extend(format!("{:04x}", u32::from(c)).chars());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{printable, render, terminal_json};

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_have_no_trailing_space() {
        let lines = render(&["ID", "NAME"], &[row(&["a", "x"]), row(&["übung", ""])]);
        assert_eq!(lines, ["ID     NAME", "a      x", "übung"]);
        assert_eq!(render(&["ID"], &[]), ["ID"]);
    }

    #[test]
    fn what_others_wrote_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{9b}d\u{202e}e"), "a [31mb c d e");
        assert_eq!(render(&["X"], &[row(&["\u{1b}]0;t\u{7}"])])[1], " ]0;t");
        let text = "{\"a\":\"\u{9b}31m\u{202e}é\"}";
        let safe = terminal_json(text);
        assert_eq!(safe, "{\"a\":\"\\u009b31m\\u202eé\"}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}
