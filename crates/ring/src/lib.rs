//! Single-writer, many-reader ring of rows, lock-free and without unsafe code.
