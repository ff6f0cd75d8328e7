//! The classes of events, and what is done in them.

/// A class, and the category it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) uid: u32,
    pub(super) name: &'static str,
    pub(super) category: u32,
    pub(super) category_name: &'static str,
}

/// What was done, in the words of a class.
#[derive(Clone, Copy)]
pub(super) struct Activity {
    pub(super) id: u32,
    pub(super) name: &'static str,
}

impl Activity {
    /// An activity for which the schema has no number.
    pub(super) const fn other(name: &'static str) -> Self {
        Self { id: 99, name }
    }

    /// Its name in the name of a type.
    pub(super) const fn of_type(self) -> &'static str {
        if self.id == 99 { "Other" } else { self.name }
    }
}

pub(super) const FILE_SYSTEM: Class = class(1001, "File System Activity", 1, "System Activity");
pub(super) const PROCESS: Class = class(1007, "Process Activity", 1, "System Activity");
pub(super) const FINDING: Class = class(2004, "Detection Finding", 2, "Findings");
pub(super) const AUTHORIZE: Class = class(3003, "Authorize Session", 3, "Identity & Access Management");
pub(super) const CONFIGURATION: Class = class(5019, "Device Config State Change", 5, "Discovery");

const fn class(uid: u32, name: &'static str, category: u32, category_name: &'static str) -> Class {
    Class {
        uid,
        name,
        category,
        category_name,
    }
}

pub(super) const LAUNCH: Activity = activity(1, "Launch");
pub(super) const TERMINATE: Activity = activity(2, "Terminate");
pub(super) const ASSIGN_PRIVILEGES: Activity = activity(1, "Assign Privileges");
pub(super) const LOG: Activity = activity(1, "Log");
pub(super) const CREATE_FINDING: Activity = activity(1, "Create");

/// An activity with a number.
pub(super) const fn activity(id: u32, name: &'static str) -> Activity {
    Activity { id, name }
}
