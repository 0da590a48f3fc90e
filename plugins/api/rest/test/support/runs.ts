import { readEvents, type ServerEvent } from '@svc/provider-http/sse'
import type { Json } from '@svc/core/contracts'
import type { Fixture } from '@svc/testing'
import { WITH_WORKFLOWS } from './asking.ts'
import { serveRest } from './rest-server.ts'

export const PATH = '/api/v1/workflows'

/** The API with workflows; what it is asked and answered in few words. */
export async function serveRuns(config = {}, more: readonly Fixture[] = []) {
  const served = await serveRest({ ...WITH_WORKFLOWS, more: [...WITH_WORKFLOWS.more, ...more], config })
  const { call, url } = served
  return {
    ...served,
    /** Begins a run; without headers it is not waited for. */
    async begin(
      workflow: string,
      headers: Record<string, string> = { prefer: 'respond-async' },
      more: { [key: string]: Json } = {}
    ) {
      const { body } = await call('POST', `${PATH}/run`, { workflow, ...more }, headers)
      return body as { readonly workflow_id: string; readonly [field: string]: Json }
    },
    of: (id: string, what: string, headers: Record<string, string> = {}) =>
      call('GET', `${PATH}/${id}/${what}`, undefined, headers),
    send: (id: string, what: string, body?: Json) => call('POST', `${PATH}/${id}/${what}`, body),
    /** The stream of a run, from the event after this one on. */
    async *watch(id: string, after?: string) {
      const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
      const answer = await fetch(`${url}${PATH}/${id}/events`, { headers })
      yield* readEvents(answer.body as AsyncIterable<Uint8Array>)
    },
  }
}

/** The events up to the first of this type. */
export async function until(events: AsyncIterator<ServerEvent>, type: string): Promise<ServerEvent[]> {
  const seen: ServerEvent[] = []
  while (seen.at(-1)?.event !== type) {
    const { value, done } = await events.next()
    if (done) throw new Error(`the stream ended before ${type}: ${JSON.stringify(seen)}`)
    seen.push(value)
  }
  return seen
}
