import { systemContext, type SvcError } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { createUpstream, cutShort, type FrameReader, type UpstreamOptions } from '@svc/provider-http'
import { expect } from 'chai'
import { type Answerer, type FakeUpstream, openUpstream } from '@svc/testing'
import { wait } from '../../../../test/support/wait.ts'

export const SECRET = 'sk-canary-0123456789'
export const abortable = () => {
  const controller = new AbortController()
  const trace = { trace: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, traceState: 'a=1' }
  return { ctx: { ...systemContext(controller.signal, 'request-1'), ...trace }, controller }
}
export const reader = (): FrameReader => {
  let over = false
  return {
    get done() {
      return over
    },
    frame(data, event, emit) {
      if (data === '[DONE]') over = true
      else emit({ type: 'text', text: event === 'message' ? (JSON.parse(data) as { t: string }).t : `${event}: ${data}` })
    },
    end(emit) {
      if (!over) throw cutShort('acme')
      emit({ type: 'finish', reason: 'stop' })
    },
  }
}
export const frame = (t: string) => `data: ${JSON.stringify({ t })}\n\n`
export const DONE = 'data: [DONE]\n\n'

export async function open(by: Answerer, more: Partial<UpstreamOptions> = {}) {
  const fake = await openUpstream(by)
  const upstream = createUpstream({
    provider: 'acme',
    baseUrl: `${fake.url}/v1/`,
    headers: { Authorization: `Bearer ${SECRET}` },
    secrets: [SECRET],
    ...more,
  })
  const close = async () => {
    await upstream.close()
    await fake.close()
  }
  return { fake, upstream, [Symbol.asyncDispose]: close }
}
export const textOf = (events: readonly ModelEvent[]) =>
  events.map(event => (event.type === 'text' ? event.text : `<${event.type}>`)).join('|')

export async function failing(work: Promise<unknown>): Promise<SvcError> {
  return work.then(
    () => expect.fail('it did not fail'),
    (error: SvcError) => error
  )
}
export async function becomes(holds: () => boolean) {
  while (!holds()) await wait()
}
/** All that comes, and how it ended. */
export async function readAll(events: AsyncIterable<ModelEvent>) {
  const all: ModelEvent[] = []
  try {
    for await (const event of events) all.push(event)
  } catch (error) {
    return { all, error: error as SvcError }
  }
  return { all }
}
export async function idle(fake: FakeUpstream) {
  await becomes(() => fake.open() === 0)
}
