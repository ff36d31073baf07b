//! The pages, drawn from sections.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use volery_bench::page::{Section, csv, html, markdown, plot_name, svg, text};
use volery_bench::results::write_whole;

use super::place::Place;
use crate::exit::Failure;
use crate::output::undisturbed;

const TITLE: &str = "The papers' tables and figures, repeated";

/// What is drawn, and where.
pub(super) struct Pages<'a> {
    pub(super) place: &'a Place,
    pub(super) intro: &'a [String],
    pub(super) sections: &'a [Section],
    /// All measurements: for those forms in which a reader finds his way.
    pub(super) appendix: &'a Section,
}

impl Pages<'_> {
    /// Writes all files but the results themselves.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let place = self.place;
        let plots = place.plots();
        match fs::create_dir(&plots) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Failure::file(&plots, error));
            }
            _ => {}
        }
        let mut names = Vec::new();
        for section in self.sections {
            for (plot, number) in section.plots.iter().zip(1..) {
                let name = plot_name(section, number);
                write(&plots.join(&name), &svg::plot(plot))?;
                names.push(name);
            }
        }
        remove_others(&plots, &names);
        let all = [self.sections, std::slice::from_ref(self.appendix)].concat();
        write(&place.csv(), &csv::all(&all)?)?;
        write(&place.index(), &html::page(TITLE, self.intro, &all))?;
        let intro = [self.intro, &[self.where_the_rest_is()]].concat();
        let document = markdown::document(TITLE, &intro, self.sections, &place.link_to("plots"));
        write(place.markdown(), &document)
    }

    fn where_the_rest_is(&self) -> String {
        let [results, csv, index] =
            ["results.json", "results.csv", "index.html"].map(|name| self.place.link_to(name));
        format!(
            "Made by 'volery bench paper'. Every run is in {results}, every figure in {csv}; {index} is the same as this for a \
             browser."
        )
    }

    /// Prints the tables.
    ///
    /// # Errors
    /// Those of standard output.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for section in self.sections {
            writeln!(out, "{}", text::section(section))?;
        }
        self.intro
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// Removes the plots that nothing draws any more. What cannot be removed is in nobody's way.
fn remove_others(plots: &Path, names: &[String]) {
    for entry in fs::read_dir(plots).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_plot = path.extension().is_some_and(|extension| extension == "svg")
            && entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_plot && !names.iter().any(|name| entry.file_name() == **name) {
            let _ = fs::remove_file(path);
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let _whole = undisturbed();
    Ok(write_whole(path, text.as_bytes())?)
}
