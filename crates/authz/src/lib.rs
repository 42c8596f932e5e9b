//! Who may do what: principals, tokens, grants, authorize(), delivery admission.
