import { svcError } from '@svc/core'

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

export const ticketUnknown = () =>
  svcError('TICKET_UNKNOWN', 'this turn has ended already', { hint: 'Begin a turn before you append to it' })

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

export const searchUnavailable = () =>
  svcError('UNAVAILABLE', 'the store has no full-text search', {
    hint: 'Use a store that provides the service TextIndex, such as store-sqlite',
  })

export const jobsUnavailable = () =>
  svcError('UNAVAILABLE', 'background jobs are off', { hint: 'Load the plugin jobs, or delete the conversations one by one' })

export const adminOnly = (what: string) =>
  svcError('FORBIDDEN', `${what} needs the scope admin`, { hint: 'Use a credential with the scope admin' })

/** No server runs that the command can reach. */
export const serverNone = () =>
  svcError('SERVER_NONE', 'no server is running', { hint: 'Start one: `svc serve`, or name one with --url' })

export const cursorInvalid = () =>
  svcError('INVALID_VALUE', 'cursor is invalid', {
    details: { field: 'cursor', reason: 'unknown cursor' },
    hint: 'Use next_cursor of the previous page',
  })
