import { svcError } from '@svc/core'

export const conversationUnknown = (conversationId: string) =>
  svcError('CONVERSATION_UNKNOWN', `there is no conversation "${conversationId.slice(0, 100)}"`, {
    details: { conversationId: conversationId.slice(0, 100) },
    hint: 'leave conversation_id out to begin a new one',
  })

export const conversationBusy = (conversationId: string, waitMs: number) =>
  svcError('CONVERSATION_BUSY', `other turns kept this conversation for more than ${waitMs} ms`, {
    details: { conversationId, waitMs },
    hint: 'try again when the turns before have ended',
  })

export const conversationFull = (limit: number, unit: 'messages' | 'bytes') =>
  svcError('CONVERSATION_FULL', `the conversation has reached its limit of ${limit} ${unit}`, {
    details: { limit, unit },
    hint: 'begin a new conversation',
  })

export const ticketUnknown = () =>
  svcError('TICKET_UNKNOWN', 'this turn has ended already', { hint: 'begin a turn before appending to it' })

export const cursorInvalid = () =>
  svcError('INVALID_VALUE', 'cursor is none that this service has given', {
    details: { field: 'cursor', reason: 'unknown cursor' },
    hint: 'take next_cursor of the page before',
  })
