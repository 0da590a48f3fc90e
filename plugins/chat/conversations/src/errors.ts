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

export const cursorInvalid = () =>
  svcError('INVALID_VALUE', 'cursor is invalid', {
    details: { field: 'cursor', reason: 'unknown cursor' },
    hint: 'Use next_cursor of the previous page',
  })
