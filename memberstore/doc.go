// Package memberstore keeps members, what is pending of them, integrations, and
// answers to requests that may be repeated, on SQLite and on PostgreSQL.
//
// [SQL] implements the stores that the packages members, members/outbox and
// members/inbound ask for; their doc comments are its contract.
package memberstore
