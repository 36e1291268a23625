//! `pluralis data import | check | split`.
