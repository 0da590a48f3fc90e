import type { CallContext } from '@svc/core'
import type { RunEvent, Workflows } from '@svc/core/contracts'
import { eventFrame, HEARTBEAT, plainFrame, retryField } from '@svc/provider-http/sse'
import { eventRecord } from '@svc/api-types'

/** What runs have told, as frames of event streams. */
export interface RunStreams {
  /** What has happened in a run after this event, and what happens, up to its end. */
  of(id: string, after: number, ctx: CallContext): AsyncGenerator<string, void>
  /** Ends those that are open, and tells their readers when to come back: to another worker. */
  leave(): void
}

export function createRunStreams(workflows: Workflows): RunStreams {
  const leaving = new AbortController()
  return {
    leave: () => leaving.abort(),
    async *of(id, after, ctx) {
      await workflows.get(id, ctx)
      // a run may be quiet for days: whoever comes back to it must see that the stream is open
      yield HEARTBEAT
      const signal = AbortSignal.any([ctx.signal, leaving.signal])
      try {
        for await (const event of workflows.events(id, after, { ...ctx, signal })) yield frameOf(id, event)
      } catch (error) {
        if (!leaving.signal.aborted) throw error
      }
      if (leaving.signal.aborted) yield `${retryField()}\n`
    },
  }
}

/** What is in no log has no id: a reader that comes back names the last event that is. */
function frameOf(id: string, event: RunEvent): string {
  const data = JSON.stringify(eventRecord(id, event))
  return event.id === undefined ? plainFrame(event.type, data) : eventFrame(event.id, event.type, data)
}
