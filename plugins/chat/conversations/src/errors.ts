import { messageOf, svcError } from '@svc/core'

export const conversationUnknown = (conversationId: string) =>
  svcError('CONVERSATION_UNKNOWN', `there is no conversation "${conversationId.slice(0, 100)}"`, {
    details: { conversationId: conversationId.slice(0, 100) },
    hint: 'Omit conversation_id to start a new conversation',
  })

export const conversationBusy = (conversationId: string, waitMs: number) =>
  svcError('CONVERSATION_BUSY', `the conversation was busy with other turns for more than ${waitMs} ms`, {
    details: { conversationId, waitMs },
    hint: 'Try again when the earlier turns have ended',
  })

export const conversationFull = (limit: number, unit: 'messages' | 'bytes') =>
  svcError('CONVERSATION_FULL', `the conversation has reached its limit of ${limit} ${unit}`, {
    details: { limit, unit },
    hint: 'Start a new conversation',
  })

export function versionStale(conversationId: string) {
  const hint = 'Read the conversation again, and repeat the change with its ETag'
  return svcError('PRECONDITION_FAILED', 'the conversation has another version now', {
    details: { field: 'If-Match', conversation_id: conversationId, hint },
    hint,
  })
}

export const ticketUnknown = () =>
  svcError('TICKET_UNKNOWN', 'this turn has ended already', { hint: 'Begin a new turn, then append to it' })

/** The value of a field is invalid. */
export const invalid = (field: string, reason: string, more: { readonly [detail: string]: string | number } = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

export const messageUnknown = (messageId: string) =>
  svcError('INVALID_VALUE', `the conversation has no message "${messageId.slice(0, 100)}"`, {
    details: { field: 'message_id', value: messageId.slice(0, 100), reason: 'not found' },
    hint: 'List the messages with their ids: GET /api/v1/conversations/{id}?detail=full',
  })

/** A line of an import is invalid. Lines begin at 1. */
export const importInvalid = (line: number, reason: string) =>
  svcError('INVALID_VALUE', `line ${line} ${reason}`, {
    details: { field: 'content', line, reason },
    hint: 'Import a file of `svc conversations export` without changes to roles and ids',
  })

/** The content has another format. Over HTTP there is no hint, so the message says what to do. */
export const formatWrong = (line: number, other: 'jsonl' | 'chat_completions') => {
  const reason = `looks like the format ${other}: import it with --format ${other}, or "format": "${other}"`
  return svcError('INVALID_VALUE', `line ${line} ${reason}`, {
    details: { field: 'format', line, reason, allowed: ['jsonl', 'chat_completions'] },
    hint: `Add --format ${other}`,
  })
}

export const searchUnavailable = () =>
  svcError('UNAVAILABLE', 'the store has no full-text search', {
    hint: 'Use a store that provides the service TextIndex, such as store-sqlite',
  })

export const jobsUnavailable = () =>
  svcError('UNAVAILABLE', 'background jobs are off', {
    hint: 'Add "@svc/plugin-jobs" to "plugins", or delete the conversations one by one',
  })

export const adminOnly = (what: string) =>
  svcError('FORBIDDEN', `${what} needs the scope admin`, { hint: 'Use a credential with the scope admin' })

/** No server runs that a command can reach. */
export const serverNone = () =>
  svcError('SERVER_NONE', 'only a running server has conversations, and no server runs from this svc home', {
    hint: 'Start it with `svc serve`, or name one with --url',
  })

export const nothingToExport = () =>
  svcError('CONVERSATION_MISSING', 'no conversation is named', { hint: 'Add an id, --label or --all' })

export const conditionMissing = () =>
  svcError('CONVERSATION_MISSING', 'name one conversation, or at least one condition', {
    hint: 'Add an id, or one of --label, --before, --query and --owner',
  })

export const notConfirmed = () =>
  svcError('NOT_CONFIRMED', 'this deletes all conversations that meet the conditions', { hint: 'Add --yes to delete them' })

export const beforeInvalid = (given: string) =>
  svcError('TIME_INVALID', `--before is not a time: ${JSON.stringify(given.slice(0, 100))}`, {
    hint: 'Write a time such as 2026-01-31 or a number of days such as 90d',
  })

/** A part of a file was refused, after others were imported. */
export const importStopped = (imported: number, before: number, cause: unknown) =>
  svcError('IMPORT_STOPPED', `${messageOf(cause)} (counted from line ${before + 1} of the file)`, {
    cause,
    details: { imported, lines: before },
    hint: `${imported} conversations, up to line ${before}, are imported; import the rest of the file`,
  })

export const cursorInvalid = () =>
  svcError('INVALID_VALUE', 'cursor is invalid', {
    details: { field: 'cursor', reason: 'unknown cursor' },
    hint: 'Use next_cursor of the previous page',
  })
