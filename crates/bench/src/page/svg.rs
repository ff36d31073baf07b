//! Plots as pictures.
