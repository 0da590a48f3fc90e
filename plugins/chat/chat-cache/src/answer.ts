import type { FinishReason, ModelEvent } from '@svc/core/contracts'

const WHOLE: ReadonlySet<FinishReason> = new Set(['stop', 'tool_calls'])

/** Whether an answer is one that the next who asks could be given: neither cut nor refused. */
export function isWhole(events: readonly ModelEvent[]): boolean {
  const last = events.at(-1)
  return last?.type === 'finish' && WHOLE.has(last.reason)
}

/** The same answer in as few pieces as it has parts: how it was cut when it came is nothing to keep. */
export function joined(events: readonly ModelEvent[]): ModelEvent[] {
  const parts: ModelEvent[] = []
  let text = ''
  const close = () => {
    if (text !== '') parts.push({ type: 'text', text })
    text = ''
  }
  for (const event of events) {
    if (event.type === 'text') {
      text += event.text
      continue
    }
    close()
    parts.push(event)
  }
  close()
  return parts
}
