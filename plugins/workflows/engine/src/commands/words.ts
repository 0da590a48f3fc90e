import { oneLine } from '@svc/plugin-kit'
import type { Question } from '@svc/core/contracts'
import { answersTo } from './values.ts'

interface Wait {
  readonly step: string
  readonly until?: number | undefined
  readonly event?: string | undefined
  readonly ask?: Question | undefined
}

/** What a run waits for, and how it goes on. */
export function waitText(id: string, { step, until, event, ask }: Wait): string {
  const end = until === undefined ? '' : ` until ${new Date(until).toISOString()}`
  if (ask)
    return `${step} asks${end}: ${oneLine(ask.message, 400)} (${answersTo(ask)})\n  svc workflows answer ${id} ${step} <answer>`
  return event === undefined ? `${step} waits${end}` : `${step} waits${end} for the event "${event}"`
}
