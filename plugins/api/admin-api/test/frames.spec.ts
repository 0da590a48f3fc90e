import { svcError } from '@svc/core'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { framesOf, type StreamEvent } from '../src/frames.ts'

const END = { type: 'end', ok: false }
const options = { record: (event: StreamEvent) => (event.type === 'hidden' ? undefined : event), failed: () => END }

/** The events of frames. */
const eventsIn = (frames: readonly string[]) =>
  frames.map(frame => {
    const [, id, type, data] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)\n\n$/.exec(frame)!
    return { id: Number(id), type, data: JSON.parse(data!) as StreamEvent & { error_code?: string; error?: string } }
  })

async function read(items: AsyncIterable<StreamEvent>, ctx = testContext()): Promise<string[]> {
  const frames: string[] = []
  for await (const frame of framesOf(items, options, ctx)) frames.push(frame)
  return frames
}

async function* failing(after: readonly StreamEvent[], error: unknown) {
  yield* after
  throw error
}

describe('the frames of a stream', () => {
  it('have ids in order, and leave out items without an event', async () => {
    const frames = eventsIn(
      await read(failing([{ type: 'a' }, { type: 'hidden' }, { type: 'b' }], svcError('TIMEOUT', 'too late')))
    )
    expect(frames.map(({ id, type }) => `${id} ${type}`)).to.deep.equal(['1 a', '2 b', '3 error', '4 end'])
    expect(frames[2]!.data).to.deep.include({ error_code: 'TIMEOUT', error: 'too late' })
    expect(frames[3]!.data).to.deep.equal(END)
  })

  it('throw an error before the first event, so that it becomes a response', async () => {
    const thrown = await read(failing([{ type: 'hidden' }], svcError('FORBIDDEN', 'no'))).then(
      () => undefined,
      (error: unknown) => error
    )
    expect(thrown).to.have.property('code', 'FORBIDDEN')
  })

  it('show nothing of an internal error', async () => {
    const frames = await read(failing([{ type: 'a' }], new Error('the secret of the machine')))
    expect(eventsIn(frames)[1]!.data).to.include({ error_code: 'INTERNAL_ERROR' })
    expect(frames.join('')).to.not.include('secret')
  })

  it('end without an error where the reader has left, and with one where the server stops', async () => {
    const abort = new AbortController()
    const items = async function* () {
      yield { type: 'a' }
      abort.abort(svcError('CLIENT_GONE', 'the client has left'))
      throw abort.signal.reason
    }
    const ctx = { ...testContext(), signal: abort.signal }
    const thrown = await read(items(), ctx).catch((error: unknown) => error)
    expect(thrown).to.have.property('code', 'CLIENT_GONE')
    const stop = new AbortController()
    const stopped = async function* () {
      yield { type: 'a' }
      stop.abort(svcError('UNAVAILABLE', 'the server is stopping'))
      throw new Error('aborted')
    }
    const frames = eventsIn(await read(stopped(), { ...testContext(), signal: stop.signal }))
    expect(frames.map(({ type }) => type)).to.deep.equal(['a', 'error', 'end'])
    expect(frames[1]!.data).to.include({ error_code: 'UNAVAILABLE' })
  })
})
